"""Collective ops, in which several devices work together, and the numbers of a device.

all_reduce(x, scalar_computation("add", F32))       the sum over all replicas
all_gather(x, 0, 4, [[0, 1, 2, 3]])                 four replicas' arrays, one after the other
replica_id()

Which devices form a group is said by ``replica_groups``, ``channel_id`` and
``use_global_device_ids`` (see `tracejit.ops.groups`): replicas of one partition without a channel;
with one, all partitions of the replicas named, or, where the op has ``use_global_device_ids`` and
it is true, the devices named by ``replica * num_partitions + partition``. The ops without
``use_global_device_ids`` name partitions of one replica when they have a channel. No groups mean
one group of all.
"""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.attributes import Attribute, Kind
from tracejit.errors import AttributeValueError, ShapeError
from tracejit.graph import Computation, Instruction
from tracejit.ops.base import define, make, require_array
from tracejit.ops.collective import (
    CHANNEL,
    CONSTRAIN,
    GLOBAL,
    GROUPS,
    arrays_of,
    as_groups,
    check_reduction,
    constrained,
    gathered_shapes,
    joined,
    operands_of,
    require_count,
    require_divisible,
    resized,
)
from tracejit.ops.computations import scalar_computation
from tracejit.ops.groups import (
    Groups,
    group_mode,
    group_size,
    require_groups,
    written,
)
from tracejit.ops.layout import reshape, transpose
from tracejit.shapes import (
    AnyShape,
    ElementType,
    Layout,
    Shape,
    TupleShape,
    canonical_dimension,
)


@define(
    "AllReduce",
    "all-reduce",
    CHANNEL,
    GROUPS,
    CONSTRAIN,
    GLOBAL,
    Attribute("to_apply", Kind.COMPUTATION),
)
def ALL_REDUCE(
    *operands: AnyShape,
    channel_id: int | None,
    replica_groups: Groups,
    constrain_layout: bool,
    use_global_device_ids: bool,
    to_apply: Computation,
) -> AnyShape:
    arrays = arrays_of("all_reduce", operands)
    mode = group_mode("all_reduce", channel_id, use_global_device_ids)
    require_groups("all_reduce", replica_groups, mode, equal_sizes=False)
    check_reduction("all_reduce", arrays, to_apply)
    return joined(arrays)


def all_reduce(
    operand: Instruction | Sequence[Instruction],
    computation: Computation,
    replica_groups: Sequence[Sequence[int]] = (),
    channel_id: int | None = None,
    shape_with_layout: AnyShape | None = None,
    use_global_device_ids: bool = False,
) -> Instruction:
    """``computation`` over the operands of all devices of a group (XLA: AllReduce).

    ``operand`` is an array, or several (a list or a tuple) of one element type, each reduced by
    itself; the result has its shape. ``shape_with_layout``, the same shape, asks for a layout,
    on which no value depends. Raises `AttributeValueError` for groups that do not share out the
    numbers from 0 on, `ShapeError` for another ``shape_with_layout``.
    """
    arrays = operands_of(operand)
    if shape_with_layout is not None and shape_with_layout != joined([a.shape for a in arrays]):
        raise ShapeError(
            f"all_reduce: shape_with_layout {shape_with_layout} must be the operand's shape "
            f"{joined([a.shape for a in arrays])}"
        )
    return make(
        ALL_REDUCE,
        *arrays,
        channel_id=channel_id,
        replica_groups=as_groups(replica_groups),
        constrain_layout=shape_with_layout is not None,
        use_global_device_ids=use_global_device_ids,
        to_apply=computation,
    )


def cross_replica_sum(
    operand: Instruction | Sequence[Instruction], replica_groups: Sequence[Sequence[int]] = ()
) -> Instruction:
    """The sum of the operands of all replicas of a group (XLA: CrossReplicaSum)."""
    arrays = operands_of(operand)
    arrays_of("cross_replica_sum", [array.shape for array in arrays])
    element_type = arrays[0].array_shape.element_type
    return all_reduce(arrays, scalar_computation("add", element_type), replica_groups)


@define(
    "AllGather",
    "all-gather",
    CHANNEL,
    GROUPS,
    CONSTRAIN,
    Attribute("dimensions", Kind.INTS),
    GLOBAL,
    Attribute("shape", Kind.SHAPE),
)
def ALL_GATHER(
    *operands: AnyShape,
    channel_id: int | None,
    replica_groups: Groups,
    constrain_layout: bool,
    dimensions: tuple[int, ...],
    use_global_device_ids: bool,
    shape: AnyShape,
) -> AnyShape:
    arrays = arrays_of("all_gather", operands)
    mode = group_mode("all_gather", channel_id, use_global_device_ids)
    require_groups("all_gather", replica_groups, mode)
    size = group_size(mode, replica_groups)
    return gathered_shapes("all_gather", arrays, shape, dimensions, size)


def all_gather(
    operand: Instruction | Sequence[Instruction],
    all_gather_dimension: int,
    shard_count: int,
    replica_groups: Sequence[Sequence[int]] = (),
    channel_id: int | None = None,
    layout: Layout | None = None,
    use_global_device_ids: bool = False,
) -> Instruction:
    """The operands of a group's devices, joined in the order of the group (XLA: AllGather).

    The result is ``shard_count``, the size of a group, times larger along
    ``all_gather_dimension``. Raises `AttributeValueError` for groups of another size, of different
    sizes, or that do not share out the numbers from 0 on.
    """
    arrays = operands_of(operand)
    shapes = arrays_of("all_gather", [array.shape for array in arrays])
    along = canonical_dimension(all_gather_dimension, shapes[0].rank, "all_gather")
    groups = as_groups(replica_groups)
    mode = group_mode("all_gather", channel_id, use_global_device_ids)
    require_count("all_gather", "shard_count", shard_count, group_size(mode, groups))
    results = [resized(shape, along, shape.dimensions[along] * shard_count) for shape in shapes]
    return make(
        ALL_GATHER,
        *arrays,
        channel_id=channel_id,
        replica_groups=groups,
        **constrained("all_gather", layout, arrays),
        dimensions=(along,),
        use_global_device_ids=use_global_device_ids,
        shape=joined(results),
    )


@define(
    "ReduceScatter",
    "reduce-scatter",
    CHANNEL,
    GROUPS,
    CONSTRAIN,
    GLOBAL,
    Attribute("dimensions", Kind.INTS),
    Attribute("to_apply", Kind.COMPUTATION),
    Attribute("shape", Kind.SHAPE),
)
def REDUCE_SCATTER(
    *operands: AnyShape,
    channel_id: int | None,
    replica_groups: Groups,
    constrain_layout: bool,
    use_global_device_ids: bool,
    dimensions: tuple[int, ...],
    to_apply: Computation,
    shape: AnyShape,
) -> AnyShape:
    arrays = arrays_of("reduce_scatter", operands)
    mode = group_mode("reduce_scatter", channel_id, use_global_device_ids)
    require_groups("reduce_scatter", replica_groups, mode)
    check_reduction("reduce_scatter", arrays, to_apply)
    parts = shape.elements if isinstance(shape, TupleShape) else (shape,)
    shards = arrays_of("reduce_scatter", parts)
    size = group_size(mode, replica_groups)
    gathered_shapes("reduce_scatter", shards, joined(arrays), dimensions, size)
    return shape


def reduce_scatter(
    operand: Instruction | Sequence[Instruction],
    computation: Computation,
    scatter_dimension: int,
    shard_count: int,
    replica_groups: Sequence[Sequence[int]] = (),
    channel_id: int | None = None,
    layout: Layout | None = None,
    use_global_device_ids: bool = False,
) -> Instruction:
    """One of ``shard_count`` equal parts of an `all_reduce` (XLA: ReduceScatter).

    The device at place i of its group, whose size is ``shard_count``, gets part i along
    ``scatter_dimension``. Raises `ShapeError` where the parts are not equal, `AttributeValueError`
    for groups of another size, of different sizes, or that do not share out the numbers from 0 on.
    """
    arrays = operands_of(operand)
    shapes = arrays_of("reduce_scatter", [array.shape for array in arrays])
    along = canonical_dimension(scatter_dimension, shapes[0].rank, "reduce_scatter")
    groups = as_groups(replica_groups)
    mode = group_mode("reduce_scatter", channel_id, use_global_device_ids)
    require_count("reduce_scatter", "shard_count", shard_count, group_size(mode, groups))
    results = []
    for shape in shapes:
        require_divisible("reduce_scatter", "shard_count", shape, along, shard_count)
        results.append(resized(shape, along, shape.dimensions[along] // shard_count))
    return make(
        REDUCE_SCATTER,
        *arrays,
        channel_id=channel_id,
        replica_groups=groups,
        **constrained("reduce_scatter", layout, arrays),
        use_global_device_ids=use_global_device_ids,
        dimensions=(along,),
        to_apply=computation,
        shape=joined(results),
    )


@define(
    "AllToAll",
    "all-to-all",
    CHANNEL,
    GROUPS,
    CONSTRAIN,
    Attribute("dimensions", Kind.INTS, None),
)
def ALL_TO_ALL(
    *operands: AnyShape,
    channel_id: int | None,
    replica_groups: Groups,
    constrain_layout: bool,
    dimensions: tuple[int, ...] | None,
) -> AnyShape:
    arrays = arrays_of("all_to_all", operands)
    mode = group_mode("all_to_all", channel_id)
    require_groups("all_to_all", replica_groups, mode)
    size = group_size(mode, replica_groups)
    if dimensions is None:
        if any(array != arrays[0] for array in arrays):
            raise ShapeError(
                f"all_to_all: all operands must have one shape, not {TupleShape(tuple(arrays))}"
            )
        if size is not None and size != len(arrays):
            raise ShapeError(
                f"all_to_all: groups of {size}, {written(replica_groups)}, need as many operands, "
                f"not {len(arrays)}"
            )
        return TupleShape(tuple(arrays))
    if len(arrays) != 1:
        raise ShapeError(
            f"all_to_all: needs one operand where dimensions is given, not {len(arrays)}"
        )
    if len(dimensions) != 1 or not 0 <= dimensions[0] < arrays[0].rank:
        raise AttributeValueError(
            f"all_to_all: dimensions must be one dimension of operand {arrays[0]}, not {dimensions}"
        )
    if size is not None:
        require_divisible("all_to_all", "the size of a group", arrays[0], dimensions[0], size)
    return arrays[0]


def all_to_all(
    operand: Instruction,
    split_dimension: int,
    concat_dimension: int,
    split_count: int,
    replica_groups: Sequence[Sequence[int]] = (),
    layout: Layout | None = None,
    channel_id: int | None = None,
) -> Instruction:
    """Block i of each device to the device at place i of its group (XLA: AllToAll).

    ``operand`` is split into ``split_count`` blocks, as many as a group has devices, along
    ``split_dimension``; those received are joined along ``concat_dimension`` in the group's
    order. No groups mean one of 0 to ``split_count - 1``. Raises `ShapeError` where the blocks are
    not equal, `AttributeValueError` for groups of another size.
    """
    shape = require_array("all_to_all", "operand", operand.shape)
    split = canonical_dimension(split_dimension, shape.rank, "all_to_all")
    concat = canonical_dimension(concat_dimension, shape.rank, "all_to_all")
    groups = as_groups(replica_groups) or (tuple(range(split_count)),)
    size = group_size(group_mode("all_to_all", channel_id), groups)
    require_count("all_to_all", "split_count", split_count, size)
    require_divisible("all_to_all", "split_count", shape, split, split_count)
    exchanged = make(
        ALL_TO_ALL,
        operand,
        channel_id=channel_id,
        replica_groups=groups,
        **constrained("all_to_all", layout, [operand]),
        dimensions=(split,),
    )
    if split == concat:
        return exchanged
    # The number of the block becomes a dimension of its own, which moves before concat_dimension.
    block = shape.dimensions[split] // split_count
    sizes = [*shape.dimensions[:split], split_count, block, *shape.dimensions[split + 1 :]]
    order = [d if d < split else d + 1 for d in range(shape.rank)]
    order.insert(concat, split)
    result = list(shape.dimensions)
    result[split] = block
    result[concat] *= split_count
    return reshape(transpose(reshape(exchanged, sizes), order), result)


def all_to_all_tuple(
    operands: Sequence[Instruction],
    replica_groups: Sequence[Sequence[int]] = (),
    layout: Layout | None = None,
    channel_id: int | None = None,
) -> Instruction:
    """Operand i of each device to the device at place i of its group (XLA: AllToAllTuple).

    ``operands``, as many as a group has devices, have one shape. The result is the tuple of
    received arrays, in the group's order.
    """
    arrays = operands_of(list(operands))
    return make(
        ALL_TO_ALL,
        *arrays,
        channel_id=channel_id,
        replica_groups=as_groups(replica_groups),
        **constrained("all_to_all", layout, arrays),
        dimensions=None,
    )


@define("CollectiveBroadcast", "collective-broadcast", CHANNEL, GROUPS)
def COLLECTIVE_BROADCAST(
    operand: AnyShape, *, channel_id: int | None, replica_groups: Groups
) -> Shape:
    mode = group_mode("collective_broadcast", channel_id)
    require_groups("collective_broadcast", replica_groups, mode, equal_sizes=False, complete=False)
    return require_array("collective_broadcast", "operand", operand)


def collective_broadcast(
    operand: Instruction,
    replica_groups: Sequence[Sequence[int]] = (),
    channel_id: int | None = None,
) -> Instruction:
    """The operand of the first device of the group; zeros for a device in no group.

    (XLA: CollectiveBroadcast.) Raises `AttributeValueError` where a number is in two groups.
    """
    groups = as_groups(replica_groups)
    return make(COLLECTIVE_BROADCAST, operand, channel_id=channel_id, replica_groups=groups)


@define("ReplicaId", "replica-id")
def REPLICA_ID() -> Shape:
    return Shape(ElementType.U32)


def replica_id() -> Instruction:
    """The number of the replica, u32[], from 0 on (XLA: ReplicaId)."""
    return make(REPLICA_ID)


@define("PartitionId", "partition-id")
def PARTITION_ID() -> Shape:
    return Shape(ElementType.U32)


def partition_id() -> Instruction:
    """The number of the partition, u32[], from 0 on (XLA: PartitionID)."""
    return make(PARTITION_ID)
