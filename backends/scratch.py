"""Folders for files that live as long as a program takes to be built or loaded.

A code generator that cannot write its file ends the process, so there must be room beforehand.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tracejit import system

ROOM_BYTES = 64 << 20
"""Far more than the object files of one program take."""

_NAMES = ("TMPDIR", "TEMP", "TMP")


def roomy_folders() -> Iterator[Path]:
    """Where files of 64 MiB in all can be written: memory, then the system's temporary folder.

    A folder that the user names comes first. Memory has the files in an eighth of the time.
    """
    if system.longest_file() < ROOM_BYTES:
        return
    for folder in _candidates():
        if os.access(folder, os.W_OK | os.X_OK) and system.room(folder) >= ROOM_BYTES:
            yield folder


def _candidates() -> Iterator[Path]:
    is_named = any(os.environ.get(name) for name in _NAMES)
    if not is_named:
        yield system.MEMORY_FOLDER
    try:
        yield Path(tempfile.gettempdir())
    except FileNotFoundError:  # none can be written to
        pass
    if is_named:
        yield system.MEMORY_FOLDER
