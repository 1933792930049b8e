"""ReduceWindow, cumulative and others, and SelectAndScatter."""

from __future__ import annotations

from tests.fuzz.graph import Graph
from tests.fuzz.steps.reduction import MONOIDS
from tracejit import ops
from tracejit.graph import Computation, Instruction
from tracejit.ops.base import FLOATING, NUMERIC, ORDERED
from tracejit.ops.windows import Padding
from tracejit.shapes import Shape


def reduce_window(graph: Graph) -> Instruction | None:
    choices = graph.choices
    name = choices.pick([*MONOIDS])
    operand = graph.ranked(MONOIDS[name])
    sizes = operand.array_shape.dimensions
    dilations = [choices.pick((1, 1, 2)) for _ in sizes]
    extents = [
        max(size - 1, 0) * d + min(size, 1) for size, d in zip(sizes, dilations, strict=True)
    ]
    made = ops.reduce_window_by(
        name,
        operand,
        [choices.pick((1, 2, 3)) for _ in sizes],
        [choices.pick((1, 2, 3)) for _ in sizes],
        [graph.padding(extent) for extent in extents],
        dilations,
        [choices.pick((1, 1, 2)) for _ in sizes],
    )
    return made if graph.whole(made.array_shape.dimensions) else None


def pooling(graph: Graph) -> Instruction:
    name = graph.choices.pick(("max", "add"))
    operand = graph.ranked(MONOIDS[name])
    sizes = [graph.choices.pick((1, 2, 3)) for _ in operand.array_shape.dimensions]
    padding = graph.choices.pick(("VALID", "SAME"))
    return ops.reduce_window_by(name, operand, sizes, sizes, padding)


def cumulative(graph: Graph) -> Instruction:
    name = graph.choices.pick([*MONOIDS])
    operand = graph.ranked(MONOIDS[name])
    along = graph.choices.integer(0, operand.array_shape.rank - 1)
    return ops.cumulative(name, operand, along, graph.choices.chance(2))


def two_at_once(graph: Graph) -> Instruction | None:
    """The greatest and the sum of each window, in one ReduceWindow of two operands."""
    first = graph.ranked(ORDERED)
    shape = first.array_shape
    other = graph.element_type(NUMERIC)
    second = graph.like(Shape(other, shape.dimensions))
    a, b, c, d = parameters = tuple(
        ops.parameter(i, Shape(t)) for i, t in enumerate([shape.element_type, other] * 2)
    )
    combine = Computation("both", parameters, ops.tuple_([ops.max(a, c), ops.add(b, d)]))
    inits = [graph.scalar(shape.element_type), ops.constant(0, other)]
    sizes = [graph.choices.pick((1, 2, 3)) for _ in shape.dimensions]
    strides = [graph.choices.pick((1, 2, 3)) for _ in shape.dimensions]
    padding = [graph.padding(size) for size in shape.dimensions]
    made = ops.reduce_window([first, second], inits, combine, sizes, strides, padding)
    whole = all(graph.whole(s.dimensions) for s in made.element_shapes if isinstance(s, Shape))
    return made if whole else None


def select_and_scatter(graph: Graph) -> Instruction | None:
    """Windows apart or overlapping; SAME, VALID or any padding, negative as well."""
    choices = graph.choices
    operand = graph.ranked(NUMERIC & ORDERED if graph.is_single else FLOATING)
    shape = operand.array_shape
    sizes = [choices.pick((1, 2, 3)) for _ in shape.dimensions]
    strides = [choices.pick((size, 1, 2)) for size in sizes]
    padding: Padding = choices.pick(("VALID", "SAME", "ANY"))
    if padding == "ANY":
        padding = [graph.padding(size) for size in shape.dimensions]
    probe = ops.reduce_window_by("max", operand, sizes, strides, padding)
    source = graph.like(probe.array_shape)
    select = ops.scalar_computation(choices.pick(("ge", "gt", "le")), shape.element_type)
    name = choices.pick(("add", "add", "max", "mul")) if graph.is_single else "add"
    combine = ops.scalar_computation(name, shape.element_type)
    init = graph.scalar(shape.element_type)
    return ops.select_and_scatter(operand, select, sizes, strides, padding, source, init, combine)


STEPS = {
    "ReduceWindow": (reduce_window, reduce_window, pooling, cumulative, cumulative, two_at_once),
    "SelectAndScatter": (select_and_scatter,),
}
