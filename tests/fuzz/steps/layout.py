"""Steps that move elements."""

from __future__ import annotations

import math

from tests.fuzz.graph import Graph
from tracejit import ops
from tracejit.graph import Instruction
from tracejit.ops.base import INTEGRAL


def broadcast_in_dim(graph: Graph) -> Instruction | None:
    operand = graph.value()
    sizes = list(operand.array_shape.dimensions)
    kept = list(range(len(sizes)))
    for _ in range(graph.choices.integer(1, 2)):
        position = graph.choices.integer(0, len(sizes))
        room = graph.elements // max(math.prod(sizes), 1)
        size = graph.choices.pick([s for s in (2, 3, 1, 4, 7, 16, 0) if s <= max(room, 1)])
        sizes.insert(position, size)
        kept = [k + (k >= position) for k in kept]
    return ops.broadcast_in_dim(operand, sizes, kept) if graph.whole(sizes) else None


def reshape(graph: Graph) -> Instruction:
    """Neighbouring dimensions joined, dimensions split, ones put in."""
    operand = graph.value()
    sizes = list(operand.array_shape.dimensions)
    for _ in range(graph.choices.integer(1, 3)):
        if len(sizes) > 1 and graph.choices.chance(2):
            at = graph.choices.integer(0, len(sizes) - 2)
            sizes[at : at + 2] = [sizes[at] * sizes[at + 1]]
        elif len(sizes) > 4 or graph.choices.chance(4):
            sizes = [math.prod(sizes)]
        else:
            at = graph.choices.integer(0, len(sizes))
            whole = sizes[at] if at < len(sizes) else 1
            factor = graph.choices.pick(
                [d for d in (2, 3, 1, 4, 8) if whole and whole % d == 0] or [1]
            )
            sizes[at : at + 1] = [whole // factor, factor]
    return ops.reshape(operand, sizes)


def transpose(graph: Graph) -> Instruction:
    operand = graph.ranked(least=2)
    return ops.transpose(operand, graph.choices.permutation(operand.array_shape.rank)[::-1])


def rev(graph: Graph) -> Instruction:
    operand = graph.ranked()
    return ops.rev(operand, graph.choices.some(range(operand.array_shape.rank)))


def slice_(graph: Graph) -> Instruction:
    operand = graph.ranked()
    starts, limits, strides = [], [], []
    for size in operand.array_shape.dimensions:
        starts.append(graph.choices.integer(0, min(size, 3)))
        limits.append(size - graph.choices.integer(0, min(size - starts[-1], 3)))
        strides.append(graph.choices.pick((1, 2, 1, 3)))
    return ops.slice_(operand, starts, limits, strides)


def pad(graph: Graph) -> Instruction | None:
    operand = graph.ranked()
    padding = []
    for size in operand.array_shape.dimensions:
        interior = graph.choices.pick((0, 0, 1, 2))
        extent = size + max(size - 1, 0) * interior
        padding.append((*graph.padding(extent), interior))
    fill = graph.scalar(operand.array_shape.element_type)
    made = ops.pad(operand, fill, padding)
    return made if graph.whole(made.array_shape.dimensions) else None


def concatenate(graph: Graph) -> Instruction | None:
    first = graph.ranked()
    shape = first.array_shape
    along = graph.choices.integer(0, shape.rank - 1)
    parts = [first]
    for _ in range(graph.choices.integer(1, 3)):
        sizes = list(shape.dimensions)
        if graph.choices.chance(2):
            sizes[along] = graph.choices.pick((1, 2, 5, 0))
        parts.append(graph.like(shape.with_dimensions(sizes)))
    made = ops.concatenate(parts, along)
    return made if graph.whole(made.array_shape.dimensions) else None


def _starts(graph: Graph, rank: int) -> list[Instruction]:
    element_type = graph.element_type(INTEGRAL)
    return [graph.scalar(element_type) for _ in range(rank)]


def dynamic_slice(graph: Graph) -> Instruction:
    operand = graph.ranked()
    sizes = [
        size - graph.choices.integer(0, min(size, 3)) for size in operand.array_shape.dimensions
    ]
    return ops.dynamic_slice(operand, _starts(graph, len(sizes)), sizes)


def dynamic_update_slice(graph: Graph) -> Instruction:
    operand = graph.ranked()
    shape = operand.array_shape
    sizes = [size - graph.choices.integer(0, min(size, 3)) for size in shape.dimensions]
    update = graph.like(shape.with_dimensions(sizes))
    return ops.dynamic_update_slice(operand, update, _starts(graph, shape.rank))


STEPS = {
    "BroadcastInDim": (broadcast_in_dim,),
    "Reshape": (reshape,),
    "Transpose": (transpose,),
    "Rev": (rev,),
    "Pad": (pad,),
    "Concatenate": (concatenate,),
    "Slice": (slice_,),
    "DynamicSlice": (dynamic_slice,),
    "DynamicUpdateSlice": (dynamic_update_slice,),
}
