"""Procedures that are equal in all programs that use them: compiled once on a machine.

    kernels, procedures = without_shared(kernels)   # the texts of the shared procedures
    for unit in shared_units(procedures, target):   # one for each group
        data = unit.find(store) or unit.make(folder, store)     # an object file's bytes

A procedure with a ``group`` is shared; all procedures of a group are compiled together.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tvm.tirx import AttrStmt
from tvm_ffi import structural_map

from tracejit.backends.object_store import ObjectStore
from tracejit.backends.tvm.cpu.llvm.modules import module_of
from tracejit.backends.tvm.cpu.llvm.procedures import declaration, group_of, procedures_of
from tracejit.backends.tvm.cpu.objects.tir_pipeline import compile_text
from tracejit.backends.tvm.cpu.processor import Processor
from tracejit.backends.tvm.ir.tir import IMPORT, importing
from tracejit.backends.tvm.program.program import Kernel

_CALLED = re.compile(r"call \w+ @(\w+)\(")
_LOCK = threading.Lock()
_cache: dict[LlvmUnit, bytes] = {}


@dataclass(frozen=True)
class LlvmUnit:
    """LLVM text, and the target to compile it for."""

    text: str
    target: Processor

    def find(self, store: ObjectStore | None = None) -> bytes | None:
        """The object file, if this process has it already, or ``store``."""
        with _LOCK:
            data = _cache.get(self)
        if data is None and store is not None:
            data = store.find_object(self._module())
            if data is not None:
                self._keep(data)
        return data

    def make(self, folder: Path, store: ObjectStore | None = None) -> bytes:
        """Compile to an object file, and keep it in ``store``."""
        data = self.compile(folder)
        self._keep(data)
        if store is not None:
            store.keep_object(self._module(), data)
        return data

    def compile(self, folder: Path) -> bytes:
        """Compile to an object file, through a file in ``folder``."""
        file = folder / f"shared{id(self)}.o"
        compile_text(self._module(), file.with_suffix(".ll")).write_to_file(str(file), "o")
        return file.read_bytes()

    def _keep(self, data: bytes) -> None:
        with _LOCK:
            _cache[self] = data

    def _module(self) -> str:
        return module_of([self.text], self.target, True)


def without_shared(kernels: Sequence[Kernel]) -> tuple[list[Kernel], dict[str, str]]:
    """Kernels that only declare the shared procedures that they call, and the texts of these."""
    shared: dict[str, str] = {}

    def declared(node: Any) -> Any:
        if node.attr_key != IMPORT:
            return node
        own = procedures_of(str(node.value.value))
        apart = {name: text for name, text in own.items() if group_of(text) is not None}
        if not apart:
            return node
        shared.update(apart)
        rest = [text for name, text in own.items() if name not in apart]
        return importing("\n".join([*map(declaration, apart.values()), *rest, ""]), node.body)

    bodies = [structural_map(kernel.body, [(AttrStmt, declared)]) for kernel in kernels]
    made = [replace(kernel, body=body) for kernel, body in zip(kernels, bodies, strict=True)]
    return (made if shared else list(kernels)), shared


def shared_units(procedures: Mapping[str, str], target: Processor) -> list[LlvmUnit]:
    """Compilation units of the shared procedures, one for each group; groups may call others."""
    groups: dict[str | None, dict[str, str]] = {}
    for name in sorted(procedures):
        text = procedures[name]
        groups.setdefault(group_of(text), {})[name] = text
    made = []
    for group in groups.values():
        called = {name for text in group.values() for name in _CALLED.findall(text)}
        others = [name for name in sorted(called & procedures.keys()) if name not in group]
        declared = [declaration(procedures[name]) for name in others]
        made.append(LlvmUnit("\n".join([*declared, *group.values(), ""]), target))
    return made
