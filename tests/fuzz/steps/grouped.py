"""RaggedDot and ScaledDot."""

from __future__ import annotations

import numpy as np

from tests.fuzz.graph import Graph
from tracejit import ops
from tracejit.graph import Instruction
from tracejit.ops import DotDimensionNumbers
from tracejit.ops.base import ALL, FLOATING
from tracejit.shapes import ElementType, Shape


def ragged_dot(graph: Graph) -> Instruction:
    """Rows in groups, some of them empty, with rows left over or too few."""
    choices = graph.choices
    rows, inner, columns = (choices.pick((3, 1, 5, 8, 0, 16)) for _ in range(3))
    groups = choices.pick((2, 1, 3))
    scalar = graph.shape(ALL, 0)
    sizes = graph.drawn(Shape(ElementType.S32, (groups,)), _sizes)
    lhs = graph.like(scalar.with_dimensions([rows, inner]))
    rhs = graph.like(scalar.with_dimensions([groups, inner, columns]))
    return ops.ragged_dot(lhs, rhs, sizes)


def _sizes(rng: np.random.Generator, dimensions: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    return rng.integers(0, 5, dimensions).astype(dtype)


def scaled_dot(graph: Graph) -> Instruction:
    """Blocks along the contracted dimension, or one scale for everything."""
    choices = graph.choices
    rows, columns = (choices.pick((3, 1, 5, 0)) for _ in range(2))
    inner = choices.pick((4, 8, 32))
    scalar = graph.shape(FLOATING, 0)
    lhs, rhs = (graph.like(scalar.with_dimensions([n, inner])) for n in (rows, columns))
    scales = []
    for count in (rows, columns):
        sizes = choices.pick(([count, 2], [count, inner], []))
        scales.append(graph.like(scalar.with_dimensions(sizes)))
    numbers = DotDimensionNumbers((1,), (1,))
    return ops.scaled_dot(lhs, scales[0], rhs, scales[1], numbers)


STEPS = {"RaggedDot": (ragged_dot,), "ScaledDot": (scaled_dot,)}
