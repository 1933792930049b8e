"""Starting workers and asking them, from the process that measures nothing itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from time import perf_counter
from types import TracebackType
from typing import Any

from tests.benchmarks.pinned import Pinned

PATIENCE_SECONDS = 900.0


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
        start = perf_counter()
        self._worker = Pinned(
            ["tests.benchmarks.worker", engine, table],
            threads,
            # Users do not compile the library at every start.
            {"PYTHONDONTWRITEBYTECODE": "", **environment},
        )
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
        return self._worker.alive

    def ask(self, **request: Any) -> dict[str, Any]:
        """Sends a request and waits for its answer. FailedError when there is none."""
        try:
            self._worker.say(json.dumps(request))
        except BrokenPipeError:
            raise self._failure() from None
        return self._answer()

    def close(self) -> None:
        self._worker.close()

    def _answer(self) -> dict[str, Any]:
        line = self._worker.hear(PATIENCE_SECONDS)
        if not line:
            raise self._failure()
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _failure(self) -> FailedError:
        """Ends the worker, and says what it printed last."""
        ended = self._worker.ends()
        words = self._worker.last_words() if ended else f"silent for {PATIENCE_SECONDS:.0f} s"
        self.close()
        return FailedError(words)
