"""Devices that are threads of this process: each runs the same program on arrays of its own.

run_on_threads(count, lambda communicator: ...)      what each of them returns
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from tracejit.runtime.devices.communicator import Communicator, Parts, Tag, Transfer

R = TypeVar("R")


@dataclass(eq=False)
class _Message:
    tag: Tag
    array: np.ndarray
    is_later: bool
    taken: bool = False


class _World:
    """What the devices share; ``changed`` guards all of it."""

    def __init__(self, count: int, timeout: float) -> None:
        self.count = count
        self.timeout = timeout
        self.changed = threading.Condition()
        self.version = 0
        self.messages: dict[tuple[int, int], deque[_Message]] = defaultdict(deque)
        self.states: dict[int, str] = {}

    def note(self) -> None:
        self.version += 1
        self.changed.notify_all()


class ThreadCommunicator(Communicator):
    """A thread's way to the other threads."""

    unit = "device"

    def __init__(self, world: _World, number: int) -> None:
        self._world = world
        self._seen = 0
        self.number = number
        self.count = world.count
        self.timeout = world.timeout

    def exchange(
        self, tag: Tag, sends: Parts, receives: Parts, is_message: bool = False
    ) -> Transfer:
        """Messages whose bytes the receiver copies from the sender's memory."""
        sent = []
        with self._world.changed:
            for target, array in sends:
                message = _Message(tag, _copied(array) if is_message else array, is_message)
                self._world.messages[self.number, target].append(message)
                # The receiver of a message that was copied may take its time.
                sent += [] if is_message else [(target, message)]
            self._world.note()
        return _Copies(self, tag, sent, list(receives))

    def pause(self, attempt: int) -> None:
        """Waits until another thread has done something."""
        with self._world.changed:
            if self._seen == self._world.version:
                self._world.changed.wait(0.05)
            self._seen = self._world.version

    def state_of(self, number: int, transfer: Transfer) -> str | None:
        """Also what another device brought to another op."""
        assert isinstance(transfer, _Copies)
        with self._world.changed:
            arrived = [m for m in self._world.messages[number, self.number] if not m.is_later]
            state = self._world.states.get(number)
            if arrived and all(m.tag != transfer.tag for m in arrived):
                return f"is at {arrived[0].tag}"
            return state

    def announce(self, state: str) -> None:
        """The first state stays."""
        with self._world.changed:
            self._world.states.setdefault(self.number, state)
            self._world.note()

    def take(self, source: int, tag: Tag, target: np.ndarray) -> bool:
        """Copies the oldest message of that tag, if it is there."""
        world = self._world
        with world.changed:
            self._seen = world.version
            waiting = world.messages[source, self.number]
            message = next((m for m in waiting if m.tag == tag), None)
            if message is None:
                return False
            waiting.remove(message)
        np.copyto(target, message.array.reshape(target.shape))
        with world.changed:
            message.taken = True
            world.note()
        return True

    def withdraw(self, sent: list[tuple[int, _Message]]) -> None:
        """Takes messages back that nobody has taken; waits for those that are being copied."""
        end = time.monotonic() + 1.0
        with self._world.changed:
            for target, message in sent:
                waiting = self._world.messages[self.number, target]
                if message in waiting:
                    waiting.remove(message)
                    message.taken = True
            self._world.changed.wait_for(
                lambda: all(m.taken for _, m in sent), max(0.0, end - time.monotonic())
            )


def _copied(array: np.ndarray) -> np.ndarray:
    return np.array(array)


class _Copies(Transfer):
    def __init__(
        self,
        communicator: ThreadCommunicator,
        tag: Tag,
        sent: list[tuple[int, _Message]],
        receives: list[tuple[int, np.ndarray]],
    ) -> None:
        self._communicator = communicator
        self.tag = tag
        self._sent = sent
        self._receives = receives

    def test(self) -> bool:
        take = self._communicator.take
        self._receives = [(s, a) for s, a in self._receives if not take(s, self.tag, a)]
        self._sent = [(t, m) for t, m in self._sent if not m.taken]
        return not self._receives and not self._sent

    def missing(self) -> list[int]:
        left = [s for s, _ in self._receives] or [t for t, _ in self._sent]
        return list(dict.fromkeys(left))

    def cancel(self) -> None:
        self._receives = []
        self._communicator.withdraw(self._sent)


def run_on_threads(count: int, run: Callable[[ThreadCommunicator], R], timeout: float) -> list[R]:
    """What ``run`` returns on each of ``count`` threads; raises the first error that one had."""
    world = _World(count, timeout)
    errors: list[BaseException] = []

    def on_device(number: int) -> R | None:
        communicator = ThreadCommunicator(world, number)
        try:
            made = run(communicator)
        except BaseException as error:
            with world.changed:
                errors.append(error)
            name = type(error).__name__
            communicator.announce(f"raised {name}: {error}")
            return None
        communicator.announce("has ended")
        return made

    with ThreadPoolExecutor(count, "tracejit-device") as pool:
        made = list(pool.map(on_device, range(count)))
    if errors:
        raise errors[0]
    return made  # type: ignore[return-value]
