"""A kernel as a function of C, with a pointer for each parameter."""

from __future__ import annotations

from typing import Any

from tracejit.backends.tvm.codegen.c_source import TYPES, CPrinter
from tracejit.backends.tvm.ir.intrinsics import intrinsic_of
from tracejit.backends.tvm.plain.functions import FUNCTIONS, c_name
from tracejit.backends.tvm.program.program import Kernel

# Kernels share a workspace, in which an address holds numbers of one type after another.
_ALIASING = "__attribute__((may_alias))"


def function(kernel: Kernel, called: dict[str, str]) -> str:
    """The function of a kernel, which returns 0; the texts of those that it calls are added to
    ``called``."""

    def name_of(call: Any) -> str:
        intrinsic = intrinsic_of(call)
        assert intrinsic is not None
        name = c_name(intrinsic.name, str(call.args[0].ty))
        called.setdefault(name, FUNCTIONS.get(name, ""))
        return name

    printer = CPrinter(name_of)
    parameters = ", ".join(
        f"{TYPES[str(memory.dtype)]} {_ALIASING} *{printer.parameter(memory, f'p{number}')}"
        for number, memory in enumerate(kernel.parameters)
    )
    printer.statement(kernel.body)
    head = f"int {kernel.name}({parameters or 'void'}) {{"
    return "\n".join([head, *printer.lines, "  return 0;", "}"])
