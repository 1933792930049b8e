"""Small graphs that were once compiled wrong or not at all, each with what it was about."""

from __future__ import annotations

import gc
from collections.abc import Callable

import numpy as np
import pytest

from tests.backends_tvm.compiled import check, compiled, computation
from tests.fuzz.arguments import arguments
from tests.fuzz.comparing import leaves
from tests.lowered import lower
from tracejit import ops
from tracejit.attributes import ConvDimensionNumbers
from tracejit.backends.numpy import evaluate
from tracejit.backends.tvm.cpu.machine import Machine
from tracejit.backends.tvm.cpu.objects.tir_pipeline import contents
from tracejit.graph import Computation, Instruction
from tracejit.shapes import ElementType, Shape, TupleShape

F32, S32, BF16 = ElementType.F32, ElementType.S32, ElementType.BF16
SPECIAL = np.array([1, np.nan, 2, -np.inf, 0.0, -0.0], np.float32)
ROW, SCALAR = Shape(F32, (6,)), Shape(F32)


def full(x: Instruction, value: float) -> Instruction:
    return ops.full_like(x, value)


FLOATS: dict[str, Callable[[Instruction], Instruction]] = {
    "x - x": lambda x: ops.sub(x, x),
    "x != x": lambda x: ops.ne(x, x),
    "x == x": lambda x: ops.eq(x, x),
    "not x < 1": lambda x: ops.not_(ops.lt(x, full(x, 1))),
    "x + 1 - 1": lambda x: ops.sub(ops.add(x, full(x, 1)), full(x, 1)),
    "0 x": lambda x: ops.mul(x, full(x, 0)),
    "x / 0": lambda x: ops.div(x, full(x, 0)),
    "x / -0": lambda x: ops.div(x, full(x, -0.0)),
    "0 / x": lambda x: ops.div(full(x, 0), x),
    "sign of x + 0": lambda x: ops.lt_total_order(ops.add(x, full(x, 0)), full(x, 0)),
    "sign of x - -0": lambda x: ops.lt_total_order(ops.sub(x, full(x, -0.0)), full(x, 0)),
    "position of NaN": lambda x: ops.argmax(x, 0),
}


@pytest.mark.parametrize("name", FLOATS)
def test_floats_are_not_simplified_as_integers(name: str) -> None:
    check(computation(FLOATS[name], ROW), [SPECIAL])


INTEGERS: dict[str, Callable[[Instruction], Instruction]] = {
    "x << 0": lambda x: ops.shift_left(x, full(x, 0)),
    "0 >> x": lambda x: ops.shift_right_arithmetic(full(x, 0), x),
    "bits of 0": lambda x: ops.bitcast_convert_type(full(x, 0), F32),
    "ones in 0": lambda x: ops.population_count(full(x, 0)),
    "zeros in 0": lambda x: ops.clz(full(x, 0)),
    "-0": lambda x: ops.neg(full(x, 0)),
    "x / 0": lambda x: ops.div(x, full(x, 0)),
}


@pytest.mark.parametrize("element_type", [S32, ElementType.U8])
@pytest.mark.parametrize("name", INTEGERS)
def test_literal_zeros(name: str, element_type: ElementType) -> None:
    shape = Shape(element_type, (6,))
    if name == "bits of 0" and element_type is not S32:
        shape = Shape(S32, (6,))
    check(computation(INTEGERS[name], shape), [np.arange(6).astype(shape.dtype)])


def test_operands_that_must_lie_in_memory() -> None:
    """Sort, TopK and SelectAndScatter of what is only a view of something."""

    def build(x: Instruction) -> Instruction:
        turned = ops.transpose(x, (1, 0))
        both = ops.sort([turned, ops.iota(Shape(S32, (5, 4)), 1)], None, 1, True)
        select, combine = (ops.scalar_computation(name, F32) for name in ("ge", "add"))
        init = ops.constant(0, F32)
        scattered = ops.select_and_scatter(
            turned, select, (2, 2), (1, 1), "SAME", turned, init, combine
        )
        top = ops.top_k(turned, 2)
        return ops.tuple_([*ops.elements_of(both), scattered, *ops.elements_of(top)])

    entry = computation(build, Shape(F32, (4, 5)))
    check(entry, arguments(entry, 1))


def nested_call(x: Instruction) -> Instruction:
    called = computation(
        lambda a: ops.elements_of(
            ops.batch_norm_training(a, full_row(3, 1), full_row(3, 0.5), 0.1, 1)
        )[0],
        x.array_shape,
    )
    for _ in range(4):
        inner = called
        called = computation(lambda a, f=inner: ops.add(a, ops.call(f, [a])), x.array_shape)
    return ops.call(called, [x])


def full_row(size: int, value: float) -> Instruction:
    return ops.full(Shape(F32, (size,)), value)


def call_in_reducer(x: Instruction) -> Instruction:
    add = ops.scalar_computation("add", F32)
    combine = computation(lambda a, b: ops.call(add, [a, b]), SCALAR, SCALAR)
    return ops.reduce(x, ops.constant(0, F32), combine, [1])


@pytest.mark.parametrize("build", [nested_call, call_in_reducer])
def test_calls(build: Callable[[Instruction], Instruction]) -> None:
    entry = computation(build, Shape(F32, (2, 3)))
    check(entry, arguments(entry, 1))


STATE = TupleShape((Shape(S32), Shape(F32, (2, 3))))


def doubling(init: Instruction, last: int) -> Instruction:
    def body(state: Instruction) -> Instruction:
        count, x = ops.elements_of(state)
        return ops.tuple_([ops.sub(count, ops.constant(1, S32)), ops.add(x, x)])

    def holds(state: Instruction) -> Instruction:
        return ops.gt(ops.elements_of(state)[0], ops.constant(last, S32))

    return ops.while_(tupled(holds, STATE), tupled(body, STATE), init)


def tupled(build: Callable[[Instruction], Instruction], shape: TupleShape) -> Computation:
    parameter = ops.parameter(0, shape)
    return Computation("inner", (parameter,), build(parameter))


def test_the_tuple_of_one_loop_starts_another() -> None:
    def build(x: Instruction) -> Instruction:
        first = doubling(ops.tuple_([ops.constant(5, S32), x]), 3)
        same = tupled(lambda state: state, STATE)
        chosen = ops.conditional_indexed(ops.constant(1, S32), [same, same], [first, first])
        return doubling(chosen, 1)

    entry = computation(build, Shape(F32, (2, 3)))
    check(entry, arguments(entry, 1))


def test_what_reads_a_nested_tuple_runs_after_its_loop() -> None:
    """A kernel joined with one from before the loop would read what is not there yet."""
    array = Shape(F32, (2, 3))
    shape = TupleShape((Shape(S32), TupleShape((array, TupleShape((array,))))))

    def body(state: Instruction) -> Instruction:
        count, pair = ops.elements_of(state)
        x, inner = ops.elements_of(pair)
        new = ops.add(x, ops.elements_of(inner)[0])
        return ops.tuple_([ops.sub(count, ops.constant(1, S32)), ops.tuple_([new, inner])])

    def holds(state: Instruction) -> Instruction:
        return ops.gt(ops.elements_of(state)[0], ops.constant(1, S32))

    def build(x: Instruction) -> Instruction:
        before = ops.neg(ops.abs(x))
        init = ops.tuple_([ops.constant(5, S32), ops.tuple_([x, ops.tuple_([ops.neg(x)])])])
        _, pair = ops.elements_of(ops.while_(tupled(holds, shape), tupled(body, shape), init))
        return ops.tuple_([before, ops.mul(ops.elements_of(pair)[0], before)])

    entry = computation(build, array)
    check(entry, arguments(entry, 1))


EMPTY: dict[str, tuple[tuple[int, ...], Callable[[Instruction], Instruction]]] = {
    "mean of nothing": (
        (3, 0),
        lambda x: ops.batch_norm_training(x, full_row(3, 1), full_row(3, 1), 0.1, 0),
    ),
    "reshaped": ((0, 3), lambda x: ops.reduce_sum(ops.reshape(x, (3, 0)), (1,))),
    "reshaped, gathered": (
        (2, 0, 3),
        lambda x: ops.reduce_sum(ops.reshape(ops.rev(x, (0, 2)), (3, 0, 2)), (1,)),
    ),
    "products over two empty dimensions": (
        (3, 2, 0),
        lambda x: ops.dot_general(x, x, ops.DotDimensionNumbers((1, 2), (1, 2))),
    ),
}


@pytest.mark.parametrize("name", EMPTY)
def test_empty_arrays(name: str) -> None:
    dimensions, build = EMPTY[name]
    check(computation(build, Shape(F32, dimensions)), [np.zeros(dimensions, np.float32)])


def test_the_epilogue_of_a_product_divides() -> None:
    """Kernels try a result's store with a literal 0, of which TVM must not make quotients."""

    def build(x: Instruction) -> Instruction:
        product = ops.dot_general(x, x, ops.DotDimensionNumbers((0, 1, 2), (0, 1, 2)))
        return ops.div(product, product)

    entry = computation(build, Shape(F32, (2, 2, 2)))
    check(entry, arguments(entry, 1))


@pytest.mark.parametrize("element_type", [t for t in ElementType if t.is_floating], ids=str)
def test_rounded_matrices_beside_products_with_vectors(element_type: ElementType) -> None:
    """One expression that rounds again and again took minutes to compile."""

    def build(x: Instruction, y: Instruction) -> Instruction:
        rounded = ops.convert_element_type(
            ops.convert_element_type(x, ElementType.S64), element_type
        )
        return ops.dot(ops.reduce_precision(rounded, 5, 2), ops.reduce_precision(y, 11, 52))

    entry = computation(build, Shape(element_type, (5, 17)), Shape(element_type, (17,)))
    check(entry, arguments(entry, 1))


@pytest.mark.parametrize("element_type", [t for t in ElementType if t.bits > 4], ids=str)
@pytest.mark.parametrize("sizes", [((40, 70), (70,)), ((70,), (70, 40)), ((1, 7), (7, 300))])
def test_matrices_computed_inside_products_with_vectors(
    element_type: ElementType, sizes: tuple[tuple[int, ...], tuple[int, ...]]
) -> None:
    """Of every type, also where only a part of the matrix counts."""

    def build(x: Instruction, y: Instruction) -> Instruction:
        def cut(operand: Instruction) -> Instruction:
            numbers = ops.iota(Shape(S32, operand.array_shape.dimensions), 0)
            limit = ops.full(numbers.array_shape, 9)
            return ops.select(ops.lt(numbers, limit), operand, ops.full_like(operand, 0))

        return ops.dot(cut(x), cut(y))

    entry = computation(build, *[Shape(element_type, size) for size in sizes])
    check(entry, arguments(entry, 1))


def test_the_sum_of_no_products_times_infinity() -> None:
    """The literal 0 of an empty sum must not swallow what it is multiplied with."""

    def build(x: Instruction, y: Instruction) -> Instruction:
        return ops.mul(ops.dot(x, ops.transpose(x, (1, 0))), y)

    entry = computation(build, Shape(F32, (3, 0)), Shape(F32, (3, 3)))
    check(entry, [np.zeros((3, 0), np.float32), np.full((3, 3), np.inf, np.float32)])


CHAINS: dict[str, tuple[ElementType, Callable[[Instruction], Instruction]]] = {
    "f8": (ElementType.F8E4M3FN, lambda x: ops.add(x, full(x, 0.5))),
    "bf16": (BF16, lambda x: ops.max(x, full(x, 0.5))),
    "c64": (ElementType.C64, lambda x: ops.mul(x, x)),
    "division": (S32, lambda x: ops.div(full(x, 1000), x)),
    "pred": (ElementType.PRED, lambda x: ops.xor(full(x, 1), x)),
    "bits": (
        ElementType.U16,
        lambda x: ops.bitcast_convert_type(
            ops.neg(ops.bitcast_convert_type(x, BF16)), x.array_shape.element_type
        ),
    ),
}


@pytest.mark.parametrize("name", CHAINS)
def test_long_chains_of_what_repeats_its_operand(name: str) -> None:
    """Written out, these double or worse at each of thirty steps, and would never be compiled."""
    element_type, step = CHAINS[name]

    def build(x: Instruction) -> Instruction:
        for _ in range(30):
            x = step(x)
        return x

    entry = computation(build, Shape(element_type, (40,)))
    check(entry, arguments(entry, 1))


def test_an_empty_update_of_an_intermediate() -> None:
    """What is updated in place is not copied, and what is empty not written: nothing is left."""
    entry = computation(
        lambda x, update, start: ops.dynamic_update_slice(ops.neg(x), update, [start]),
        ROW,
        Shape(F32, (0,)),
        Shape(S32),
    )
    check(entry, arguments(entry, 1))


@pytest.mark.parametrize("groups", [1, 3])
def test_convolutions_without_spatial_dimensions(groups: int) -> None:
    numbers = ConvDimensionNumbers.from_labels("NC", "OI", "NC")
    entry = computation(
        lambda x, k: ops.conv_general_dilated(
            x, k, [], [], [], [], numbers, feature_group_count=groups
        ),
        Shape(F32, (4, 6)),
        Shape(F32, (9, 6 // groups)),
    )
    check(entry, arguments(entry, 1))


@pytest.mark.parametrize("element_type", ["bf16", "f8e5m2", "f8e4m3fn", "f16"])
def test_moved_nan_keep_their_payload(element_type: str) -> None:
    """Quiet ones, whose moves pass through f32."""
    kind = ElementType(element_type)
    words = {"bf16": [0x7FC5, 0xFFE1], "f8e5m2": [0x7E, 0xFF], "f8e4m3fn": [0x7F, 0xFF]}
    bits = words.get(element_type, [0x7E05, 0xFF01])
    given = np.array(bits, f"u{kind.dtype.itemsize}").view(kind.dtype)
    entry = computation(lambda x: ops.rev(x, [0]), Shape(kind, (2,)))
    (moved,) = compiled(entry)([given])
    assert moved.tobytes() == given[::-1].tobytes()


def test_the_inverse_hyperbolic_tangent_far_out() -> None:
    entry = computation(ops.atanh, Shape(ElementType.C128, (2,)))
    check(entry, [np.array([7.8e307 + 4e43j, -1.7e308 + 1j])])


def test_a_function_held_alone_keeps_its_constants() -> None:
    """The executable that it came from is gone."""
    table = np.arange(4096, dtype=np.float32)
    entry = computation(lambda x: ops.add(x, ops.constant(table)), Shape(F32, table.shape))
    run = compiled(entry).run
    gc.collect()
    others = [np.full(table.shape, np.nan, np.float32) for _ in range(50)]
    results = run([table])
    assert results is not None
    np.testing.assert_array_equal(results[0], table + table)
    assert len(others) == 50


@pytest.mark.parametrize("kind", [t for t in ElementType if t.is_integral], ids=str)
def test_integers_wrap(kind: ElementType) -> None:
    """What LLVM would conclude from sums that never overflow is not concluded."""
    bits, signed = kind.bits, kind.is_signed
    most = 2 ** (bits - signed) - 1
    values = np.array([most, 0, most // 2 + 1, 1], object).astype(kind.dtype)

    def build(x: Instruction) -> Instruction:
        one, two = (ops.full_like(x, n) for n in np.array([1, 2]).astype(kind.dtype))
        scalar = ops.scalar_computation("add", kind)
        return ops.tuple_(
            [
                ops.lt(ops.add(x, one), x),
                ops.div(ops.mul(x, two), two),
                ops.gt(ops.sub(ops.neg(x), one), ops.neg(x)),
                ops.reduce(x, ops.constant(most, kind), scalar, [0]),
                ops.cumulative("add", x, 0),
                ops.dot_general(x, x, ops.DotDimensionNumbers((0,), (0,))),
                ops.abs(x) if signed else x,
            ]
        )

    entry = computation(build, Shape(kind, (4,)))
    check(entry, [values])


def unchanged_twice(x: Instruction, use: Callable[..., Instruction]) -> Instruction:
    """What ``use`` makes of an intermediate and of two states of a loop that both are it."""
    shown = ops.sort(x)
    init = ops.tuple_([ops.constant(2, S32), shown, shown])
    (state,) = parameters = (ops.parameter(0, init.shape),)
    count, first, second = ops.elements_of(state)
    less = ops.sub(count, ops.constant(1, S32))
    body = Computation("body", parameters, ops.tuple_([less, first, second]))
    asked = ops.parameter(0, init.shape)
    holds = ops.gt(ops.get_tuple_element(asked, 0), ops.constant(0, S32))
    made = ops.while_(Computation("condition", (asked,), holds), body, init)
    _, first, second = ops.elements_of(made)
    return use(shown, first, second)


def negated_if_positive(x: Instruction) -> Instruction:
    """Negated where the first element is positive; what a branch takes is made inside of it."""
    first = ops.reshape(ops.slice_(x, [0], [1]), ())
    same, negated = (computation(f, ROW) for f in (lambda x: x, ops.neg))
    return ops.conditional(ops.gt(first, ops.full_like(first, 0)), x, negated, x, same)


@pytest.mark.parametrize(
    "use",
    [
        lambda x, y, z: ops.concatenate([x, y, z], 0),
        lambda x, y, z: ops.dynamic_update_slice(
            y, ops.rev(ops.slice_(z, [1], [5]), [0]), [ops.constant(2, S32)]
        ),
        lambda x, y, z: ops.tuple_([ops.add(x, y), z, y]),
        lambda x, y, z: negated_if_positive(ops.mul(x, y)),
    ],
    ids=["concatenate", "update", "results", "branch"],
)
def test_states_that_a_loop_never_changes_are_one_array(use: Callable[..., Instruction]) -> None:
    entry = computation(lambda x: unchanged_twice(x, use), ROW)
    check(entry, arguments(entry, 1))


@pytest.mark.parametrize(
    ("element_type", "words"),
    [("f8e5m2", "u8"), ("f8e4m3fn", "u8"), ("f16", "u16"), ("bf16", "u16")],
)
def test_bit_casts_keep_every_bit(element_type: str, words: str) -> None:
    """Of signalling NaN as well."""
    narrow, unsigned = ElementType(element_type), ElementType(words)
    bits = np.arange(1 << narrow.bits).astype(unsigned.dtype)
    entry = computation(
        lambda x: ops.bitcast_convert_type(x, unsigned), Shape(narrow, (bits.size,))
    )
    (found,) = compiled(entry)([bits.view(narrow.dtype)])
    np.testing.assert_array_equal(found, bits)


@pytest.mark.parametrize("shape", [(8, 600), (600,)], ids=str)
def test_a_column_at_a_computed_place_of_rows_just_made(shape: tuple[int, ...]) -> None:
    """Where the column starts is known when the kernel runs, not when it is planned."""
    last = len(shape) - 1

    def build(x: Instruction, start: Instruction) -> Instruction:
        top = ops.broadcast_in_dim(ops.reduce_max(x, [last]), shape, range(last))
        centred = ops.tanh(ops.sub(x, top))
        starts = [*[ops.constant(0, S32)] * last, start]
        column = ops.dynamic_slice(centred, starts, [*shape[:last], 1])
        return ops.tuple_([ops.tanh(column), ops.reduce_sum(centred, [last])])

    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    entry = computation(build, Shape(F32, shape), Shape(S32))
    for start in (0, 5, 599, 700):
        check(entry, [x, np.array(start, np.int32)])


@pytest.mark.parametrize("name", ["f8e5m2", "f16", "bf16"])
def test_every_nan_has_its_place_in_the_total_order(name: str) -> None:
    """Signalling NaN come before quiet ones."""
    narrow = ElementType(name)
    bits = np.arange(1 << narrow.bits).astype(f"u{narrow.bits // 8}")[-600:]
    x, y = (np.random.default_rng(n).permutation(bits).view(narrow.dtype) for n in range(2))
    kind = Shape(narrow, x.shape)
    a, b, c, d = (ops.parameter(n, Shape(narrow)) for n in range(4))
    first, second = ops.lt_total_order(a, b), ops.gt_total_order(c, d)
    several = Computation(
        "several", (a, b, c, d), ops.select(ops.eq_total_order(a, b), second, first)
    )

    def build(x: Instruction, y: Instruction) -> Instruction:
        made = ops.sort([x, y], several, 0, True)
        return ops.tuple_([ops.lt_total_order(x, y), *ops.elements_of(made)])

    entry = computation(build, kind, kind)
    found, expected = compiled(entry)([x, y]), leaves(evaluate(entry, [x, y]))
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours.view(np.uint8), theirs.view(np.uint8))


@pytest.mark.parametrize("size", [1, 2, 3, 67])
def test_unsigned_numbers_of_indices_that_count_down(size: int) -> None:
    """TVM casts the parts of an index, the -1 among them, one by one."""

    def build(x: Instruction) -> Instruction:
        parts = ops.rev(ops.bitcast_convert_type(x, ElementType.F8E4M3FN), [1])
        number = ops.iota(Shape(ElementType.U16, (size, 2)), 1)
        return ops.tuple_([ops.max(parts, parts), ops.add(ops.rev(number, [1]), number)])

    x = np.random.default_rng(0).standard_normal(size).astype(np.float16)
    check(computation(build, Shape(ElementType.F16, (size,))), [x])


@pytest.mark.parametrize("name", ["bf16", "f16", "f8e5m2", "f32"])
def test_stores_of_narrow_numbers_under_a_condition(name: str) -> None:
    """LLVM makes a store of four bytes of a masked one of two, if it makes vectors of the loop."""
    kind = Shape(ElementType(name), (16,))
    a, b = (ops.parameter(n, Shape(kind.element_type)) for n in range(2))
    above = Computation("above", (a, b), ops.gt(a, b))

    def build(x: Instruction, initial: Instruction) -> Instruction:
        source = ops.iota(Shape(kind.element_type, (21,)), 0)
        add = ops.scalar_computation("add", kind.element_type)
        made = ops.select_and_scatter(x, above, [1], [1], [(3, 2)], source, initial, add)
        return ops.tuple_([made])

    entry = computation(build, kind, Shape(kind.element_type))
    for initial in range(-7, 2):
        check(entry, [np.full(16, 0.5, kind.dtype), np.array(initial, kind.dtype)])
    (kernel,) = lower(entry, Machine(64, 2)).kernels
    assert contents(kernel.body).guards_narrow_stores == (name != "f32")
