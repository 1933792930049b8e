"""RaggedDot and ScaledDot: through the DotGeneral that computes the same."""

from __future__ import annotations

from tracejit.autodiff.composition import pullback_through
from tracejit.autodiff.reverse import Cotangents, differentiate
from tracejit.graph import Instruction
from tracejit.ops.grouped import RAGGED_DOT, SCALED_DOT
from tracejit.ops.grouped_expansions import ragged_as_dot, scaled_as_dot


@differentiate.attach(RAGGED_DOT)
def ragged_dot_rule(instruction: Instruction, cotangent: Instruction) -> Cotangents:
    return pullback_through(
        lambda *operands: [ragged_as_dot(instruction, operands)], instruction.operands, [cotangent]
    )


@differentiate.attach(SCALED_DOT)
def scaled_dot_rule(instruction: Instruction, cotangent: Instruction) -> Cotangents:
    return pullback_through(
        lambda *operands: [scaled_as_dot(instruction, operands)], instruction.operands, [cotangent]
    )
