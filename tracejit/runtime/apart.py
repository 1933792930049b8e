"""Long programs run on threads of their own, while the main thread waits and handles signals.

    run = apart(run)      # of `Executable.run`; the same results, errors and order of calls

Python handles signals on the main thread, between its own instructions. A library's routine, such
as LAPACK's or a sort, cannot be ended in the middle. Where a handler raises meanwhile, as that of
Ctrl-C does, the main thread goes on at once: the program ends by itself, at its next poll or when
the routine is done. Its thread holds its arguments and results until then.
"""

from __future__ import annotations

import contextvars
import functools
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any

from tracejit.runtime import interrupts
from tracejit.system import after_fork, leave_at_once

Run = Callable[[Sequence[object]], Any]

_SECONDS = 0.2
"""How long a wait may be where the system cannot interrupt it."""

_idle: list[_Worker] = []  # append and pop are atomic
after_fork(_idle.clear)  # their threads are the parent's


def apart(run: Run) -> Run:
    """``run`` on another thread where the main thread calls it; elsewhere it is called at once."""

    def run_apart(arguments: Sequence[object]) -> Any:
        if threading.current_thread() is not threading.main_thread():
            return run(arguments)
        # The handling of NumPy's warnings, among others, is the caller's.
        call = _Call(functools.partial(contextvars.copy_context().run, run, arguments))
        worker = _idle.pop() if _idle else _Worker()
        try:
            worker.calls.put(call)
            while not call.is_done.acquire(timeout=_SECONDS):
                pass
        except BaseException:
            call.is_wanted = False
            interrupts.end(worker.ident)
            leave_at_once()
            raise
        return call.result()

    return run_apart


class _Call:
    """One call, its result or its error; ``is_done`` is free once there is one."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self.is_done = threading.Lock()
        self.is_done.acquire()
        self.is_wanted = True
        self._function: Callable[[], Any] | None = function
        self._result: Any = None
        self._error: BaseException | None = None

    def run(self) -> None:
        function, self._function = self._function, None
        try:
            if self.is_wanted and function is not None:
                self._result = function()
        except BaseException as error:
            self._error = error
        finally:
            self.is_done.release()

    def result(self) -> Any:
        error, self._error = self._error, None
        if error is not None:
            raise error
        return self._result


class _Worker:
    """A thread that runs one call after the other, and keeps its pool of threads meanwhile."""

    def __init__(self) -> None:
        self.calls: queue.SimpleQueue[_Call] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name="tracejit-program", daemon=True)
        self._thread.start()

    @property
    def ident(self) -> int:
        return self._thread.ident or 0

    def _serve(self) -> None:
        while True:
            call = self.calls.get()
            interrupts.go_on()
            call.run()
            del call  # and with it the arrays
            _idle.append(self)
