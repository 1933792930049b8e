"""Processes that each run one program by one engine and are timed in turns.

    with Contestant([module, *arguments], name, limit, threads) as one:
        one.finding                     what came of the program
        race([one, ...], seconds, turns)

The processes sleep but for the one whose turn it is, so that what else the machine does while they
are compared meets all of them. A module serves by `serve(finding, timed)`.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from types import TracebackType
from typing import IO

from tests.benchmarks.process import THREAD_VARIABLES

ROOT = Path(__file__).parents[2]

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
        self._said: IO[str] = tempfile.TemporaryFile("w+", encoding="utf-8")
        variables = dict.fromkeys(THREAD_VARIABLES, str(threads))
        self._process = subprocess.Popen(
            [sys.executable, "-m", *module],
            cwd=ROOT,
            env={**os.environ, **variables, "PYTHONWARNINGS": "ignore"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
        )
        available = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(self._process.pid, set(available[:threads]))
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
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.kill()
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()
        self._said.close()

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
        assert self._process.stdin is not None
        self._process.stdin.write(f"{seconds}\n")
        self._process.stdin.flush()
        line = self._answer()
        self.samples += json.loads(line) if line else []

    def _answer(self) -> str:
        assert self._process.stdout is not None
        while select.select([self._process.stdout], [], [], self._limit)[0]:
            line = self._process.stdout.readline()
            # A program may print as well.
            if not line or line[0] in "{[":
                return line
        return ""

    def _failed(self, name: str) -> Finding:
        if self._process.poll() is None and not self._ended():
            return Finding(name, "too slow", f"more than {self._limit:.0f} s")
        self._said.seek(0)
        lines = self._said.read().strip().splitlines()
        return Finding(
            name, "failed", lines[-1] if lines else f"exit status {self._process.returncode}"
        )

    def _ended(self) -> bool:
        try:
            self._process.wait(1)
        except subprocess.TimeoutExpired:
            return False
        return True


def race(contestants: Sequence[Contestant], seconds: float, turns: int) -> None:
    """Each contestant's calls for ``seconds`` in all, in so many turns, one after the other."""
    for _ in range(turns):
        for one in contestants:
            if one.runs:
                time.sleep(PAUSE_SECONDS)
                one.turn(seconds / turns)
