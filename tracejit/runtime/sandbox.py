"""Code that nobody has run yet, run first in a copy of this process: `survivors`.

A candidate of the tuner's that reads beyond its memory, or never ends, takes the copy with it, and
is not run here.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from tracejit.system.processes import CAN_COPY, crash_in_silence, fork

Call = Callable[[], object]


def survivors(calls: Sequence[Call], seconds: float) -> list[bool]:
    """For each call whether it came back, within ``seconds``, in a copy of this process.

    An exception is a way to come back. Where the system has no copies of processes, all have; where
    it has no room for one, none.
    """
    if not CAN_COPY:
        return [True] * len(calls)
    came_back: list[bool] = []
    while len(came_back) < len(calls):
        returned = _returned(calls[len(came_back) :], seconds)
        came_back += [True] * returned
        if len(came_back) < len(calls):
            came_back.append(False)
    return came_back


def _returned(calls: Sequence[Call], seconds: float) -> int:
    """How many of the calls, one after the other, come back in one copy."""
    reading, writing = os.pipe()
    try:
        process = fork()
    except OSError:
        os.close(reading)
        os.close(writing)
        return 0
    if process == 0:
        _try(calls, writing)
    os.close(writing)
    returned = 0
    try:
        end = time.monotonic() + seconds
        while select.select([reading], [], [], max(0.0, end - time.monotonic()))[0]:
            if not os.read(reading, 1):
                break
            returned += 1
            end = time.monotonic() + seconds
    finally:
        os.close(reading)
        with suppress(OSError):
            os.kill(process, signal.SIGKILL)
        with suppress(OSError):  # whoever ignores the ends of children
            os.waitpid(process, 0)
    return returned


def _try(calls: Sequence[Call], writing: int) -> None:
    """In a forked child, which must not run anything else: writes a byte for each call that
    returns.
    """
    try:
        crash_in_silence()
        for call in calls:
            with suppress(Exception):
                call()
            os.write(writing, b".")
    finally:
        os._exit(0)
