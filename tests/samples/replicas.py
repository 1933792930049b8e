"""Samples of collective ops on one device, which is alone in its group.

How several devices work together is tested in `tests/replicas`.
"""

from __future__ import annotations

from tests.samples.base import Operand, Sample
from tracejit import ops
from tracejit.graph import Instruction
from tracejit.ops.base import ALL, NUMERIC, ORDERED
from tracejit.shapes import ElementType, Layout

ALONE = [[0]]


def summed(x: Instruction, *others: Instruction) -> Instruction:
    add = ops.scalar_computation("add", x.array_shape.element_type)
    return ops.all_reduce([x, *others], add)


def greatest(x: Instruction) -> Instruction:
    computation = ops.scalar_computation("max", x.array_shape.element_type)
    return ops.all_reduce(
        x, computation, ALONE, channel_id=3, shape_with_layout=x.shape, use_global_device_ids=True
    )


def scattered(x: Instruction, *others: Instruction) -> Instruction:
    add = ops.scalar_computation("add", x.array_shape.element_type)
    return ops.reduce_scatter([x, *others], add, 1, 1, ALONE, channel_id=2)


EMPTY, SCALAR = Operand((2, 0)), Operand(())

SAMPLES = [
    Sample("AllReduce", summed, (Operand(),), NUMERIC, "sum"),
    Sample("AllReduce", summed, (Operand(), SCALAR, EMPTY), NUMERIC, "several"),
    Sample("AllReduce", greatest, (Operand(),), ORDERED, "maximum, global ids"),
    Sample(
        "AllReduce",
        lambda x: ops.cross_replica_sum(x, ALONE),
        (Operand(),),
        NUMERIC,
        "cross replica sum",
    ),
    Sample("AllGather", lambda x: ops.all_gather(x, 0, 1), (Operand(),), ALL, "one array"),
    Sample(
        "AllGather",
        lambda x, y: ops.all_gather(
            [x, y], -1, 1, ALONE, 4, Layout((0, 1)), use_global_device_ids=True
        ),
        (Operand(), EMPTY),
        ALL,
        "several, global ids",
    ),
    Sample("ReduceScatter", scattered, (Operand(),), NUMERIC, "one array"),
    Sample("AllToAll", lambda x: ops.all_to_all(x, 0, 1, 1, ALONE), (Operand(),), ALL, "one array"),
    Sample(
        "AllToAll",
        lambda x: ops.all_to_all_tuple([x], channel_id=1),
        (Operand(),),
        ALL,
        "tuple",
    ),
    Sample(
        "CollectiveBroadcast",
        lambda x: ops.collective_broadcast(x, ALONE),
        (Operand(),),
        ALL,
        "one group",
    ),
    Sample("CollectiveBroadcast", ops.collective_broadcast, (Operand(),), ALL, "no groups"),
    Sample("ReplicaId", ops.replica_id, (), {ElementType.U32}),
    Sample("PartitionId", ops.partition_id, (), {ElementType.U32}),
]
