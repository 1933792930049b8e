"""Processes with so many threads, bound to as many processors, that are spoken to line by line."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parents[2]
GRACE_SECONDS = 1.0

# Each library reads its own name for the number of threads, once, when it is loaded.
THREAD_VARIABLES = (
    "MKL_NUM_THREADS",
    "NPROC",
    "NUMBA_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "TVM_NUM_THREADS",
)


class Pinned:
    """``python -m module *arguments``; what it prints to stderr is kept."""

    def __init__(self, module: Sequence[str], threads: int, environment: Mapping[str, str]) -> None:
        self._heard = b""
        self._printed: IO[str] = tempfile.TemporaryFile("w+", encoding="utf-8")
        variables = dict.fromkeys(THREAD_VARIABLES, str(threads))
        self._process = subprocess.Popen(
            [sys.executable, "-m", *module],
            cwd=ROOT,
            env={**os.environ, **variables, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._printed,
            text=True,
        )
        available = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(self._process.pid, set(available[:threads]))

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def say(self, line: str) -> None:
        """Raises `BrokenPipeError` if the process has ended."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def hear(self, seconds: float) -> str:
        """The next line; "" when it has ended, or said nothing for so long."""
        assert self._process.stdout is not None
        output = self._process.stdout.fileno()
        while b"\n" not in self._heard:
            ready, _, _ = select.select([output], [], [], seconds)
            chunk = os.read(output, 1 << 16) if ready else b""
            if not chunk:
                return ""
            self._heard += chunk
        line, end, self._heard = self._heard.partition(b"\n")
        return (line + end).decode()

    def ends(self) -> bool:
        """Whether it has ended, or does so now."""
        try:
            self._process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            return False
        return True

    def last_words(self) -> str:
        """Of a process that has ended: the last line that it printed, or its exit status."""
        self._printed.seek(0)
        lines = self._printed.read().strip().splitlines()
        return lines[-1] if lines else f"ended with exit status {self._process.returncode}"

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.kill()
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()
        self._printed.close()
