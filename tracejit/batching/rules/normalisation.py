"""Batch normalisation of a batch: each of its elements brings features of its own."""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.batching.axes import batch_into, batch_out_of
from tracejit.batching.batch import Batched, batching
from tracejit.graph import Instruction
from tracejit.ops.base import make
from tracejit.ops.constants import elements_of, tuple_
from tracejit.ops.normalisation import BATCH_NORM_GRAD, BATCH_NORM_INFERENCE, BATCH_NORM_TRAINING
from tracejit.shapes import Shape, TupleShape


@batching.attach(BATCH_NORM_TRAINING, BATCH_NORM_INFERENCE, BATCH_NORM_GRAD)
def batch_norm_rule(
    instruction: Instruction, operands: Sequence[Batched], size: int
) -> Instruction:
    """Images [N, …, B * C, …] and statistics [B * C] in place of B of them."""
    feature = instruction.attributes["feature_index"]

    def place(rank: int) -> int:
        return feature if rank > 1 else 0

    wide = [
        batch_into(operand.stretched(size), place(before.array_shape.rank))
        for operand, before in zip(operands, instruction.operands, strict=True)
    ]
    made = make(instruction.op, *wide, **instruction.attributes)
    if not isinstance(made.shape, TupleShape):
        return batch_out_of(made, feature, size)
    parts = []
    for element in elements_of(made):
        assert isinstance(element.shape, Shape)
        parts.append(batch_out_of(element, place(element.shape.rank), size))
    return tuple_(parts)
