"""Where RngGetAndUpdateState takes its numbers from: the stream of the program that runs.

with Stream(seed).running():
    ...                               programs in this thread draw from it

Outside of any such block they draw from the process's own stream, whose seed is 0 or the number
in the environment variable TRACEJIT_SEED.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tracejit.sources import warn

_MASK = (1 << 64) - 1


class Stream:
    """A counter of 128 bits, with the seed as its upper half; thread-safe."""

    def __init__(self, seed: int) -> None:
        self._counter = (seed & _MASK) << 64
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[object, ...]:
        """A copy goes on from where this one is."""
        return _at, (self._counter,)

    def take(self, delta: int) -> tuple[int, int]:
        """The lower and the upper half of the counter, which then moves by ``delta``."""
        with self._lock:
            counter = self._counter
            self._counter = (counter + delta) & ((1 << 128) - 1)
        return counter & _MASK, counter >> 64

    @contextmanager
    def running(self) -> Iterator[None]:
        """Programs that run in this thread draw from this stream."""
        _running.streams.append(self)
        try:
            yield
        finally:
            _running.streams.pop()


def _at(counter: int) -> Stream:
    made = Stream(0)
    made._counter = counter
    return made


class _Running(threading.local):
    def __init__(self) -> None:
        self.streams: list[Stream] = []


_running = _Running()


def _seed() -> int:
    """``TRACEJIT_SEED``, or 0, with a warning where it is no integer."""
    chosen = os.environ.get("TRACEJIT_SEED", "0")
    try:
        return int(chosen)
    except ValueError:
        warn(f"TRACEJIT_SEED must be an integer, not {chosen[:40]!r}; it is 0", RuntimeWarning)
        return 0


_process = Stream(_seed())


def current_stream() -> Stream:
    """The stream of the program that runs in this thread, or the process's."""
    return _running.streams[-1] if _running.streams else _process
