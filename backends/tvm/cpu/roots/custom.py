"""CustomCall: a callback to the function registered for its target, or a kernel in the program."""

from __future__ import annotations

from tracejit.backends.abi import COLLECTIVE
from tracejit.backends.tvm.codegen.custom_calls import inlined_kernel, operand_memory
from tracejit.backends.tvm.codegen.kernel_frame import Frame, memory_buffer
from tracejit.backends.tvm.codegen.root_rules import Results
from tracejit.backends.tvm.cpu.llvm.native_calls import native_call
from tracejit.backends.tvm.cpu.root_rules import rooted
from tracejit.backends.tvm.cpu.roots.linalg import det, eigh, qr, solve, svd
from tracejit.backends.tvm.ir.native_records import native_record
from tracejit.backends.tvm.ir.tir import (
    Evaluate,
    IfThenElse,
    Stmt,
    i32,
    importing,
    nbytes,
    seq,
    tirx,
    var,
)
from tracejit.backends.tvm.target.host_calls import library_call
from tracejit.graph import Instruction
from tracejit.ops.custom import COLLECTIVE_TARGET, CUSTOM_CALL, LINEAR_ALGEBRA, NATIVE_TARGET
from tracejit.targets import kernel_for

# The custom calls of linear algebra that have kernels.
_COMPILED = {
    LINEAR_ALGEBRA + name: rule
    for name, rule in {
        "det": det,
        "eigh_l": eigh,
        "eigh_u": eigh,
        "eigvalsh_l": eigh,
        "eigvalsh_u": eigh,
        "qr": qr,
        "qr_complete": qr,
        "qr_r": qr,
        "slogdet": det,
        "solve": solve,
        "svd": svd,
        "svdvals": svd,
    }.items()
}


@rooted.attach(CUSTOM_CALL)
def custom_call(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    rule = _COMPILED.get(instruction.attributes["custom_call_target"])
    if rule is not None:
        return rule(frame, instruction, results)
    if instruction.attributes["custom_call_target"].startswith(COLLECTIVE_TARGET):
        return _collective(frame, instruction, results)
    if instruction.attributes["custom_call_target"] == NATIVE_TARGET:
        return _native(frame, instruction, results)
    kernel = kernel_for(instruction)
    if kernel is None:
        return library_call(frame, instruction, results)
    return inlined_kernel(frame, instruction, results, kernel)


def _collective(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    """A call of the communicator that is bound when the program runs; nothing is copied.

    A scalar constant has no memory; its bytes are an argument.
    """
    frame.schedule = "collective"
    target, text = (instruction.attributes[n] for n in ("custom_call_target", "backend_config"))
    arguments = [
        frame.inputs[operand].data
        if operand in frame.inputs
        else operand.attributes["literal"].tobytes().hex()
        for operand in instruction.operands
    ]
    arguments += [buffer.data for _, buffer in results]
    return Evaluate(tirx.call_packed(COLLECTIVE, target, text, *arguments))


def _native(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    """A call of a compiled library's function, through a record that the runtime fills."""
    frame.schedule = "native call"
    record = native_record(instruction.attributes["backend_config"])
    frame.inputs.share(record, memory_buffer(record.array_shape, "record"))
    prepared: list[Stmt] = []
    given = [operand_memory(frame, operand, prepared) for operand in instruction.operands]
    made = [buffer for _, buffer in results]
    copied = {
        alias.operand: (number, nbytes(made[number]))
        for alias in instruction.attributes["output_to_operand_aliasing"]
        for number in [alias.output_index[0] if alias.output_index else 0]
        if not given[alias.operand].same_as(made[number])
    }
    name, text = native_call(len(given), len(made), copied)
    pointers = [buffer.data for buffer in (frame.inputs[record], *given, *made)]
    status = var("status", "int32")
    called = tirx.Bind(status, tirx.call_extern("int32", name, *pointers))
    fail = IfThenElse(status != i32(0), Evaluate(tirx.tvm_throw_last_error()), None)
    return importing(text, seq(*prepared, called, fail))
