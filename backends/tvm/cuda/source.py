"""CUDA C of a kernel's TIR: one thread's work, with grids, axes of threads and shared memory.

text = kernel_text("k0", launch, functions)     # functions collects what the text calls
"""

from __future__ import annotations

from typing import Any

from tracejit.backends.tvm.codegen.c_source import TYPES, CPrinter, Functions, itemsize_of
from tracejit.backends.tvm.cuda.launches import BLOCK, Launch, thread_axis
from tracejit.backends.tvm.ir.tir import Buffer, nbytes


def kernel_text(name: str, launch: Launch, functions: Functions) -> str:
    """A kernel: one launch's parameters and statement.

    Raises `CompilationError` for TIR that has no CUDA C.
    """
    if launch.source is not None:
        return launch.source.text(name)
    printer = _CudaPrinter(functions)
    parameters = []
    for number, memory in enumerate(launch.parameters):
        read_only = "" if number >= launch.reads else "const "
        parameter = printer.parameter(memory, f"p{number}")
        parameters.append(f"{read_only}{TYPES[str(memory.dtype)]}* __restrict__ {parameter}")
    printer.statement(launch.body)
    shared = "  DYNAMIC_SHARED(room);\n" if printer.shared_bytes else ""
    head = f'extern "C" __global__ void __launch_bounds__({launch.threads}) {name}'
    launch.shared_bytes = printer.shared_bytes
    return f"{head}({', '.join(parameters)}) {{\n{shared}" + "\n".join(printer.lines) + "\n}\n"


class _CudaPrinter(CPrinter):
    def __init__(self, functions: Functions) -> None:
        super().__init__(functions)
        self.shared_bytes = 0

    def generic(self, function: str, kind: str, *arguments: str) -> str:
        return f"{function}<{kind}>({', '.join(arguments)})"

    def attribute(self, s: Any) -> None:
        axis = thread_axis(s)
        if axis is None:
            super().attribute(s)
            return
        name = self.fresh(s.node.var, "i")
        self.line(f"const int {name} = (int){axis};")
        self.statement(s.body)

    def allocate(self, memory: Buffer) -> None:
        if memory.scope() != "shared":
            super().allocate(memory)
            return
        kind = TYPES[str(memory.dtype)]
        self.shared_bytes += -self.shared_bytes % 16
        name = self.fresh(memory, "s")
        self.line(f"{kind}* const {name} = ({kind}*)(room + {self.shared_bytes});")
        self.shared_bytes += nbytes(memory)

    def loop(self, s: Any) -> None:
        """The steps of a grid's loop are shared by its threads, which stride over them."""
        if s.annotations.get(BLOCK) is None:
            super().loop(s)
            return
        name = self.fresh(s.loop_var, "i")
        kind = TYPES[str(s.loop_var.ty)]
        first, extent = self.index(s.min), self.index(s.extent)
        assert first == "0"
        wide = kind if itemsize_of(kind) == 8 else "long long"
        start = f"blockIdx.x * ({wide})blockDim.x + threadIdx.x"
        step = f"({wide})gridDim.x * blockDim.x"
        counter = f"{name}_"
        self.line(f"for ({wide} {counter} = {start}; {counter} < {extent}; {counter} += {step}) {{")
        self.depth += 1
        self.line(f"const {kind} {name} = ({kind}){counter};")
        self.statement(s.body)
        self.depth -= 1
        self.line("}")
