"""Annotated modules on two and four partitions: what one device makes of them unannotated."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

import tracejit as tj
from tracejit.errors import ArgumentError, AttributeValueError, UnsupportedError
from tracejit.graph import Module
from tracejit.hlo import parse
from tracejit.passes.partition import partition
from tracejit.passes.partition.tiling import tiling

ADD = """add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
"""


def module(body: str, partitions: int, extra: str = ADD) -> Module:
    return parse(f"HloModule m, num_partitions={partitions}\n{extra}\nENTRY e {{\n{body}\n}}")


def arrays(of: Module) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = [parameter.array_shape for parameter in of.entry.parameters]
    return [
        rng.integers(0, 5, s.dimensions).astype(s.dtype)
        if s.dtype.kind in "iu"
        else rng.standard_normal(s.dimensions).astype(s.dtype)
        for s in shapes
    ]


def check(body: str, partitions: int, collectives: str | None, extra: str = ADD) -> None:
    """The interpreter and threads make what one device makes; ``collectives`` are those used."""
    annotated = module(body, partitions, extra)
    plain = re.sub(r",\s+sharding=\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}", "", body)
    assert "sharding" not in plain
    given = arrays(annotated)
    wanted = tj.interpret(module(plain, 1, re.sub(", sharding=.*", "", extra)), *given)
    for made in (tj.interpret(annotated, *given), tj.compile(annotated)(*given)):
        pairs = zip(made, wanted, strict=True) if isinstance(wanted, tuple) else [(made, wanted)]
        for one, other in pairs:
            np.testing.assert_allclose(one, other, 2e-5, 2e-5)
            assert one.shape == other.shape
            assert one.dtype == other.dtype
    if collectives is None:
        return
    text = str(partition(annotated).module)
    found = re.findall(r" (all-to-all|all-gather|all-reduce|collective-permute)\(", text)
    assert " ".join(sorted(set(found))) == collectives


ROWS = {2: "{devices=[2,1]<=[2]}", 4: "{devices=[4,1]<=[4]}"}
COLUMNS = {2: "{devices=[1,2]<=[2]}", 4: "{devices=[1,4]<=[4]}"}
BLOCKS = {2: "{devices=[1,2]<=[2]}", 4: "{devices=[2,2]<=[4]}"}
SWAPPED = {2: "{devices=[2,1]1,0}", 4: "{devices=[2,2]<=[2,2]T(1,0)}"}
SOME = {2: "{devices=[2,1]<=[2]}", 4: "{devices=[2,1,2]<=[4] last_tile_dim_replicate}"}
WHOLE = {2: "{replicated}", 4: "{maximal device=0}"}
EVERY = [ROWS, COLUMNS, BLOCKS, SWAPPED, SOME, WHOLE]
COUNTS = pytest.mark.parametrize("n", [2, 4])


@pytest.mark.parametrize(("first", "second"), list(itertools.product(EVERY, EVERY)))
@COUNTS
def test_every_tiling_becomes_every_other(
    n: int, first: dict[int, str], second: dict[int, str]
) -> None:
    body = f"""
  x = f32[8,12] parameter(0), sharding={first[n]}
  y = f32[8,12] negate(x), sharding={first[n]}
  ROOT z = f32[8,12] copy(y), sharding={second[n]}"""
    annotated = module(body, n)
    (x,) = arrays(annotated)
    np.testing.assert_array_equal(tj.interpret(annotated, x), -x)


@COUNTS
def test_resharding_uses_the_collective_that_moves_least(n: int) -> None:
    def body(first: str, second: str) -> str:
        return f"""
  x = f32[8,12] parameter(0), sharding={first}
  ROOT z = f32[8,12] copy(x), sharding={second}"""

    check(body(ROWS[n], COLUMNS[n]), n, "all-to-all")
    check(body(ROWS[n], WHOLE[n]), n, "all-gather")
    check(body(WHOLE[n], ROWS[n]), n, "")
    check(body("{devices=[2,2]<=[4]}", SWAPPED[4]), 4, "collective-permute")


@COUNTS
def test_elementwise_and_broadcast(n: int) -> None:
    check(
        f"""
  x = f32[8,12] parameter(0), sharding={ROWS[n]}
  b = f32[12] parameter(1)
  two = f32[] constant(2)
  twos = f32[8,12] broadcast(two), dimensions={{}}
  bs = f32[8,12] broadcast(b), dimensions={{1}}
  s = f32[8,12] add(x, bs)
  t = f32[8,12] multiply(s, twos)
  p = pred[8,12] compare(t, x), direction=GT
  ROOT r = f32[8,12] select(p, t, x), sharding={ROWS[n]}""",
        n,
        "",
    )


@COUNTS
@pytest.mark.parametrize("init", ["0", "3"])
def test_reductions(n: int, init: str) -> None:
    check(
        f"""
  x = f32[8,12] parameter(0), sharding={BLOCKS[n]}
  zero = f32[] constant({init})
  rows = f32[8] reduce(x, zero), dimensions={{1}}, to_apply=add
  columns = f32[12] reduce(x, zero), dimensions={{0}}, to_apply=add
  all = f32[] reduce(x, zero), dimensions={{0,1}}, to_apply=add
  ROOT t = (f32[8], f32[12], f32[]) tuple(rows, columns, all)""",
        n,
        "all-reduce" if init == "0" else "all-gather",
    )


DOT = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"


@COUNTS
@pytest.mark.parametrize(
    ("x", "w", "result", "collectives"),
    [
        (ROWS, WHOLE, ROWS, ""),
        (WHOLE, COLUMNS, COLUMNS, ""),
        (COLUMNS, ROWS, WHOLE, "all-reduce"),
        (ROWS, ROWS, ROWS, "all-gather"),
        (SOME, SWAPPED, BLOCKS, None),
        (BLOCKS, BLOCKS, SWAPPED, None),
    ],
)
def test_products(
    n: int, x: dict[int, str], w: dict[int, str], result: dict[int, str], collectives: str | None
) -> None:
    body = f"""
  x = f32[8,12] parameter(0), sharding={x[n]}
  w = f32[12,16] parameter(1), sharding={w[n]}
  ROOT r = f32[8,16] dot(x, w), {DOT}, sharding={result[n]}"""
    if collectives is None:
        annotated = module(body, n)
        a, b = arrays(annotated)
        np.testing.assert_allclose(tj.interpret(annotated, a, b), a @ b, 1e-4, 1e-5)
    else:
        check(body, n, collectives)


@COUNTS
def test_two_layers_by_columns_then_rows(n: int) -> None:
    """Tensor parallelism: one AllReduce for both layers."""
    check(
        f"""
  x = f32[4,8] parameter(0), sharding={WHOLE[n]}
  w = f32[8,16] parameter(1), sharding={COLUMNS[n]}
  v = f32[16,8] parameter(2), sharding={ROWS[n]}
  h = f32[4,16] dot(x, w), {DOT}
  t = f32[4,16] tanh(h)
  ROOT y = f32[4,8] dot(t, v), {DOT}, sharding={{replicated}}""",
        n,
        "all-reduce",
    )


@COUNTS
def test_batched_products(n: int) -> None:
    split = f"{{devices=[{n},1,1]<=[{n}]}}"
    numbers = "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}"
    numbers += ", rhs_contracting_dims={1}"
    check(
        f"""
  x = f32[4,3,5] parameter(0), sharding={split}
  y = f32[4,5,2] parameter(1)
  ROOT r = f32[4,3,2] dot(x, y), {numbers}, sharding={split}""",
        n,
        "",
    )


@COUNTS
def test_convolution_by_batch_and_by_features(n: int) -> None:
    batch, kernel = f"{{devices=[{n},1,1,1]<=[{n}]}}", f"{{devices=[1,1,1,{n}]<=[{n}]}}"
    form = "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f"
    for x, w, y in ((batch, "{replicated}", batch), ("{replicated}", kernel, kernel)):
        check(
            f"""
  x = f32[4,6,6,3] parameter(0), sharding={x}
  w = f32[3,3,3,4] parameter(1), sharding={w}
  ROOT y = f32[4,6,6,4] convolution(x, w), {form}, sharding={y}""",
            n,
            "",
        )


@COUNTS
def test_movements(n: int) -> None:
    check(
        f"""
  x = f32[8,12] parameter(0), sharding={ROWS[n]}
  t = f32[12,8] transpose(x), dimensions={{1,0}}
  flat = f32[96] reshape(x)
  cubes = f32[8,3,4] reshape(x)
  zero = f32[] constant(0)
  padded = f32[8,14] pad(x, zero), padding=0_0x1_1
  part = f32[8,5] slice(x), slice={{[0:8], [2:7]}}
  both = f32[8,24] concatenate(x, x), dimensions={{1}}
  back = f32[8,12] reverse(x), dimensions={{1}}
  count = f32[8,12] iota(), iota_dimension=0
  sum = f32[8,12] add(x, count)
  ROOT r = (f32[12,8], f32[96], f32[8,3,4], f32[8,14], f32[8,5], f32[8,24], f32[8,12], f32[8,12])
    tuple(t, flat, cubes, padded, part, both, back, sum)""",
        n,
        "",
    )


@COUNTS
def test_rows_of_a_table(n: int) -> None:
    check(
        f"""
  table = f32[5,6] parameter(0)
  i = s32[8,1] parameter(1), sharding={ROWS[n]}
  ROOT r = f32[8,6] gather(table, i), offset_dims={{1}}, collapsed_slice_dims={{0}},
    start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1,6}}, sharding={ROWS[n]}""",
        n,
        "",
    )


@COUNTS
def test_calls_and_windows(n: int) -> None:
    extra = f"""{ADD}
inner {{ p = f32[8,12] parameter(0)
  q = f32[8,12] multiply(p, p), sharding={COLUMNS[n]}
  ROOT r = f32[8,12] sine(q) }}
"""
    check(
        f"""
  x = f32[8,12] parameter(0), sharding={COLUMNS[n]}
  y = f32[8,12] call(x), to_apply=inner
  zero = f32[] constant(0)
  ROOT w = f32[7,12] reduce-window(y, zero), window={{size=2x1}}, to_apply=add""",
        n,
        "",
        extra,
    )


LOOP = """less { s = (s32[], f32[8,12], f32[3,12]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT l = pred[] compare(i, n), direction=LT }
step { s = (s32[], f32[8,12], f32[3,12]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[8,12] get-tuple-element(s), index=1
  all = f32[3,12] get-tuple-element(s), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  zero = f32[] constant(0)
  sums = f32[12] reduce(x, zero), dimensions={0}, to_apply=add
  row = f32[1,12] reshape(sums)
  start = s32[] constant(0)
  next = f32[3,12] dynamic-update-slice(all, row, i, start)
  y = f32[8,12] sine(x)
  ROOT r = (s32[], f32[8,12], f32[3,12]) tuple(j, y, next) }
"""


def looped(sharding: str) -> str:
    """Calls `LOOP` on a matrix."""
    return f"""
  zero = s32[] constant(0)
  x = f32[8,12] parameter(0), sharding={sharding}
  none = f32[] constant(0)
  nothing = f32[3,12] broadcast(none), dimensions={{}}
  s = (s32[], f32[8,12], f32[3,12]) tuple(zero, x, nothing)
  ROOT w = (s32[], f32[8,12], f32[3,12]) while(s), condition=less, body=step"""


@COUNTS
@pytest.mark.parametrize(
    ("tiled", "collectives"), [(ROWS, "all-reduce"), (COLUMNS, ""), (BLOCKS, None), (WHOLE, "")]
)
def test_loops(n: int, tiled: dict[int, str], collectives: str | None) -> None:
    """What the body makes in parts is in parts in the whole loop."""
    check(looped(tiled[n]), n, collectives, ADD + LOOP)


@COUNTS
def test_a_loop_whose_state_is_annotated(n: int) -> None:
    body = f"""
  zero = s32[] constant(0)
  x = f32[8,12] parameter(0), sharding={ROWS[n]}
  none = f32[] constant(0)
  nothing = f32[3,12] broadcast(none), dimensions={{}}
  s = (s32[], f32[8,12], f32[3,12]) tuple(zero, x, nothing)
  ROOT w = (s32[], f32[8,12], f32[3,12]) while(s), condition=less, body=step,
    sharding={{{{replicated}}, {COLUMNS[n]}, {{replicated}}}}"""
    check(body, n, "all-gather all-to-all", ADD + LOOP)


@COUNTS
@pytest.mark.parametrize("selector", ["pred", "s32"])
def test_branches(n: int, selector: str) -> None:
    """The selector is whole; both branches make what the first one makes."""
    form = "branch_computations={double, turn}"
    if selector == "pred":
        form = "true_computation=double, false_computation=turn"
    extra = f"""{ADD}
double {{ x = f32[8,12] parameter(0)
  ROOT y = f32[8,12] add(x, x) }}
turn {{ x = f32[8,12] parameter(0)
  y = f32[8,12] negate(x), sharding={COLUMNS[n]}
  ROOT z = f32[8,12] sine(y) }}
"""
    convert = "convert(p)" if selector == "s32" else "copy(p)"
    for sign in ("LT", "GE"):
        body = f"""
  x = f32[8,12] parameter(0), sharding={ROWS[n]}
  zero = f32[] constant(0)
  sum = f32[] reduce(x, zero), dimensions={{0,1}}, to_apply=add
  p = pred[] compare(sum, zero), direction={sign}
  i = {selector}[] {convert}
  c = f32[8,12] conditional(i, x, x), {form}
  ROOT r = f32[8,12] copy(c), sharding={ROWS[n]}"""
        check(body, n, "all-reduce all-to-all", extra)


@COUNTS
@pytest.mark.parametrize("where", [ROWS, COLUMNS, BLOCKS, WHOLE])
@pytest.mark.parametrize("updates", [ROWS, COLUMNS, BLOCKS, WHOLE])
def test_scatters(n: int, where: dict[int, str], updates: dict[int, str]) -> None:
    """By updates where they are summed, by what is written whole in any case."""
    form = "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}"
    body = f"""
  x = f32[8,12] parameter(0), sharding={where[n]}
  i = s32[8,1] parameter(1)
  u = f32[8,12] parameter(2), sharding={updates[n]}
  ROOT r = f32[8,12] scatter(x, i, u), {form}, index_vector_dim=1, to_apply=add"""
    check(body, n, None)
    check(body.replace("=add", "=last"), n, None, LAST)


LAST = """last { a = f32[] parameter(0)
  ROOT b = f32[] parameter(1) }
"""


def test_gradients_of_a_table_are_summed() -> None:
    """Updates of a batch that is split: each partition scatters its own."""
    form = "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}"
    body = f"""
  x = f32[5,6] parameter(0)
  i = s32[8,1] parameter(1), sharding={ROWS[2]}
  u = f32[8,6] parameter(2), sharding={ROWS[2]}
  ROOT r = f32[5,6] scatter(x, i, u), {form}, index_vector_dim=1, to_apply=add"""
    check(body, 2, "all-reduce")


@COUNTS
def test_indexing_by_what_is_taken_whole(n: int) -> None:
    """Columns of a table, of slices at unknown rows, and matrices of a batch."""
    batch = f"{{devices=[{n},1,1]<=[{n}]}}"
    check(
        f"""
  table = f32[5,12] parameter(0), sharding={COLUMNS[n]}
  i = s32[8,1] parameter(1)
  k = s32[] constant(2)
  zero = s32[] constant(0)
  rows = f32[8,12] gather(table, i), offset_dims={{1}}, collapsed_slice_dims={{0}},
    start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1,12}}
  part = f32[2,12] dynamic-slice(table, k, zero), dynamic_slice_sizes={{2,12}}
  a = f32[4,3,3] parameter(2), sharding={batch}
  b = f32[4,3,2] parameter(3)
  t = f32[4,3,2] triangular-solve(a, b), left_side=true, lower=true, transpose_a=NO_TRANSPOSE,
    unit_diagonal=true
  top = (f32[4,3,1], s32[4,3,1]) topk(t), k=1, largest=true
  best = f32[4,3,1] get-tuple-element(top), index=0
  bytes = u8[4,3,3,4] bitcast-convert(a)
  ROOT r = (f32[8,12], f32[2,12], f32[4,3,2], f32[4,3,1], u8[4,3,3,4])
    tuple(rows, part, t, best, bytes)""",
        n,
        "",
    )


UNEVEN = {
    "reduce": "ROOT r = f32[10] reduce(x, zero), dimensions={0}, to_apply=add",
    "reduce all": "ROOT r = f32[] reduce(x, zero), dimensions={0,1}, to_apply=add",
    "log": "l = f32[7,10] log(x)\n a = f32[7,10] abs(l)\n ROOT r = f32[7,10] copy(a)",
    "dot": f"ROOT r = f32[7,6] dot(x, w), {DOT}",
    "poisoned dot": f"q = f32[7,10] divide(x, x)\n ROOT r = f32[7,6] dot(q, w), {DOT}",
    "transpose": "ROOT r = f32[10,7] transpose(x), dimensions={1,0}",
    "reshape": "ROOT r = f32[70] reshape(x)",
    "split": "ROOT r = f32[7,2,5] reshape(x)",
    "reverse": "ROOT r = f32[7,10] reverse(x), dimensions={0}",
    "slice": "ROOT r = f32[4,10] slice(x), slice={[3:7],[0:10]}",
    "pad": "ROOT r = f32[7,12] pad(x, zero), padding=0_0x1_1",
    "concatenate": "ROOT r = f32[14,10] concatenate(x, x), dimensions={0}",
    "gather": "ROOT r = f32[3,10] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, "
    "start_index_map={0}, index_vector_dim=1, slice_sizes={1,10}",
    "scatter": "ROOT r = f32[7,10] scatter(x, i, u), update_window_dims={1}, "
    "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add",
    "iota": "c = f32[7,10] iota(), iota_dimension=0\n ROOT r = f32[7,10] add(c, x)",
}


@COUNTS
@pytest.mark.parametrize("op", UNEVEN)
@pytest.mark.parametrize("tiled", EVERY[:5])
def test_dimensions_that_do_not_divide(n: int, op: str, tiled: dict[int, str]) -> None:
    """The padding of the last parts is in no result."""
    body = f"""
  x = f32[7,10] parameter(0), sharding={tiled[n]}
  w = f32[10,6] parameter(1), sharding={tiled[n]}
  i = s32[3,1] parameter(2), sharding={ROWS[n]}
  u = f32[3,10] parameter(3), sharding={tiled[n]}
  zero = f32[] constant(0)
  {UNEVEN[op]}, sharding={{replicated}}"""
    annotated = module(body, n)
    plain = module(re.sub(r", sharding=\{(?:[^{}]|\{[^{}]*\})*\}", "", body), 1)
    given = arrays(annotated)
    made, wanted = tj.interpret(annotated, *given), tj.interpret(plain, *given)
    np.testing.assert_allclose(made, wanted, 1e-5, 1e-5)
    if tiled is SWAPPED:
        np.testing.assert_allclose(tj.compile(annotated)(*given), wanted, 1e-5, 1e-5)


@pytest.mark.parametrize(("first", "second"), list(itertools.product(EVERY, EVERY)))
@COUNTS
def test_uneven_tilings_become_each_other(
    n: int, first: dict[int, str], second: dict[int, str]
) -> None:
    body = f"""
  x = f32[5,3] parameter(0), sharding={first[n]}
  y = f32[5,3] exponential(x)
  ROOT z = f32[5,3] copy(y), sharding={second[n]}"""
    annotated = module(body, n)
    (x,) = arrays(annotated)
    np.testing.assert_allclose(tj.interpret(annotated, x), np.exp(x), 1e-6)


def test_a_region_by_hand() -> None:
    """As JAX lowers shard_map."""
    text = f"""
  x = f32[8,3] parameter(0), sharding={ROWS[2]}
  mark = f32[8,3] custom-call(x), custom_call_target="Sharding", sharding={ROWS[2]}
  in = f32[4,3] custom-call(mark), custom_call_target="SPMDFullToShardShape", sharding={{manual}}
  sum = f32[4,3] all-reduce(in), channel_id=1, replica_groups={{{{0,1}}}},
    use_global_device_ids=true, to_apply=add, sharding={{manual}}
  two = f32[4,3] add(sum, in), sharding={{manual}}
  left = f32[4,3] custom-call(two), custom_call_target="Sharding", sharding={{manual}}
  out = f32[8,3] custom-call(left), custom_call_target="SPMDShardToFullShape", sharding={ROWS[2]}
  ROOT r = f32[8,3] negate(out)"""
    annotated = module(text, 2)
    (x,) = arrays(annotated)
    total = x[:4] + x[4:]
    wanted = -np.concatenate([total + x[:4], total + x[4:]])
    np.testing.assert_allclose(tj.interpret(annotated, x), wanted, 1e-6)
    np.testing.assert_allclose(tj.compile(annotated)(x), wanted, 1e-6)


def test_a_region_by_hand_along_one_axis() -> None:
    """As JAX lowers shard_map of some axes: along the others each partition has the whole."""
    inner = "{devices=[2,1,2]<=[4] last_tile_dims={manual}}"
    text = f"""
  x = f32[8,4] parameter(0), sharding={{devices=[2,2]<=[4]}}
  in = f32[8,2] custom-call(x), custom_call_target="SPMDFullToShardShape", sharding={inner}
  sum = f32[8,2] all-reduce(in), channel_id=1, replica_groups={{{{0,1}},{{2,3}}}},
    use_global_device_ids=true, to_apply=add, sharding={inner}
  two = f32[8,2] add(sum, in), sharding={inner}
  ROOT out = f32[8,4] custom-call(two), custom_call_target="SPMDShardToFullShape",
    sharding={{devices=[2,2]<=[4]}}"""
    annotated = module(text, 4)
    (x,) = arrays(annotated)
    wanted = x + np.tile(x[:, :2] + x[:, 2:], 2)
    np.testing.assert_allclose(tj.interpret(annotated, x), wanted, 1e-6)
    np.testing.assert_allclose(tj.compile(annotated)(x), wanted, 1e-6)


def test_every_form_of_a_sharding() -> None:
    assert tiling("devices=[2,1]<=[2]", 2, 2) == ((0, 1), (0, 0))
    assert tiling("devices=[2,1]1,0", 2, 2) == ((1, 0), (0, 0))
    assert tiling("devices=[2,2]<=[2,2]T(1,0)", 2, 4) == ((0, 0, 1, 1), (0, 1, 0, 1))[::-1]
    assert tiling("devices=[1,2,2]<=[4] last_tile_dim_replicate", 2, 4) == (
        (0, 0, 0, 0),
        (0, 0, 1, 1),
    )
    assert tiling("devices=[1,2]<=[2] last_tile_dims={manual}", 1, 2) is None
    assert tiling("maximal device=1", 1, 2) == ((0, 0),)
    assert tiling('replicated metadata={op_name="a"}', 0, 2) == ()
    for text in ("devices=[2,1]<=[4]", "devices=[2]<=[2]", "devices=[2,1]0,0", "shared"):
        with pytest.raises(AttributeValueError, match=re.escape(text)):
            tiling(text, 2, 2)
    with pytest.raises(UnsupportedError, match="manual along some axes only"):
        tiling("devices=[2,2]<=[4] last_tile_dims={manual}", 1, 4)


@pytest.mark.parametrize(
    ("lines", "error", "message"),
    [
        ("x = f32[4,2,2,2] parameter(0), sharding={devices=[2,1,1,1]<=[2]}\n"
         "s = f32[2] parameter(1)\n"
         "ROOT y = (f32[4,2,2,2], f32[2], f32[2]) batch-norm-training(x, s, s), epsilon=1, "
         "feature_index=3",
         UnsupportedError, "batch_norm_training: the partitioner cannot split it: there is no"),
        ("x = f32[4] parameter(0), sharding={devices=[2]<=[2]}\n"
         "ROOT y = f32[4] all-reduce(x), to_apply=add",
         UnsupportedError, "all_reduce: the partitioner cannot split it: what it does depends"),
        ("x = f32[4] parameter(0), sharding={devices=[3]<=[3]}\n ROOT y = f32[4] negate(x)",
         AttributeValueError, "does not go with an array of rank 1 and 2 partitions"),
    ],
)  # fmt: skip
def test_what_is_refused_is_named(lines: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        tj.compile(module(lines, 2))


def test_other_arguments_are_refused() -> None:
    made = tj.compile(module(f"ROOT x = f32[4,2] parameter(0), sharding={ROWS[2]}", 2))
    with pytest.raises(
        ArgumentError, match=r"argument 0 must be f32\[4,2\]; it is float32\[2, 2\]"
    ):
        made(np.zeros((2, 2), np.float32))
    with pytest.raises(ArgumentError, match="compiled for 1 arguments, called with 0"):
        made()


def test_annotations_are_printed_and_read_again() -> None:
    text = str(module(f"ROOT x = f32[4,2] parameter(0), sharding={ROWS[2]}", 2))
    assert "sharding={devices=[2,1]<=[2]}" in text
    assert str(parse(text)) == text
