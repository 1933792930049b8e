"""Compiled programs kept on disk, so that a second process starts without a compiler.

    cache = DiskCache.default()
    found = cache.find(key)                        # an Executable, or None
    executable = found or cache.add(key, build(…)) # which writes it, if it can

Entries are single files, written aside and moved into place, so processes may share a folder. What
is damaged is removed and built anew; a folder that cannot be used is left alone, with a warning.

``TRACEJIT_CACHE=0`` turns the cache off, ``TRACEJIT_CACHE_DIR`` moves it, and
``TRACEJIT_CACHE_LIMIT`` bounds it, in bytes: a program that is larger than that is not kept.
"""

from __future__ import annotations

import errno
import functools
import hashlib
import json
import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from tracejit import errors
from tracejit.backends import abi
from tracejit.backends.artifact import ArtifactError, InProcess, unpack
from tracejit.backends.machine import host, thread_count
from tracejit.errors import CompilationError
from tracejit.graph import Module
from tracejit.loading import load as load_module
from tracejit.runtime.callbacks import require
from tracejit.runtime.executable import Executable, load_open
from tracejit.runtime.library import compiler_path, library_paths
from tracejit.sources import warn
from tracejit.system import Folder, belongs_to_others, cache_folder, natural_number

LIMIT_BYTES = 1 << 30

_SUFFIX = ".so"
_NOTE = ".json"
_GRAPH = ".hlo"
_OBJECT = ".o"
_SUFFIXES = (_SUFFIX, _NOTE, _GRAPH, _OBJECT)


def cache_key(graph: str, options: str = "") -> str:
    """The name of an entry: changes with everything that the machine code depends on.

    ``graph`` is the program's text, constants included; ``options`` what it is compiled with. The
    rest is found out here: processor, threads, versions, the layout of Python's objects.
    """
    digest = hashlib.sha256(_surroundings().encode())
    for part in (graph, options, str(thread_count())):
        data = part.encode()
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


@functools.cache
def _surroundings() -> str:
    """The hash of everything that all programs of a process have in common.

    Files count with their size and time.
    """
    python = (sys.implementation.name, sys.hexversion, abi.LAYOUT)
    libraries = [(path.name, *_stamp(path)) for path in (*library_paths(), compiler_path())]
    package = os.path.dirname(errors.__file__)
    files = [(path[len(package) :], *_stamp(path)) for path in _sources(package)]
    told = repr((host(), python, np.__version__, libraries, files))
    return hashlib.sha256(told.encode()).hexdigest()


def _sources(folder: str) -> list[str]:
    """The Python files below a folder of the package, in order.

    All of them may have a say in what a program becomes. The folders of a checkout are reached
    through links.
    """
    files = []
    folders = [folder]
    while folders:
        with os.scandir(folders.pop()) as found:
            for entry in found:
                if entry.name.endswith(".py"):
                    files.append(entry.path)
                elif "." not in entry.name and entry.name != "__pycache__" and entry.is_dir():
                    folders.append(entry.path)
    return sorted(files)


def _stamp(path: str | Path) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_size, status.st_mtime_ns


class DiskCache:
    """A folder of compiled programs, at most ``limit`` bytes of them; no folder, no cache."""

    def __init__(self, folder: Path | None, limit: int = LIMIT_BYTES) -> None:
        self.folder = folder
        self.limit = limit

    @staticmethod
    def default() -> DiskCache:
        """As the environment says, else in the user's cache folder."""
        if os.environ.get("TRACEJIT_CACHE", "1").strip().lower() in ("0", "off", "false", "no"):
            return DiskCache(None)
        chosen = os.environ.get("TRACEJIT_CACHE_DIR")
        given = os.environ.get("TRACEJIT_CACHE_LIMIT", "").strip()
        limit = natural_number(given)
        try:
            # Wherever the process goes: a name without a folder is no file to the loader.
            folder = Path(os.path.expanduser(chosen)).absolute() if chosen else _user_folder()
        except OSError as error:  # the current folder is gone
            _warn(f"the compile cache in {chosen} cannot be used", error)
            folder = None
        if given and limit is None:
            _warn_once(
                f"TRACEJIT_CACHE_LIMIT must be a number of bytes, not {given[:40]!r}; "
                f"the limit is {LIMIT_BYTES}"
            )
        return DiskCache(folder, LIMIT_BYTES if limit is None else limit)

    def __contains__(self, key: str) -> bool:
        """Whether there is a program of this key, sound or not."""
        return self.folder is not None and os.path.exists(self.folder / (key + _SUFFIX))

    def find(self, key: str) -> Executable | None:
        """The program of this key, loaded; None if there is none that can be.

        A damaged entry is removed before any of its code is loaded. A folder that may only be
        read, and one whose entries other processes remove at this moment, are supported.
        """
        if self.folder is None:
            return None
        try:
            with _private(self.folder) as folder:
                return _found(folder, key + _SUFFIX)
        except FileNotFoundError:
            return None
        except OSError as error:
            _warn(f"the compile cache in {self.folder} cannot be read", error)
            return None

    def add(self, key: str, built: bytes | InProcess) -> Executable:
        """Load a program that was just built, and keep it if that is possible."""
        if isinstance(built, InProcess):
            return Executable(built.entry, built.artifact)
        if self.keep(key, built) and self.folder is not None:
            try:
                with _private(self.folder) as folder:
                    found = _found(folder, key + _SUFFIX)
                if found is not None:
                    return found
            except FileNotFoundError:  # another process made room
                pass
            except OSError as error:  # a folder that holds no code, perhaps
                _warn(f"compiled programs cannot be kept in {self.folder}", error)
        loaded: Executable = _keeping().load_unkept(built, unpack(built), _SUFFIX)
        return loaded

    def keep(self, key: str, built: bytes) -> bool:
        """Keep a program that was just built; False, with a warning, if that is not possible.

        One that takes more than the limit is not kept either.
        """
        return self._keep(key + _SUFFIX, built, "compiled programs")

    def save_graph(self, key: str, module: Module) -> str:
        """Keeps the graph of a program that the compiler died of; a sentence that says where."""
        data = str(module).encode()
        if self._keep(key + _GRAPH, data, "graphs") and self.folder is not None:
            path: Path | None = self.folder / (key + _GRAPH)
        else:
            path = _keeping().write_aside(data, _GRAPH)
        if path is None:
            return "its graph could not be kept"
        return f"its graph is in {path}, for a report of the bug"

    def recall(self, key: str) -> Any:
        """What was noted under this key, as JSON gives it back; None if nothing is.

        A note that is damaged is removed.
        """
        if self.folder is None:
            return None
        try:
            with _private(self.folder) as folder:
                return _recalled(folder, key + _NOTE)
        except OSError:
            return None

    def remember(self, key: str, facts: Any) -> None:
        """Notes what JSON can express, if that is possible; warns if not."""
        data = json.dumps({"noted": facts, "checksum": _checksum(facts)}).encode()
        self._keep(key + _NOTE, data, "measurements")

    def find_object(self, source: str) -> bytes | None:
        """The object file that was compiled from a text, as `ObjectStore` wants it.

        A damaged one is removed.
        """
        if self.folder is None:
            return None
        try:
            with _private(self.folder) as folder:
                return _found_object(folder, cache_key(source, _OBJECT) + _OBJECT)
        except OSError:
            return None

    def keep_object(self, source: str, data: bytes) -> bool:
        """Keep an object file; False, without a warning, if that is not possible."""
        if self.folder is None:
            return False
        checked = hashlib.sha256(data).digest() + data
        try:
            with _writable(self.folder) as folder:
                _keeping().write(folder, cache_key(source, _OBJECT) + _OBJECT, checked)
        except OSError:
            return False
        return True

    def _keep(self, name: str, data: bytes, what: str) -> bool:
        if self.folder is None or len(data) > self.limit:
            return False
        try:
            with _writable(self.folder) as folder:
                _keeping().write(folder, name, data)
                _keeping().evict(folder, name, self.limit, _SUFFIXES)
        except OSError as error:
            _warn(f"{what} cannot be kept in {self.folder}", error)
            return False
        return True


@contextmanager
def _private(path: Path) -> Iterator[Folder]:
    """The folder, opened. Raises `PermissionError` if others could put code there for us to run."""
    with Folder(path) as folder:
        if belongs_to_others(folder.status()):
            raise PermissionError(f"{path} belongs to, or can be written by, other users")
        yield folder


@contextmanager
def _writable(path: Path) -> Iterator[Folder]:
    """The folder, made if need be and opened. Raises `OSError`."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _private(path) as folder:
        yield folder


def _found(folder: Folder, name: str) -> Executable | None:
    """The program in an entry; None, and the entry is removed, for one that is damaged.

    The bytes that are checked and the code that is loaded are of one open file. Raises `OSError`.
    """
    descriptor = folder.open(name)
    try:
        artifact = unpack(_contents(descriptor))
        require(artifact.callbacks)
        executable = load_open(descriptor, folder.path / name, artifact)
    except (ArtifactError, CompilationError):
        with suppress(OSError):
            folder.remove(name)
        return None
    except OSError as error:
        if not folder.has(name):  # removed after it was read
            raise FileNotFoundError(name) from error
        raise
    finally:
        os.close(descriptor)
    with suppress(OSError):
        folder.touch(name)  # used last: removed last
    return executable


def _found_object(folder: Folder, name: str) -> bytes | None:
    """An object file; None, and it is removed, where it is damaged. Raises `OSError`."""

    def checked(contents: bytes) -> bytes:
        size = hashlib.sha256().digest_size
        checksum, data = contents[:size], contents[size:]
        if hashlib.sha256(data).digest() != checksum:
            raise ValueError("checksum differs")
        return data

    data: bytes | None = _read(folder, name, checked)
    return data


def _recalled(folder: Folder, name: str) -> Any:
    """A note; None, and it is removed, where it is damaged. Raises `OSError`."""
    return _read(folder, name, lambda contents: _checked(json.loads(contents)))


def _read(folder: Folder, name: str, understood: Callable[[bytes], Any]) -> Any:
    """What a file is ``understood`` as; None, and it is removed, where that raises."""
    descriptor = folder.open(name)
    try:
        made = understood(_contents(descriptor))
    except (ValueError, RecursionError):
        with suppress(OSError):
            folder.remove(name)
        return None
    finally:
        os.close(descriptor)
    with suppress(OSError):
        folder.touch(name)  # used last: removed last
    return made


def _contents(descriptor: int) -> bytes:
    """The bytes of an open file.

    Raises `ArtifactError` for a pipe, a device, and a file that another user could have written,
    and `OSError`.
    """
    status = os.fstat(descriptor)
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(status.st_mode) or belongs_to_others(status):
        raise ArtifactError("no file of this user's")
    with open(descriptor, "rb", closefd=False) as file:
        return file.read()


def _checksum(facts: Any) -> str:
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _checked(given: Any) -> Any:
    """What was noted, if it still is. Raises `ArtifactError` if it is not."""
    if not isinstance(given, dict) or given.keys() != {"noted", "checksum"}:
        raise ArtifactError("no note")
    if given["checksum"] != _checksum(given["noted"]):
        raise ArtifactError("checksum differs")
    return given["noted"]


def _keeping() -> ModuleType:
    """`tracejit.runtime.cache_writer`, which writes; reading does without it."""
    return load_module("tracejit.runtime.cache_writer")


def _user_folder() -> Path | None:
    """The user's, for what can be made again; None for a user without a home."""
    base = cache_folder()
    return None if base is None else base / "tracejit"


def _warn(what: str, error: OSError) -> None:
    """Once for each kind of failure, whichever file it concerns."""
    _warn_once(f"{what}: {error.strerror or error}")


@functools.cache
def _warn_once(message: str) -> None:
    warn(message, RuntimeWarning)
