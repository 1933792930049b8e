"""Scan."""

from __future__ import annotations

from tests.building import computation
from tests.fuzz.graph import Graph
from tracejit import ops
from tracejit.graph import Instruction
from tracejit.ops.base import NUMERIC


def scan(graph: Graph) -> Instruction:
    """A running sum or greatest over slices, forwards or in reverse, along any dimension."""
    choices = graph.choices
    xs = graph.ranked(NUMERIC)
    shape = xs.array_shape
    dimension = choices.integer(0, shape.rank - 1)
    slices = shape.with_dimensions([s for d, s in enumerate(shape.dimensions) if d != dimension])
    init = graph.like(slices)
    is_complex = shape.element_type.is_complex
    combine = choices.pick((ops.add, ops.sub) if is_complex else (ops.add, ops.max, ops.sub))
    both = choices.chance(2)

    def step(x: Instruction, carry: Instruction) -> Instruction:
        new = combine(carry, x)
        return ops.tuple_([ops.add(new, x), new, new] if both else [new, new])

    body = computation("step", step, slices, slices)
    return ops.scan([xs], [init], body, dimension, choices.chance(2))


STEPS = {"Scan": (scan,)}
