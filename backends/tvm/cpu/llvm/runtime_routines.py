"""Routines of programs, each compiled once in a process.

    for part in parts(routines, target):
        data = part.known() or part.compiled(folder)    # an object file's bytes

What depends on a program alone, such as sizes and strides, a routine is told in numbers. A kernel
that is a call of a routine costs no compilation but that of the first program that calls it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tracejit.backends.tvm.cpu.llvm.modules import module_of
from tracejit.backends.tvm.cpu.objects.entry import checking
from tracejit.backends.tvm.cpu.objects.tir_pipeline import compile_text
from tracejit.backends.tvm.cpu.target import CpuTarget
from tracejit.backends.tvm.ir.routine_call import Routine

_LOCK = threading.Lock()
_known: dict[Part, bytes] = {}


@dataclass(frozen=True)
class Part:
    """LLVM's text, to be compiled for a target, fast code or not."""

    text: str
    target: CpuTarget
    is_hot: bool

    def known(self) -> bytes | None:
        """The object file, if it has been compiled in this process."""
        with _LOCK:
            return _known.get(self)

    def compiled(self, folder: Path) -> bytes:
        """The object file, which passes through ``folder``."""
        file = folder / f"routine{id(self)}.o"
        text = module_of([self.text], self.target, self.is_hot)
        made = compile_text(text, file.with_suffix(".ll"))
        made.write_to_file(str(file), "o")
        data = file.read_bytes()
        with _LOCK:
            _known[self] = data
        return data


def parts(routines: Iterable[Routine], target: CpuTarget) -> list[Part]:
    """What these routines are compiled of, and the check of arguments that every program calls."""
    made = [Part(checking(), target, True)]
    for routine in routines:
        made += [Part(routine.kernels, target, True), Part(routine.driver, target, False)]
    return [*dict.fromkeys(made)]
