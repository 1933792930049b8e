"""ReduceWindow and SelectAndScatter: windows of size 1 along the batch."""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.attributes import WindowDimension
from tracejit.batching.batch import Batched, batching
from tracejit.batching.sequential import one_by_one
from tracejit.graph import Instruction
from tracejit.ops.base import make
from tracejit.ops.windows import REDUCE_WINDOW, SELECT_AND_SCATTER


@batching.attach(REDUCE_WINDOW)
def reduce_window_rule(
    instruction: Instruction, operands: Sequence[Batched], size: int
) -> Instruction:
    count = len(operands) // 2
    if any(init.is_batched for init in operands[count:]):
        return one_by_one(instruction, operands, size)
    a = dict(instruction.attributes)
    a["window"] = (WindowDimension(1), *a["window"])
    arrays = [operand.stretched(size) for operand in operands[:count]]
    return make(REDUCE_WINDOW, *arrays, *[init.value for init in operands[count:]], **a)


@batching.attach(SELECT_AND_SCATTER)
def select_and_scatter_rule(
    instruction: Instruction, operands: Sequence[Batched], size: int
) -> Instruction:
    operand, source, init = operands
    if init.is_batched:
        return one_by_one(instruction, operands, size)
    a = dict(instruction.attributes)
    a["window"] = (WindowDimension(1), *a["window"])
    return make(
        SELECT_AND_SCATTER, operand.stretched(size), source.stretched(size), init.value, **a
    )
