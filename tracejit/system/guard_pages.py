"""Memory between pages that no access survives, and calls in a copy of the process.

memory = guarded(12)                    an array of 12 bytes, or None where pages cannot be guarded
end = in_copy(run, seconds=20)          how a copy of this process that called run() ended
end.signal                              signal.SIGSEGV
"""

from __future__ import annotations

import contextvars
import ctypes
import functools
import mmap
import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from tracejit.system.processes import FORKS, crash_in_silence, end_of_process, fork, is_readable

_NO_ACCESS = 0
_ALIGNMENT = 64
_ZONE = 16 << 20
_RAISED = 101
_MOST = 1 << 16


def guarded(nbytes: int) -> np.ndarray | None:
    """Memory with 16 MiB before and after it that cannot be accessed.

    The first begins at most a page before it, the second at most 63 bytes after it.
    """
    protect = _mprotect()
    if protect is None:
        return None
    page = mmap.PAGESIZE
    inside = -(-max(nbytes, 1) // page) * page
    # Pages that are never touched take addresses and no memory.
    whole = np.frombuffer(mmap.mmap(-1, inside + 2 * _ZONE, flags=mmap.MAP_PRIVATE), np.uint8)
    for offset in (0, _ZONE + inside):
        place = ctypes.c_void_p(whole.ctypes.data + offset)
        if protect(place, ctypes.c_size_t(_ZONE), _NO_ACCESS) != 0:
            return None
    start = _ZONE + inside - -(-nbytes // _ALIGNMENT) * _ALIGNMENT
    return whole[start : start + nbytes]


@functools.cache
def _mprotect() -> Callable[..., int] | None:
    try:
        found: Callable[..., int] = ctypes.CDLL(None).mprotect
    except (AttributeError, OSError, TypeError):
        return None
    return found


@dataclass(frozen=True)
class Ending:
    """How a copy of the process ended: by a signal, with ``code``, or with what ``run`` raised.

    ``raised`` is the name of an exception's class, ``text`` its message.
    """

    code: int
    raised: str = ""
    text: str = ""

    @property
    def signal(self) -> signal.Signals | None:
        return signal.Signals(-self.code) if self.code < 0 else None

    @property
    def has_returned(self) -> bool:
        """Whether the call came back, with a result or an exception."""
        return self.code == 0 or bool(self.raised)

    def __str__(self) -> str:
        return self.signal.name if self.signal else f"exit code {self.code}"


def in_copy(run: Callable[[], object], seconds: float | None) -> Ending | None:
    """How a copy of this process ended that called ``run``; None where processes are not copied.

    Raises `TimeoutError`, and ends the copy, where that takes longer than ``seconds``.
    """
    if not FORKS:
        return None
    reading, writing = os.pipe()
    child = fork()
    if child == 0:
        os.close(reading)
        _call_and_end(run, writing)
    os.close(writing)
    try:
        if not is_readable(reading, seconds):
            os.kill(child, signal.SIGKILL)
            end_of_process(child)
            raise TimeoutError
        said = os.read(reading, _MOST).decode(errors="replace")
    finally:
        os.close(reading)
    code = end_of_process(child)
    if code is None:
        return None
    raised, _, text = said.partition("\n") if code == _RAISED else ("", "", "")
    return Ending(code, raised, text)


def _call_and_end(run: Callable[[], object], writing: int) -> None:
    """The copy's whole life. The pipe closes with the process.

    ``exit`` destroys the variables of its thread first, and those of a thread that has worked for
    other libraries may wait for threads that the copy lacks; so the call has a new thread.
    """
    code = 0
    try:
        crash_in_silence()
        _exit_at_once()
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        raised: list[BaseException] = []
        within = contextvars.copy_context()
        thread = threading.Thread(target=within.run, args=(_keep_raised, run, raised))
        thread.start()
        thread.join()
        for error in raised:
            code = _RAISED
            text = f"{type(error).__name__}\n{getattr(error, 'message', error)}"
            os.write(writing, text.encode()[: _MOST // 2])
    finally:
        os._exit(code)


def _keep_raised(run: Callable[[], object], raised: list[BaseException]) -> None:
    try:
        run()
    except BaseException as error:
        raised.append(error)


def _exit_at_once() -> None:
    """Lets ``exit`` end this process with its status, whatever other exit handlers there are.

    They might wait for threads, which a copy of a process lacks.
    """
    library = ctypes.CDLL(None)
    with suppress(AttributeError):  # which only GNU's library has
        library.on_exit(ctypes.cast(library._exit, ctypes.c_void_p), None)
