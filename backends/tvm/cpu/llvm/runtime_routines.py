"""Compiles runtime routines (code shared by programs) to object files, once in a process.

    for unit in routine_units(routines, target):
        data = unit.cached() or unit.compile(folder)    # an object file's bytes

A routine takes what differs between programs, such as sizes and strides, as numbers. So a kernel
that only calls a routine is compiled by the first program of the process that calls the routine.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tracejit.backends.tvm.cpu.llvm.modules import module_of
from tracejit.backends.tvm.cpu.objects.entry import checking
from tracejit.backends.tvm.cpu.objects.tir_pipeline import compile_text
from tracejit.backends.tvm.cpu.processor import Processor
from tracejit.backends.tvm.ir.routine_call import Routine

_LOCK = threading.Lock()
_cache: dict[LlvmUnit, bytes] = {}


@dataclass(frozen=True)
class LlvmUnit:
    """LLVM text and the target to compile it for, at full optimisation if ``is_hot``."""

    text: str
    target: Processor
    is_hot: bool

    def cached(self) -> bytes | None:
        """The object file, if this process has compiled it already."""
        with _LOCK:
            return _cache.get(self)

    def compile(self, folder: Path) -> bytes:
        """Compile to an object file, through a file in ``folder``."""
        file = folder / f"routine{id(self)}.o"
        text = module_of([self.text], self.target, self.is_hot)
        made = compile_text(text, file.with_suffix(".ll"))
        made.write_to_file(str(file), "o")
        data = file.read_bytes()
        with _LOCK:
            _cache[self] = data
        return data


def routine_units(routines: Iterable[Routine], target: Processor) -> list[LlvmUnit]:
    """The units of these routines, and of the check of arguments that every program calls."""
    made = [LlvmUnit(checking(), target, True)]
    for routine in routines:
        made += [LlvmUnit(routine.kernels, target, True), LlvmUnit(routine.driver, target, False)]
    return [*dict.fromkeys(made)]
