"""Collective ops: the whole batch goes at once, its dimension in front of all others.

An op over the axis of the `vmap` itself becomes plain ops along the batch.
"""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.batching.axes import batch_into, later, split
from tracejit.batching.batch import Batched, batched_shape, batching, uniform
from tracejit.errors import UnsupportedError
from tracejit.graph import Instruction
from tracejit.ops.base import make
from tracejit.ops.computations import binary_op
from tracejit.ops.constants import tuple_
from tracejit.ops.dimensions import moved
from tracejit.ops.elementwise import ADD, MAX, MIN
from tracejit.ops.layout import (
    broadcast_in_dim,
    concatenate,
    full_like,
    reshape,
    slice_in_dim,
    transpose,
)
from tracejit.ops.permutes import COLLECTIVE_PERMUTE
from tracejit.ops.reduction import reduce_max, reduce_min, reduce_sum
from tracejit.ops.replicas import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    COLLECTIVE_BROADCAST,
    PARTITION_ID,
    REDUCE_SCATTER,
    REPLICA_ID,
)
from tracejit.shapes import ElementType, TupleShape
from tracejit.trace.named_axes import is_over_batch


def whole_batch(instruction: Instruction, operands: Sequence[Batched], size: int) -> Instruction:
    """The same op on all operands batched, its dimensions counted past the batch."""
    attributes = dict(instruction.attributes)
    if attributes.get("dimensions") is not None:
        attributes["dimensions"] = later(attributes["dimensions"])
    if "shape" in attributes:
        shape = instruction.shape
        attributes["shape"] = batched_shape(shape, uniform(shape, True), size)
    return make(instruction.op, *[o.stretched(size) for o in operands], **attributes)


def along_batch(instruction: Instruction, operands: Sequence[Batched], size: int) -> Instruction:
    """The op over the elements of the batch, whose group is all of them in order."""
    rule = _ALONG_BATCH.get(instruction.op)
    if rule is None:
        raise UnsupportedError(
            f"vmap: {instruction.op.function} over the axis of vmap is not supported",
            instruction.source,
        )
    arrays = [operand.stretched(size) for operand in operands]
    made = [rule(instruction, array, size) for array in arrays]
    return tuple_(made) if isinstance(instruction.shape, TupleShape) else made[0]


def _everywhere(value: Instruction, size: int) -> Instruction:
    sizes = value.array_shape.dimensions
    return broadcast_in_dim(value, (size, *sizes), range(1, 1 + len(sizes)))


def _all_reduced(instruction: Instruction, array: Instruction, size: int) -> Instruction:
    kind = binary_op(instruction.attributes["to_apply"])
    if kind is ADD and array.array_shape.element_type is not ElementType.PRED:
        return _everywhere(reduce_sum(array, [0]), size)
    if kind in (MAX, MIN):
        reduce = reduce_max if kind is MAX else reduce_min
        return _everywhere(reduce(array, [0]), size)
    raise UnsupportedError(
        "vmap: all_reduce over the axis of vmap is for sums, maxima and minima", instruction.source
    )


def _gathered(instruction: Instruction, array: Instruction, size: int) -> Instruction:
    (along,) = instruction.attributes["dimensions"]
    return _everywhere(batch_into(array, along), size)


def _scattered(instruction: Instruction, array: Instruction, size: int) -> Instruction:
    (along,) = instruction.attributes["dimensions"]
    if binary_op(instruction.attributes["to_apply"]) is not ADD:
        raise UnsupportedError(
            "vmap: reduce_scatter over the axis of vmap is for sums", instruction.source
        )
    return moved(split(reduce_sum(array, [0]), along, size), along, 0)


def _exchanged(instruction: Instruction, array: Instruction, size: int) -> Instruction:
    (along,) = instruction.attributes["dimensions"]
    parts = split(array, along + 1, size)
    order = list(range(parts.array_shape.rank))
    order[0], order[along + 1] = along + 1, 0
    return reshape(transpose(parts, order), array.array_shape.dimensions)


def _permuted(instruction: Instruction, array: Instruction, size: int) -> Instruction:
    sources = {target: source for source, target in instruction.attributes["source_target_pairs"]}
    parts = [
        slice_in_dim(array, sources[n], sources[n] + 1, 1, 0)
        if n in sources
        else full_like(slice_in_dim(array, 0, 1, 1, 0), 0)
        for n in range(size)
    ]
    return concatenate(parts, 0)


_ALONG_BATCH = {
    ALL_GATHER: _gathered,
    ALL_REDUCE: _all_reduced,
    ALL_TO_ALL: _exchanged,
    COLLECTIVE_PERMUTE: _permuted,
    REDUCE_SCATTER: _scattered,
}


@batching.attach(ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, COLLECTIVE_BROADCAST)
def collective(instruction: Instruction, operands: Sequence[Batched], size: int) -> Instruction:
    is_own = is_over_batch(instruction.attributes["channel_id"])
    return (along_batch if is_own else whole_batch)(instruction, operands, size)


for _op in (REPLICA_ID, PARTITION_ID):
    batching.decline(_op, "takes no operand that could be batched")
