"""Locks that a fork leaves open."""

from __future__ import annotations

import os
import threading
from types import TracebackType


class ProcessLock:
    """A reentrant lock for the threads of one process.

    The child of a fork has one of its own: its parent's may be held by a thread that does not exist
    there, and would be held for ever.
    """

    def __init__(self) -> None:
        self._locks: dict[int, threading.RLock] = {}

    def __enter__(self) -> None:
        self._own().acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._own().release()

    def _own(self) -> threading.RLock:
        return self._locks.setdefault(os.getpid(), threading.RLock())
