"""What runs compiled programs: loading, argument checks, memory, callbacks, the disk cache."""

from __future__ import annotations

from tracejit.runtime.cache import DiskCache, cache_key
from tracejit.runtime.callbacks import callback, view
from tracejit.runtime.executable import Executable
from tracejit.runtime.imports import importing_tvm

__all__ = [
    "DiskCache",
    "Executable",
    "cache_key",
    "callback",
    "importing_tvm",
    "view",
]
