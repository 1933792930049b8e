"""NVIDIA's libraries: where their packages have put them.

    paths = candidates("TRACEJIT_LIBNVRTC", ("cu*/lib/libnvrtc.so.*",), ("libnvrtc.so.13",))

No library is imported: they are opened by ctypes.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence
from pathlib import Path


def chosen(variable: str) -> str:
    """The library that an environment variable names; empty where it names none."""
    return os.environ.get(variable, "").strip()


def candidates(variable: str, patterns: Sequence[str], names: Sequence[str]) -> list[str]:
    """Where a library may be, best first.

    That is what the environment ``variable`` names; else files of NVIDIA's packages that match one
    of the ``patterns``, newest first, then ``names`` that the system's loader may know.
    """
    if chosen(variable):
        return [chosen(variable)]
    found = importlib.util.find_spec("nvidia")
    folders = [Path(f) for f in (found and found.submodule_search_locations) or ()]
    places = [
        path
        for folder in folders
        for pattern in patterns
        for path in sorted(folder.glob(pattern), reverse=True)
    ]
    return [*map(str, places), *names]
