"""Forms of instructions that older HLO text has, and XLA still reads."""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.graph import Instruction, Op
from tracejit.ops.layout import DYNAMIC_SLICE, DYNAMIC_UPDATE_SLICE, reshape, slice_
from tracejit.shapes import Shape


def starts_apart(op: Op, operands: Sequence[Instruction]) -> list[Instruction]:
    """The operands; where the starts of a dynamic slice are one array, a scalar for each."""
    before = {DYNAMIC_SLICE: 1, DYNAMIC_UPDATE_SLICE: 2}.get(op)
    if before is None or len(operands) != before + 1:
        return list(operands)
    starts = operands[-1]
    if not (isinstance(starts.shape, Shape) and starts.shape.rank == 1):
        return list(operands)
    count = starts.shape.dimensions[0]
    scalars = [reshape(slice_(starts, [i], [i + 1]), ()) for i in range(count)]
    return [*operands[:-1], *scalars]
