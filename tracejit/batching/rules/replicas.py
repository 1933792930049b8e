"""Collective ops: the whole batch goes at once, its dimension in front of all others."""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.batching.axes import later
from tracejit.batching.batch import Batched, batched_shape, batching, uniform
from tracejit.graph import Instruction
from tracejit.ops.base import make
from tracejit.ops.replicas import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    COLLECTIVE_BROADCAST,
    PARTITION_ID,
    REDUCE_SCATTER,
    REPLICA_ID,
)


def whole_batch(instruction: Instruction, operands: Sequence[Batched], size: int) -> Instruction:
    """The same op on all operands batched, its dimensions counted past the batch."""
    attributes = dict(instruction.attributes)
    if attributes.get("dimensions") is not None:
        attributes["dimensions"] = later(attributes["dimensions"])
    if "shape" in attributes:
        shape = instruction.shape
        attributes["shape"] = batched_shape(shape, uniform(shape, True), size)
    return make(instruction.op, *[o.stretched(size) for o in operands], **attributes)


batching.attach(ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, COLLECTIVE_BROADCAST)(
    whole_batch
)

for _op in (REPLICA_ID, PARTITION_ID):
    batching.decline(_op, "takes no operand that could be batched")
