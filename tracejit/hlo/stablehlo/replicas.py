"""Ops across replicas and partitions.

The channel of a collective op is of the type that joins devices. Groups are written in full,
shorter ones filled with -1.
"""

from __future__ import annotations

from functools import partial

from tracejit import ops
from tracejit.errors import UnsupportedError
from tracejit.graph import Instruction
from tracejit.hlo.stablehlo.text import integer, leaves, matrix
from tracejit.hlo.stablehlo.writer import Names, Writer, stablehlo
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
from tracejit.shapes import AnyShape, Shape

DEVICE_TO_DEVICE, DEVICE_TO_HOST, HOST_TO_DEVICE = 1, 2, 3


def channel(instruction: Instruction, kind: int = DEVICE_TO_DEVICE) -> dict[str, str]:
    """The attribute for the channel, where there is one."""
    number = instruction.attributes["channel_id"]
    if number is None:
        return {}
    return {"channel_handle": f"#stablehlo.channel_handle<handle = {number}, type = {kind}>"}


def collective(instruction: Instruction) -> dict[str, str]:
    """The attributes that say who takes part."""
    values = instruction.attributes
    attributes = {**channel(instruction), "replica_groups": matrix(values["replica_groups"])}
    if values.get("use_global_device_ids"):
        attributes["use_global_device_ids"] = "unit"
    return attributes


@stablehlo.attach(ALL_REDUCE)
def all_reduce(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    regions = [writer.region(instruction.attributes["to_apply"])]
    attributes = collective(instruction)
    return writer.operation(instruction, "stablehlo.all_reduce", operands, attributes, regions)


@stablehlo.attach(ALL_GATHER)
def all_gather(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    return gathered(writer, instruction, operands, instruction.shape)


def gathered(
    writer: Writer, instruction: Instruction, operands: list[Names], result: AnyShape
) -> Names:
    """One operation for each operand; the dialect's refuses those without elements."""
    dimension = integer(instruction.attributes["dimensions"][0])
    attributes = {"all_gather_dim": dimension, **collective(instruction)}
    made: Names = ()
    for operand, names, shape in zip(instruction.operands, operands, leaves(result), strict=True):
        if isinstance(shape, Shape) and not shape.size:
            made += writer.compose([], [], partial(ops.full, shape, 0))
            continue
        shapes = leaves(operand.shape)
        made += writer.raw("stablehlo.all_gather", names, shapes, shape, attributes)
    return made


@stablehlo.attach(REDUCE_SCATTER)
def reduce_scatter(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    """One operation for each operand: the dialect's takes one."""
    values = instruction.attributes
    dimension = integer(values["dimensions"][0])
    attributes = {"scatter_dimension": dimension, **collective(instruction)}
    made: Names = ()
    for operand, names, shape in zip(
        instruction.operands, operands, leaves(instruction.shape), strict=True
    ):
        regions = [writer.region(values["to_apply"])]
        shapes = leaves(operand.shape)
        made += writer.raw("stablehlo.reduce_scatter", names, shapes, shape, attributes, regions)
    return made


@stablehlo.attach(ALL_TO_ALL)
def all_to_all(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    """Of arrays for each device, one array whose first dimension numbers them is made."""
    values = instruction.attributes
    if values["dimensions"] is None:
        return writer.compose(
            operands,
            [o.shape for o in instruction.operands],
            lambda *arrays: _joined_all_to_all(instruction, arrays),
        )
    # XLA divides by the size of the first group, so that it must be written.
    groups = values["replica_groups"] or (range(_everyone(writer, instruction)),)
    dimension = integer(values["dimensions"][0])
    attributes = {
        "concat_dimension": dimension,
        "split_count": integer(len(groups[0])),
        "split_dimension": dimension,
        **collective(instruction),
        "replica_groups": matrix(groups),
    }
    return writer.operation(instruction, "stablehlo.all_to_all", operands, attributes)


def _everyone(writer: Writer, instruction: Instruction) -> int:
    """How many devices a group that is not named has."""
    module = writer.module
    by_partition = instruction.attributes["channel_id"] is not None
    return module.num_partitions if by_partition else module.replica_count


def _joined_all_to_all(instruction: Instruction, arrays: tuple[Instruction, ...]) -> Instruction:
    sizes = arrays[0].array_shape.dimensions
    rows = [ops.reshape(array, (1, *sizes)) for array in arrays]
    attributes = {**instruction.attributes, "dimensions": (0,)}
    moved = make(ALL_TO_ALL, ops.concat_in_dim(rows, 0), **attributes)
    parts = [ops.slice_in_dim(moved, i, i + 1, 1, 0) for i in range(len(arrays))]
    results = [ops.reshape(part, sizes) for part in parts]
    return results[0] if len(results) == 1 else ops.tuple_(results)


@stablehlo.attach(COLLECTIVE_BROADCAST)
def collective_broadcast(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    attributes = collective(instruction)
    return writer.operation(instruction, "stablehlo.collective_broadcast", operands, attributes)


@stablehlo.attach(REPLICA_ID)
def replica_id(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    return writer.operation(instruction, "stablehlo.replica_id", operands)


@stablehlo.attach(PARTITION_ID)
def partition_id(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    return writer.operation(instruction, "stablehlo.partition_id", operands)


def require_whole(instruction: Instruction) -> None:
    """Raises for a permutation in slices, which the dialect lacks."""
    if instruction.attributes["slice_sizes"]:
        raise UnsupportedError(
            f"to_stablehlo: {instruction.op.name} has slice_sizes, which StableHLO lacks",
            instruction.source,
        )
