"""A line on the screen while a long trace or compilation runs, for those who sit before it.

    with reported("train_step") as progress:
        compile_for(module, target, progress)
    with reported("train_step", tuning=10) as progress:
        programs.tune(…, progress)
    with reported("train_step", tracing=count):
        ...                                    ``count()`` operations are recorded so far

The line appears after a second and is gone at the end. It is written to stderr, and only where that
is a terminal or a notebook's; ``TRACEJIT_PROGRESS`` = 1 or 0 decides otherwise.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

Progress = Callable[[int, int], None]
"""Called with the number of parts that are compiled or measured so far, and of all."""

DELAY_SECONDS = 1.0
INTERVAL_SECONDS = 0.5

_YES = ("1", "on", "true", "yes")
_NO = ("0", "off", "false", "no")


@contextmanager
def reported(
    name: str, tuning: float | None = None, tracing: Callable[[], int] | None = None
) -> Iterator[Progress]:
    """Inside, ``name`` is compiled, tuned or traced, and a line tells how far that is."""
    stream = sys.stderr
    if not is_wanted(stream):
        yield _silent
        return
    line = _Line(name, stream, tuning, tracing)
    thread = threading.Thread(target=line.run, name="tracejit-progress", daemon=True)
    thread.start()
    try:
        yield line.advance
    finally:
        line.finished.set()
        thread.join()


def is_wanted(stream: TextIO | None) -> bool:
    """Whether progress is shown on ``stream``."""
    if stream is None:  # a process without a console
        return False
    chosen = os.environ.get("TRACEJIT_PROGRESS", "").strip().lower()
    if chosen in _YES or chosen in _NO:
        return chosen in _YES
    return _is_terminal(stream) or _in_notebook()


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty() and os.environ.get("TERM") != "dumb"
    except ValueError:  # closed
        return False


def _in_notebook() -> bool:
    """Whether cells of a notebook run here: IPython is imported, and has a kernel."""
    get_ipython = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return hasattr(get_ipython() if get_ipython is not None else None, "kernel")


def _silent(done: int, total: int) -> None:
    pass


class _Line:
    """Writes the line again and again over itself, then blanks, from a thread of its own."""

    def __init__(
        self,
        name: str,
        stream: TextIO,
        tuning: float | None,
        tracing: Callable[[], int] | None = None,
    ) -> None:
        self.finished = threading.Event()
        self._name = name
        self._stream = stream
        self._tuning = tuning
        self._tracing = tracing
        self._start = time.monotonic()
        self._state = (0, 0)
        self._width = 0

    def advance(self, done: int, total: int) -> None:
        self._state = (done, total)

    def run(self) -> None:
        wait = DELAY_SECONDS
        try:
            while not self.finished.wait(wait):
                self._show(self._text())
                wait = INTERVAL_SECONDS
            if self._width:
                self._show("")
        except (OSError, ValueError):  # the stream was closed
            return

    def _text(self) -> str:
        done, total = self._state
        seconds = f"{time.monotonic() - self._start:.0f} s"
        if self._tracing is not None:
            return f"tracing {self._name}: {self._tracing():,} operations, {seconds}"
        if self._tuning is not None:
            candidates = f"{done} of {total} candidates, " if total else ""
            return f"tuning {self._name}: {candidates}{seconds} of {self._tuning:g}"
        parts = f"{done} of {total} parts, " if total else ""
        return f"compiling {self._name}: {parts}{seconds}"

    def _show(self, text: str) -> None:
        blanks = " " * (self._width - len(text))
        self._stream.write(f"\r{text}{blanks}" if text else f"\r{blanks}\r")
        self._stream.flush()
        self._width = len(text)
