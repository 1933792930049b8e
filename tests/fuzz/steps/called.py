"""Computations that Map, Reduce, Scatter and Sort call, with branches, tables and calls in them."""

from __future__ import annotations

import math
from collections.abc import Callable

from tests.fuzz.graph import Graph
from tracejit import ops
from tracejit.graph import Computation, Instruction
from tracejit.shapes import ElementType, Shape

S32 = ElementType.S32
_TYPES = frozenset({S32, ElementType.S64, ElementType.U8, ElementType.S16})
"""Integers: their sums and products do not depend on rounding."""


_IN_ORDER = 32
"""The most elements that XLA surely combines from the left."""


def _scalars(element_type: ElementType) -> tuple[Instruction, Instruction]:
    return ops.parameter(0, Shape(element_type)), ops.parameter(1, Shape(element_type))


def _branches(element_type: ElementType) -> Computation:
    """The sum, or the first less the second, by which is greater."""
    a, b = _scalars(element_type)
    pair = ops.tuple_([a, b])
    bodies = []
    for op in (ops.add, ops.sub):
        given = ops.parameter(0, pair.shape)
        first, second = ops.elements_of(given)
        bodies.append(Computation("branch", (given,), op(first, second)))
    chosen = ops.conditional(ops.gt(a, b), pair, bodies[0], pair, bodies[1])
    return Computation("branches", (a, b), chosen)


def _table(element_type: ElementType) -> Computation:
    """Twice the first and the number that the second is the index of."""
    a, b = _scalars(element_type)
    table = ops.constant([3, 1, 4, 1, 5, 9, 2, 6], element_type)
    found = ops.reshape(ops.dynamic_slice(table, [b], [1]), ())
    return Computation("table", (a, b), ops.add(ops.add(a, a), found))


def _nested(element_type: ElementType) -> Computation:
    """A Map of a Reduce of scalars."""
    a, b = _scalars(element_type)
    return Computation("nested", (a, b), ops.map_([a, b], _branches(element_type), []))


def _computation(graph: Graph, element_type: ElementType) -> Computation:
    return graph.choices.pick((_branches, _table, _nested))(element_type)


def mapped(graph: Graph, grow: Callable[[Graph, int], None]) -> Instruction:
    operand = graph.value(_TYPES)
    shape = operand.array_shape
    computation = _computation(graph, shape.element_type)
    return ops.map_([operand, graph.like(Shape(shape.element_type, shape.dimensions))], computation)


def folded(graph: Graph) -> Instruction | None:
    """From the left, over some dimensions of a few elements.

    XLA takes computations to be associative: it leaves the initial value out for one element, and
    divides rows of 64.
    """
    operand = graph.value(_TYPES)
    shape = operand.array_shape
    over = graph.choices.some(range(shape.rank))
    if not 2 <= math.prod(shape.dimensions[d] for d in over) <= _IN_ORDER:
        return None
    init = graph.scalar(shape.element_type)
    return ops.reduce(operand, init, _computation(graph, shape.element_type), over)
