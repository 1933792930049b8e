"""Reduce, Sort, TopK."""

from __future__ import annotations

from tests.fuzz.graph import Graph
from tracejit import ops
from tracejit.graph import Computation, Instruction
from tracejit.ops.base import ALL, LOGICAL, NUMERIC, ORDERED
from tracejit.shapes import ElementType, Shape

MONOIDS = {
    "add": NUMERIC,
    "max": ORDERED,
    "min": ORDERED,
    "mul": NUMERIC,
    "and": LOGICAL,
    "or": LOGICAL,
    "xor": LOGICAL,
}


def reduce(graph: Graph) -> Instruction:
    name = graph.choices.pick([*MONOIDS])
    operand = graph.value(MONOIDS[name])
    shape = operand.array_shape
    over = graph.choices.some(range(shape.rank)) or list(range(shape.rank))
    element_type = shape.element_type
    if graph.choices.chance(4):
        init = graph.scalar(element_type)
    else:
        init = ops.constant(ops.identity_value(name, element_type), element_type)
    return ops.reduce(operand, init, ops.scalar_computation(name, element_type), over)


def moments(graph: Graph) -> Instruction:
    """The sum and the greatest, in one Reduce of two operands."""
    first = graph.value(ORDERED)
    shape = first.array_shape
    other = graph.element_type(NUMERIC)
    second = graph.like(Shape(other, shape.dimensions))
    a, b, c, d = parameters = tuple(
        ops.parameter(i, Shape(t)) for i, t in enumerate([shape.element_type, other] * 2)
    )
    combine = Computation("moments", parameters, ops.tuple_([ops.max(a, c), ops.add(b, d)]))
    lowest = ops.identity_value("max", shape.element_type)
    inits = [ops.constant(lowest, shape.element_type), ops.constant(0, other)]
    over = graph.choices.some(range(shape.rank)) or list(range(shape.rank))
    return ops.reduce([first, second], inits, combine, over)


def position(graph: Graph) -> Instruction | None:
    operand = graph.ranked(ORDERED)
    sizes = operand.array_shape.dimensions
    along = [d for d, size in enumerate(sizes) if size]
    if not along:
        return None
    function = graph.choices.pick((ops.argmax, ops.argmin))
    index_type = graph.choices.pick((ElementType.S32, ElementType.S64, ElementType.U16))
    return function(operand, graph.choices.pick(along), index_type)


def sort(graph: Graph) -> Instruction:
    """Stable, since the order of equal elements is otherwise free."""
    key = graph.ranked(ORDERED)
    shape = key.array_shape
    operands = [key]
    for _ in range(graph.choices.pick((0, 0, 1, 2))):
        operands.append(graph.like(Shape(graph.element_type(ALL), shape.dimensions)))
    types = [o.array_shape.element_type for o in operands]
    comparator = ops.sort_order(*types, descending=graph.choices.chance(2))
    return ops.sort(operands, comparator, graph.choices.integer(0, shape.rank - 1), True)


def top_k(graph: Graph) -> Instruction:
    operand = graph.ranked(ORDERED)
    size = operand.array_shape.dimensions[-1]
    return ops.top_k(operand, graph.choices.integer(0, size), not graph.choices.chance(3))


STEPS = {reduce: 6, moments: 1, position: 1, sort: 1, top_k: 1}
