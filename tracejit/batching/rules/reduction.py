"""Reduce, Sort and TopK: the batch is one more dimension that they leave alone."""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.batching.axes import later
from tracejit.batching.batch import Batched, batching
from tracejit.batching.sequential import one_by_one
from tracejit.graph import Instruction
from tracejit.ops.base import make
from tracejit.ops.reduction import REDUCE, SORT, TOP_K, top_k


@batching.attach(REDUCE)
def reduce_rule(instruction: Instruction, operands: Sequence[Batched], size: int) -> Instruction:
    count = len(operands) // 2
    if any(init.is_batched for init in operands[count:]):
        return one_by_one(instruction, operands, size)
    arrays = [operand.stretched(size) for operand in operands[:count]]
    a = instruction.attributes
    inits = [init.value for init in operands[count:]]
    return make(REDUCE, *arrays, *inits, dimensions=later(a["dimensions"]), to_apply=a["to_apply"])


@batching.attach(SORT)
def sort_rule(instruction: Instruction, operands: Sequence[Batched], size: int) -> Instruction:
    a = dict(instruction.attributes)
    a["dimensions"] = later(a["dimensions"])
    return make(SORT, *[operand.stretched(size) for operand in operands], **a)


@batching.attach(TOP_K)
def top_k_rule(instruction: Instruction, operands: Sequence[Batched], size: int) -> Instruction:
    return top_k(operands[0].value, **instruction.attributes)
