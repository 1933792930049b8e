"""Gather and Scatter with any dimension numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tests.fuzz.graph import Graph
from tracejit import ops
from tracejit.graph import Computation, Instruction
from tracejit.ops.base import ALL, INTEGRAL, LOGICAL, NUMERIC, ORDERED
from tracejit.shapes import ElementType, Shape


@dataclass
class Windows:
    """What Gather and Scatter have in common, drawn for an operand."""

    indices: Instruction
    index_map: tuple[int, ...]
    vector_dim: int
    inserted: tuple[int, ...]
    batching: tuple[int, ...]
    indices_batching: tuple[int, ...]
    window: tuple[int, ...]
    sizes: list[int]
    batch: list[int]


def windows(graph: Graph, operand: Instruction) -> Windows | None:
    choices = graph.choices
    sizes = operand.array_shape.dimensions
    rank = len(sizes)
    indexed = choices.some(range(rank)) or [choices.integer(0, rank - 1)]
    batching = [d for d in range(rank) if d not in indexed and choices.chance(4)]
    slices = []
    for d, size in enumerate(sizes):
        options = (1, size, max(size - 1, 0)) if d in indexed else (size,)
        slices.append(min(1 if d in batching else choices.pick(options), size))
    single = [d for d in range(rank) if slices[d] == 1 and d not in batching]
    inserted = choices.some(single)
    window = [d for d in range(rank) if d not in (*inserted, *batching)]

    # The dimensions of the indices: those that run with the operand's, and others, in any order.
    batch = [sizes[d] for d in batching]
    batch += [choices.pick((3, 1, 5, 0)) for _ in range(choices.integer(0, 2))]
    order = choices.permutation(len(batch))
    placed = [batch[d] for d in order]
    vector_dim = choices.integer(0, len(placed))
    shape = list(placed)
    if len(indexed) > 1 or vector_dim < len(placed) or not choices.chance(2):
        shape.insert(vector_dim, len(indexed))
    where = [order.index(i) for i in range(len(batching))]
    if math.prod([*placed, *(slices[d] for d in window)]) > graph.elements:
        return None
    count = len(placed) + len(window)
    return Windows(
        indices=graph.like(Shape(graph.element_type(INTEGRAL), tuple(shape))),
        index_map=tuple(indexed[i] for i in choices.permutation(len(indexed))),
        vector_dim=vector_dim,
        inserted=tuple(inserted),
        batching=tuple(batching),
        indices_batching=tuple(w + (w >= vector_dim) for w in where),
        window=tuple(sorted(choices.permutation(count)[: len(window)])),
        sizes=slices,
        batch=placed,
    )


def gather(graph: Graph) -> Instruction | None:
    operand = graph.ranked()
    found = windows(graph, operand)
    if found is None:
        return None
    numbers = ops.GatherDimensionNumbers(
        found.window,
        found.inserted,
        found.index_map,
        found.vector_dim,
        found.batching,
        found.indices_batching,
    )
    return ops.gather(operand, found.indices, numbers, found.sizes, _rise(graph, found))


def scatter(graph: Graph) -> Instruction | None:
    operand = graph.ranked()
    found = windows(graph, operand)
    if found is None:
        return None
    numbers = ops.ScatterDimensionNumbers(
        found.window,
        found.inserted,
        found.index_map,
        found.vector_dim,
        found.batching,
        found.indices_batching,
    )
    shape = operand.array_shape
    dropped = {*found.inserted, *found.batching}
    inner = iter(size for d, size in enumerate(found.sizes) if d not in dropped)
    outer = iter(found.batch)
    count = len(found.batch) + len(found.window)
    sizes = [next(inner) if d in found.window else next(outer) for d in range(count)]
    updates = graph.like(shape.with_dimensions(sizes))
    if graph.choices.chance(5):
        second = graph.like(Shape(graph.element_type(NUMERIC), shape.dimensions))
        more = graph.like(second.array_shape.with_dimensions(sizes))
        combine = _both(shape.element_type, second.array_shape.element_type)
        return ops.scatter([operand, second], found.indices, [updates, more], combine, numbers)
    combine = _combination(graph, shape.element_type)
    rise = _rise(graph, found)
    return ops.scatter(operand, found.indices, updates, combine, numbers, rise, rise)


def _rise(graph: Graph, found: Windows) -> bool:
    """A promise about the indices that holds, as there is but one."""
    return math.prod(found.batch) <= 1 and graph.choices.chance(2)


def _combination(graph: Graph, element_type: ElementType) -> Computation:
    options = ["replace"]
    options += [n for n, types in _COMBINE.items() if element_type in types]
    name = graph.choices.pick(options)
    if name == "replace":
        return ops.replace_computation(element_type)
    return ops.scalar_computation(name, element_type)


_COMBINE = {
    "add": ALL,
    "mul": ALL,
    "max": ORDERED,
    "min": ORDERED,
    "xor": LOGICAL,
    "sub": NUMERIC,
    "div": NUMERIC,
}


def _both(first: ElementType, second: ElementType) -> Computation:
    """The first operand overwritten, the second summed."""
    parameters = tuple(
        ops.parameter(i, Shape(t)) for i, t in enumerate([first, second, first, second])
    )
    root = ops.tuple_([parameters[2], ops.add(parameters[1], parameters[3])])
    return Computation("both", parameters, root)


STEPS = {"Gather": (gather,), "Scatter": (scatter,)}
