"""One module run on several devices at once, in one process.

    run_on_devices(computation, [[x0], [x1]], replica_count=2)      [result 0, result 1]

Each device is a thread, and one runs at a time: it goes on until it has to wait for another
device, and the next one that can go on does so. When none can, the program waits for ever, which
is an error that names the op and the devices that are missing.
"""

from __future__ import annotations

import itertools
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from tracejit.backends.numpy.interpreter import Value, evaluate
from tracejit.backends.numpy.streams import current_stream
from tracejit.errors import DeadlockError
from tracejit.graph import Computation, Instruction
from tracejit.ops.groups import GroupsOfDevices
from tracejit.queues import current_feeds, feeds


class _AbandonedError(Exception):
    """Ends a device's thread because another device has failed."""


@dataclass(eq=False)
class Meeting:
    """What the devices of a group bring to one run of a collective op."""

    members: tuple[int, ...]
    values: dict[int, Value] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        return len(self.values) == len(set(self.members))

    @property
    def in_order(self) -> list[Value]:
        """The members' values, in the order of the group."""
        return [self.values[member] for member in self.members]

    @property
    def missing(self) -> list[int]:
        return [member for member in self.members if member not in self.values]


class Device:
    """One device: its numbers, the operations it has begun, and the one it waits for."""

    def __init__(self, world: World, number: int) -> None:
        self.world = world
        self.number = number
        self.replica, self.partition = divmod(number, world.num_partitions)
        self.pending: dict[Hashable, deque[Any]] = defaultdict(deque)
        """What instructions have begun and others will end."""
        self.received: dict[int, Instruction] = {}
        """Every Recv whose RecvDone is to come, by the number in its context."""
        self.numbers = itertools.count()
        self.may_go = threading.Semaphore(0)
        self.ended = False
        self.waits_for: Wait | None = None

    def group(self, instruction: Instruction) -> tuple[int, ...] | None:
        """The devices that take part in a collective op with this one, in order; None: in none."""
        return self.world.groups.of(instruction).get(self.number)

    def meet(self, instruction: Instruction, members: tuple[int, ...], value: Value) -> Meeting:
        """Brings ``value`` to the group's next meeting at this instruction, or at its channel."""
        channel = instruction.attributes["channel_id"]
        place = instruction if channel is None else channel
        key = (instruction.op, place, members)
        # The first meeting to which this device has not been yet.
        open_meetings = self.world.meetings[key]
        meeting = next((m for m in open_meetings if self.number not in m.values), None)
        if meeting is None:
            meeting = Meeting(members)
            open_meetings.append(meeting)
        meeting.values[self.number] = value
        if meeting.complete:
            open_meetings.remove(meeting)
        return meeting

    def attend(self, instruction: Instruction, meeting: Meeting) -> list[Value]:
        """The values of all members, once all have come."""
        self.wait(Wait(instruction, lambda: meeting.complete, lambda: meeting.missing))
        return meeting.in_order

    def wait(self, wait: Wait) -> None:
        """Lets other devices run until ``wait`` is over."""
        if wait.over():
            return
        self.waits_for = wait
        self.world.pass_on(self)
        self.may_go.acquire()
        if self.world.abandoned:
            raise _AbandonedError
        self.waits_for = None


@dataclass(frozen=True)
class Wait:
    """What a device waits for: the instruction, whether it is over, and for which devices."""

    instruction: Instruction
    over: Callable[[], bool]
    missing: Callable[[], Sequence[int]]


@dataclass(frozen=True, eq=False)
class Message:
    """Data on its way through a channel; ``target`` None is whoever receives first."""

    source: int
    target: int | None
    value: Value


class World:
    """All devices that run one module."""

    def __init__(self, replica_count: int = 1, num_partitions: int = 1) -> None:
        self.replica_count = replica_count
        self.num_partitions = num_partitions
        self.meetings: dict[Hashable, list[Meeting]] = defaultdict(list)
        self.messages: dict[int | None, list[Message]] = defaultdict(list)
        self.abandoned = False
        self.devices = [Device(self, n) for n in range(replica_count * num_partitions)]
        self.groups = GroupsOfDevices(replica_count, num_partitions)

    def pass_on(self, after: Device) -> None:
        """Lets the next device go on that can; raises `DeadlockError` if all that are left wait."""
        count = len(self.devices)
        for step in range(1, count + 1):
            device = self.devices[(after.number + step) % count]
            if not device.ended and (device.waits_for is None or device.waits_for.over()):
                device.may_go.release()
                return
        if not all(device.ended for device in self.devices):
            raise self._deadlock()

    def abandon(self) -> None:
        """Ends all devices, each at the place where it waits."""
        if not self.abandoned:
            self.abandoned = True
            for device in self.devices:
                device.may_go.release()

    def _deadlock(self) -> DeadlockError:
        waiting = next(d for d in self.devices if d.waits_for is not None)
        assert waiting.waits_for is not None
        instruction = waiting.waits_for.instruction
        channel = instruction.attributes.get("channel_id")
        return DeadlockError(
            f"{instruction.op.function}: {self._name(waiting)} waits "
            f"{'' if channel is None else f'at channel {channel} '}"
            f"for what never comes: {'; '.join(map(self._state, waiting.waits_for.missing()))}",
            instruction.source,
        )

    def _name(self, device: Device) -> str:
        if self.num_partitions == 1:
            return f"replica {device.replica}"
        if self.replica_count == 1:
            return f"partition {device.partition}"
        return f"replica {device.replica} partition {device.partition}"

    def _state(self, number: int) -> str:
        device = self.devices[number]
        if device.waits_for is None:
            return f"{self._name(device)} has ended"
        instruction = device.waits_for.instruction
        line = "" if instruction.source is None else f" ({instruction.source})"
        return f"{self._name(device)} waits at {instruction.op.function}{line}"


class _Current(threading.local):
    """The device that this thread is; a device of its own outside of `run_on_devices`."""

    def __init__(self) -> None:
        self.device = World().devices[0]


_current = _Current()


def current_device() -> Device:
    """The device on which this thread's instructions run."""
    return _current.device


def run_on_devices(
    computation: Computation,
    arguments: Sequence[Sequence[Value]],
    replica_count: int = 1,
    num_partitions: int = 1,
) -> list[Value]:
    """The value of ``computation`` on each device, given each device's arguments.

    Device r * num_partitions + p is partition p of replica r. Raises `DeadlockError` when devices
    wait for others that never come, and otherwise whatever an instruction raises.
    """
    world = World(replica_count, num_partitions)
    assert len(arguments) == len(world.devices)
    if len(world.devices) == 1:
        before, _current.device = _current.device, world.devices[0]
        try:
            return [evaluate(computation, arguments[0])]
        finally:
            _current.device = before
    queues, stream = current_feeds(), current_stream()

    def run(device: Device) -> Value:
        _current.device = device
        device.may_go.acquire()
        passed_on = False
        try:
            if world.abandoned:
                raise _AbandonedError
            with feeds(*queues), stream.running():
                value = evaluate(computation, arguments[device.number])
            device.ended = True
            world.pass_on(device)
            passed_on = True
        finally:
            if not passed_on:
                world.abandon()
        return value

    with ThreadPoolExecutor(len(world.devices), "tracejit-device") as pool:
        futures = [pool.submit(run, device) for device in world.devices]
        world.devices[0].may_go.release()
    return _results(futures)


def _results(futures: Sequence[Future[Value]]) -> list[Value]:
    """What the devices returned; raises the first error that is a device's own."""
    errors = [error for error in (future.exception() for future in futures) if error is not None]
    own = [error for error in errors if not isinstance(error, _AbandonedError)]
    if errors:
        raise (own or errors)[0]
    return [future.result() for future in futures]
