"""Capabilities of the operating system, each with its replacement on other systems.

loadable_path(descriptor)    # by which the loader maps an open file, or None
memory_file(data)            # a file without a name, or None
Folder(path)                 # opened once; by its path where folders cannot be opened

Processes are in `tracejit.system.processes`. Nothing else asks which system it runs on.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import os
import platform
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

if sys.platform != "win32":
    import resource

OPEN_FILES = Path("/proc/self/fd")
"""Where the system shows a process its open files as files; `loadable_path` needs it."""

AT_ONCE = getattr(os, "O_NONBLOCK", 0)
"""Opens a FIFO that nobody writes to, instead of waiting for a writer."""

IS_DARWIN = sys.platform == "darwin"

MEMORY_FOLDER = Path("/dev/shm")
"""A folder whose files lie in memory, where there is one."""

PROCESSOR_LIST = Path("/proc/cpuinfo")
CACHE_LIST = Path("/sys/devices/system/cpu/cpu0/cache")
CONTROL_GROUPS = Path("/sys/fs/cgroup")
OWN_CONTROL_GROUPS = Path("/proc/self/cgroup")
"""Files in which Linux lists processors, and those that a process may use."""

LINKS_HERE = sys.platform == "linux" and platform.machine() == "x86_64"
"""Whether libraries are ELF for x86-64, which `tracejit.backends.tvm.cpu.objects.elf` links by
itself."""

LINKER = ["ld", "-shared", "-s", "-Bsymbolic"] if sys.platform.startswith("linux") else []
"""The linker and its options, where it can be called without a compiler."""

# What kernels call of the C library lies in the process already, with the runtime; and a kernel
# must find its neighbours, not a stranger's function of the same name.
COMPILER_OPTIONS = (
    ["-shared", "-nostdlib", "-undefined", "dynamic_lookup"]
    if IS_DARWIN
    else ["-shared", "-nostdlib", "-s", "-Wl,-Bsymbolic"]
)
"""The options by which a C compiler links a library."""

CUDA_DRIVER = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
"""The library of NVIDIA's driver."""

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


def thread_identifier() -> Any:
    """The C function without arguments that returns `threading.get_ident` of its thread."""
    if sys.platform == "win32":
        return ctypes.WinDLL("kernel32").GetCurrentThreadId
    return ctypes.CDLL(None).pthread_self


@functools.cache
def leave_at_once() -> None:
    """When Python has ended the process is gone, where the system can do that.

    Libraries take their memory down as a process ends. A thread that is in one of their routines
    still would crash.
    """
    if not sys.platform.startswith("linux"):
        return
    library = ctypes.CDLL(None)
    if hasattr(library, "on_exit"):
        library.on_exit(ctypes.cast(library._exit, ctypes.c_void_p), None)


def library_name(name: str) -> str:
    """A library's file name, as this system has them."""
    if sys.platform == "win32":
        return f"{name}.dll"
    return f"lib{name}.dylib" if IS_DARWIN else f"lib{name}.so"


def cache_folder() -> Path | None:
    """Where this system keeps what can be made again; None for a user without a home."""
    base = os.environ.get("XDG_CACHE_HOME")
    if base and os.path.isabs(base) and not IS_DARWIN:  # others are to be ignored
        return Path(base)
    home = Path(os.path.expanduser("~"))
    if not home.is_absolute():
        return None
    return home / "Library" / "Caches" if IS_DARWIN else home / ".cache"


def room(folder: Path) -> float:
    """Bytes that may be written, none if no file can be made; unlimited where nobody knows."""
    if not hasattr(os, "statvfs"):
        return float("inf")
    status = os.statvfs(folder)
    if status.f_files and not status.f_favail:
        return 0
    return status.f_bavail * status.f_frsize


def longest_file() -> float:
    """The longest file that this process may write, in bytes."""
    if sys.platform == "win32":
        return float("inf")
    soft, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    return float("inf") if soft == resource.RLIM_INFINITY else soft


def natural_number(text: str) -> int | None:
    """The number that a user wrote in digits; None for anything else."""
    digits = text.strip()
    return int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 20 else None


def affinity() -> int:
    """The processors that this process may run on, as far as the system tells."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def after_fork(function: Callable[[], object]) -> None:
    """Has a function called in the children of every fork, where there are forks."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=function)
