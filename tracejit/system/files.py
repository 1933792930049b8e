"""Temporary files. Importing this takes longer than most of the package."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from typing import BinaryIO, cast


def nameless_file() -> BinaryIO:
    """A file to write and read, in memory or on disk; where both are full it keeps nothing."""
    if hasattr(os, "memfd_create"):
        with suppress(OSError):
            return open(os.memfd_create("tracejit"), "w+b")
    try:
        return cast(BinaryIO, tempfile.TemporaryFile())
    except OSError:
        return open(os.devnull, "w+b")
