"""Processes that each run one program by one engine and are timed in turns.

    with Contestant([module, *arguments], name, limit, threads) as one:
        one.finding                     what came of the program
        race([one, ...], seconds, turns)

The processes sleep but for the one whose turn it is, so that what else the machine does while they
are compared meets all of them. A module serves by `serve(finding, timed)`.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import median
from types import TracebackType

from tests.benchmarks.pinned import Pinned

PAUSE_SECONDS = 0.1
"""Before a turn: threads of the libraries of the one before wait so long for work, and run."""


@dataclass(frozen=True)
class Finding:
    """What came of a program: ``outcome`` is equal, differs, refused, failed, ran or absent.

    ``seconds`` is the median of a call's, ``least`` the least; ``first_seconds`` are those of the
    first call, which compiles.
    """

    name: str
    outcome: str
    reason: str = ""
    how: str = ""
    first_seconds: float = 0.0
    seconds: float = 0.0
    least: float = 0.0


def serve(finding: Finding, timed: Callable[[float], list[float]]) -> None:
    """Prints the finding, then answers each number of seconds with those of the calls in them."""
    print(json.dumps(asdict(finding)), flush=True)
    for line in sys.stdin:
        print(json.dumps(timed(float(line))), flush=True)


class Contestant:
    """A process that runs a module which serves; ended at the limit, in seconds, of each answer."""

    def __init__(self, module: Sequence[str], name: str, limit: float, threads: int) -> None:
        self._limit = limit
        self._program = Pinned(module, threads, {"PYTHONWARNINGS": "ignore"})
        self.samples: list[float] = []
        line = self._answer()
        self._found = Finding(**json.loads(line)) if line else self._failed(name)

    def __enter__(self) -> Contestant:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._program.close()

    @property
    def finding(self) -> Finding:
        """What came of the program, with the times of all turns so far."""
        if not self.samples:
            return self._found
        return replace(self._found, seconds=median(self.samples), least=min(self.samples))

    @property
    def runs(self) -> bool:
        """Whether there is something to time."""
        return self._found.outcome in ("equal", "differs", "ran")

    def turn(self, seconds: float) -> None:
        """Calls the program for so long."""
        self._program.say(str(seconds))
        line = self._answer()
        self.samples += json.loads(line) if line else []

    def _answer(self) -> str:
        line = self._program.hear(self._limit)
        # A program may print as well.
        while line and line[0] not in "{[":
            line = self._program.hear(self._limit)
        return line

    def _failed(self, name: str) -> Finding:
        if not self._program.ends():
            return Finding(name, "too slow", f"more than {self._limit:.0f} s")
        return Finding(name, "failed", self._program.last_words())


def race(contestants: Sequence[Contestant], seconds: float, turns: int) -> None:
    """Each contestant's calls for ``seconds`` in all, in so many turns, one after the other."""
    for _ in range(turns):
        for one in contestants:
            if one.runs:
                time.sleep(PAUSE_SECONDS)
                one.turn(seconds / turns)
