"""Routines of programs, each compiled once in a process.

    for part in parts(routine, target):
        data = part.known() or part.compiled(folder)    # an object file's bytes

What depends on a program alone, such as sizes and strides, a routine is told in numbers. A kernel
that is a call of a routine costs no compilation but that of the first program that calls it.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracejit.backends.tvm.codegen import compile_text
from tracejit.backends.tvm.cpu import CpuTarget
from tracejit.backends.tvm.direct import Routine
from tracejit.backends.tvm.entry import module_of

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
        described: Any = self.target.tvm_quick if self.is_hot else self.target.tvm_unoptimised
        file = folder / f"routine{id(self)}.o"
        text = module_of([self.text], self.target, described)
        made = compile_text(text, file.with_suffix(".ll"))
        made.write_to_file(str(file), "o")
        data = file.read_bytes()
        with _LOCK:
            _known[self] = data
        return data


def parts(routine: Routine, target: CpuTarget) -> list[Part]:
    """What a routine is compiled of."""
    return [Part(routine.kernels, target, True), Part(routine.driver, target, False)]
