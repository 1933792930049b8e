"""Collective ops and the numbers of a device, evaluated: each device sees its own part."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tracejit.backends.numpy.devices import current_device
from tracejit.backends.numpy.interpreter import Value, interpret
from tracejit.backends.numpy.scalars import evaluate_elementwise
from tracejit.errors import ShapeError
from tracejit.graph import Instruction
from tracejit.ops.replicas import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    COLLECTIVE_BROADCAST,
    PARTITION_ID,
    REDUCE_SCATTER,
    REPLICA_ID,
)
from tracejit.shapes import TupleShape

Operands = tuple[np.ndarray, ...]


def together(instruction: Instruction, operands: Operands) -> tuple[list[Operands], int]:
    """The operands of all devices of this one's group, in order, and this one's place."""
    device = current_device()
    members = device.group(instruction)
    assert members is not None, "every device is in a group"
    gathered = device.attend(instruction, device.meet(instruction, members, operands))
    return gathered, members.index(device.number)


def of_shape(instruction: Instruction, results: Sequence[np.ndarray]) -> Value:
    """The one result, or several as a tuple."""
    return tuple(results) if isinstance(instruction.shape, TupleShape) else results[0]


def reduced(instruction: Instruction, gathered: Sequence[Operands]) -> list[np.ndarray]:
    """Each operand of all devices, reduced in the order of the group."""
    computation = instruction.attributes["to_apply"]
    results = []
    for arrays in zip(*gathered, strict=True):
        total = arrays[0]
        for array in arrays[1:]:
            total = evaluate_elementwise(computation, [total, array])
        results.append(total)
    return results


def concatenated(instruction: Instruction, gathered: Sequence[Operands]) -> list[np.ndarray]:
    """Each operand of all devices, one after the other."""
    (along,) = instruction.attributes["dimensions"]
    return [np.concatenate(arrays, along) for arrays in zip(*gathered, strict=True)]


def require_shard_count(instruction: Instruction, whole: int, part: int, size: int) -> None:
    """Raises `ShapeError` where the shapes are made for groups of another size."""
    if whole != part * size:
        raise ShapeError(
            f"{instruction.op.function}: a group has {size} devices, which does not go with "
            f"operand {instruction.operands[0].shape} and result {instruction.shape}",
            instruction.source,
        )


@interpret.attach(ALL_REDUCE)
def all_reduce(instruction: Instruction, *operands: np.ndarray) -> Value:
    gathered, _ = together(instruction, operands)
    return of_shape(instruction, reduced(instruction, gathered))


@interpret.attach(ALL_GATHER)
def all_gather(instruction: Instruction, *operands: np.ndarray) -> Value:
    gathered, _ = together(instruction, operands)
    results = concatenated(instruction, gathered)
    require_gathered(instruction, instruction.element_shapes, results)
    return of_shape(instruction, results)


def require_gathered(
    instruction: Instruction, shapes: Sequence[object], results: Sequence[np.ndarray]
) -> None:
    """Raises `ShapeError` where the results are of another number of devices than the shapes."""
    for shape, result in zip(shapes, results, strict=True):
        if getattr(shape, "dimensions", None) != result.shape:
            raise ShapeError(
                f"{instruction.op.function}: the devices of a group make {list(result.shape)}, "
                f"not {shape}",
                instruction.source,
            )


@interpret.attach(REDUCE_SCATTER)
def reduce_scatter(instruction: Instruction, *operands: np.ndarray) -> Value:
    gathered, place = together(instruction, operands)
    (along,) = instruction.attributes["dimensions"]
    results = []
    shapes = instruction.element_shapes
    for shape, total in zip(shapes, reduced(instruction, gathered), strict=True):
        size = shape.dimensions[along]  # type: ignore[union-attr]
        require_shard_count(instruction, total.shape[along], size, len(gathered))
        results.append(np.take(total, range(place * size, (place + 1) * size), along))
    return of_shape(instruction, results)


@interpret.attach(ALL_TO_ALL)
def all_to_all(instruction: Instruction, *operands: np.ndarray) -> Value:
    gathered, place = together(instruction, operands)
    dimensions = instruction.attributes["dimensions"]
    if dimensions is None:
        require_shard_count(instruction, len(operands), 1, len(gathered))
        return tuple(arrays[place] for arrays in gathered)
    (along,) = dimensions
    whole = operands[0].shape[along]
    block = whole // len(gathered)
    require_shard_count(instruction, whole, block, len(gathered))
    mine = range(place * block, (place + 1) * block)
    return np.concatenate([np.take(array, mine, along) for (array,) in gathered], along)


@interpret.attach(COLLECTIVE_BROADCAST)
def collective_broadcast(instruction: Instruction, operand: np.ndarray) -> Value:
    device = current_device()
    members = device.group(instruction)
    if members is None:
        return np.zeros_like(operand)
    gathered = device.attend(instruction, device.meet(instruction, members, operand))
    return gathered[0]


@interpret.attach(REPLICA_ID)
def replica_id(instruction: Instruction) -> Value:
    return np.uint32(current_device().replica)


@interpret.attach(PARTITION_ID)
def partition_id(instruction: Instruction) -> Value:
    return np.uint32(current_device().partition)
