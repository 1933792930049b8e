"""Queues between a running program and its host: what Infeed reads, where Outfeed writes.

    infeed.put(np.arange(6.0))          from any thread, before or while the program runs
    outfeed.get(timeout=1.0)            the oldest datum that a program wrote

    with feeds(Queue(), Queue()) as (mine, results): ...        queues for one thread's programs

A datum is an array or a tuple of arrays.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tracejit.errors import QueueTimeoutError, ShapeError
from tracejit.shapes import AnyShape, TupleShape, shape_of
from tracejit.sources import Source


class Queue:
    """First in, first out; safe between threads.

    ``timeout`` is how many seconds a program waits for a datum before it fails, None for ever.
    """

    def __init__(self, name: str = "queue", timeout: float | None = 60.0) -> None:
        self.name = name
        self.timeout = timeout
        self._data: deque[Any] = deque()
        self._changed = threading.Condition()

    def __len__(self) -> int:
        return len(self._data)

    def __repr__(self) -> str:
        return f"<{self.name}: {len(self)} waiting>"

    def put(self, value: Any) -> None:
        """Adds a copy of ``value``: an array, a number, or a tuple or list of them.

        Raises `ArgumentError` for what is no array of numbers.
        """
        parts = isinstance(value, tuple | list)
        datum = tuple(_copied(v) for v in value) if parts else _copied(value)
        with self._changed:
            self._data.append(datum)
            self._changed.notify()

    def get(self, timeout: float | None = None) -> Any:
        """Takes the oldest datum, once there is one: an array or a tuple of arrays.

        Raises `QueueTimeoutError` after ``timeout`` seconds; None waits for ever, 0 not at all.
        """
        with self._changed:
            self._wait(timeout, None)
            return self._data.popleft()

    def take(self, shape: AnyShape, source: Source | None = None) -> Any:
        """Takes the oldest datum for a program that reads ``shape``; waits for `timeout` seconds.

        Raises `QueueTimeoutError` when none comes, and `ShapeError` for one of another shape,
        which stays in the queue.
        """
        with self._changed:
            self._wait(self.timeout, source)
            given = _shape_of(self._data[0])
            if given != shape:
                raise ShapeError(
                    f"{self.name}: the program reads {shape}; the next datum is {given}", source
                )
            return self._data.popleft()

    def clear(self) -> None:
        """Drops everything that waits."""
        with self._changed:
            self._data.clear()

    def _wait(self, timeout: float | None, source: Source | None) -> None:
        if not self._changed.wait_for(lambda: self._data, timeout):
            raise QueueTimeoutError(f"{self.name}: nothing was put in for {timeout} s", source)


def _copied(value: Any) -> np.ndarray:
    array = np.array(value)
    shape_of(array)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _shape_of(datum: Any) -> AnyShape:
    if isinstance(datum, tuple):
        return TupleShape(tuple(map(shape_of, datum)))
    return shape_of(datum)


infeed = Queue("infeed")
"""What Infeed reads, unless `feeds` says otherwise."""

outfeed = Queue("outfeed")
"""Where Outfeed writes, unless `feeds` says otherwise."""


_channels: dict[str, Queue] = {}
_channels_change = threading.Lock()


def channel(handle: int | str | None) -> Queue:
    """The queue between the host and programs that send or receive through ``handle``.

    `ops.send_to_host` writes to it and `ops.recv_from_host` reads from it.
    """
    with _channels_change:
        return _channels.setdefault(str(handle), Queue(f"channel {handle}"))


class _Current(threading.local):
    def __init__(self) -> None:
        self.feeds = (infeed, outfeed)


_current = _Current()


def current_feeds() -> tuple[Queue, Queue]:
    """The infeed and outfeed of programs that this thread runs."""
    return _current.feeds


@contextmanager
def feeds(infeed: Queue, outfeed: Queue) -> Iterator[tuple[Queue, Queue]]:
    """Inside the ``with`` block, programs run by this thread use these queues.

    Raises `ArgumentError` for what is no `Queue`.

    >>> infeed, outfeed = tj.Queue(), tj.Queue()
    >>> with tj.feeds(infeed, outfeed):
    ...     infeed.put(np.array([1.0]))
    """
    before, _current.feeds = _current.feeds, (infeed, outfeed)
    try:
        yield infeed, outfeed
    finally:
        _current.feeds = before
