"""GetDimensionSize, SetDimensionSize and DynamicReshape, whose results are of static sizes.

What XLA leaves beyond a dynamic size is undefined, so that it never gets out.
"""

from __future__ import annotations

from tests.fuzz.graph import Graph
from tests.samples.dynamic_sizes import always
from tracejit import ops
from tracejit.graph import Instruction
from tracejit.ops.base import ALL, INTEGRAL, NUMERIC
from tracejit.shapes import ElementType, Shape

_SIZE = Shape(ElementType.S32)


def get_dimension_size(graph: Graph) -> Instruction:
    cut, dimension = _cut(graph)
    return ops.get_dimension_size(cut, dimension)


def set_dimension_size(graph: Graph) -> Instruction:
    """The sum, or the disjunction, of what lies within a dynamic size."""
    cut, dimension = _cut(graph)
    shape = cut.array_shape
    if shape.element_type is ElementType.PRED:
        init, either = ops.constant(False), ops.scalar_computation("or", shape.element_type)
        return ops.reduce(cut, init, either, [dimension])
    return _combined(cut, dimension)


def _combined(cut: Instruction, dimension: int) -> Instruction:
    """The sum of a dynamic size; the product where there is no zero, which XLA gets wrong."""
    kind = cut.array_shape.element_type
    if kind is not ElementType.F8E8M0FNU:
        return ops.reduce_sum(cut, [dimension])
    product = ops.scalar_computation("mul", kind)
    return ops.reduce(cut, ops.constant(1, kind), product, [dimension])


def _cut(graph: Graph) -> tuple[Instruction, int]:
    """A value cut in one dimension, and which one."""
    value = graph.ranked(ALL if graph.is_single else INTEGRAL)
    dimension = graph.choices.integer(0, value.array_shape.rank - 1)
    size = value.array_shape.dimensions[dimension]
    length = graph.drawn(_SIZE, always(graph.choices.integer(0, size)))
    return ops.set_dimension_size(value, length, dimension), dimension


def dynamic_reshape(graph: Graph) -> Instruction:
    """A cut vector as a column, summed."""
    size = graph.choices.pick((3, 1, 8, 33))
    scalar = graph.shape(NUMERIC if graph.is_single else INTEGRAL, 0)
    value = graph.like(scalar.with_dimensions([size]))
    length = graph.drawn(_SIZE, always(graph.choices.integer(0, size)))
    cut = ops.set_dimension_size(value, length, 0)
    one = ops.constant(1, ElementType.S32)
    column = ops.dynamic_reshape(cut, [length, one], [size, 1], [True, False])
    return _combined(column, 0)


STEPS = {
    "GetDimensionSize": (get_dimension_size,),
    "SetDimensionSize": (set_dimension_size,),
    "DynamicReshape": (dynamic_reshape,),
}
