"""Random bits have no derivative."""

from __future__ import annotations

from tracejit.autodiff.reverse import Cotangents, differentiate
from tracejit.errors import DerivativeError
from tracejit.graph import Instruction
from tracejit.ops.random import RNG, RNG_BIT_GENERATOR, RNG_GET_AND_UPDATE_STATE

differentiate.decline(RNG_BIT_GENERATOR, "makes random bits")
differentiate.decline(RNG_GET_AND_UPDATE_STATE, "makes the state of a stream")


@differentiate.attach(RNG)
def rng_rule(instruction: Instruction, cotangent: Instruction) -> Cotangents:
    raise DerivativeError(
        "rng: has no derivative, because it draws other numbers each time it runs; the "
        "distributions of tracejit.random have one",
        instruction.source,
    )
