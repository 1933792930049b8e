"""What devices do over time: when each is in a collective op, and when it computes.

with timeline() as drawn:
    step(weights, x, y)
print(drawn)

    device 0 |......#~~~~~..##...|     . computes   ~ computes while an op is under way
    device 1 |......~~~~~~..##...|     # waits for other devices, or copies
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

WIDTH = 72


@dataclass(frozen=True)
class Event:
    """One op on a device. Times are seconds since the timeline began.

    It is under way from ``begin`` to ``end``; the device waits for it from ``wait`` to ``end``. An
    op that was not begun early has the same ``begin`` and ``wait``.
    """

    device: int
    function: str
    line: str
    nbytes: int
    begin: float
    wait: float
    end: float


@dataclass
class Timeline:
    """The ``events`` of all devices, and how long it took in all; to be printed."""

    events: list[Event] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def overlapped(self) -> float:
        """The part of the ops' time in which devices went on computing."""
        under_way = sum(event.end - event.begin for event in self.events)
        return sum(e.wait - e.begin for e in self.events) / under_way if under_way else 0.0

    def waited(self, device: int) -> float:
        """The seconds for which a device did not compute."""
        return sum(e.end - e.wait for e in self.events if e.device == device)

    def __str__(self) -> str:
        lines = [f"{self.seconds * 1e3:.2f} ms; {self.overlapped:.0%} of collectives overlapped"]
        for device in sorted({event.device for event in self.events}):
            own = [event for event in self.events if event.device == device]
            share = self.waited(device) / self.seconds if self.seconds else 0.0
            lines.append(f"device {device} |{self._row(own)}| waits {share:.0%}")
        lines.append(". computes   ~ computes while an op is under way   # waits")
        first = min((event.device for event in self.events), default=0)
        lines += [
            f"{e.begin * 1e3:9.3f} ms  {e.function} of {e.nbytes} bytes{e.line}: under way "
            f"{(e.end - e.begin) * 1e3:.3f} ms, waited for {(e.end - e.wait) * 1e3:.3f}"
            for e in sorted(self.events, key=lambda event: event.begin)
            if e.device == first
        ]
        return "\n".join(lines)

    def _row(self, events: Sequence[Event]) -> str:
        row = ["."] * WIDTH
        for mark, start, stop in [
            *[("~", e.begin, e.wait) for e in events],
            *[("#", e.wait, e.end) for e in events],
        ]:
            if stop > start:
                low, high = (int(WIDTH * t / self.seconds) for t in (start, stop))
                row[low : high + 1] = mark * (min(high, WIDTH - 1) - low + 1)
        return "".join(row)


class _Recording:
    lock = threading.Lock()
    events: list[Event] | None = None
    start = 0.0


def now() -> float | None:
    """The seconds since a timeline began; None where none is being taken."""
    return None if _Recording.events is None else time.perf_counter() - _Recording.start


def note(event: Event) -> None:
    """An op has ended."""
    events = _Recording.events
    if events is not None:
        events.append(event)


@contextmanager
def recorded() -> Iterator[Timeline]:
    """The timeline of this process's devices; its events are there when the block ends."""
    drawn = Timeline()
    with _Recording.lock:
        _Recording.events, _Recording.start = [], time.perf_counter()
        try:
            yield drawn
        finally:
            drawn.seconds = time.perf_counter() - _Recording.start
            drawn.events, _Recording.events = _Recording.events, None


def to_array(events: Sequence[Event]) -> np.ndarray:
    """Events as bytes that other ranks read."""
    text = "\n".join(
        "\t".join(
            [str(e.device), e.function, e.line, str(e.nbytes)]
            + [repr(t) for t in (e.begin, e.wait, e.end)]
        )
        for e in events
    )
    return np.frombuffer(text.encode(), np.uint8)


def from_array(data: np.ndarray) -> list[Event]:
    """The events of `to_array`."""
    found = []
    for row in data.tobytes().decode().splitlines():
        device, function, line, nbytes, *times = row.split("\t")
        begin, wait, end = map(float, times)
        found.append(Event(int(device), function, line, int(nbytes), begin, wait, end))
    return found
