"""RaggedDot and ScaledDot, composed of the dialect's ops."""

from __future__ import annotations

from tracejit.graph import Instruction
from tracejit.hlo.stablehlo.writer import Names, Writer, stablehlo
from tracejit.ops.grouped import RAGGED_DOT, SCALED_DOT
from tracejit.ops.grouped_expansions import ragged_as_dot, scaled_as_dot


@stablehlo.attach(RAGGED_DOT)
def ragged_dot(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    shapes = [o.shape for o in instruction.operands]
    return writer.compose(operands, shapes, lambda *values: ragged_as_dot(instruction, values))


@stablehlo.attach(SCALED_DOT)
def scaled_dot(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    shapes = [o.shape for o in instruction.operands]
    return writer.compose(operands, shapes, lambda *values: scaled_as_dot(instruction, values))
