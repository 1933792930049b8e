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
from tracejit.runtime.executable import Executable, load

_UNFINISHED = ".tmp"
_ABANDONED_SECONDS = 3600.0
_SKEW_SECONDS = 600.0
"""So far the clocks of computers that share a folder may be apart."""


def write(folder: Path, name: str, data: bytes) -> Path:
    """Aside first, then into place: nobody sees half an entry. Raises `OSError`."""
    path = folder / name
    descriptor, unfinished = tempfile.mkstemp(_UNFINISHED, dir=folder)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
        os.replace(unfinished, path)
    finally:  # also where it is interrupted
        with suppress(OSError):
            os.unlink(unfinished)
    return path


def evict(folder: Path, newest: Path, limit: int, suffixes: Collection[str]) -> None:
    """Remove what was used longest ago until the rest fits, and what crashes left behind.

    Entries have one of the ``suffixes``. Those of the future, by a clock that went wrong, go first:
    they would never be old. Raises `OSError`.
    """
    entries = []
    total = 0
    now = time.time()
    with os.scandir(folder) as found:
        for entry in found:
            try:
                status = entry.stat()
            except FileNotFoundError:  # another process removed it
                continue
            if stat.S_ISDIR(status.st_mode):
                continue
            if entry.name.endswith(tuple(suffixes)):
                total += status.st_size
                if entry.name != newest.name:
                    used = status.st_mtime if status.st_mtime < now + _SKEW_SECONDS else 0.0
                    entries.append((used, status.st_size, entry.path))
            elif entry.name.endswith(_UNFINISHED):
                if abs(now - status.st_mtime) > _ABANDONED_SECONDS:
                    Path(entry.path).unlink(missing_ok=True)
    if total <= limit:
        return
    for _, size, path in sorted(entries):
        Path(path).unlink(missing_ok=True)
        total -= size
        if total <= limit:
            return


def load_unkept(data: bytes, artifact: Artifact, suffix: str) -> Executable:
    """Through a file that is gone once it is loaded.

    Raises `CompilationError` where no folder has room, and `OSError` if none of those that have
    can hold code, or the system cannot load it.
    """
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
