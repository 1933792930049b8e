"""Samples of Gather and Scatter."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.samples.base import Operand, Sample
from tests.samples.domains import distinct, near_one, small_integers
from tests.samples.layout import between
from tracejit import ops
from tracejit.graph import Computation, Instruction
from tracejit.ops.base import ALL, INTEGRAL, LOGICAL, NUMERIC, ORDERED
from tracejit.shapes import ElementType, Shape

F32, F64, S32 = ElementType.F32, ElementType.F64, ElementType.S32


def indices(*dimensions: int, low: int = -2, high: int = 7) -> Operand:
    return Operand(dimensions, S32, between(low, high))


def permutation(
    rng: np.random.Generator, dimensions: tuple[int, ...], dtype: np.dtype
) -> np.ndarray:
    return rng.permutation(dimensions[0]).reshape(dimensions).astype(dtype)


def ascending(rng: np.random.Generator, dimensions: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    return np.sort(rng.integers(0, 5, dimensions), axis=0).astype(dtype)


def increasing(
    rng: np.random.Generator, dimensions: tuple[int, ...], dtype: np.dtype
) -> np.ndarray:
    """Different numbers below 5 in order."""
    chosen = rng.choice(5, dimensions[0], replace=False)
    return np.sort(chosen).reshape(dimensions).astype(dtype)


def gathered(
    numbers: ops.GatherDimensionNumbers, *sizes: int, is_sorted: bool = False
) -> Callable[[Instruction, Instruction], Instruction]:
    return lambda x, i: ops.gather(x, i, numbers, sizes, is_sorted)


def scattered(
    name: str, numbers: ops.ScatterDimensionNumbers, is_sorted: bool = False, unique: bool = False
) -> Callable[[Instruction, Instruction, Instruction], Instruction]:
    def build(x: Instruction, i: Instruction, updates: Instruction) -> Instruction:
        element_type = x.array_shape.element_type
        if name == "replace":
            combine = ops.replace_computation(element_type)
        else:
            combine = ops.scalar_computation(name, element_type)
        return ops.scatter(x, i, updates, combine, numbers, is_sorted, unique)

    return build


def scalar_function(
    function: Callable[..., Instruction], *element_types: ElementType
) -> Computation:
    parameters = tuple(ops.parameter(i, Shape(t)) for i, t in enumerate(element_types))
    return Computation("combine", parameters, function(*parameters))


def scattered_twice_minus(unique: bool) -> Callable[..., Instruction]:
    """An update computation that does not commute: 2 old - new."""

    def build(x: Instruction, i: Instruction, updates: Instruction) -> Instruction:
        combine = scalar_function(
            lambda old, new: ops.sub(ops.add(old, old), new), *[x.array_shape.element_type] * 2
        )
        return ops.scatter(x, i, updates, combine, SCATTER_ROWS, unique_indices=unique)

    return build


def scatter_pair(
    x: Instruction, y: Instruction, i: Instruction, *updates: Instruction
) -> Instruction:
    """Two operands: the first summed, the second overwritten."""
    types = [x.array_shape.element_type, y.array_shape.element_type]
    combine = scalar_function(lambda a, b, c, d: ops.tuple_([ops.add(a, c), d]), *types, *types)
    return ops.scatter([x, y], i, updates, combine, SCATTER_ROWS)


def scatter_exchange(
    x: Instruction, y: Instruction, i: Instruction, *updates: Instruction
) -> Instruction:
    """Two operands whose new values depend on both."""
    combine = scalar_function(
        lambda a, b, c, d: ops.tuple_([ops.sub(b, c), ops.mul(a, d)]),
        *[x.array_shape.element_type] * 4,
    )
    return ops.scatter([x, y], i, updates, combine, SCATTER_ROWS, unique_indices=True)


GATHER_ROWS = ops.GatherDimensionNumbers((1,), (0,), (0,), 1)
SCATTER_ROWS = ops.ScatterDimensionNumbers((1,), (0,), (0,), 1)
SCATTER_ELEMENTS = ops.ScatterDimensionNumbers((), (0,), (0,), 1)
ROWS = (Operand((5, 3)), indices(4, 1), Operand((4, 3)))
ELEMENTS = (Operand((5,)), indices(9, 1), Operand((9,)))

SAMPLES = [
    Sample("Gather", gathered(GATHER_ROWS, 1, 3), ROWS[:2], ALL, "rows", exact=True),
    Sample(
        "Gather",
        gathered(ops.GatherDimensionNumbers((1, 2), (), (0, 1), 1), 3, 2),
        (Operand((6, 4)), indices(5, 2)),
        ALL,
        "windows",
        exact=True,
    ),
    Sample(
        "Gather",
        gathered(ops.GatherDimensionNumbers((0, 2), (), (1, 0), 0), 2, 3),
        (Operand((4, 5)), indices(2, 3)),
        ALL,
        "index vectors first, swapped",
        exact=True,
    ),
    Sample(
        "Gather",
        gathered(ops.GatherDimensionNumbers((2,), (0,), (0,), 2), 1, 3),
        (Operand((5, 3)), indices(2, 4)),
        ALL,
        "numbers for indices",
        exact=True,
    ),
    Sample(
        "Gather",
        gathered(ops.GatherDimensionNumbers((), (0, 1), (0, 1), 1), 1, 1),
        (Operand((5, 3)), indices(4, 2)),
        ALL,
        "elements",
        exact=True,
    ),
    Sample(
        "Gather",
        gathered(ops.GatherDimensionNumbers((0, 1), (), (), 0), 2, 3),
        (Operand((3, 3)), indices(0)),
        ALL,
        "index vectors of length 0",
        exact=True,
    ),
    Sample(
        "Gather",
        gathered(ops.GatherDimensionNumbers((0,), (), (0,), 0), 2),
        (Operand((5,)), indices(1)),
        ALL,
        "one slice",
        exact=True,
    ),
    Sample(
        "Gather",
        gathered(ops.GatherDimensionNumbers((0,), (), (0,), 0), 2),
        (Operand((5,)), indices()),
        ALL,
        "a scalar index",
        exact=True,
    ),
    Sample(
        "Gather",
        gathered(ops.GatherDimensionNumbers((2,), (1,), (1,), 2, (0,), (0,)), 1, 1, 3),
        (Operand((2, 4, 3)), indices(2, 5, 1)),
        ALL,
        "one batching dimension",
        exact=True,
    ),
    Sample(
        "Gather",
        gathered(ops.GatherDimensionNumbers((1, 3), (), (1,), 0, (0, 3), (2, 1)), 1, 2, 2, 1),
        (Operand((3, 4, 2, 2)), indices(1, 2, 3)),
        ALL,
        "two batching dimensions, swapped",
        exact=True,
    ),
    Sample(
        "Gather",
        gathered(GATHER_ROWS, 1, 2, is_sorted=True),
        (Operand((5, 3)), Operand((6, 1), S32, ascending)),
        ALL,
        "sorted, part of a row",
        exact=True,
    ),
    Sample(
        "Gather",
        gathered(GATHER_ROWS, 1, 3),
        (Operand((5, 3)), indices(0, 1)),
        ALL,
        "no index",
        exact=True,
    ),
    Sample(
        "Gather",
        gathered(GATHER_ROWS, 1, 0),
        (Operand((5, 0)), indices(4, 1)),
        ALL,
        "empty rows",
        exact=True,
    ),
    Sample(
        "Gather",
        lambda i, x: ops.gather(x, i, GATHER_ROWS, (1, 3)),
        (Operand((4, 1), None, between(-3, 8)), Operand((5, 3), F64)),
        INTEGRAL,
        "index types",
        exact=True,
    ),
    Sample("Scatter", scattered("replace", SCATTER_ROWS), ROWS, ALL, "replace rows", exact=True),
    Sample("Scatter", scattered("add", SCATTER_ROWS), ROWS, NUMERIC, "add rows"),
    Sample("Scatter", scattered("add", SCATTER_ELEMENTS), ELEMENTS, ALL, "add elements"),
    Sample("Scatter", scattered("sub", SCATTER_ELEMENTS), ELEMENTS, NUMERIC, "sub elements"),
    Sample(
        "Scatter",
        scattered("mul", SCATTER_ELEMENTS),
        (Operand((5,), domain=near_one), indices(9, 1), Operand((9,), domain=near_one)),
        NUMERIC,
        "mul elements",
    ),
    Sample(
        "Scatter",
        scattered("mul", SCATTER_ROWS, unique=True),
        (Operand((5, 3)), Operand((4, 1), S32, permutation), Operand((4, 3))),
        NUMERIC,
        "mul, unique",
    ),
    Sample(
        "Scatter",
        scattered("max", SCATTER_ELEMENTS),
        (Operand((5,), domain=distinct), indices(9, 1), Operand((9,))),
        ORDERED,
        "max elements",
    ),
    Sample("Scatter", scattered("min", SCATTER_ROWS), ROWS, ORDERED, "min rows"),
    Sample("Scatter", scattered("and", SCATTER_ROWS), ROWS, LOGICAL, "and"),
    Sample("Scatter", scattered("or", SCATTER_ROWS), ROWS, LOGICAL, "or"),
    Sample("Scatter", scattered("xor", SCATTER_ROWS), ROWS, LOGICAL, "xor"),
    Sample(
        "Scatter",
        scattered_twice_minus(unique=False),
        (
            Operand((5, 3), domain=small_integers),
            indices(4, 1),
            Operand((4, 3), domain=small_integers),
        ),
        NUMERIC,
        "not commutative",
        differentiable=False,
        why="of an arbitrary computation only unique indices have a derivative",
    ),
    Sample(
        "Scatter",
        scattered_twice_minus(unique=True),
        (Operand((5, 3)), Operand((4, 1), S32, permutation), Operand((4, 3))),
        NUMERIC,
        "not commutative, unique",
    ),
    Sample(
        "Scatter",
        scattered("replace", SCATTER_ROWS, is_sorted=True, unique=True),
        (Operand((5, 3)), Operand((3, 1), S32, increasing), Operand((3, 3))),
        ALL,
        "replace, sorted and unique",
        exact=True,
    ),
    Sample(
        "Scatter",
        scattered("add", ops.ScatterDimensionNumbers((1, 2), (), (0, 1), 1)),
        (Operand((6, 4)), indices(5, 2), Operand((5, 3, 2))),
        NUMERIC,
        "windows",
    ),
    Sample(
        "Scatter",
        scattered("replace", ops.ScatterDimensionNumbers((0, 2), (), (1, 0), 0)),
        (Operand((4, 5)), indices(2, 3), Operand((2, 3, 3))),
        ALL,
        "windows first, index vectors swapped",
        exact=True,
    ),
    Sample(
        "Scatter",
        scattered("add", ops.ScatterDimensionNumbers((2,), (0,), (0,), 2)),
        (Operand((5, 3)), indices(2, 4), Operand((2, 4, 2))),
        NUMERIC,
        "numbers for indices, part of a row",
    ),
    Sample(
        "Scatter",
        scattered("add", ops.ScatterDimensionNumbers((2,), (1,), (1,), 2, (0,), (0,))),
        (Operand((2, 4, 3)), indices(2, 5, 1), Operand((2, 5, 3))),
        NUMERIC,
        "one batching dimension",
    ),
    Sample(
        "Scatter",
        scattered("replace", ops.ScatterDimensionNumbers((1, 3), (), (1,), 0, (0, 3), (2, 1))),
        (Operand((3, 4, 2, 2)), indices(1, 2, 3), Operand((2, 2, 3, 2))),
        ALL,
        "two batching dimensions, swapped",
        exact=True,
    ),
    Sample(
        "Scatter",
        scattered("add", ops.ScatterDimensionNumbers((), (), (), 0)),
        (Operand(()), indices(0), Operand(())),
        NUMERIC,
        "scalar",
    ),
    Sample(
        "Scatter",
        scattered("add", SCATTER_ROWS),
        (Operand((5, 3)), indices(0, 1), Operand((0, 3))),
        NUMERIC,
        "no update",
    ),
    Sample(
        "Scatter",
        scattered("add", SCATTER_ROWS),
        (Operand((0, 3)), indices(2, 1), Operand((2, 3))),
        NUMERIC,
        "no operand",
    ),
    Sample(
        "Scatter",
        scatter_pair,
        (
            Operand((5, 3)),
            Operand((5, 3), S32),
            indices(6, 1),
            Operand((6, 3)),
            Operand((6, 3), S32),
        ),
        NUMERIC,
        "two operands",
    ),
    Sample(
        "Scatter",
        scatter_exchange,
        (
            Operand((5, 2)),
            Operand((5, 2)),
            Operand((4, 1), S32, permutation),
            Operand((4, 2)),
            Operand((4, 2)),
        ),
        NUMERIC,
        "two operands that exchange",
    ),
    Sample(
        "Scatter",
        lambda i, x, u: scattered("add", SCATTER_ROWS)(x, i, u),
        (Operand((4, 1), None, between(-3, 8)), Operand((5, 3), F64), Operand((4, 3), F64)),
        INTEGRAL,
        "index types",
    ),
]
