"""RngBitGenerator."""

from __future__ import annotations

from tests.fuzz.graph import Graph
from tests.samples.random import any_state, last_state
from tracejit import ops
from tracejit.graph import Instruction
from tracejit.ops.base import FLOATING, INTEGRAL, UNSIGNED
from tracejit.ops.random import STATE_SIZES
from tracejit.shapes import ElementType, Shape


def rng_bit_generator(graph: Graph) -> Instruction:
    """Of any algorithm, from any state, also one whose counter overflows.

    In graphs only unsigned words: XLA forgets on its way what else they were to be.
    """
    algorithm = graph.choices.pick([*STATE_SIZES])
    words = graph.choices.pick(STATE_SIZES[algorithm])
    domain = last_state if graph.choices.chance(4) else any_state
    state = graph.drawn(Shape(ElementType.U64, (words,)), domain)
    types = INTEGRAL | FLOATING if graph.is_single else UNSIGNED
    shape = Shape(graph.element_type(types), graph.dimensions())
    return ops.rng_bit_generator(algorithm, state, shape)


STEPS = {"RngBitGenerator": (rng_bit_generator,)}
