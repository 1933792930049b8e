"""Sees through reshapes: the instruction whose buffer a chain of reshapes shares."""

from __future__ import annotations

from collections.abc import Callable

from tracejit.graph import Instruction
from tracejit.ops.layout import RESHAPE


def base_buffer(instruction: Instruction) -> Instruction:
    """The operand at the end of a chain of reshapes, which has the same bytes in memory."""
    while instruction.op is RESHAPE:
        instruction = instruction.operands[0]
    return instruction


def stored_as(instruction: Instruction, has_memory: Callable[[Instruction], bool]) -> Instruction:
    """The instruction whose buffer holds the value of ``instruction``.

    It is the first one with memory in a chain of reshapes: operands further down may have been
    overwritten since, or may never have been stored.
    """
    while instruction.op is RESHAPE and not has_memory(instruction):
        instruction = instruction.operands[0]
    return instruction
