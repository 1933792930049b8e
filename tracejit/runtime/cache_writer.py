"""The side of the disk cache that writes, which a process needs only when it has compiled."""

from __future__ import annotations

import os
import stat
import tempfile
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from tracejit.backends.artifact import Artifact
from tracejit.backends.scratch import roomy_folders
from tracejit.errors import CompilationError
from tracejit.runtime.executable import Executable, load, load_open
from tracejit.system import Folder, loadable_path, memory_file

_UNFINISHED = ".tmp"
_ABANDONED_SECONDS = 3600.0
_SKEW_SECONDS = 600.0
"""So far the clocks of computers that share a folder may be apart."""


def write(folder: Folder, name: str, data: bytes) -> None:
    """Aside first, then into place: nobody sees half an entry. Raises `OSError`."""
    unfinished = f"{name[:16]}-{os.getpid()}-{os.urandom(8).hex()}{_UNFINISHED}"
    descriptor = folder.create(unfinished)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
        folder.replace(unfinished, name)
    finally:  # also where it is interrupted
        with suppress(OSError):
            folder.remove(unfinished)


def write_aside(data: bytes, suffix: str) -> Path | None:
    """A file of its own in the system's temporary folder; None where none can be written."""
    with suppress(OSError):
        descriptor, path = tempfile.mkstemp(suffix, "tracejit-")
        with open(descriptor, "wb") as file:
            file.write(data)
        return Path(path)
    return None


def evict(folder: Folder, newest: str, limit: int, suffixes: Collection[str]) -> None:
    """Remove the least recently used entries until the rest fits, and files left by crashes.

    Entries have one of the ``suffixes``. Those of the future, by a clock that went wrong, go first:
    they would never be old. Raises `OSError`.
    """
    entries = []
    total = 0
    now = time.time()
    for name, status in folder.entries():
        if stat.S_ISDIR(status.st_mode):
            continue
        if name.endswith(tuple(suffixes)):
            total += status.st_size
            if name != newest:
                used = status.st_mtime if status.st_mtime < now + _SKEW_SECONDS else 0.0
                entries.append((used, status.st_size, name))
        elif name.endswith(_UNFINISHED):
            if abs(now - status.st_mtime) > _ABANDONED_SECONDS:
                folder.remove(name)
    if total <= limit:
        return
    for _, size, name in sorted(entries):
        folder.remove(name)
        total -= size
        if total <= limit:
            return


def load_unkept(data: bytes, artifact: Artifact, suffix: str) -> Executable:
    """From memory, or through a file that is gone once it is loaded.

    Raises `CompilationError` where no folder has room, and `OSError` if none of those that have
    can hold code, or the system cannot load it.
    """
    descriptor = memory_file(data)
    if descriptor is not None:
        try:
            if loadable_path(descriptor) is not None:
                with suppress(OSError):  # a system whose memory holds no code
                    return load_open(descriptor, Path(), artifact)
        finally:
            os.close(descriptor)
    failure: OSError | None = None
    for room in roomy_folders():
        with tempfile.TemporaryDirectory(prefix="tracejit-", dir=room) as folder:
            path = Path(folder, "program" + suffix)
            path.write_bytes(data)
            try:
                return load(path, artifact)
            except OSError as error:  # a folder that holds no code, perhaps
                failure = error
    if failure is not None:
        raise failure
    raise CompilationError("no temporary folder has room for a compiled program; see TMPDIR")
