"""The one way to import TVM: quickly, and without a trace in the rest of the process.

Little of TVM's imports is needed to compile for a CPU. tvm_ffi imports PyTorch where it is
installed, to recognise its tensors; we pass none. TVM's graph compiler waits until somebody asks
for it, and its GPU backends are left out, unless ``TVM_DEVICE_BACKEND_AUTOLOAD`` is set: whoever
compiles for one in the same process calls ``tvm.backend.load("cuda")``. Together they would take
six times as long.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType

from tracejit.loading import uninterrupted
from tracejit.runtime.library import runtime

_UNNEEDED = "torch"
_LATER = "tvm.relax"
_AUTOLOAD = "TVM_DEVICE_BACKEND_AUTOLOAD"


class _Less:
    """Says to one thread that a package is not installed, and puts off another until its use."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in (_UNNEEDED, _LATER) or threading.get_ident() != self._thread:
            return None
        if name == _UNNEEDED:
            raise ModuleNotFoundError(f"{name} is not needed here", name=name)
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


@contextmanager
def importing_tvm() -> Iterator[None]:
    """Inside, imports by this thread take of TVM what a CPU needs, and find no PyTorch.

    What is imported already stays. TVM's runtime is loaded first, with our settings. Garbage
    collection waits, which takes a tenth off the import, and so do interrupts; and TVM's exception
    hook, which would end a user's child processes, is undone.
    """
    # TVM imports names from the rest of its runtime before it loads that. It handles the error,
    # but working out the error's backtrace takes a quarter of a second.
    runtime().load_rest()
    less = _Less()
    hook, collects = sys.excepthook, gc.isenabled()
    chosen = os.environ.get(_AUTOLOAD)
    sys.meta_path.insert(0, less)
    gc.disable()
    os.environ.setdefault(_AUTOLOAD, "0")
    try:
        with uninterrupted():
            yield
    finally:
        sys.meta_path.remove(less)
        sys.excepthook = hook
        if chosen is None:
            os.environ.pop(_AUTOLOAD, None)
        if collects:
            gc.enable()
