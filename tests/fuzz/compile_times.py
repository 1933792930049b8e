"""How long programs take to compile: 20 times as long as half of them is a failure.

clock = Clock()
with clock.timed() as timing:
    compile_for(module)
timing.complaint        # what is wrong with the time it took, or nothing

Compiling that does not end ends the process, by SIGPROF.
"""

from __future__ import annotations

import signal
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager

# A program takes no less processor time to compile than this to be a failure.
LEAST_SECONDS = 6.0
# Processor time after which compiling one program is ended.
MOST_SECONDS = 60.0
SLOWER = 20


class Timing:
    """What is wrong with the time that a program took to compile; '' for nothing."""

    complaint = ""


class Clock:
    """Compares the processor times of programs of one kind, which a process compiles in turn."""

    def __init__(
        self, most_seconds: float = MOST_SECONDS, least_seconds: float = LEAST_SECONDS
    ) -> None:
        self._most_seconds, self._least_seconds = most_seconds, least_seconds
        self._times: list[float] = []

    @contextmanager
    def timed(self) -> Iterator[Timing]:
        """Takes the time of what runs inside, unless that raises."""
        timing = Timing()
        with bounded(self._most_seconds):
            start = time.process_time()
            yield timing
            seconds = time.process_time() - start
        self._times.append(seconds)
        if seconds > max(self._least_seconds, SLOWER * statistics.median(self._times)):
            timing.complaint = f"compiling took {seconds:.1f} s"


@contextmanager
def bounded(most_seconds: float = MOST_SECONDS) -> Iterator[None]:
    """Ends the process after so much processor time inside."""
    signal.setitimer(signal.ITIMER_PROF, most_seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
