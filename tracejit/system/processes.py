"""Copies of a process, their pipes and their ends, and what replaces them where there are none.

if may_fork():
    number = fork()          # 0 in the copy, which calls alone(…)
"""

from __future__ import annotations

import faulthandler
import gc
import os
import select
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from tracejit.system import OPEN_FILES

if sys.platform != "win32":
    import resource

CAN_COPY = hasattr(os, "fork")
"""Whether a process can be copied, if only to run machine code."""

FORKS = CAN_COPY and sys.platform != "darwin"
"""Whether copies of this process can go on by themselves; macOS's own libraries cannot."""

HELD_BYTES = 1 << 30
"""A copy of a process of more memory would hold too much of it, while the process writes anew."""

KILL = getattr(signal, "SIGKILL", signal.SIGTERM)
"""The signal that no process can ignore."""

CRASHES = {
    getattr(signal, name)
    for name in ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGILL", "SIGFPE", "SIGTRAP", "SIGSYS")
    if hasattr(signal, name)
}
"""The signals of a process that crashes, rather than being ended by someone."""

_MEMORY_USED = Path("/proc/self/statm")
_OWN_NAME = Path("/proc/self/comm")

# Libraries whose memory the network writes to, which a copy of the process would share.
_BY_NETWORK = ("mpi4py",)


def may_fork() -> bool:
    """Whether a copy of this process may be made to live for long."""
    return (
        FORKS
        and resident_bytes() <= HELD_BYTES
        and not any(name in sys.modules for name in _BY_NETWORK)
    )


def resident_bytes() -> int:
    """The memory of this process; 0 where the system does not say."""
    try:
        return int(_MEMORY_USED.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError, AttributeError):
        return 0


def fork() -> int:
    """`os.fork`. Warnings about other threads do not concern a child that does not run them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return os.fork()


class CopyError(Exception):
    """A function in a copy of this process raised, or the copy crashed; the message says which."""


def in_a_copy(function: Callable[[], bytes]) -> bytes:
    """What a function returns, by a copy of this process that may crash in its place.

    What it prints is lost. Where processes are not copied it runs here. Raises `CopyError`.
    """
    if not FORKS or any(name in sys.modules for name in _BY_NETWORK):
        try:
            return function()
        except Exception as error:
            raise CopyError(str(error)) from error
    reading, writing = os.pipe()
    process = fork()
    if process == 0:
        _answer(function, writing)
    os.close(writing)
    with open(reading, "rb") as pipe:
        answer = pipe.read()
    status = end_of_process(process)
    if answer[:1] == _RETURNED:
        return answer[1:]
    if answer[:1] == _RAISED:
        raise CopyError(answer[1:].decode())
    named = (
        signal.Signals(-status).name if status is not None and status < 0 else f"status {status}"
    )
    raise CopyError(f"the reader ends the process ({named})")


_RETURNED, _RAISED = b"+", b"-"


def _answer(function: Callable[[], bytes], writing: int) -> NoReturn:
    """Writes what a function returns or raises, and ends this copy of the process."""
    try:
        crash_in_silence()
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        try:
            answer = _RETURNED + function()
        except Exception as error:
            answer = _RAISED + str(error).encode()
        view = memoryview(answer)
        while view:
            view = view[os.write(writing, view) :]
    finally:
        os._exit(0)


def name_process(name: str) -> None:
    """What lists of processes call this one, where the system lets it say so."""
    with suppress(OSError):
        _OWN_NAME.write_text(name)


def end_of_process(process: int) -> int | None:
    """What a child has ended with, as `subprocess` says it; None where nobody knows."""
    try:
        _, status = os.waitpid(process, 0)
    except OSError:  # whoever ignores the ends of children
        return None
    return os.waitstatus_to_exitcode(status)


def is_readable(descriptor: int, seconds: float | None) -> bool:
    """Whether something can be read from a pipe, or it has ended, within ``seconds``.

    Where the system cannot wait for pipes, the answer is yes, and reading waits.
    """
    if sys.platform == "win32":
        return True
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(None if seconds is None else seconds * 1000))


def wait_for_reader_to_end(descriptor: int) -> None:
    """Returns when nobody reads any more what is written to a pipe."""
    poll = select.poll()
    poll.register(descriptor, 0)
    while not any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll()):
        pass


def keep_no_memory_image() -> None:
    """Has this process write no core file when it dies."""
    if sys.platform != "win32":
        with suppress(ValueError, OSError):
            limit = resource.getrlimit(resource.RLIMIT_CORE)[1]
            resource.setrlimit(resource.RLIMIT_CORE, (0, limit))


def crash_in_silence() -> None:
    """Has this process print no stack and write no core file when it crashes.

    Libraries (TVM is one) handle these signals by printing the stack.
    """
    faulthandler.disable()
    for number in CRASHES:
        signal.signal(number, signal.SIG_DFL)
    keep_no_memory_image()


def alone(kept: Sequence[int], output: int) -> None:
    """Makes the copy that a fork made a process by itself.

    It has no files but those ``kept``; what it prints goes to ``output``. Signals end it, but for
    interrupts, which are meant for the process that it was copied from.
    """
    faulthandler.disable()
    sys.settrace(None)
    sys.setprofile(None)
    threading.settrace(None)
    threading.setprofile(None)
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    gc.freeze()
    keep_no_memory_image()
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    # A notebook's are more than files.
    sys.stdout = sys.stderr = open(2, "w", buffering=1, errors="replace", closefd=False)
    first = 3
    for descriptor in sorted(kept):
        os.closerange(first, descriptor)
        first = descriptor + 1
    os.closerange(first, _most_files())


def _most_files() -> int:
    """A number above those of all open files."""
    try:
        return max(map(int, os.listdir(OPEN_FILES))) + 1
    except (OSError, ValueError):
        return min(resource.getrlimit(resource.RLIMIT_NOFILE)[0], 1 << 16)
