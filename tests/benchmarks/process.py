"""Starting workers and asking them, from the process that measures nothing itself."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import IO, Any

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_SECONDS = 900.0

# Each library reads its own name for the number of threads, once, when it is loaded.
THREAD_VARIABLES = (
    "MKL_NUM_THREADS",
    "NPROC",
    "NUMBA_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "TVM_NUM_THREADS",
)


class AbsentError(Exception):
    """The engine's library is not installed here."""


class FailedError(Exception):
    """The worker ended instead of answering; the text is the last line that it printed."""


class Process:
    """A worker with ``threads`` threads, bound to as many processors; a context manager.

    Raises AbsentError when the engine's library is not installed.
    """

    def __init__(
        self, engine: str, table: str, threads: int, environment: Mapping[str, str]
    ) -> None:
        self.engine = engine
        self.said: IO[str] = tempfile.TemporaryFile("w+", encoding="utf-8")
        start = perf_counter()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.benchmarks.worker", engine, table],
            cwd=ROOT,
            env={
                **os.environ,
                **dict.fromkeys(THREAD_VARIABLES, str(threads)),
                "PYTHONDONTWRITEBYTECODE": "",  # users do not compile the library at every start
                **environment,
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.said,
            text=True,
        )
        available = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(self.process.pid, set(available[:threads]))
        hello = self._answer()
        self.start_seconds = perf_counter() - start
        if "absent" in hello:
            self.close()
            raise AbsentError(hello["absent"])
        self.version: str = hello["version"]
        self.compiles: bool = hello["compiles"]
        self.has_tiers: bool = hello["has_tiers"]

    def __enter__(self) -> Process:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def ask(self, **request: Any) -> dict[str, Any]:
        """Sends a request and waits for its answer. FailedError when there is none."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise self._failure() from None
        return self._answer()

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        if self.alive:
            self.process.terminate()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        self.said.close()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE_SECONDS)
        line = self.process.stdout.readline() if ready else ""
        if not line:
            raise self._failure()
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _failure(self) -> FailedError:
        """Ends the worker, and says what it printed last."""
        if (
            self.process.stdout is not None
            and not select.select([self.process.stdout], [], [], 0)[0]
        ):
            self.process.kill()
        code = self.process.wait()
        self.said.seek(0)
        lines = self.said.read().strip().splitlines()
        self.close()
        return FailedError(lines[-1] if lines else f"ended with exit status {code}")
