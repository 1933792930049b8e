"""The rule of ops that work element by element: the batch is more elements."""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.batching.batch import Batched
from tracejit.graph import Instruction
from tracejit.ops.base import make
from tracejit.ops.layout import broadcast_in_dim
from tracejit.shapes import Shape


def pointwise(instruction: Instruction, operands: Sequence[Batched], size: int) -> Instruction:
    """The op on operands that are all batched.

    A scalar that goes with arrays, as Select and Clamp admit, stays one when it is not batched.
    """
    dimensions = (size, *instruction.array_shape.dimensions)
    attributes = {
        name: value.with_dimensions(dimensions) if isinstance(value, Shape) else value
        for name, value in instruction.attributes.items()
    }
    values = []
    for operand, before in zip(operands, instruction.operands, strict=True):
        value = operand.value
        if before.array_shape.rank == instruction.array_shape.rank:
            value = operand.stretched(size)
        elif operand.is_batched:
            value = broadcast_in_dim(value, dimensions, (0,))
        values.append(value)
    return make(instruction.op, *values, **attributes)
