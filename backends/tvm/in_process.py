"""Programs without a linker or room for its files: machine code in this process alone."""

from __future__ import annotations

import ctypes
import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import tvm_ffi

from tracejit.backends.abi import ENTRY
from tracejit.backends.scratch import ROOM_BYTES


@functools.cache
def warn_of_missing_linker() -> None:
    """Warn on the first call in a process."""
    warnings.warn(
        "no linker found: every process compiles its programs anew, because none can be kept on "
        "disk. Install a C compiler, or set CC to one.",
        RuntimeWarning,
        stacklevel=2,
    )


@functools.cache
def warn_of_missing_room() -> None:
    """Warn on the first call in a process."""
    warnings.warn(
        f"no folder for temporary files has {ROOM_BYTES >> 20} MiB of room: programs are compiled "
        "for this process alone. Make room, or set TMPDIR to a folder that has some.",
        RuntimeWarning,
        stacklevel=2,
    )


def imported(modules: Sequence[Any]) -> Callable[[int], int]:
    """The entry of a program whose functions TVM finds by name: kernels first, the entry last."""
    *kernels, last = modules
    for module in kernels:
        last.import_module(module)
    return _Entry(last[ENTRY])


class _Entry:
    """A TVM function of one address, called for its bare status.

    TVM's own call would turn a failure into an exception, which the program's caller decides on.
    """

    def __init__(self, function: Any) -> None:
        self._function = function
        self._handle = ctypes.c_void_p(function.__chandle__())
        self._call = tvm_ffi.LIB.TVMFFIFunctionCall

    def __call__(self, address: int) -> int:
        given = (ctypes.c_int64 * 2)(1, address)  # a TVMFFIAny: kTVMFFIInt, and the integer
        made = (ctypes.c_int64 * 2)()
        return int(self._call(self._handle, given, 1, made))
