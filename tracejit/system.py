"""What depends on the operating system, each capability beside what replaces it elsewhere.

loadable_path(descriptor)    # by which the loader maps an open file, or None
memory_file(data)            # a file without a name, or None

Nothing else in the package asks which system it runs on.
"""

from __future__ import annotations

import faulthandler
import gc
import itertools
import os
import platform
import select
import signal
import stat
import sys
import tempfile
import threading
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, cast

if sys.platform != "win32":
    import resource

OPEN_FILES = Path("/proc/self/fd")
"""Where the system shows a process its open files as files; `loadable_path` needs it."""

AT_ONCE = getattr(os, "O_NONBLOCK", 0)
"""Opens a FIFO that nobody writes to, instead of waiting for a writer."""

LINKS_HERE = sys.platform == "linux" and platform.machine() == "x86_64"
"""Whether libraries are ELF for x86-64, which `tracejit.backends.tvm.elf` links by itself."""

LINKER = ["ld", "-shared", "-s", "-Bsymbolic"] if sys.platform.startswith("linux") else []
"""The linker and its options, where it can be called without a compiler."""

# What kernels call of the C library lies in the process already, with the runtime; and a kernel
# must find its neighbours, not a stranger's function of the same name.
COMPILER_OPTIONS = (
    ["-shared", "-nostdlib", "-undefined", "dynamic_lookup"]
    if sys.platform == "darwin"
    else ["-shared", "-nostdlib", "-s", "-Wl,-Bsymbolic"]
)
"""The options by which a C compiler links a library."""

_numbers = itertools.count(1)


def loadable_path(descriptor: int) -> str | None:
    """A path by which the loader maps the file that is open; None where the system has none.

    Whatever happens to the file's name meanwhile, this file is mapped. No two calls return the
    same path: the loader takes a path that it has seen for the library that it has loaded, and
    descriptors are used again.
    """
    if not (OPEN_FILES / str(descriptor)).exists():
        return None
    # "/./" and "/" are the same to the system, and digits of a binary number here.
    digits = bin(next(_numbers))[2:].replace("0", "/").replace("1", "/./")
    return f"{OPEN_FILES}{digits}{descriptor}"


def memory_file(data: bytes) -> int | None:
    """A descriptor of a file in memory that holds ``data``; None where the system has none."""
    if not hasattr(os, "memfd_create"):
        return None
    try:
        descriptor = os.memfd_create("tracejit")
    except OSError:
        return None
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(data)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def nameless_file() -> BinaryIO:
    """A file to write and read, in memory or on disk; where both are full it keeps nothing."""
    if hasattr(os, "memfd_create"):
        with suppress(OSError):
            return open(os.memfd_create("tracejit"), "w+b")
    try:
        return cast(BinaryIO, tempfile.TemporaryFile())
    except OSError:
        return open(os.devnull, "w+b")


def belongs_to_others(status: os.stat_result) -> bool:
    """Whether users besides this one and the system's own can write to a file or folder."""
    if not hasattr(os, "getuid"):
        return False
    is_foreign = status.st_uid not in (os.getuid(), 0)
    return is_foreign or bool(status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


class Folder:
    """A folder, opened once: all its files are reached through it, whatever its name becomes.

    Where the system cannot open folders, files are reached by their paths. Every method raises
    `OSError`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None
        if os.open in os.supports_dir_fd and os.replace in _BY_FOLDER:
            flags = os.O_RDONLY | os.O_DIRECTORY
            self._descriptor = os.open(path, flags)

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, *_: object) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)

    def _name(self, name: str) -> str:
        return name if self._descriptor is not None else str(self.path / name)

    def status(self) -> os.stat_result:
        """The folder's owner and permissions."""
        return os.stat(self.path if self._descriptor is None else self._descriptor)

    def open(self, name: str) -> int:
        """A descriptor to read a file; a pipe is not waited for."""
        flags = os.O_RDONLY | AT_ONCE | getattr(os, "O_BINARY", 0)
        return os.open(self._name(name), flags, dir_fd=self._descriptor)

    def create(self, name: str) -> int:
        """A descriptor to write a new file, which is this user's alone."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        return os.open(self._name(name), flags, 0o600, dir_fd=self._descriptor)

    def replace(self, name: str, new: str) -> None:
        """Renames a file, in place of another if there is one."""
        os.replace(
            self._name(name),
            self._name(new),
            src_dir_fd=self._descriptor,
            dst_dir_fd=self._descriptor,
        )

    def remove(self, name: str) -> None:
        """Removes a file; one that is gone is no error."""
        with suppress(FileNotFoundError):
            os.unlink(self._name(name), dir_fd=self._descriptor)

    def touch(self, name: str) -> None:
        """Marks a file as used now."""
        os.utime(self._name(name), dir_fd=self._descriptor)

    def has(self, name: str) -> bool:
        """Whether there is a file of this name."""
        try:
            os.stat(self._name(name), dir_fd=self._descriptor)
        except OSError:
            return False
        return True

    def entries(self) -> list[tuple[str, os.stat_result]]:
        """Names and facts of all files and folders; those that vanish meanwhile are left out."""
        found = []
        with os.scandir(self.path if self._descriptor is None else self._descriptor) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):
                    found.append((entry.name, entry.stat()))
        return found


_BY_FOLDER = (os.replace,) if os.rename in os.supports_dir_fd else ()


FORKS = hasattr(os, "fork") and sys.platform != "darwin"
"""Whether copies of this process can go on by themselves; macOS's own libraries cannot."""

HELD_BYTES = 1 << 30
"""A copy of a process of more memory would hold too much of it, while the process writes anew."""

KILL = getattr(signal, "SIGKILL", signal.SIGTERM)
"""The signal that no process can ignore."""

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
    """`os.fork`. Warnings of other threads do not concern a copy that runs nothing of theirs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return os.fork()


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
    """Whether something can be read from a pipe, or it has ended, in so many seconds.

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
    with suppress(ValueError, OSError):
        limit = resource.getrlimit(resource.RLIMIT_CORE)[1]
        resource.setrlimit(resource.RLIMIT_CORE, (0, limit))
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
