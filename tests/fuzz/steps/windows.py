"""ReduceWindow, cumulative and others, and SelectAndScatter."""

from __future__ import annotations

from tests.fuzz.graph import Graph
from tests.fuzz.steps.reduction import MONOIDS
from tracejit import ops
from tracejit.graph import Instruction
from tracejit.ops.base import FLOATING


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


def select_and_scatter(graph: Graph) -> Instruction:
    choices = graph.choices
    operand = graph.ranked(FLOATING)
    shape = operand.array_shape
    sizes = [choices.pick((1, 2, 3)) for _ in shape.dimensions]
    strides = [choices.pick((size, 1, 2)) for size in sizes]
    padding = choices.pick(("VALID", "SAME"))
    probe = ops.reduce_window_by("max", operand, sizes, strides, padding)
    source = graph.like(probe.array_shape)
    select = ops.scalar_computation(choices.pick(("ge", "gt", "le")), shape.element_type)
    combine = ops.scalar_computation("add", shape.element_type)
    init = graph.scalar(shape.element_type)
    return ops.select_and_scatter(operand, select, sizes, strides, padding, source, init, combine)


STEPS = {reduce_window: 2, pooling: 1, cumulative: 2, select_and_scatter: 1}
