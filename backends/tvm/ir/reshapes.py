"""The base buffer of an instruction: what chains of reshapes show."""

from __future__ import annotations

from collections.abc import Callable

from tracejit.graph import Instruction
from tracejit.ops.layout import RESHAPE


def base_buffer(instruction: Instruction) -> Instruction:
    """What a chain of reshapes reshapes: it has the same bytes in memory."""
    while instruction.op is RESHAPE:
        instruction = instruction.operands[0]
    return instruction


def stored_as(instruction: Instruction, has_memory: Callable[[Instruction], bool]) -> Instruction:
    """The instruction whose memory is read for the value of ``instruction``.

    It is the first of a chain of reshapes that has memory of its own: what it reshapes may have
    been written over since, or may never have been stored.
    """
    while instruction.op is RESHAPE and not has_memory(instruction):
        instruction = instruction.operands[0]
    return instruction
