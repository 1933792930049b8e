"""The one way to import TVM: quickly, and without a trace in the rest of the process.

tvm_ffi imports PyTorch where it is installed, to recognise its tensors. We pass none, and it would
triple the time that the import takes.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from tracejit.runtime.library import runtime


class _Absent(MetaPathFinder):
    """Says that a package is not installed, to one thread."""

    def __init__(self, package: str) -> None:
        self._package = package
        self._thread = threading.get_ident()

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name == self._package and threading.get_ident() == self._thread:
            raise ModuleNotFoundError(f"{name} is not needed here", name=name)
        return None


@contextmanager
def importing_tvm() -> Iterator[None]:
    """Inside, imports by this thread do not find PyTorch, unless it is imported already.

    TVM's runtime is loaded first, with our settings. Garbage collection waits, which takes a tenth
    off the import; and TVM's exception hook, which would end a user's child processes, is undone.
    """
    runtime()
    absent = _Absent("torch")
    hook, collects = sys.excepthook, gc.isenabled()
    sys.meta_path.insert(0, absent)
    gc.disable()
    try:
        yield
    finally:
        sys.meta_path.remove(absent)
        sys.excepthook = hook
        if collects:
            gc.enable()
