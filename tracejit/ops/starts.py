"""Collective ops in two halves, met only in dumps: one starts, one waits for the result.

AllReduceStart, AllReduceDone, AllGatherStart, AllGatherDone, CollectivePermuteStart,
CollectivePermuteDone.
"""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.attributes import Attribute, Kind
from tracejit.errors import ShapeError
from tracejit.graph import Computation, Instruction
from tracejit.ops.base import define, make
from tracejit.ops.collective import (
    CHANNEL,
    CONSTRAIN,
    GLOBAL,
    GROUPS,
    arrays_of,
    as_groups,
    gathered_shapes,
    joined,
    operands_of,
)
from tracejit.ops.groups import Groups, group_mode, group_size, require_groups
from tracejit.ops.permutes import PAIRS, SLICES, collective_permute, permuted_shape
from tracejit.ops.replicas import ALL_REDUCE, all_gather
from tracejit.shapes import AnyShape, ElementType, Shape, TupleShape


@define(
    "AllReduceStart",
    "all-reduce-start",
    *ALL_REDUCE.attributes,
)
def ALL_REDUCE_START(
    *operands: AnyShape,
    channel_id: int | None,
    replica_groups: Groups,
    constrain_layout: bool,
    use_global_device_ids: bool,
    to_apply: Computation,
) -> AnyShape:
    return ALL_REDUCE.shape_rule(
        *operands,
        channel_id=channel_id,
        replica_groups=replica_groups,
        constrain_layout=constrain_layout,
        use_global_device_ids=use_global_device_ids,
        to_apply=to_apply,
    )


def all_reduce_start(
    operand: Instruction | Sequence[Instruction],
    computation: Computation,
    replica_groups: Sequence[Sequence[int]] = (),
    channel_id: int | None = None,
    use_global_device_ids: bool = False,
) -> Instruction:
    """The begin of an `all_reduce`; its result is for `all_reduce_done` alone."""
    return make(
        ALL_REDUCE_START,
        *operands_of(operand),
        channel_id=channel_id,
        replica_groups=as_groups(replica_groups),
        use_global_device_ids=use_global_device_ids,
        to_apply=computation,
    )


@define("AllReduceDone", "all-reduce-done")
def ALL_REDUCE_DONE(operand: AnyShape) -> AnyShape:
    parts = operand.elements if isinstance(operand, TupleShape) else (operand,)
    arrays_of("all_reduce_done", parts)
    return operand


def all_reduce_done(operand: Instruction) -> Instruction:
    """The result of the `all_reduce_start` that is its operand."""
    return make(ALL_REDUCE_DONE, operand)


@define(
    "AllGatherStart",
    "all-gather-start",
    CHANNEL,
    GROUPS,
    CONSTRAIN,
    Attribute("dimensions", Kind.INTS),
    GLOBAL,
    Attribute("shape", Kind.SHAPE),
)
def ALL_GATHER_START(
    *operands: AnyShape,
    channel_id: int | None,
    replica_groups: Groups,
    constrain_layout: bool,
    dimensions: tuple[int, ...],
    use_global_device_ids: bool,
    shape: AnyShape,
) -> AnyShape:
    arrays = arrays_of("all_gather_start", operands)
    mode = group_mode("all_gather_start", channel_id, use_global_device_ids)
    require_groups("all_gather_start", replica_groups, mode)
    result = _second("all_gather_start", shape, joined(arrays))
    size = group_size(mode, replica_groups)
    gathered_shapes("all_gather_start", arrays, result, dimensions, size)
    return shape


def all_gather_start(
    operand: Instruction | Sequence[Instruction],
    all_gather_dimension: int,
    shard_count: int,
    replica_groups: Sequence[Sequence[int]] = (),
    channel_id: int | None = None,
    use_global_device_ids: bool = False,
) -> Instruction:
    """The begin of an `all_gather`: the operand and the result, for `all_gather_done` alone."""
    whole = all_gather(
        operand,
        all_gather_dimension,
        shard_count,
        replica_groups,
        channel_id,
        use_global_device_ids=use_global_device_ids,
    )
    attributes = dict(whole.attributes)
    attributes["shape"] = TupleShape((joined([o.shape for o in whole.operands]), whole.shape))
    return make(ALL_GATHER_START, *whole.operands, **attributes)


def _second(function: str, shape: AnyShape, first: AnyShape) -> AnyShape:
    """The second element of a start's result, whose first one is the operand's shape."""
    parts = shape.elements if isinstance(shape, TupleShape) else ()
    contexts = [Shape(ElementType.U32), Shape(ElementType.S32)]
    if (
        not 2 <= len(parts) <= 4
        or parts[0] != first
        or any(part not in contexts for part in parts[2:])
    ):
        raise ShapeError(
            f"{function}: the result must be a tuple of the operand's shape {first}, the shape "
            f"awaited and at most two contexts u32[], not {shape}"
        )
    return parts[1]


def _awaited(function: str, operand: AnyShape) -> AnyShape:
    parts = operand.elements if isinstance(operand, TupleShape) else ()
    return _second(function, operand, parts[0] if parts else operand)


@define("AllGatherDone", "all-gather-done")
def ALL_GATHER_DONE(operand: AnyShape) -> AnyShape:
    return _awaited("all_gather_done", operand)


def all_gather_done(operand: Instruction) -> Instruction:
    """The result of the `all_gather_start` that is its operand."""
    return make(ALL_GATHER_DONE, operand)


@define(
    "CollectivePermuteStart",
    "collective-permute-start",
    CHANNEL,
    PAIRS,
    SLICES,
    Attribute("shape", Kind.SHAPE),
)
def COLLECTIVE_PERMUTE_START(
    *operands: AnyShape,
    channel_id: int | None,
    source_target_pairs: Groups,
    slice_sizes: Groups,
    shape: AnyShape,
) -> AnyShape:
    function = "collective_permute_start"
    result = permuted_shape(function, operands, channel_id, source_target_pairs, slice_sizes)
    first = operands[0] if slice_sizes else joined(operands)
    if _second(function, shape, first) != result:
        raise ShapeError(f"{function}: the second element of {shape} must be {result}")
    return shape


def collective_permute_start(
    operand: Instruction | Sequence[Instruction],
    source_target_pairs: Sequence[Sequence[int]],
    channel_id: int | None = None,
) -> Instruction:
    """The begin of a `collective_permute`: the operand and the result, for
    `collective_permute_done` alone.
    """
    whole = collective_permute(operand, source_target_pairs, channel_id)
    return make(
        COLLECTIVE_PERMUTE_START,
        *whole.operands,
        **whole.attributes,
        shape=TupleShape((whole.shape, whole.shape)),
    )


@define("CollectivePermuteDone", "collective-permute-done")
def COLLECTIVE_PERMUTE_DONE(operand: AnyShape) -> AnyShape:
    return _awaited("collective_permute_done", operand)


def collective_permute_done(operand: Instruction) -> Instruction:
    """The result of the `collective_permute_start` that is its operand."""
    return make(COLLECTIVE_PERMUTE_DONE, operand)
