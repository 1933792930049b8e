"""The rule of ops that pass a value on: the result is batched where the operand is."""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.batching.batch import Batched
from tracejit.graph import Instruction
from tracejit.ops.base import make


def passed_on(instruction: Instruction, operands: Sequence[Batched], size: int) -> Batched:
    """The op on what is given; its result is its first operand."""
    made = make(instruction.op, *[o.value for o in operands], **instruction.attributes)
    return Batched(made, operands[0].flag)
