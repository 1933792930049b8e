"""Which devices take part in a collective op together, and what its groups must be.

group_mode("all_reduce", channel_id=1, use_global_device_ids=True)      GroupMode.FLATTENED_ID
participants(GroupMode.CROSS_REPLICA, ((0, 1),), 2, 2)                  ((0, 2), (1, 3))

A program runs on ``replica_count`` times ``num_partitions`` devices; the device of replica r and
partition p has the number ``r * num_partitions + p``.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Sequence

from tracejit.errors import AttributeValueError
from tracejit.graph import Instruction

Groups = tuple[tuple[int, ...], ...]


class GroupMode(enum.Enum):
    """The meaning of the numbers in a collective op's groups."""

    CROSS_REPLICA = "cross-replica"
    CROSS_PARTITION = "cross-partition"
    CROSS_REPLICA_AND_PARTITION = "cross-replica-and-partition"
    FLATTENED_ID = "flattened-id"

    def count(self, replica_count: int, num_partitions: int) -> int:
        """How many numbers there are."""
        if self is GroupMode.CROSS_PARTITION:
            return num_partitions
        if self is GroupMode.FLATTENED_ID:
            return replica_count * num_partitions
        return replica_count


def group_mode(
    function: str, channel_id: int | None, use_global_device_ids: bool | None = None
) -> GroupMode:
    """The mode that the attributes say; ``use_global_device_ids`` None: the op does not have it.

    Raises `AttributeValueError` for global numbers without a channel.
    """
    if use_global_device_ids is None:
        return GroupMode.CROSS_REPLICA if channel_id is None else GroupMode.CROSS_PARTITION
    if channel_id is None:
        if use_global_device_ids:
            raise AttributeValueError(f"{function}: use_global_device_ids needs a channel_id")
        return GroupMode.CROSS_REPLICA
    if use_global_device_ids:
        return GroupMode.FLATTENED_ID
    return GroupMode.CROSS_REPLICA_AND_PARTITION


def mode_of(instruction: Instruction) -> GroupMode:
    """The mode of a collective instruction."""
    attributes = instruction.attributes
    return group_mode(
        instruction.op.function,
        attributes["channel_id"],
        attributes.get("use_global_device_ids"),
    )


def require_groups(
    function: str,
    replica_groups: Groups,
    mode: GroupMode,
    equal_sizes: bool = True,
    complete: bool = True,
) -> None:
    """Raises `AttributeValueError` unless the groups share out the numbers from 0 on.

    No groups at all mean one of everything, which only flattened numbers do not allow. With
    ``equal_sizes`` all groups are of one size; without ``complete`` numbers may be missing.
    """
    if not replica_groups:
        if mode is GroupMode.FLATTENED_ID:
            raise AttributeValueError(
                f"{function}: replica_groups must not be empty with use_global_device_ids"
            )
        return
    if not all(replica_groups):
        raise AttributeValueError(f"{function}: replica_groups must not have an empty group")
    numbers = Counter(number for group in replica_groups for number in group)
    negative = min(numbers)
    if negative < 0:
        raise AttributeValueError(f"{function}: replica_groups has the negative number {negative}")
    repeated = [number for number, times in numbers.items() if times > 1]
    if repeated:
        raise AttributeValueError(
            f"{function}: {repeated[0]} is in replica_groups more than once; "
            f"they are {written(replica_groups)}"
        )
    missing = [number for number in range(len(numbers)) if number not in numbers]
    if complete and missing:
        raise AttributeValueError(
            f"{function}: {missing[0]} is missing in replica_groups {written(replica_groups)}, "
            f"which must hold every number below {len(numbers)}"
        )
    sizes = sorted({len(group) for group in replica_groups})
    if equal_sizes and len(sizes) > 1:
        raise AttributeValueError(
            f"{function}: replica_groups must all be of one size; {written(replica_groups)} has "
            f"groups of {sizes[0]} and of {sizes[-1]}"
        )


def require_pairs(function: str, source_target_pairs: Groups) -> None:
    """Raises `AttributeValueError` unless no source and no target comes twice."""
    if any(len(pair) != 2 or min(pair) < 0 for pair in source_target_pairs):
        raise AttributeValueError(
            f"{function}: source_target_pairs must be pairs of numbers from 0 on, "
            f"not {written(source_target_pairs)}"
        )
    for position, name in enumerate(("source", "target")):
        times = Counter(pair[position] for pair in source_target_pairs)
        repeated = [number for number, count in times.items() if count > 1]
        if repeated:
            raise AttributeValueError(
                f"{function}: {repeated[0]} is the {name} of more than one of the "
                f"source_target_pairs {written(source_target_pairs)}"
            )


def written(groups: Groups) -> str:
    """Groups as HLO text writes them, cut short where there are many."""
    shown = ["{" + ",".join(map(str, group[:16])) + "}" for group in groups[:16]]
    return "{" + ",".join(shown) + ("" if len(groups) <= 16 else ",…") + "}"


def group_size(mode: GroupMode, replica_groups: Groups) -> int | None:
    """How many devices work together, where the op alone says it."""
    if not replica_groups or mode is GroupMode.CROSS_REPLICA_AND_PARTITION:
        return None
    return len(replica_groups[0])


def require_devices(instruction: Instruction, replica_count: int, num_partitions: int) -> None:
    """Raises `AttributeValueError` unless a collective op's numbers are of these devices."""
    attributes = instruction.attributes
    function, source = instruction.op.function, instruction.source
    mode = mode_of(instruction)
    count = mode.count(replica_count, num_partitions)
    unit = "partitions" if mode is GroupMode.CROSS_PARTITION else "replicas"
    unit = "devices" if mode is GroupMode.FLATTENED_ID else unit
    pairs: Groups = attributes.get("source_target_pairs", ())
    outside = [number for pair in pairs for number in pair if number >= count]
    if outside:
        raise AttributeValueError(
            f"{function}: source_target_pairs {written(pairs)} has {outside[0]}, but there are "
            f"{count} {unit}",
            source,
        )
    groups: Groups = attributes.get("replica_groups", ())
    numbers = [number for group in groups for number in group]
    if groups and (max(numbers) >= count or (len(numbers) != count and _complete(instruction))):
        raise AttributeValueError(
            f"{function}: replica_groups {written(groups)} does not go with {count} {unit}",
            source,
        )


def _complete(instruction: Instruction) -> bool:
    """Whether every device takes part; a broadcast leaves out those that get zeros."""
    return instruction.op.name != "CollectiveBroadcast"


def participants(
    mode: GroupMode, replica_groups: Groups, replica_count: int, num_partitions: int
) -> tuple[tuple[int, ...], ...]:
    """The devices of each group, in the group's order."""
    if mode is GroupMode.FLATTENED_ID:
        return replica_groups
    groups: Sequence[Sequence[int]] = replica_groups or (
        range(mode.count(replica_count, num_partitions)),
    )
    if mode is GroupMode.CROSS_PARTITION:
        return tuple(
            tuple(replica * num_partitions + partition for partition in group)
            for group in groups
            for replica in range(replica_count)
        )
    if mode is GroupMode.CROSS_REPLICA:
        return tuple(
            tuple(replica * num_partitions + partition for replica in group)
            for group in groups
            for partition in range(num_partitions)
        )
    return tuple(
        tuple(
            replica * num_partitions + partition
            for replica in group
            for partition in range(num_partitions)
        )
        for group in groups
    )


class GroupsOfDevices:
    """The groups of a program's collective ops, each worked out once."""

    def __init__(self, replica_count: int, num_partitions: int) -> None:
        self._counts = replica_count, num_partitions
        self._known: dict[Instruction, dict[int, tuple[int, ...]]] = {}

    def of(self, instruction: Instruction) -> dict[int, tuple[int, ...]]:
        """The group of each device that takes part in an op.

        Raises `AttributeValueError` where the op names devices that are not there.
        """
        found = self._known.get(instruction)
        if found is None:
            require_devices(instruction, *self._counts)
            groups = instruction.attributes["replica_groups"]
            sets = participants(mode_of(instruction), groups, *self._counts)
            found = {member: members for members in sets for member in members}
            self._known[instruction] = found
        return found
