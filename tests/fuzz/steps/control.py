"""Call, Map, Conditional and While, with random graphs for computations."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.fuzz.graph import Graph
from tests.fuzz.steps import called
from tests.fuzz.steps.elementwise import accepted
from tracejit import ops
from tracejit.graph import Computation, Instruction
from tracejit.ops.base import ALL, NUMERIC
from tracejit.shapes import AnyShape, ElementType, Shape

S32 = ElementType.S32

Grow = Callable[[Graph, int], None]
"""Adds some steps to a graph; `tests.fuzz.table` gives it, which knows all steps."""


def _inside(
    graph: Graph, shapes: Sequence[AnyShape], grow: Grow, most: int
) -> tuple[list[Instruction], Graph]:
    """Parameters of a computation and the graph that grows from them."""
    parameters = [ops.parameter(i, shape) for i, shape in enumerate(shapes)]
    values = [leaf for p in parameters for leaf in ops.elements_of(p)]
    inner = Graph(graph.choices, graph.elements, values, closed=True, depth=graph.depth + 1)
    grow(inner, graph.choices.integer(0, most))
    return parameters, inner


def _operands(graph: Graph, most: int = 3) -> list[Instruction]:
    return [graph.value() for _ in range(graph.choices.integer(1, most))]


def call(graph: Graph, grow: Grow) -> Instruction:
    operands = _operands(graph)
    parameters, inner = _inside(graph, [o.shape for o in operands], grow, 5)
    roots = [graph.choices.pick(inner.values[::-1]) for _ in range(graph.choices.integer(1, 3))]
    root = roots[0] if len(roots) == 1 else ops.tuple_(roots)
    called = Computation("called", tuple(parameters), root)
    # XLA's way through StableHLO knows composites of one result only.
    if len(roots) == 1 and graph.choices.chance(2):
        return ops.composite_call(called, operands, "drawn.op", "{n = 1 : i32}", 1)
    return ops.call(called, operands)


def map_(graph: Graph, grow: Grow) -> Instruction:
    """A polynomial of the operands, or a choice by those that are pred.

    In graphs no other types are met: XLA has no code for some mixtures, and refuses the graph.
    """
    first = graph.value(NUMERIC)
    types = ALL if graph.is_single else (first.array_shape.element_type, ElementType.PRED)
    operands = [first]
    for _ in range(graph.choices.integer(0, 2)):
        operands.append(graph.like(Shape(graph.element_type(types), first.array_shape.dimensions)))
    scalars = [Shape(o.array_shape.element_type) for o in operands]
    parameters = tuple(ops.parameter(i, s) for i, s in enumerate(scalars))
    root = parameters[0]
    for other in parameters[1:]:
        if other.shape == root.shape:
            root = ops.add(root, ops.mul(other, root))
        elif other.array_shape.element_type is ElementType.PRED:
            root = ops.select(other, root, ops.scalar_like(root, 1))
    root = ops.neg(root) if root.array_shape.element_type in accepted("Neg", 1, True) else root
    return ops.map_(operands, Computation("mapped", parameters, root))


def conditional(graph: Graph, grow: Grow) -> Instruction:
    results = [graph.value().array_shape for _ in range(graph.choices.integer(1, 2))]
    two_ways = graph.choices.chance(2)
    count = 2 if two_ways else graph.choices.integer(1, 3)
    operands, branches = [], []
    for n in range(count):
        given = _operands(graph)
        operand = given[0] if len(given) == 1 and graph.choices.chance(2) else ops.tuple_(given)
        (parameter,), inner = _inside(graph, [operand.shape], grow, 4)
        roots = [inner.like(shape) for shape in results]
        root = roots[0] if len(roots) == 1 else ops.tuple_(roots)
        operands.append(operand)
        branches.append(Computation(f"branch{n}", (parameter,), root))
    if two_ways:
        predicate = graph.scalar(ElementType.PRED)
        return ops.conditional(predicate, operands[0], branches[0], operands[1], branches[1])
    return ops.conditional_indexed(graph.scalar(S32), branches, operands)


def while_(graph: Graph, grow: Grow) -> Instruction:
    """A loop of up to three times, its state a counter and arrays, some of them nested."""
    arrays = _operands(graph)
    counter = ops.constant(graph.choices.integer(0, 3), S32)
    init = ops.tuple_([counter, *arrays])
    nested = graph.choices.chance(3)
    if nested:
        init = ops.tuple_([counter, ops.tuple_(arrays)])
    (state,), inner = _inside(graph, [init.shape], grow, 0)
    first, *rest = ops.elements_of(state)
    held = list(ops.elements_of(rest[0])) if nested else rest
    inner.values = [*held]
    grow(inner, graph.choices.integer(1, 4))
    new = [inner.like(a.array_shape) for a in arrays]
    less = ops.sub(first, ops.constant(1, S32))
    root = ops.tuple_([less, ops.tuple_(new)] if nested else [less, *new])
    asked = ops.parameter(0, init.shape)
    holds = ops.gt(ops.get_tuple_element(asked, 0), ops.constant(0, S32))
    body = Computation("body", (state,), root)
    made = ops.while_(Computation("condition", (asked,), holds), body, init)
    if not nested:
        return made
    counted, pair = ops.elements_of(made)
    return ops.tuple_([counted, *ops.elements_of(pair)])


def optimization_barrier(graph: Graph, grow: Grow) -> Instruction:
    operands = _operands(graph)
    return ops.optimization_barrier(operands[0] if len(operands) == 1 else ops.tuple_(operands))


STEPS = {
    "Call": (call,),
    "Map": (map_, called.mapped),
    "Conditional": (conditional,),
    "While": (while_,),
    "OptimizationBarrier": (optimization_barrier,),
}
