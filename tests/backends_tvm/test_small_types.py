"""Element types of eight bits and less: all their values through the ops that every type has.

The interpreter is judged by ml_dtypes, by `float` and by XLA, compiled code by the interpreter, to
the bit. The types come from the table: a new one is tried without a word here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from tests.backends_tvm.compiled import compiled, computation
from tests.judge import run_xla
from tests.samples.values import BEYOND_XLA, UNLIKE_XLA
from tests.tolerances import same_bits
from tracejit import ops
from tracejit.backends.numpy import evaluate
from tracejit.graph import Instruction, Module
from tracejit.shapes import ElementType, Shape, shape_of

F32 = ElementType.F32
SMALL = [t for t in ElementType if t.is_small_float or (t.is_integral and t.bits < 8)]
FLOATS = [t for t in SMALL if t.is_floating]
REAL = [t for t in ElementType if not t.is_complex]


def every(element_type: ElementType) -> np.ndarray:
    """All values of the type, in the order of their codes."""
    return np.arange(1 << element_type.bits, dtype=np.uint8).view(element_type.dtype)


def agree(
    build: Callable[..., Instruction], *arrays: np.ndarray, judged: bool = True
) -> list[np.ndarray]:
    """The interpreter's results, which XLA's and compiled code's equal, to the bit."""
    shapes = [shape_of(a) for a in arrays]
    entry = computation(build, *shapes)
    expected = evaluate(entry, list(arrays))
    expected = list(expected) if isinstance(expected, tuple) else [expected]
    for n, (ours, theirs) in enumerate(zip(compiled(entry)(list(arrays)), expected, strict=True)):
        assert not same_bits(ours, theirs), f"compiled, result {n}"
    if judged and not BEYOND_XLA & {s.element_type for s in shapes}:
        made = run_xla(Module("judged", entry), *arrays)
        for n, (ours, theirs) in enumerate(zip(expected, made, strict=True)):
            assert not same_bits(ours, theirs), f"XLA, result {n}"
    return expected


def converted(
    x: np.ndarray, targets: Sequence[ElementType], judged: bool = True
) -> list[np.ndarray]:
    return agree(
        lambda x: ops.tuple_([ops.convert_element_type(x, t) for t in targets]), x, judged=judged
    )


@pytest.mark.parametrize("element_type", SMALL, ids=str)
def test_conversions_of_every_value(element_type: ElementType) -> None:
    """To every type, through f32 as ml_dtypes converts to that."""
    x = every(element_type)
    assert not same_bits(converted(x, [F32])[0], x.astype(np.float32))
    targets = [t for t in ElementType if (element_type, t) not in UNLIKE_XLA]
    converted(x, [t for t in targets if t not in BEYOND_XLA])
    converted(x, [t for t in ElementType if t not in targets or t in BEYOND_XLA], judged=False)


@pytest.mark.parametrize("element_type", SMALL, ids=str)
def test_conversions_from_every_type(element_type: ElementType) -> None:
    """All values of types of 16 bits and less, and odd ones of the wider."""
    rng = np.random.default_rng(7)

    def values(source: ElementType) -> np.ndarray:
        if source is ElementType.PRED:
            return np.array([False, True])
        if source.bits <= 16:
            codes = np.arange(1 << source.bits, dtype=f"u{source.dtype.itemsize}")
            return codes.view(source.dtype)
        if source.is_integral:
            near = np.arange(-300, 300).astype(source.dtype)
            return np.concatenate([near, rng.integers(0, 1 << 62, 300).astype(source.dtype)])
        codes = rng.integers(0, 1 << source.bits, 4000, np.uint64).astype(f"u{source.bits // 8}")
        usual = (rng.normal(size=4000) * 2.0 ** rng.integers(-20, 20, 4000)).astype(source.dtype)
        return np.concatenate([codes.view(source.dtype), usual])

    sources = [t for t in REAL if t is not element_type]
    for judged in (True, False):
        lacking = {t for t in sources if t in BEYOND_XLA or (t, element_type) in UNLIKE_XLA}
        some = [t for t in sources if (t in lacking) != judged]
        agree(
            lambda *xs: ops.tuple_([ops.convert_element_type(x, element_type) for x in xs]),
            *map(values, some),
            judged=judged and element_type not in BEYOND_XLA,
        )


@pytest.mark.parametrize("element_type", FLOATS, ids=str)
def test_rounding_of_f32(element_type: ElementType) -> None:
    """On, just below and just above every boundary; overflow, NaN, zeros, denormal numbers."""
    high = np.arange(1 << 16, dtype=np.uint32) << 16
    low = np.array([0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF], np.uint32)
    x = (high[:, None] | low).reshape(-1).view(np.float32)
    (made,) = agree(lambda x: ops.tuple_([ops.convert_element_type(x, element_type)]), x)
    with np.errstate(all="ignore"):
        assert not same_bits(made[~np.isnan(x)], x[~np.isnan(x)].astype(element_type.dtype))


@pytest.mark.parametrize("element_type", SMALL, ids=str)
def test_bits(element_type: ElementType) -> None:
    """Read as another type, as wide or wider or narrower, and back."""
    x = np.tile(every(element_type), 128)[:256]
    others = [t for t in REAL if t is not ElementType.PRED and t is not element_type]

    def build(x: Instruction) -> Instruction:
        made = []
        for other in others:
            parts = max(other.bits // element_type.bits, 1)
            grouped = ops.reshape(x, (256 // parts, parts) if parts > 1 else (256,))
            made.append(ops.bitcast_convert_type(grouped, other))
        back = [ops.bitcast_convert_type(m, element_type) for m in made]
        words = [ops.reshape(b, (256,)) for b in back]
        judged = [m for m in made if not m.array_shape.element_type.is_floating]
        return ops.tuple_([*judged, *words])

    made = agree(build, x, judged=False)
    for back in made[-len(others) :]:
        assert not same_bits(back, x)


@pytest.mark.parametrize("element_type", SMALL, ids=str)
def test_moves(element_type: ElementType) -> None:
    """Ops that look at no value keep every code, NaN's signs and payloads aside."""
    x = np.tile(every(element_type), 128)[:256].reshape(16, 16)
    i = np.array([[3], [15], [0]], np.int32)
    keep = np.arange(256).reshape(16, 16) % 3 == 0

    def build(x: Instruction, i: Instruction, keep: Instruction) -> Instruction:
        row = ops.slice_in_dim(x, 5, 6, 1, 0)
        known = ops.constant(every(element_type))
        numbers = ops.ScatterDimensionNumbers((1,), (0,), (0,), 1)
        replaced = ops.scalar_computation("add", element_type)
        taken = ops.GatherDimensionNumbers((1,), (0,), (0,), 1)
        at = ops.reshape(ops.slice_in_dim(i, 0, 1, 1, 0), ())
        one = ops.convert_element_type(ops.constant(np.float32(1)), element_type)
        return ops.tuple_(
            [
                known,
                ops.broadcast_in_dim(known, (3, known.array_shape.size), (1,)),
                ops.reshape(x, (4, 64)),
                ops.transpose(x, (1, 0)),
                ops.slice_(x, (1, 2), (15, 14), (3, 2)),
                ops.concatenate([x, row, x], 0),
                ops.rev(x, (0, 1)),
                ops.pad(x, one, [(1, 2, 1), (-1, 0, 0)]),
                ops.select(keep, x, ops.rev(x, (0,))),
                ops.gather(x, i, taken, (1, 16)),
                ops.scatter(x, i, ops.slice_in_dim(x, 0, 3, 1, 0), replaced, numbers),
                ops.dynamic_update_slice(x, row, [at, at]),
            ]
        )

    agree(build, x, i, keep, judged=True)


@pytest.mark.parametrize("element_type", SMALL, ids=str)
def test_arithmetic_of_every_pair(element_type: ElementType) -> None:
    x = every(element_type)
    pairs = np.repeat(x, x.size), np.tile(x, x.size)
    unary = [ops.abs, ops.sign] if element_type.is_signed else []
    if element_type.is_floating:
        unary += [ops.floor, ops.round_nearest_even, ops.sqrt, ops.exp, ops.tanh, ops.is_finite]
    else:
        unary += [ops.not_, ops.population_count, ops.clz]
    binary = [ops.add, ops.sub, ops.mul, ops.div, ops.rem, ops.max, ops.min]
    if element_type.is_integral:
        binary += [ops.and_, ops.or_, ops.xor, ops.shift_left, ops.pow]
        binary += [ops.shift_right_logical, ops.shift_right_arithmetic]
    orders = [ops.eq, ops.ne, ops.lt, ops.le, ops.gt, ops.ge]

    def build(a: Instruction, b: Instruction) -> Instruction:
        made = [op(a, b) for op in (*binary, *orders)]
        if element_type.is_floating:
            made += [ops.lt_total_order(a, b), ops.reduce_precision(a, 3, 1)]
        return ops.tuple_([*made, ops.neg(a), *[op(a) for op in unary], ops.clamp(b, a, b)])

    agree(build, *pairs, judged=False)


@pytest.mark.parametrize("element_type", SMALL, ids=str)
def test_reductions_sorts_and_products(element_type: ElementType) -> None:
    rng = np.random.default_rng(3)
    x = rng.permutation(np.tile(every(element_type), 128)[:256]).reshape(16, 16)
    whole = np.array([0.5, 1, 2] if element_type.is_floating else [0, 1], np.float32)
    y = rng.choice(whole, (16, 16)).astype(element_type.dtype)

    def build(x: Instruction, y: Instruction) -> Instruction:
        least, most = (
            ops.constant(ops.identity_value(name, element_type), element_type)
            for name in ("max", "min")
        )
        joined = {n: ops.scalar_computation(n, element_type) for n in ("max", "min", "add")}
        start = ops.convert_element_type(ops.constant(np.float32(1)), element_type)
        wide = ops.dot(y, y, preferred_element_type=F32 if element_type.is_floating else None)
        return ops.tuple_(
            [
                ops.reduce(x, least, joined["max"], [1]),
                ops.reduce(x, most, joined["min"], [0]),
                ops.reduce(y, start, joined["add"], [1]),
                ops.sort(x, dimension=1),
                ops.sort(x, dimension=0),
                *ops.elements_of(ops.top_k(x, 3)),
                ops.dot(y, y),
                wide,
                ops.iota(Shape(element_type, (20,)), 0),
                ops.reduce_window(x, least, joined["max"], (2, 2), (1, 1), "VALID"),
            ]
        )

    agree(build, x, y, judged=False)
