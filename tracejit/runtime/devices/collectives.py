"""Collective ops as messages: a rule for each op lists a device's sends and receives.

A rule yields transfers; each transfer must end before the rule goes on. Numbers are reduced in the
order of the group by the device that owns the part, so that sums are those of the interpreter bit
for bit, on any number of devices and whatever carries the messages.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tracejit.backends.numpy.replicas import require_gathered, require_shard_count
from tracejit.backends.numpy.scalars import evaluate_elementwise
from tracejit.errors import AttributeValueError
from tracejit.graph import Instruction
from tracejit.ops.channels import RECV, SEND, pairs_of
from tracejit.ops.computations import binary_op
from tracejit.ops.elementwise import ADD
from tracejit.ops.groups import GroupMode, mode_of, require_devices
from tracejit.ops.permutes import COLLECTIVE_PERMUTE, RAGGED_ALL_TO_ALL
from tracejit.ops.replicas import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    COLLECTIVE_BROADCAST,
    PARTITION_ID,
    REDUCE_SCATTER,
    REPLICA_ID,
)
from tracejit.rules import RuleTable
from tracejit.runtime.devices.communicator import Parts, Tag, Transfer
from tracejit.runtime.devices.device import Device, Steps

Arrays = Sequence[np.ndarray]

SMALL_BYTES = 1 << 14
"""Up to this size every device reduces the whole array itself, which saves one exchange."""
PAIR_BYTES = 1 << 19
"""The same for two devices, which send the same number of bytes either way."""
SCRATCH_BYTES = 2 * PAIR_BYTES


@dataclass(eq=False)
class Call:
    """One run of an op: where its operands lie, and where its results shall.

    Later runs on the same memory are the same call with another ``tag``. ``scratch`` is memory that
    a call may use which no other outlasts; without it there is none.
    """

    device: Device
    instruction: Instruction
    operands: Arrays
    results: Arrays
    tag: Tag
    scratch: np.ndarray | None = None

    @functools.cached_property
    def group(self) -> tuple[int, ...]:
        """The devices that take part, where every device is in a group."""
        found = self.device.group(self.instruction)
        assert found is not None, "every device is in a group"
        return found

    def members(self) -> tuple[int, ...]:
        """The group, where every device is in one."""
        return self.group

    @functools.cached_property
    def add(self) -> Callable[..., Any] | None:
        """NumPy's sum where it is the op's reduction, of numbers that NumPy has itself."""
        computation, dtype = self.instruction.attributes["to_apply"], self.results[0].dtype
        is_plain = dtype.kind in "fiu" and dtype.isbuiltin == 1
        return np.add if is_plain and binary_op(computation) is ADD else None

    @functools.cached_property
    def everyone(self) -> tuple[list[np.ndarray], Parts, Parts]:
        """All members' only operands, flat, and what is sent and received so that they are here."""
        (own,) = self.operands
        own = own.reshape(-1)
        members, number = self.group, self.device.number
        count = len(members)
        if self.scratch is None or count * own.nbytes > self.scratch.size:
            room = np.empty((count, own.size), own.dtype)
        else:
            room = self.scratch[: count * own.nbytes].view(own.dtype).reshape(count, -1)
        arrays = [own if member == number else room[n] for n, member in enumerate(members)]
        sends = _parts(members, [own] * len(members), number)
        return arrays, sends, _parts(members, arrays, number)

    def exchange(
        self, members: Sequence[int], sends: Sequence[Any], receives: Sequence[Any]
    ) -> Transfer:
        """An array to and from each member, or None; what goes to this device is left out."""
        own = self.device.number
        return self.device.communicator.exchange(
            self.tag, _parts(members, sends, own), _parts(members, receives, own)
        )


def _parts(
    members: Sequence[int], arrays: Iterable[np.ndarray | None], own: int
) -> list[tuple[int, np.ndarray]]:
    pairs = zip(members, arrays, strict=True)
    return [(n, array) for n, array in pairs if n != own and array is not None and array.size]


Rule = Callable[[Call], Steps]
rules: RuleTable[Rule] = RuleTable("collective")
"""``rule(call)`` yields transfers; when it ends, the results are there."""


def reduced(call: Call, arrays: Arrays, result: np.ndarray) -> None:
    """The arrays, one of each member, reduced in the order of the group."""
    add, total = call.add, arrays[0]
    if add is not None and len(arrays) > 1:
        add(total, arrays[1], out=result)
        for array in arrays[2:]:
            add(result, array, out=result)
        return
    computation = call.instruction.attributes["to_apply"]
    for array in arrays[1:]:
        total = np.asarray(evaluate_elementwise(computation, [total, array]))
    np.copyto(result, total)


def _room(members: Sequence[int], place: int, own: np.ndarray) -> list[np.ndarray]:
    """Arrays like this device's own, which is the one at ``place``, to receive the others'."""
    return [own if n == place else np.empty_like(own) for n in range(len(members))]


def _gathered(
    call: Call, members: Sequence[int], own: np.ndarray
) -> tuple[list[np.ndarray], Transfer]:
    """Every member's array, once the transfer has ended."""
    place = members.index(call.device.number)
    arrays = _room(members, place, own)
    return arrays, call.exchange(members, [own] * len(members), arrays)


@rules.attach(ALL_REDUCE)
def all_reduce(call: Call) -> Steps:
    """Each device reduces one part of the array, and all gather the parts."""
    if len(call.operands) == 1:
        if call.results[0].nbytes <= (PAIR_BYTES if len(call.group) == 2 else SMALL_BYTES):
            return _reduced_everywhere(call)
        return _all_reduced(call, call.operands[0].reshape(-1), call.results[0].reshape(-1))
    return _several_all_reduced(call)


def _reduced_everywhere(call: Call) -> Steps:
    """A short array, in as few steps as there can be."""
    if len(call.group) == 1:
        np.copyto(call.results[0], call.operands[0])
        return
    arrays, sends, receives = call.everyone
    yield call.device.communicator.exchange(call.tag, sends, receives)
    reduced(call, arrays, call.results[0].reshape(-1))


def _several_all_reduced(call: Call) -> Steps:
    """Several arrays travel as one."""
    flat = np.concatenate([operand.reshape(-1) for operand in call.operands])
    total = np.empty_like(flat)
    yield from _all_reduced(call, flat, total)
    begin = 0
    for result in call.results:
        result[...] = total[begin : begin + result.size].reshape(result.shape)
        begin += result.size


def _all_here(call: Call, members: Sequence[int]) -> Transfer:
    """Has ended when all members have come to this op."""
    return _gathered(call, members, np.zeros(1, np.uint8))[1]


def _all_reduced(call: Call, given: np.ndarray, result: np.ndarray) -> Steps:
    members = call.members()
    if len(members) == 1:
        np.copyto(result, given)
        return
    if given.nbytes <= SMALL_BYTES:
        arrays, transfer = _gathered(call, members, given)
        yield transfer
        reduced(call, arrays, result)
        return
    communicator = call.device.communicator
    # Integers have one sum in any order; Open MPI's of 8 and 16 bits saturate.
    is_integer = result.dtype.kind in "iu"
    has_one_sum = result.itemsize >= 4 if is_integer else not communicator.deterministic
    is_worth_it = communicator.has_sum and has_one_sum and len(members) > 2
    if is_worth_it and call.add is not None:
        turn = call.device.turns.take([n for n in members if n != call.device.number])
        yield _all_here(call, members)
        yield turn
        transfer = communicator.sum(members, given, result)
        turn.pass_on()
        yield transfer
        return
    size, place = given.size, members.index(call.device.number)
    bounds = [size * n // len(members) for n in range(len(members) + 1)]
    parts = [slice(*pair) for pair in itertools.pairwise(bounds)]
    own = given[parts[place]]
    arrays = _room(members, place, own)
    yield call.exchange(members, [given[part] for part in parts], arrays)
    reduced(call, arrays, result[parts[place]])
    mine = result[parts[place]]
    yield call.exchange(members, [mine] * len(members), [result[part] for part in parts])


@rules.attach(ALL_GATHER)
def all_gather(call: Call) -> Steps:
    members = call.members()
    place = members.index(call.device.number)
    (along,) = call.instruction.attributes["dimensions"]
    for operand, result, shape in zip(
        call.operands, call.results, call.instruction.element_shapes, strict=True
    ):
        sizes = list(operand.shape)
        sizes[along] *= len(members)
        require_gathered(call.instruction, [shape], [np.broadcast_to(operand[:0].sum(), sizes)])
        if math.prod(operand.shape[:along]) == 1:  # each device's part lies in one piece
            pieces = list(result.reshape(len(members), *operand.shape))
            yield call.exchange(members, [operand] * len(members), pieces)
            pieces[place][...] = operand
        else:
            arrays, transfer = _gathered(call, members, operand)
            yield transfer
            np.concatenate(arrays, along, out=result)


def _blocks(array: np.ndarray, count: int, along: int) -> list[np.ndarray]:
    """Equal parts of an array along a dimension, each in one piece."""
    return [np.ascontiguousarray(part) for part in np.split(array, count, along)]


@rules.attach(REDUCE_SCATTER)
def reduce_scatter(call: Call) -> Steps:
    members = call.members()
    place = members.index(call.device.number)
    (along,) = call.instruction.attributes["dimensions"]
    for operand, result in zip(call.operands, call.results, strict=True):
        whole, part = operand.shape[along], result.shape[along]
        require_shard_count(call.instruction, whole, part, len(members))
        blocks = _blocks(operand, len(members), along)
        arrays = _room(members, place, blocks[place])
        yield call.exchange(members, blocks, arrays)
        reduced(call, arrays, result)


@rules.attach(ALL_TO_ALL)
def all_to_all(call: Call) -> Steps:
    members = call.members()
    place = members.index(call.device.number)
    dimensions = call.instruction.attributes["dimensions"]
    if dimensions is None:
        require_shard_count(call.instruction, len(call.operands), 1, len(members))
        yield call.exchange(members, call.operands, call.results)
        call.results[place][...] = call.operands[place]
        return
    (along,) = dimensions
    (operand,), (result,) = call.operands, call.results
    block = operand.shape[along] // len(members)
    require_shard_count(call.instruction, operand.shape[along], block, len(members))
    blocks = _blocks(operand, len(members), along)
    arrays = _room(members, place, blocks[place])
    yield call.exchange(members, blocks, arrays)
    np.concatenate(arrays, along, out=result)


@rules.attach(COLLECTIVE_BROADCAST)
def collective_broadcast(call: Call) -> Steps:
    members = call.device.group(call.instruction)
    (operand,), (result,) = call.operands, call.results
    if members is None:
        result[...] = np.zeros((), result.dtype)
    elif members[0] == call.device.number:
        yield call.exchange(members, [operand] * len(members), [None] * len(members))
        result[...] = operand
    else:
        yield call.exchange(members[:1], [None], [result])


@rules.attach(COLLECTIVE_PERMUTE)
def collective_permute(call: Call) -> Steps:
    device, attributes = call.device, call.instruction.attributes
    require_devices(call.instruction, device.replica_count, device.num_partitions)
    across_partitions = mode_of(call.instruction) is GroupMode.CROSS_PARTITION
    own = device.partition if across_partitions else device.replica
    step = 1 if across_partitions else device.num_partitions
    pairs = attributes["source_target_pairs"]
    targets = [device.number + (t - own) * step for s, t in pairs if s == own]
    sources = [device.number + (s - own) * step for s, t in pairs if t == own]
    if attributes["slice_sizes"]:
        yield from _permuted_slices(call, sources, targets)
        return
    for operand, result in zip(call.operands, call.results, strict=True):
        yield device.communicator.exchange(
            call.tag,
            _parts(targets, [operand] * len(targets), device.number),
            _parts(sources, [result] * len(sources), device.number),
        )
        if sources == [device.number]:
            result[...] = operand
        elif not sources:
            result[...] = np.zeros((), result.dtype)


def _permuted_slices(call: Call, sources: Sequence[int], targets: Sequence[int]) -> Steps:
    """Each slice is one message; where it starts at its source, only the source knows."""
    slices = call.instruction.attributes["slice_sizes"]
    given, output, *starts = call.operands
    (result,) = call.results
    counts = [len(sizes) for sizes in slices]
    there, here = starts[: sum(counts)], starts[sum(counts) :]
    result[...] = output
    for number, sizes in enumerate(slices):
        first = sum(counts[:number])
        source = given[_box(there[first : first + len(sizes)], sizes, given.shape)]
        piece = np.ascontiguousarray(source)
        arrived = np.empty_like(piece)
        yield call.device.communicator.exchange(
            call.tag,
            _parts(targets, [piece] * len(targets), call.device.number),
            _parts(sources, [arrived] * len(sources), call.device.number),
        )
        if sources:
            box = _box(here[first : first + len(sizes)], sizes, result.shape)
            result[box] = piece if sources == [call.device.number] else arrived


def _box(starts: Arrays, sizes: Sequence[int], dimensions: Sequence[int]) -> tuple[slice, ...]:
    """A slice whose start is clamped so that it lies inside."""
    firsts = [
        min(max(int(start), 0), whole - size)
        for start, size, whole in zip(starts, sizes, dimensions, strict=True)
    ]
    return tuple(slice(first, first + size) for first, size in zip(firsts, sizes, strict=True))


@rules.attach(RAGGED_ALL_TO_ALL)
def ragged_all_to_all(call: Call) -> Steps:
    """First all tell each other which rows go where; then the rows go."""
    members = call.members()
    place = members.index(call.device.number)
    given, output, *metadata = call.operands
    (result,) = call.results
    require_shard_count(call.instruction, metadata[0].shape[0], 1, len(members))
    counts = np.stack([part.reshape(len(members), -1).astype(np.int64) for part in metadata[:3]])
    arrays, transfer = _gathered(call, members, counts)
    yield transfer
    result[...] = output

    def moved(source: int, target: int) -> list[tuple[slice, slice]]:
        """The rows from one member to another: where they lie there, and where they shall here."""
        rows = []
        for first, size, goal in arrays[source][:, target].T.tolist():
            # Rows that one of the arrays does not have are left out.
            begin = max(0, -first, -goal)
            end = min(size, len(given) - first, len(result) - goal)
            if begin < end:
                rows.append((slice(first + begin, first + end), slice(goal + begin, goal + end)))
        return rows

    def packed(rows: list[tuple[slice, slice]]) -> np.ndarray:
        return np.concatenate([given[:0], *(given[r] for r, _ in rows)])

    everyone = range(len(members))
    sends = [packed(moved(place, target)) for target in everyone]
    arriving = [moved(source, place) for source in everyone]
    lengths = [sum(r.stop - r.start for r, _ in rows) for rows in arriving]
    pieces = [np.empty((length, *given.shape[1:]), given.dtype) for length in lengths]
    yield call.exchange(members, sends, pieces)
    pieces[place] = sends[place]
    for rows, piece in zip(arriving, pieces, strict=True):
        begin = 0
        for row, goal in rows:
            end = begin + row.stop - row.start
            result[goal] = piece[begin:end]
            begin = end


@rules.attach(REPLICA_ID)
def replica_id(call: Call) -> Steps:
    call.results[0][...] = call.device.replica
    yield from ()


@rules.attach(PARTITION_ID)
def partition_id(call: Call) -> Steps:
    call.results[0][...] = call.device.partition
    yield from ()


def _partners(call: Call) -> tuple[list[int], list[int]]:
    """To whom this device sends through the channel, and from whom it receives."""
    device, attributes = call.device, call.instruction.attributes
    pairs = pairs_of(attributes["frontend_attributes"]) or ()
    across_partitions = attributes["channel_id"] is not None
    count = device.num_partitions if across_partitions else device.replica_count
    if any(max(pair) >= count for pair in pairs):
        raise AttributeValueError(
            f"{call.instruction.op.function}: source_target_pairs {pairs} name more than the "
            f"{count} {'partitions' if across_partitions else 'replicas'} there are"
        )
    own = device.partition if across_partitions else device.replica
    step = 1 if across_partitions else device.num_partitions
    targets = [device.number + (t - own) * step for s, t in pairs if s == own]
    return targets, [device.number + (s - own) * step for s, t in pairs if t == own]


@rules.attach(SEND)
def send(call: Call) -> Steps:
    targets, _ = _partners(call)
    for operand in call.operands:
        call.device.communicator.exchange(call.tag, [(t, operand) for t in targets], [], True)
    yield from ()


@rules.attach(RECV)
def recv(call: Call) -> Steps:
    _, sources = _partners(call)
    for result in call.results:
        if sources:
            yield call.device.communicator.exchange(call.tag, [], [(sources[0], result)], True)
        else:
            result[...] = np.zeros((), result.dtype)
