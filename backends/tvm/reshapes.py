"""What lies in memory as something else does."""

from __future__ import annotations

from tracejit.graph import Instruction
from tracejit.ops.layout import RESHAPE


def stripped(instruction: Instruction) -> Instruction:
    """What a chain of reshapes reshapes: it has the same bytes in memory."""
    while instruction.op is RESHAPE:
        instruction = instruction.operands[0]
    return instruction
