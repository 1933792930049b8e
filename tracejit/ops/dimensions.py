"""Dimensions put in another order."""

from __future__ import annotations

from tracejit.graph import Instruction
from tracejit.ops.layout import transpose


def moved(operand: Instruction, source: int, destination: int) -> Instruction:
    """``operand`` with one dimension moved to another place, the others in their order."""
    order = [d for d in range(operand.array_shape.rank) if d != source]
    order.insert(destination, source)
    return operand if order == sorted(order) else transpose(operand, order)
