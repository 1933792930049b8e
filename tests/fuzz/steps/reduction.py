"""Reduce, Sort, TopK."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from tests.fuzz.graph import Graph
from tests.fuzz.steps import called
from tracejit import ops
from tracejit.graph import Computation, Instruction
from tracejit.ops.base import ALL, INTEGRAL, LOGICAL, NUMERIC, ORDERED
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
    """By one of the usual monoids, over some dimensions, all or none, from any value."""
    name = graph.choices.pick([*MONOIDS])
    operand = graph.value(MONOIDS[name])
    shape = operand.array_shape
    over = graph.choices.some(range(shape.rank))
    if not over and not graph.choices.chance(4):
        over = list(range(shape.rank))
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
    """By the first operand; stable, since the order of equal elements is otherwise free."""
    operands, types = _sorted_together(graph)
    comparator = ops.sort_order(*types, descending=graph.choices.chance(2))
    return _sort(graph, operands, comparator)


def sort_totally(graph: Graph) -> Instruction:
    """By the total order of the first operand, or of the last."""
    operands, types = _sorted_together(graph)
    pairs = _pairs(types)
    key = graph.choices.pick([n for n, t in enumerate(types) if t in ORDERED])
    lhs, rhs = pairs[2 * key : 2 * key + 2]
    before = graph.choices.pick((ops.lt_total_order, ops.gt_total_order))
    return _sort(graph, operands, Computation("total", tuple(pairs), before(lhs, rhs)))


def sort_by_several(graph: Graph) -> Instruction:
    """By the first operand and, where it is equal, by the second, each up or down."""
    operands, types = _sorted_together(graph, 1)
    pairs = _pairs(types)
    before = [graph.choices.pick((ops.lt_total_order, ops.gt_total_order)) for _ in range(2)]
    first, second = (before[n](pairs[2 * n], pairs[2 * n + 1]) for n in range(2))
    root = ops.select(ops.eq_total_order(pairs[0], pairs[1]), second, first)
    return _sort(graph, operands, Computation("several", tuple(pairs), root))


def sort_by_remainder(graph: Graph) -> Instruction:
    """Integers by their low bits."""
    operands, types = _sorted_together(graph, accepts=INTEGRAL)
    pairs = _pairs(types)
    low = [ops.and_(p, ops.constant(np.array(3).astype(types[0].dtype))) for p in pairs[:2]]
    return _sort(graph, operands, Computation("remainder", tuple(pairs), ops.lt(low[0], low[1])))


def _sorted_together(
    graph: Graph, more: int = 0, accepts: Collection[ElementType] = ORDERED
) -> tuple[list[Instruction], list[ElementType]]:
    """Operands of one size to be sorted, ``more`` of them at least besides the first."""
    key = _rows(graph, accepts)
    shape = key.array_shape
    operands = [key]
    for number in range(max(more, graph.choices.pick((0, 0, 1, 2)))):
        kinds = ORDERED if number < more else ALL
        operands.append(graph.like(Shape(graph.element_type(kinds), shape.dimensions)))
    return operands, [o.array_shape.element_type for o in operands]


def _rows(graph: Graph, accepts: Collection[ElementType]) -> Instruction:
    """Something to sort, now and then in rows so long that they are sorted in other ways."""
    long = [sizes for sizes in _LONG if graph.whole(sizes) or graph.is_single]
    if long and graph.choices.chance(3):
        return graph.new(Shape(graph.element_type(accepts), graph.choices.pick(long)))
    return graph.ranked(accepts)


def _pairs(types: Sequence[ElementType]) -> list[Instruction]:
    return [ops.parameter(n, Shape(types[n // 2])) for n in range(2 * len(types))]


def _sort(graph: Graph, operands: Sequence[Instruction], comparator: Computation) -> Instruction:
    rank = operands[0].array_shape.rank
    return ops.sort(operands, comparator, graph.choices.integer(0, rank - 1), True)


def top_k(graph: Graph) -> Instruction:
    operand = _rows(graph, ORDERED)
    size = operand.array_shape.dimensions[-1]
    most = min(size, 20) if graph.choices.chance(2) else size
    return ops.top_k(operand, graph.choices.integer(0, most), not graph.choices.chance(3))


_LONG = ((300,), (3, 130), (257, 4), (2, 2, 64), (70, 70), (5000,), (2, 2100))


STEPS = {
    "Reduce": (reduce, reduce, reduce, moments, position, called.folded),
    "Sort": (sort, sort_totally, sort_by_several, sort_by_remainder),
    "TopK": (top_k,),
}
