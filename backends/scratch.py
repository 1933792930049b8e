"""Folders for files that live as long as a program takes to be built or loaded.

A code generator that cannot write its file ends the process, so there must be room beforehand.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

try:
    import resource
except ImportError:  # Windows, which limits no files
    resource = None  # type: ignore[assignment]

ROOM_BYTES = 64 << 20
"""Far more than the object files of one program take."""

_MEMORY = Path("/dev/shm")
_NAMES = ("TMPDIR", "TEMP", "TMP")


def roomy_folders() -> Iterator[Path]:
    """Where files of 64 MiB in all can be written: memory, then the system's temporary folder.

    A folder that the user names comes first. Memory has the files in an eighth of the time.
    """
    if _longest_file() < ROOM_BYTES:
        return
    for folder in _candidates():
        if os.access(folder, os.W_OK | os.X_OK) and _room(folder) >= ROOM_BYTES:
            yield folder


def _candidates() -> Iterator[Path]:
    is_named = any(os.environ.get(name) for name in _NAMES)
    if not is_named:
        yield _MEMORY
    try:
        yield Path(tempfile.gettempdir())
    except FileNotFoundError:  # none can be written to
        pass
    if is_named:
        yield _MEMORY


def _room(folder: Path) -> float:
    """Bytes that may be written, none if no file can be made; unlimited where nobody knows."""
    if sys.platform == "win32":
        return float("inf")
    status = os.statvfs(folder)
    if status.f_files and not status.f_favail:
        return 0
    return status.f_bavail * status.f_frsize


def _longest_file() -> float:
    """The longest file that this process may write, in bytes."""
    if resource is None:
        return float("inf")
    soft, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    return float("inf") if soft == resource.RLIM_INFINITY else soft
