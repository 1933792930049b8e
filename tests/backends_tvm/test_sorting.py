"""Sorts under the usual comparators, bit by bit the stable ones that the interpreter makes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.backends_tvm.compiled import check, computation
from tests.fuzz.comparing import leaves
from tests.lowered import lower
from tests.runtime.programs import loaded
from tracejit import ops
from tracejit.backends.numpy import evaluate
from tracejit.backends.target import Target
from tracejit.backends.tvm.analysis.sort_keys import order_of
from tracejit.backends.tvm.cpu.machine import Machine
from tracejit.backends.tvm.cpu.objects.build import build
from tracejit.backends.tvm.cpu.processor import processor_of
from tracejit.graph import Computation, Instruction
from tracejit.runtime import Executable
from tracejit.shapes import ElementType, Shape

KINDS = [t for t in ElementType if not t.is_complex]
F32, S32 = ElementType.F32, ElementType.S32


def values(kind: ElementType, *dimensions: int) -> np.ndarray:
    """Random numbers, many of them equal; of floats every special one, NaN of both signs too."""
    rng = np.random.default_rng(1)
    size = int(np.prod(dimensions))
    if kind is ElementType.PRED:
        return rng.integers(0, 2, dimensions).astype(bool)
    if kind.is_floating:
        made = (rng.standard_normal(size) * 10.0 ** rng.integers(-2, 3, size)).astype(kind.dtype)
        special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1, -1], kind.dtype)
        made[:: max(1, size // 40)] = np.resize(special, len(made[:: max(1, size // 40)]))
        return made.reshape(dimensions)
    low = -(2 ** (kind.bits - 1)) if kind.is_signed else 0
    wide = np.int64 if kind.is_signed else np.uint64
    far = rng.integers(low, low + 2**kind.bits - 1, size, wide, endpoint=True)
    near = rng.integers(0, 4, size).astype(wide)
    chosen = np.where(rng.integers(0, 2, size), near, far)
    return chosen.astype(kind.dtype).reshape(dimensions)


def sort_bitwise(build: Callable[..., Instruction], array: np.ndarray, kind: ElementType) -> None:
    """Sorted bits, which equal numbers (zeros, NaN) differ in."""
    entry = computation(build, Shape(kind, array.shape))
    actual, expected = check(entry, [array]), leaves(evaluate(entry, [array]))
    assert [a.tobytes() for a in actual] == [np.asarray(e).tobytes() for e in expected]


@pytest.mark.parametrize("kind", [F32, S32, ElementType.U32], ids=str)
@pytest.mark.parametrize("sizes", [(9,), (64,), (65,), (3, 40), (2, 1000), (40_000,)], ids=str)
def test_vectors_of_32_bytes(kind: ElementType, sizes: tuple[int, ...]) -> None:
    """AVX2 partitions by a table of permutations; AVX, which has no such instruction, otherwise."""
    array = values(kind, *sizes)
    entry = computation(lambda x: ops.sort(x, None, len(sizes) - 1, True), Shape(kind, sizes))
    program = lower(entry, Machine(32, 2))
    assert [kernel.stats.schedule for kernel in program.kernels] == ["vector sort"]
    older = lower(entry, Machine(32, 2, has_avx2=False))
    assert [kernel.stats.schedule for kernel in older.kernels] != ["vector sort"]
    target = processor_of(Target("cpu:x86-64-v3"))
    if not target.lacking:
        (found,) = leaves(loaded(build(program, target))([array]))
        (wanted,) = leaves(evaluate(entry, [array]))
        assert found.tobytes() == np.asarray(wanted).tobytes()


def compiled_for(entry: Computation, threads: int) -> Executable:
    """The machine code for a processor like this one with so many threads."""
    target = processor_of()
    return loaded(build(lower(entry, Machine(target.vector_bytes, threads)), target))


def compared(kind: ElementType, compare: Callable[..., Instruction], swapped: bool) -> Computation:
    """A comparator of a key and of places: by the key."""
    types = [kind, kind, S32, S32]
    parameters = tuple(ops.parameter(i, Shape(t)) for i, t in enumerate(types))
    pair = parameters[1::-1] if swapped else parameters[:2]
    return Computation("compared", parameters, compare(*pair))


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_every_element_type(kind: ElementType, descending: bool) -> None:
    order = ops.sort_order(kind, S32, descending=descending)
    assert order_of(order) is not None

    def build(x: Instruction) -> Instruction:
        places = ops.iota(Shape(S32, (300,)), 0)
        return ops.tuple_([*ops.elements_of(ops.sort([x, places], order, 0, True))])

    sort_bitwise(build, values(kind, 300), kind)


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_total_order(kind: ElementType, swapped: bool) -> None:
    less = ops.lt_total_order if kind.is_floating else ops.lt
    order = compared(kind, less, swapped)
    found = order_of(order)
    assert found is not None
    assert found.descending == swapped

    def build(x: Instruction) -> Instruction:
        places = ops.iota(Shape(S32, (300,)), 0)
        return ops.tuple_([*ops.elements_of(ops.sort([x, places], order, 0, True))])

    sort_bitwise(build, values(kind, 300), kind)


@pytest.mark.parametrize("dimensions", [(2, 70, 5), (130, 3), (3, 1000), (64, 1)])
@pytest.mark.parametrize("dimension", [0, 1])
def test_every_dimension(dimensions: tuple[int, ...], dimension: int) -> None:
    for kind in (F32, ElementType.S64):
        sort_bitwise(lambda x: ops.sort(x, None, dimension, True), values(kind, *dimensions), kind)


@pytest.mark.parametrize("kind", [F32, ElementType.F64, S32, ElementType.U16], ids=str)
@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("k", [1, 3, 16, 100, 500])
def test_top_k(kind: ElementType, largest: bool, k: int) -> None:
    for array in (values(kind, 2, 500), np.sort(values(kind, 2, 500)), np.zeros((2, 500))):
        sort_bitwise(lambda x: ops.top_k(x, k, largest), array.astype(kind.dtype), kind)


ARRANGED: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "as drawn": lambda x: x,
    "ascending": np.sort,
    "descending": lambda x: np.sort(x)[..., ::-1],
    "all least": lambda x: np.full_like(x, x.min() if x.dtype.kind in "iu" else -np.nan),
    "two numbers": lambda x: np.resize(x.ravel()[[0, -1]], x.shape),
}


@settings(max_examples=25)
@given(
    kind=st.sampled_from(KINDS),
    k=st.sampled_from([1, 2, 5, 8, 9, 16, 33, 64]),
    rows=st.sampled_from([(), (1,), (3,), (2, 2)]),
    extra=st.integers(0, 700),
    largest=st.booleans(),
    arranged=st.sampled_from(sorted(ARRANGED)),
)
def test_top_k_of_blocks(
    kind: ElementType, k: int, rows: tuple[int, ...], extra: int, largest: bool, arranged: str
) -> None:
    """Rows with and without blocks, with a rest, and just long enough to select from."""
    drawn = values(kind, *rows, max(4 * k, 3 * k * k) + extra)
    wide = kind.dtype if kind.dtype.kind in "iuf" else np.float32
    array = ARRANGED[arranged](drawn.astype(wide)).astype(kind.dtype)
    sort_bitwise(lambda x: ops.top_k(x, k, largest), np.ascontiguousarray(array), kind)


@pytest.mark.parametrize("kind", [F32, ElementType.F64, ElementType.U8], ids=str)
@pytest.mark.parametrize("dimensions", [(1 << 18,), (3, (1 << 17) + 13)])
@pytest.mark.parametrize("k", [1, 6, 100])
def test_top_k_of_parts(kind: ElementType, dimensions: tuple[int, ...], k: int) -> None:
    """Long rows, with equals in every part; as many threads as there are here, and more."""
    array = values(kind, *dimensions)
    entry = computation(lambda x: ops.top_k(x, k, True), Shape(kind, dimensions))
    expected = [np.asarray(each).tobytes() for each in leaves(evaluate(entry, [array]))]
    for threads in (1, 2, 7):
        actual = compiled_for(entry, threads)([array])
        assert [each.tobytes() for each in actual] == expected


def test_many_operands_and_a_key_that_is_not_the_first() -> None:
    types = [F32, F32, S32, S32, ElementType.C64, ElementType.C64]
    parameters = tuple(ops.parameter(i, Shape(t)) for i, t in enumerate(types))
    order = Computation("second", parameters, ops.gt(parameters[2], parameters[3]))
    found = order_of(order)
    assert found is not None
    assert found.operand == 1

    def build(x: Instruction, y: Instruction) -> Instruction:
        return ops.sort([x, y, ops.complex(x, x)], order, 0, True)

    check(
        computation(build, Shape(F32, (200,)), Shape(S32, (200,))),
        [
            np.arange(200, dtype=np.float32),
            values(S32, 200) % 10,
        ],
    )


def test_other_comparators_are_left_to_the_merge_sort() -> None:
    """Plain comparisons of floats have no place for NaN."""
    assert order_of(compared(F32, ops.lt, False)) is None
    assert order_of(compared(S32, ops.le, False)) is None
    assert order_of(compared(S32, lambda x, y: ops.lt(x, x), False)) is None
    x, y = (ops.parameter(i, Shape(S32)) for i in range(2))
    assert order_of(Computation("far", (x, y), ops.lt(ops.abs(x), ops.abs(y)))) is None


@pytest.mark.parametrize("dimensions", [(5000,), (3, 2000), (2000, 3), (2, 700, 4)])
@pytest.mark.parametrize("kind", [F32, ElementType.F64, ElementType.S64, ElementType.U32], ids=str)
def test_values_alone(kind: ElementType, dimensions: tuple[int, ...]) -> None:
    """NumPy sorts them, whose equal floats come back in their order."""
    dimension = int(np.argmax(dimensions))
    array = values(kind, *dimensions)
    orders = [ops.sort_order(kind, descending=down) for down in (False, True)]
    if kind.is_floating:
        x, y = (ops.parameter(i, Shape(kind)) for i in range(2))
        orders.append(Computation("total", (x, y), ops.gt_total_order(x, y)))

    def build_sorts(x: Instruction) -> Instruction:
        return ops.tuple_([ops.sort(x, order, dimension, True) for order in orders])

    entry = computation(build_sorts, Shape(kind, dimensions))
    called = lower(entry, Machine(32, 2, has_avx2=False))
    assert all("sort_values" in str(k.body) for k in called.kernels if "sort" in k.name)
    actual = loaded(build(called, processor_of()))([array])
    expected = leaves(evaluate(entry, [array]))
    assert [a.tobytes() for a in actual] == [np.asarray(e).tobytes() for e in expected]


@pytest.mark.parametrize("length", [40, 3000])
@pytest.mark.parametrize("vector_bytes", [32, 64])
@pytest.mark.parametrize("kind", [F32, ElementType.S64], ids=str)
def test_places_are_counted(kind: ElementType, vector_bytes: int, length: int) -> None:
    """Counters along the sort are no memory; those across it, or that are sorted by, are."""
    places, keys = (Shape(t, (3, length)) for t in (S32, kind))

    def build_sorts(x: Instruction, y: Instruction) -> Instruction:
        along, across = (ops.iota(places, dimension) for dimension in (1, 0))
        down = ops.sort_order(kind, S32, kind, descending=True)
        made = [
            ops.sort([x, along, y], down, 1, True),
            ops.sort([x, across], ops.sort_order(kind, S32), 1, True),
            ops.sort([along, x], ops.sort_order(S32, kind, descending=True), 1, True),
        ]
        return ops.tuple_([ops.get_tuple_element(m, n) for m in made for n in range(2)])

    entry = computation(build_sorts, keys, keys)
    arrays = [values(kind, 3, length), values(kind, 3, length)[::-1].copy()]
    # A processor without what the host has is what the host can do as well.
    program = lower(entry, Machine(min(vector_bytes, processor_of().vector_bytes), 2))
    sort = loaded(build(program, processor_of()))
    for made, expected in zip(sort(arrays), leaves(evaluate(entry, arrays)), strict=True):
        assert made.tobytes() == np.asarray(expected).tobytes()


def test_positions_of_a_sort_are_one_kernel() -> None:
    def build_sort(x: Instruction) -> Instruction:
        order = ops.sort_order(F32, ElementType.S64)
        counters = ops.iota(Shape(ElementType.S64, (500,)), 0)
        return ops.get_tuple_element(ops.sort([x, counters], order, 0, True), 1)

    assert len(lower(computation(build_sort, Shape(F32, (500,))), Machine(64, 1)).kernels) == 1


@pytest.mark.parametrize("read", [[0], [1], [2], [0, 2], [1, 2]], ids=str)
def test_results_that_nothing_reads(read: list[int]) -> None:
    def build_sort(x: Instruction, y: Instruction) -> Instruction:
        order = ops.sort_order(F32, S32, F32)
        made = ops.sort([x, ops.iota(Shape(S32, (300,)), 0), y], order, 0, True)
        return ops.tuple_([ops.get_tuple_element(made, n) for n in read])

    entry = computation(build_sort, *[Shape(F32, (300,))] * 2)
    arrays = [values(F32, 300), values(F32, 300)[::-1].copy()]
    actual, expected = check(entry, arrays), leaves(evaluate(entry, arrays))
    assert [a.tobytes() for a in actual] == [np.asarray(e).tobytes() for e in expected]
