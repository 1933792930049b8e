"""A line on the screen while a long trace, compilation or call runs, for those who sit before it.

    with reported("train_step") as progress:
        compile_for(module, target, progress=progress)
    with reported("train_step", tuning=10) as progress:
        programs.tune(…, progress)
    with reported("train_step", tracing=count):
        ...                                    ``count()`` operations are recorded so far
    run = noted(run, "simulate")               # of a compiled program that may run for long

The line appears after a second, that of a call after two, and is gone at the end. A terminal gets
it on stderr, a notebook as an output that is empty when the cell is done; nobody else gets one.
``TRACEJIT_PROGRESS`` = 1 or 0 decides otherwise.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Protocol, TextIO

from tracejit.system import after_fork

Progress = Callable[[int, int], None]
"""Called with the number of parts that are compiled or measured so far, and of all."""

DELAY_SECONDS = 1.0
INTERVAL_SECONDS = 0.5
CALL_SECONDS = 2.0

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
    line = _Line(name, _screen(stream), tuning, tracing)
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


class _Screen(Protocol):
    def show(self, text: str) -> None:
        """Replaces the text that is shown; no text is the end."""


class _Terminal:
    """A line that is written over itself, then blanks."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._width = 0

    def show(self, text: str) -> None:
        if not text and not self._width:
            return
        blanks = " " * (self._width - len(text))
        self._stream.write(f"\r{text}{blanks}" if text else f"\r{blanks}\r")
        self._stream.flush()
        self._width = len(text)


class _Output:
    """An output of a notebook's cell. It is stored empty, at the end."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, text: str) -> None:
        bundle = {"text/plain": text} if text else {}
        if self._handle is not None:
            self._handle.update(bundle, raw=True)
        elif text:
            display = sys.modules["IPython"].display.display
            self._handle = display(bundle, raw=True, display_id=True)


def _screen(stream: TextIO) -> _Screen:
    in_notebook = _in_notebook() and hasattr(sys.modules["IPython"], "display")
    return _Output() if in_notebook and not _is_terminal(stream) else _Terminal(stream)


def _silent(done: int, total: int) -> None:
    pass


class _Line:
    """Shows the line again and again, then nothing, from a thread of its own."""

    def __init__(
        self,
        name: str,
        screen: _Screen,
        tuning: float | None,
        tracing: Callable[[], int] | None = None,
    ) -> None:
        self.finished = threading.Event()
        self._name = name
        self._screen = screen
        self._tuning = tuning
        self._tracing = tracing
        self._start = time.monotonic()
        self._state = (0, 0)

    def advance(self, done: int, total: int) -> None:
        self._state = (done, total)

    def run(self) -> None:
        wait = DELAY_SECONDS
        try:
            while not self.finished.wait(wait):
                self._screen.show(self._text())
                wait = INTERVAL_SECONDS
            self._screen.show("")
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


Run = Callable[..., Any]


def noted(run: Run, name: str) -> Run:
    """``run``, and a line that tells for how long it runs."""
    stream = sys.stderr
    if not is_wanted(stream):
        return run

    def run_noted(arguments: Any) -> Any:
        call = _Call(name, stream)
        _calls.append(call)
        _watcher().has_calls.set()
        try:
            return run(arguments)
        finally:
            _calls.remove(call)
            call.end()

    run_noted.__dict__.update(vars(run))
    return run_noted


class _Call:
    """A call of a program that is under way."""

    def __init__(self, name: str, stream: TextIO) -> None:
        self._name = name
        self._stream = stream
        self._start = time.monotonic()
        self._lock = threading.Lock()
        self._screen: _Screen | None = None
        self._has_ended = False

    def tell(self) -> None:
        """Shows for how long it runs, if that is long."""
        seconds = time.monotonic() - self._start
        with self._lock:
            if not self._has_ended and seconds >= CALL_SECONDS:
                self._screen = self._screen or _screen(self._stream)
                self._screen.show(f"running {self._name}: {seconds:.0f} s")

    def end(self) -> None:
        with self._lock:
            self._has_ended = True
            if self._screen is not None:
                with suppress(OSError, ValueError):  # the stream was closed
                    self._screen.show("")


class _Watcher:
    """A thread that looks at the calls twice a second, while there are any."""

    def __init__(self) -> None:
        self.has_calls = threading.Event()
        threading.Thread(target=self._watch, name="tracejit-calls", daemon=True).start()

    def _watch(self) -> None:
        while True:
            self.has_calls.wait()
            self.has_calls.clear()
            while _calls:
                time.sleep(INTERVAL_SECONDS)
                for call in _calls[:1]:
                    with suppress(OSError, ValueError):
                        call.tell()


_calls: list[_Call] = []
_watcher = functools.cache(_Watcher)
after_fork(_watcher.cache_clear)  # its thread is the parent's
