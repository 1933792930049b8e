"""RngBitGenerator."""

from __future__ import annotations

from tests.fuzz.graph import Graph
from tests.samples.random import any_state, last_state
from tracejit import ops
from tracejit.graph import Instruction
from tracejit.ops.base import FLOATING, INTEGRAL
from tracejit.ops.random import STATE_SIZES
from tracejit.shapes import ElementType, Shape


def rng_bit_generator(graph: Graph) -> Instruction:
    """Of any algorithm, from any state, also one whose counter overflows."""
    algorithm = graph.choices.pick([*STATE_SIZES])
    words = graph.choices.pick(STATE_SIZES[algorithm])
    domain = last_state if graph.choices.chance(4) else any_state
    state = graph.drawn(Shape(ElementType.U64, (words,)), domain)
    shape = Shape(graph.element_type(INTEGRAL | FLOATING), graph.dimensions())
    state, bits = ops.elements_of(ops.rng_bit_generator(algorithm, state, shape))
    if not graph.is_single and shape.element_type.is_floating:
        # Any NaN, infinity and denormal number would be among them.
        bits = ops.is_finite(bits)
    return ops.tuple_([state, bits])


STEPS = {"RngBitGenerator": (rng_bit_generator,)}
