"""`splat`: the one value of a constant whose elements are all equal."""

from __future__ import annotations

from typing import Any

from tracejit.graph import Instruction
from tracejit.ops.constants import CONSTANT
from tracejit.ops.layout import BROADCAST_IN_DIM, RESHAPE


def splat(instruction: Instruction) -> Any:
    """The common value of all elements of a constant (or of its broadcast), or None."""
    while instruction.op in (BROADCAST_IN_DIM, RESHAPE):
        instruction = instruction.operands[0]
    if instruction.op is not CONSTANT:
        return None
    literal = instruction.attributes["literal"]
    return literal[()] if literal.size == 1 and literal.ndim == 0 else None
