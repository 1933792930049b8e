"""CollectivePermute and RaggedAllToAll, evaluated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit.backends.numpy.devices import Meeting, current_device
from tracejit.backends.numpy.interpreter import Value, interpret
from tracejit.backends.numpy.replicas import require_shard_count, together
from tracejit.graph import Instruction
from tracejit.ops.groups import GroupMode, mode_of, require_devices
from tracejit.ops.permutes import COLLECTIVE_PERMUTE, RAGGED_ALL_TO_ALL


class Permute:
    """One device's part in a permute: the data it sends, and the devices it waits for."""

    def __init__(self, instruction: Instruction, operands: Sequence[Value]) -> None:
        self.instruction = instruction
        self.operands = operands
        self.device = current_device()
        self.meeting: Meeting | None = None
        world = self.device.world
        require_devices(instruction, world.replica_count, world.num_partitions)
        across_partitions = mode_of(instruction) is GroupMode.CROSS_PARTITION
        own = self.device.partition if across_partitions else self.device.replica
        step = 1 if across_partitions else world.num_partitions
        # A device meets the one it sends to, and the one it receives from.
        for source, target in instruction.attributes["source_target_pairs"]:
            pair = tuple(self.device.number + (n - own) * step for n in (source, target))
            if own in (source, target):
                meeting = self.device.meet(instruction, pair, operands)
                if own == target:
                    self.meeting = meeting

    def result(self) -> Value:
        """What this device gets, once its source has come."""
        slices = self.instruction.attributes["slice_sizes"]
        if self.meeting is None:
            return self.operands[1] if slices else self._whole(map(np.zeros_like, self.operands))
        sent = self.device.attend(self.instruction, self.meeting)[0]
        return self._written(sent, slices) if slices else self._whole(sent)

    def _whole(self, arrays: Any) -> Value:
        results = list(arrays)
        return results[0] if len(results) == 1 else tuple(results)

    def _written(self, sent: Sequence[Value], slices: Sequence[Sequence[int]]) -> np.ndarray:
        given, result = sent[0], np.array(self.operands[1])
        starts = zip(_starts(sent[2], slices), _starts(self.operands[3], slices), strict=True)
        for (there, here), sizes in zip(starts, slices, strict=True):
            result[_box(here, sizes, result.shape)] = given[_box(there, sizes, given.shape)]
        return result


def _starts(given: Value, slices: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    nested = bool(given) and isinstance(given[0], tuple)
    return [tuple(map(int, part)) for part in (given if nested else (given,))]


def _box(
    starts: Sequence[int], sizes: Sequence[int], dimensions: Sequence[int]
) -> tuple[slice, ...]:
    """A slice whose start is clamped so that it lies inside."""
    firsts = [
        min(max(start, 0), whole - size)
        for start, size, whole in zip(starts, sizes, dimensions, strict=True)
    ]
    return tuple(slice(first, first + size) for first, size in zip(firsts, sizes, strict=True))


@interpret.attach(COLLECTIVE_PERMUTE)
def collective_permute(instruction: Instruction, *operands: Value) -> Value:
    return Permute(instruction, operands).result()


@interpret.attach(RAGGED_ALL_TO_ALL)
def ragged_all_to_all(instruction: Instruction, *operands: np.ndarray) -> Value:
    gathered, place = together(instruction, operands)
    require_shard_count(instruction, operands[2].shape[0], 1, len(gathered))
    result = np.array(operands[1])
    for given, _, input_offsets, send_sizes, output_offsets, _ in gathered:
        updates = (np.atleast_1d(a[place]) for a in (input_offsets, send_sizes, output_offsets))
        for first, size, target in zip(*(map(int, numbers) for numbers in updates), strict=True):
            # Rows that one of the arrays does not have are left out.
            begin = max(0, -first, -target)
            end = min(size, len(given) - first, len(result) - target)
            if begin < end:
                result[target + begin : target + end] = given[first + begin : first + end]
    return result
