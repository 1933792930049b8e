"""Programs as machine code in this process alone, where there is no linker or no disk space."""

from __future__ import annotations

import ctypes
import functools
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import tvm_ffi

from tracejit.backends.abi import ENTRY
from tracejit.backends.scratch import ROOM_BYTES
from tracejit.backends.tvm.cpu.llvm.modules import module_of
from tracejit.backends.tvm.cpu.objects.entry import entry_statement
from tracejit.backends.tvm.cpu.objects.tir_pipeline import compile_entry_in_process, compile_text
from tracejit.backends.tvm.cpu.processor import Processor
from tracejit.backends.tvm.ir.tir import Evaluate, i32, var
from tracejit.backends.tvm.program.program import Program
from tracejit.sources import warn


@functools.cache
def warn_of_missing_linker() -> None:
    """Warn on the first call in a process."""
    warn(
        "no linker found: every process compiles its programs anew, because none can be kept on "
        "disk. Install a C compiler, or set CC to one.",
        RuntimeWarning,
    )


@functools.cache
def warn_of_missing_room() -> None:
    """Warn on the first call in a process."""
    warn(
        f"no folder for temporary files has {ROOM_BYTES >> 20} MiB of room: programs are compiled "
        "for this process alone. Make room, or set TMPDIR to a folder that has some.",
        RuntimeWarning,
    )


def entry_of(
    program: Program, functions: Mapping[str, Any], target: Processor
) -> Callable[[int], int]:
    """The entry, as machine code, of a program whose kernels are functions of TVM."""
    handles = {name: function.__chandle__() for name, function in functions.items()}
    call = ctypes.cast(tvm_ffi.LIB.TVMFFIFunctionCall, ctypes.c_void_p).value or 0
    address = var("address")
    body = entry_statement(program, handles, call, address)
    made = compile_entry_in_process(body, address, target)
    return _Entry(made[ENTRY], [*functions.values()])


def entry_of_text(text: str, target: Processor) -> Callable[[int], int]:
    """The entry of a program that is LLVM text, by a packed function of one address."""
    packed = f"""define i32 @__tvm_ffi_{ENTRY}(ptr %self, ptr %given, i32 %count, ptr %made) {{
  %at = getelementptr i64, ptr %given, i64 1
  %tuple = load ptr, ptr %at
  %status = call i32 @{ENTRY}(ptr %tuple)
  ret i32 %status
}}
"""
    empty = compile_entry_in_process(Evaluate(i32(0)), var("address"), target)
    lines = empty.inspect_source("ll").splitlines()
    (layout,) = [line for line in lines if line.startswith("target datalayout")]
    with tempfile.TemporaryDirectory(prefix="tracejit-") as name:
        module = compile_text(
            module_of([layout, text + packed], target, False), Path(name, "text.ll")
        )
    return _Entry(module[ENTRY], [])


class _Entry:
    """A TVM function of one address, called for its status.

    TVM's own call would raise an exception for a failure, which the caller of the program decides
    on.
    """

    def __init__(self, function: Any, called: Sequence[Any]) -> None:
        self._functions = function, called  # keeps them alive
        self._handle = ctypes.c_void_p(function.__chandle__())
        self._call = tvm_ffi.LIB.TVMFFIFunctionCall

    def __call__(self, address: int) -> int:
        given = (ctypes.c_int64 * 2)(1, address)  # a TVMFFIAny: kTVMFFIInt, and the integer
        made = (ctypes.c_int64 * 2)()
        return int(self._call(self._handle, given, 1, made))
