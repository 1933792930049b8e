"""Compiled programs kept on disk, so that a second process starts without a compiler.

    cache = DiskCache.default()
    found = cache.find(key)                        # an Executable, or None
    executable = found or cache.add(key, build(…)) # which writes it, if it can

Entries are single files, written aside and moved into place, so processes may share a folder. What
is damaged is removed and built anew; a folder that cannot be used is left alone, with a warning.

``TRACEJIT_CACHE=0`` turns the cache off, ``TRACEJIT_CACHE_DIR`` moves it, and
``TRACEJIT_CACHE_LIMIT`` bounds it, in bytes.
"""

from __future__ import annotations

import functools
import hashlib
import os
import stat
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

from tracejit import backends
from tracejit.backends import abi
from tracejit.backends.artifact import Artifact, ArtifactError, InProcess, unpack
from tracejit.backends.machine import host, thread_count
from tracejit.runtime.executable import Executable, load
from tracejit.runtime.library import library_paths

LIMIT_BYTES = 1 << 30

_SUFFIX = ".so"
_UNFINISHED = ".tmp"
_ABANDONED_SECONDS = 3600.0


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
    """What is the same for every program of a process; files count with their size and time."""
    python = (sys.implementation.name, sys.hexversion, abi.LAYOUT)
    sources = [p for f in backends.__path__ for p in sorted(Path(f).rglob("*.py"))]
    files = [(path.name, *_stamp(path)) for path in (*library_paths(), *sources)]
    return repr((host(), python, np.__version__, files))


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
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
        limit = os.environ.get("TRACEJIT_CACHE_LIMIT", "").strip()
        folder = Path(chosen).expanduser() if chosen else _user_folder()
        return DiskCache(folder, int(limit) if limit.isdigit() else LIMIT_BYTES)

    def find(self, key: str) -> Executable | None:
        """The program of this key, loaded; None if there is none that can be.

        A damaged entry is removed before any of its code is loaded.
        """
        if self.folder is None:
            return None
        path = self.folder / (key + _SUFFIX)
        try:
            _require_private(self.folder)
            artifact = unpack(path.read_bytes())
            executable = load(path, artifact)
            os.utime(path)  # used last: removed last
        except FileNotFoundError:
            return None
        except ArtifactError:
            path.unlink(missing_ok=True)
            return None
        except OSError as error:
            _warn(f"the compile cache in {self.folder} cannot be read: {error}")
            return None
        return executable

    def add(self, key: str, built: bytes | InProcess) -> Executable:
        """Load a program that was just built, and keep it if that is possible."""
        if isinstance(built, InProcess):
            return Executable(built.entry, built.artifact)
        artifact = unpack(built)
        if self.folder is not None:
            try:
                path = self._write(self.folder, key, built)
                executable = load(path, artifact)
                self._evict(self.folder, path)
            except OSError as error:
                _warn(f"compiled programs cannot be kept in {self.folder}: {error}")
            else:
                return executable
        return _load_unkept(built, artifact)

    def _write(self, folder: Path, key: str, data: bytes) -> Path:
        """Aside first, then into place: nobody sees half an entry."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _require_private(folder)
        path = folder / (key + _SUFFIX)
        descriptor, unfinished = tempfile.mkstemp(_UNFINISHED, dir=folder)
        try:
            with open(descriptor, "wb") as file:
                file.write(data)
            os.replace(unfinished, path)
        except OSError:
            Path(unfinished).unlink(missing_ok=True)
            raise
        return path

    def _evict(self, folder: Path, newest: Path) -> None:
        """Remove what was used longest ago until the rest fits, and what crashes left behind."""
        entries = []
        for path in folder.iterdir():
            try:
                status = path.stat()
            except FileNotFoundError:  # another process removed it
                continue
            if path.suffix == _SUFFIX and path != newest:
                entries.append((status.st_mtime, status.st_size, path))
            elif path.suffix == _UNFINISHED and time.time() - status.st_mtime > _ABANDONED_SECONDS:
                path.unlink(missing_ok=True)
        total = newest.stat().st_size + sum(size for _, size, _ in entries)
        for _, size, path in sorted(entries):
            if total <= self.limit:
                return
            path.unlink(missing_ok=True)
            total -= size


def _load_unkept(data: bytes, artifact: Artifact) -> Executable:
    """Through a file that is gone once it is loaded."""
    with tempfile.TemporaryDirectory(prefix="tracejit-") as folder:
        path = Path(folder, "program" + _SUFFIX)
        path.write_bytes(data)
        return load(path, artifact)


def _user_folder() -> Path:
    """Where this system keeps what can be made again."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "tracejit"
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "tracejit"


def _require_private(folder: Path) -> None:
    """Raise `PermissionError` if others could put code there for us to run."""
    if not hasattr(os, "getuid"):
        return
    status = folder.stat()
    if status.st_uid not in (os.getuid(), 0) or status.st_mode & stat.S_IWOTH:
        raise PermissionError(f"{folder} belongs to, or can be written by, other users")


@functools.cache
def _warn(message: str) -> None:
    """Once for each message."""
    warnings.warn(message, RuntimeWarning, stacklevel=3)
