"""CustomCall: a kernel of the user's in CUDA C or TIR, or else a call of the host."""

from __future__ import annotations

from tracejit.backends.tvm.codegen.custom_calls import inlined_kernel, operand_memory
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.codegen.root_rules import Results
from tracejit.backends.tvm.cuda.launches import SOURCE
from tracejit.backends.tvm.cuda.table import rooted
from tracejit.backends.tvm.ir.tir import Evaluate, Stmt, seq, tirx
from tracejit.backends.tvm.target.host_calls import library_call
from tracejit.cuda.kernels import CudaKernel
from tracejit.graph import Instruction
from tracejit.ops.custom import CUSTOM_CALL
from tracejit.targets import kernel_for


@rooted.attach(CUSTOM_CALL)
def custom_call(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    """A launch of CUDA C gets the operands' addresses, then the results'."""
    kernel = kernel_for(instruction, "GPU")
    if kernel is None:
        return library_call(frame, instruction, results)
    if not isinstance(kernel, CudaKernel):
        frame.schedule = "custom call in TIR"
        return inlined_kernel(frame, instruction, results, kernel)
    frame.schedule = "custom call in CUDA C"
    prepared: list[Stmt] = []
    buffers = [operand_memory(frame, operand, prepared) for operand in instruction.operands]
    buffers += [target for _, target in results]
    pointers = [buffer.data for buffer in buffers]
    return seq(*prepared, Evaluate(tirx.call_packed(SOURCE, kernel.script(), *pointers)))
