"""Compiling in another process: what LLVM dies of there is a `CompilationError` here.

    task = task_of("tracejit.backends.tvm.compile", "compile_for", module)
    built = served(task, title, save)    # or `Here` is raised: it must be done here

The process is a copy of this one, made at the first program, and waits for the next: it costs what
a fork costs, and neither TVM nor LLVM is ever loaded here. Where copies are not possible (macOS,
Windows, MPI, much memory) it is a fresh interpreter. An interrupt ends it, not this process.

``TRACEJIT_COMPILE_SERVER=0`` compiles here. ``TRACEJIT_COMPILE_TIMEOUT`` is how many seconds (600)
may pass without a part of a program being done before the compiler is given up; 0 is for ever.
"""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

from tracejit.backends.machine import thread_count
from tracejit.errors import CompilationError, TracejitError
from tracejit.loading import uninterrupted
from tracejit.runtime import compile_worker
from tracejit.runtime.compile_worker import (
    Began,
    Elsewhere,
    Progressed,
    Raised,
    Returned,
    Task,
    receive,
    write,
)
from tracejit.runtime.library import runtime
from tracejit.runtime.shipping import packed
from tracejit.sources import warn
from tracejit.system import after_fork, natural_number, processes
from tracejit.system.files import nameless_file

START_SECONDS = 120.0
"""A worker that has not loaded the code generator by then never will."""

TIMEOUT_SECONDS = 600

_SAID_BYTES = 2000

Progress = Callable[[int, int], None]


class Here(Exception):
    """No other process can do it."""


class _Gone(Exception):
    """A worker ended, with this status where that is known; None was ended for its slowness."""

    def __init__(self, status: int | None, is_slow: bool = False) -> None:
        super().__init__(status)
        self.status, self.is_slow = status, is_slow


class RemoteTraceback(Exception):
    """The cause of an error that another process raised: where it was raised there."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


class Worker:
    """A process that compiles, and the pipes to it."""

    def __init__(self, forked: bool) -> None:
        self.has_begun = False
        self._process: subprocess.Popen[bytes] | None = None
        self._output = nameless_file()
        self._seen = 0
        self.said = ""
        """The last that an ended process printed for its task: the reason, where LLVM has one."""
        if forked:
            runtime()  # which the copy then has, too
        try:
            with uninterrupted():
                if forked:
                    self._fork()
                else:
                    self._spawn()
        except OSError:
            self._output.close()
            raise

    def _fork(self) -> None:
        requests, self._requests = os.pipe()
        self._replies, replies = os.pipe()
        try:
            self._number = processes.fork()
            if self._number == 0:
                compile_worker.run_forked(requests, replies, self._output.fileno())
        except OSError:
            os.close(self._requests)
            os.close(self._replies)
            raise
        finally:
            os.close(requests)
            os.close(replies)

    def _spawn(self) -> None:
        self._process = subprocess.Popen(
            compile_worker.command(sys.path),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._output,
            bufsize=0,
            start_new_session=True,  # the keys that interrupt this process are not meant for it
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._number = self._process.pid
        self._requests = os.dup(self._process.stdin.fileno())
        self._replies = os.dup(self._process.stdout.fileno())
        self._process.stdin.close()
        self._process.stdout.close()

    def call(self, task: bytes, progress: Progress | None) -> Any:
        """The last message of the worker for a packed task. Raises `_Gone` where there is none."""
        self.has_begun = False
        self._seen = os.fstat(self._output.fileno()).st_size
        try:
            write(self._requests, task)
            while True:
                seconds = timeout() if self.has_begun else START_SECONDS
                if not processes.is_readable(self._replies, seconds):
                    raise _Gone(None, is_slow=True)
                message = receive(self._replies)
                if isinstance(message, Began):
                    self.has_begun = True
                elif not isinstance(message, Progressed):
                    return message
                elif progress is not None:
                    progress(*message)
        except (EOFError, OSError):
            raise _Gone(self.end(kill=False)) from None
        except BaseException:  # an interrupt, too
            self.end()
            raise

    def end(self, kill: bool = True) -> int | None:
        """Ends the process; what it ended with, if that is known. From then on it has `said`."""
        if kill:
            with suppress(OSError):
                os.kill(self._number, processes.KILL)
        if self._process is not None:
            status: int | None = self._process.wait()
        else:
            status = processes.end_of_process(self._number)
        size = os.fstat(self._output.fileno()).st_size
        self._output.seek(max(self._seen, size - _SAID_BYTES))
        self.said = _reason(self._output.read().decode(errors="replace"))
        self.abandon()
        return status

    def abandon(self) -> None:
        """Closes this process's ends of the pipes; the other process sees that, and ends."""
        for descriptor in (self._requests, self._replies):
            with suppress(OSError):  # a process that has closed all files
                os.close(descriptor)
        with suppress(OSError):
            self._output.close()
        if self._process is not None and self._process.returncode is None:
            self._process.returncode = 0  # whose end nobody waits for


def _reason(said: str) -> str:
    """The reason in a compiler's output: LLVM's, which a trace may follow, else the last line."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return next((line for line in lines if "LLVM ERROR" in line), lines[-1] if lines else "")


_idle: list[Worker] = []


@atexit.register
def _forget() -> None:
    """At the end, and in the child of a fork, where the workers are its parent's."""
    while _idle:
        _idle.pop().abandon()


after_fork(_forget)


def is_wanted() -> bool:
    """Whether another process compiles."""
    chosen = os.environ.get("TRACEJIT_COMPILE_SERVER", "1").strip().lower()
    return chosen not in ("0", "off", "false", "no")


def timeout() -> float | None:
    """The seconds that may pass without a sign from the compiler; None for ever."""
    chosen = natural_number(os.environ.get("TRACEJIT_COMPILE_TIMEOUT", ""))
    return float(TIMEOUT_SECONDS if chosen is None else chosen) or None


def task_of(module: str, function: str, *arguments: Any, **options: Any) -> Task:
    """A task in this process's environment; see `Task`."""
    environment = {**os.environ, "TVM_NUM_THREADS": str(thread_count())}
    return Task(module, function, arguments, options, environment, tempfile.tempdir)


def served(
    task: Task,
    title: str,
    save: Callable[[], str],
    progress: Progress | None = None,
    is_new: bool = False,
) -> Any:
    """What the task's function returns, in another process.

    It is told ``progress`` if there is one. Where the process dies, or does not end, ``save`` keeps
    what is needed to repeat it, and says where. ``is_new`` asks for a copy of this process as it is
    now, and not as it was at its first program.

    Raises `Here` where it must be done in this process, `CompilationError` for ``title`` where the
    compiler dies, and what the function raises.
    """
    if not is_wanted():
        raise Here
    try:
        request = packed(task._replace(reports=progress is not None))
    except Exception:  # pickling raises what it likes for a value of this process's own
        raise Here from None
    for start in _starts(is_new):
        try:
            worker = start()
        except OSError:  # no room for a process
            continue
        try:
            message = worker.call(request, progress)
        except _Gone as gone:
            if worker.has_begun:
                raise CompilationError(_report(title, gone, worker.said, save())) from None
            continue
        if is_new or _idle:
            worker.end()
        else:
            _idle.append(worker)
        return _result(message)
    raise Here


def _starts(is_new: bool) -> Iterator[Callable[[], Worker]]:
    """Ways to a worker, the best first: one that waits, a copy, a fresh interpreter."""
    if _idle and not is_new:
        with suppress(IndexError):  # another thread was quicker
            yield partial(lambda worker: worker, _idle.pop())
    if processes.may_fork() or (is_new and processes.FORKS):
        yield partial(Worker, forked=True)
    if not is_new:
        yield partial(Worker, forked=False)


def _result(message: Any) -> Any:
    if isinstance(message, Elsewhere):
        raise Here
    if isinstance(message, Raised):
        raise _error(message) from RemoteTraceback(message.trace)
    assert isinstance(message, Returned)
    for text, category in message.warnings:
        warn(text, category)
    return message.value


def _error(raised: Raised) -> BaseException:
    """The error of another process, as one of this."""
    if raised.kind is None:
        return RuntimeError(raised.message)
    if issubclass(raised.kind, TracejitError):
        return raised.kind(raised.message, raised.source)
    return raised.kind(raised.message)


def _report(title: str, gone: _Gone, said: str, saved: str) -> str:
    if gone.is_slow:
        what = f"did not get on for {timeout():g} seconds (TRACEJIT_COMPILE_TIMEOUT)"
    elif gone.status is not None and gone.status < 0:
        what = f"died of it ({signal.Signals(-gone.status).name})"
    else:
        what = f"ended before it was done (status {gone.status})"
    reason = f", and said: {said}" if said else ""
    return f"{title}: the compiler {what}{reason}; {saved}"
