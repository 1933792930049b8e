"""Reductions that read the same array in one pass, and chains over columns in panels."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from tests.backends_tvm.compiled import check, computation
from tests.lowered import lower
from tracejit import ops
from tracejit.backends.tvm.cpu.machine import Machine
from tracejit.graph import Computation, Instruction
from tracejit.shapes import ElementType, Shape

Build = Callable[[Instruction, Sequence[int]], list[Instruction]]


def four(x: Instruction, over: Sequence[int]) -> list[Instruction]:
    """Of several types: the sums of squares are as precise as the array, the count is whole."""
    positive = ops.convert_element_type(ops.gt(x, ops.full_like(x, 0)), ElementType.S32)
    return [
        ops.reduce_max(x, over),
        ops.reduce_min(x, over),
        ops.reduce_sum(ops.mul(x, x), over),
        ops.reduce_sum(positive, over),
    ]


def width(x: Instruction, over: Sequence[int]) -> list[Instruction]:
    """Both ends of a difference stay in registers."""
    return [ops.sub(ops.reduce_max(x, over), ops.reduce_min(x, over))]


def place(x: Instruction, over: Sequence[int]) -> list[Instruction]:
    return [ops.argmax(x, over[0], ElementType.S64), ops.reduce_max(x, over)]


def mean_and_variance(x: Instruction, over: Sequence[int]) -> list[Instruction]:
    mean = average(x, over)
    centred = ops.sub(x, spread(mean, x, over))
    return [mean, average(ops.mul(centred, centred), over), ops.reduce_max(x, over)]


def softmax(x: Instruction, over: Sequence[int]) -> list[Instruction]:
    powers = ops.exp(ops.sub(x, spread(ops.reduce_max(x, over), x, over)))
    return [ops.div(powers, spread(ops.reduce_sum(powers, over), x, over))]


def normalised(x: Instruction, over: Sequence[int]) -> list[Instruction]:
    """As a layer of a network: the array, and what it was divided by."""
    mean, variance, _ = mean_and_variance(x, over)
    scale = ops.rsqrt(ops.add(variance, ops.full_like(variance, 1e-3)))
    made = ops.mul(ops.sub(x, spread(mean, x, over)), spread(scale, x, over))
    return [ops.max(made, ops.full_like(made, 0)), scale]


def average(x: Instruction, over: Sequence[int]) -> Instruction:
    total = ops.reduce_sum(x, over)
    return ops.div(total, ops.full_like(total, x.array_shape.size / total.array_shape.size))


def spread(values: Instruction, like: Instruction, over: Sequence[int]) -> Instruction:
    dimensions = like.array_shape.dimensions
    return ops.broadcast_in_dim(
        values, dimensions, [d for d in range(len(dimensions)) if d not in over]
    )


def made(
    build: Build, over: Sequence[int], shape: tuple[int, ...], kind: ElementType = ElementType.F32
) -> Computation:
    return computation(lambda x: ops.tuple_(build(x, over)), Shape(kind, shape))


def kinds(entry: Computation) -> list[str]:
    return [k.name.partition("_")[2] for k in lower(entry, Machine(32, 2)).kernels]


@pytest.mark.parametrize(
    ("build", "shape", "over", "kernels"),
    [
        (four, (300, 200), (0, 1), ["reduce"]),
        (four, (300, 200), (0,), ["reduce"]),
        (four, (300, 200), (1,), ["reduce"]),
        (width, (300, 200), (0, 1), ["reduce"]),
        (place, (300, 200), (0,), ["reduce"]),
        (place, (300, 200), (1,), ["reduce"]),
        (mean_and_variance, (300, 200), (0, 1), ["reduce"] * 2),
        (mean_and_variance, (300, 200), (0,), ["rows"]),
        (mean_and_variance, (300, 200), (1,), ["rows"]),
        (softmax, (300, 200), (0,), ["rows"]),
        (softmax, (5, 300, 200), (1,), ["rows"]),
        (normalised, (8, 7, 7, 64), (0, 1, 2), ["rows"]),
        # Columns that do not stay in cache.
        (softmax, (20000, 32), (0,), ["reduce", "exp", "reduce", "div"]),
    ],
)
def test_kernels(
    build: Build, shape: tuple[int, ...], over: tuple[int, ...], kernels: list[str]
) -> None:
    assert kinds(made(build, over, shape)) == kernels


def test_values_of_each_column_alone_need_no_panels() -> None:
    """The column's sum is one kernel, as fast as it can be, and what is made of it another."""

    def step(x: Instruction, over: Sequence[int]) -> list[Instruction]:
        total = ops.reduce_sum(x, over)
        return [total, ops.exp(total), ops.sin(total)]

    assert "rows" not in kinds(made(step, (0,), (300, 200)))


def test_reductions_of_different_arrays_stay_apart() -> None:
    shape = Shape(ElementType.F32, (300, 200))
    entry = computation(
        lambda x, y: ops.tuple_([ops.reduce_sum(x, (0, 1)), ops.reduce_sum(y, (0, 1))]),
        shape,
        shape,
    )
    assert kinds(entry) == ["reduce", "reduce"]


@pytest.mark.parametrize("build", [four, width, place, mean_and_variance, softmax, normalised])
@pytest.mark.parametrize(
    ("shape", "over"),
    [
        ((67, 45), (0,)),
        ((33, 300), (0,)),
        ((33, 300), (1,)),
        ((7, 21, 130), (1,)),
        ((300, 17), (0,)),
        ((300, 200), (0,)),
    ],
    ids=str,
)
def test_values(build: Build, shape: tuple[int, ...], over: tuple[int, ...]) -> None:
    """Also where the last panel overlaps the one before, and where threads share panels."""
    rng = np.random.default_rng(3)
    check(made(build, over, shape), [rng.uniform(-1, 2, shape).astype(np.float32)])


def repeated(x: Instruction) -> Instruction:
    rows, columns = x.array_shape.dimensions
    return ops.reshape(ops.broadcast_in_dim(x, (rows, columns, 2), (0, 1)), (rows, 2 * columns))


def tiled(x: Instruction) -> Instruction:
    rows, columns = x.array_shape.dimensions
    return ops.reshape(ops.broadcast_in_dim(x, (rows, 2, columns), (0, 2)), (rows, 2 * columns))


def spread_out(x: Instruction) -> Instruction:
    rows, columns = x.array_shape.dimensions
    whole = ops.broadcast_in_dim(x, (rows, 2, columns, 3), (0, 2))
    return ops.reshape(whole, (rows, 6 * columns))


@pytest.mark.parametrize("build", [width, mean_and_variance, softmax, normalised])
@pytest.mark.parametrize("stretched", [repeated, tiled, spread_out])
@pytest.mark.parametrize("shape", [(4, 8), (5, 16), (3, 17), (9, 40), (70, 300)], ids=str)
def test_panels_end_with_the_axis_that_reads_split(
    build: Build, stretched: Callable[[Instruction], Instruction], shape: tuple[int, int]
) -> None:
    """Reshapes of what broadcasts made split the columns of the results into several axes."""
    kind = ElementType.F32
    entry = computation(lambda x: ops.tuple_(build(stretched(x), (0,))), Shape(kind, shape))
    check(entry, [np.random.default_rng(10).uniform(-1, 2, shape).astype(np.float32)])


@pytest.mark.parametrize("build", [four, width, mean_and_variance, softmax])
@pytest.mark.parametrize("kind", [ElementType.F64, ElementType.BF16, ElementType.F16], ids=str)
@pytest.mark.parametrize("over", [(0,), (1,), (0, 1)], ids=str)
def test_element_types(build: Build, kind: ElementType, over: tuple[int, ...]) -> None:
    rng = np.random.default_rng(4)
    check(made(build, over, (70, 70), kind), [rng.uniform(-1, 2, (70, 70)).astype(kind.dtype)])


@pytest.mark.parametrize("build", [four, width, place, softmax])
@pytest.mark.parametrize("over", [(0,), (1,)], ids=str)
def test_special_values(build: Build, over: tuple[int, ...]) -> None:
    """NaN, infinities and zeros of both signs stay in their row or column."""
    x = np.random.default_rng(5).standard_normal((40, 40)).astype(np.float32)
    for at, value in enumerate([np.nan, np.inf, -np.inf, 0.0]):
        x[at, 20 + at] = x[20 + at, at] = value
    x[10], x[:, 10] = -0.0, -0.0
    x[10, ::2], x[::2, 10] = 0.0, 0.0
    check(made(build, over, x.shape), [x])


def test_complex_columns() -> None:
    rng = np.random.default_rng(6)
    x = rng.standard_normal((60, 50)) + 1j * rng.standard_normal((60, 50))

    def build(x: Instruction, over: Sequence[int]) -> list[Instruction]:
        return [ops.sub(x, spread(ops.reduce_sum(x, over), x, over)), ops.reduce_sum(x, over)]

    check(made(build, (0,), x.shape, ElementType.C64), [x.astype(np.complex64)])


def test_rows_longer_than_a_stack() -> None:
    """What a row's phases leave for each other lies in memory then."""
    x = np.random.default_rng(7).standard_normal((4, 100_000)).astype(np.float32)
    check(made(softmax, (1,), x.shape), [x])


def kept(x: Instruction, over: Sequence[int]) -> list[Instruction]:
    """What the rows begin with is read by others too."""
    powers = ops.exp(ops.sub(x, ops.rev(x, [1])))
    total = ops.reduce_sum(powers, over)
    return [ops.mul(powers, spread(ops.sqrt(total), x, over)), ops.sort(powers, dimension=0)]


def shares(x: Instruction, over: Sequence[int]) -> list[Instruction]:
    powers = ops.exp(x)
    return [ops.div(powers, spread(ops.reduce_sum(powers, over), x, over))]


@pytest.mark.parametrize("build", [kept, shares])
@pytest.mark.parametrize(
    ("shape", "over", "together"),
    [
        ((30, 320), (1,), True),
        ((5, 8, 256), (2,), True),
        ((30, 16, 32), (1, 2), True),
        ((30, 300), (1,), False),
        ((30, 64), (1,), False),
        ((320, 64), (0,), False),
    ],
    ids=str,
)
def test_rows_begin_with_what_is_computed_before(
    build: Build, shape: tuple[int, ...], over: tuple[int, ...], together: bool
) -> None:
    """Rows of whole vectors that stay in cache; others read what a kernel has made."""
    entry = made(build, over, shape)
    assert (kinds(entry)[0] == "rows") == together
    check(entry, [np.random.default_rng(8).uniform(-1, 2, shape).astype(np.float32)])


@pytest.mark.parametrize("kind", [ElementType.F64, ElementType.BF16, ElementType.F16], ids=str)
def test_rows_of_other_types_begin_so(kind: ElementType) -> None:
    entry = made(kept, (1,), (20, 256), kind)
    assert kinds(entry) == ["rows", "sort"]
    check(entry, [np.random.default_rng(9).uniform(-1, 2, (20, 256)).astype(kind.dtype)])


def test_results_are_made_before_rows_that_read_them() -> None:
    """Such a kernel may write over a donated argument."""

    def residual(x: Instruction, over: Sequence[int]) -> list[Instruction]:
        total = ops.add(x, ops.full_like(x, 2))
        return [total, ops.mul(total, spread(ops.reduce_sum(total, over), x, over))]

    assert kinds(made(residual, (1,), (30, 320))) == ["add", "rows"]
