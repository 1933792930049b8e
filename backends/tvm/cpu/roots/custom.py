"""CustomCall: a callback to the function registered for its target, or a kernel in the program."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tvm.ir import TensorLoad
from tvm_ffi import structural_map

from tracejit.backends.abi import COLLECTIVE
from tracejit.backends.tvm.codegen.kernel_frame import Frame, memory_buffer
from tracejit.backends.tvm.codegen.root_rules import Results
from tracejit.backends.tvm.cpu.llvm.native_calls import native_call
from tracejit.backends.tvm.cpu.root_rules import rooted
from tracejit.backends.tvm.cpu.roots.linalg import det, eigh, qr, solve, svd
from tracejit.backends.tvm.ir.dtypes import memory_dtype, words
from tracejit.backends.tvm.ir.native_records import native_record
from tracejit.backends.tvm.ir.tir import (
    AllocBuffer,
    Buffer,
    Evaluate,
    Expr,
    IfThenElse,
    Stmt,
    const,
    i32,
    i64,
    importing,
    nbytes,
    seq,
    store,
    tirx,
    var,
)
from tracejit.backends.tvm.target.host_calls import library_call
from tracejit.errors import CompilationError
from tracejit.graph import Instruction
from tracejit.ops.constants import CONSTANT
from tracejit.ops.custom import COLLECTIVE_TARGET, CUSTOM_CALL, LINEAR_ALGEBRA, NATIVE_TARGET
from tracejit.shapes import Shape
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
    prepared: list[Stmt] = []
    buffers = [_memory(frame, operand, prepared) for operand in instruction.operands]
    buffers += [target for _, target in results]
    shapes = [o.array_shape for o in (*instruction.operands, *(r for r, _ in results))]
    return seq(*prepared, _with_buffers(kernel, buffers, shapes, instruction))


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
    given = [_memory(frame, operand, prepared) for operand in instruction.operands]
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


def _memory(frame: Frame, operand: Instruction, prepared: list[Stmt]) -> Buffer:
    """An operand's buffer; a scalar constant is first stored to one."""
    if operand in frame.inputs:
        return frame.inputs[operand]
    assert operand.op is CONSTANT, f"{operand} has no memory"
    shape = operand.array_shape
    own = memory_buffer(shape, "constant")
    value = operand.attributes["literal"].reshape(1).view(memory_dtype(shape.element_type))
    prepared.append(AllocBuffer(own))
    for place, word in enumerate(value.tolist()):
        prepared.append(store(own, i64(place), const(word, str(own.dtype))))
    return own


def _with_buffers(
    kernel: Any, buffers: Sequence[Buffer], shapes: Sequence[Shape], instruction: Instruction
) -> Stmt:
    """The kernel's body on flat buffers, which are aligned to their items only."""
    name = instruction.attributes["custom_call_target"]
    if len(kernel.params) != len(buffers):
        raise CompilationError(
            f"custom_call: the kernel of {name!r} has {len(kernel.params)} parameters, not "
            f"{len(buffers)}, one for each operand and result",
            instruction.source,
        )
    memory = []
    for parameter, buffer, shape in zip(kernel.params, buffers, shapes, strict=True):
        given = [int(size) for size in parameter.shape]
        items = shape.size * words(shape.element_type)
        if math.prod(given) != items or str(parameter.dtype) != str(buffer.dtype):
            raise CompilationError(
                f"custom_call: the kernel of {name!r} takes {parameter.dtype}{given} for {shape}, "
                f"which is held as {buffer.dtype}[{items}]",
                instruction.source,
            )
        memory.append((parameter, buffer, given))

    def found(given: Any) -> tuple[Buffer, list[int]] | None:
        for parameter, buffer, sizes in memory:
            if given.same_as(parameter):
                return buffer, sizes
        return None

    def load(node: Any) -> Any:
        own = found(node.source)
        return node if own is None else tirx.BufferLoad(own[0], [_linear(node.indices, own[1])])

    def stored(node: Any) -> Any:
        own = found(node.buffer)
        if own is None:
            return node
        return tirx.BufferStore(own[0], node.value, [_linear(node.indices, own[1])])

    return structural_map(kernel.body, [(TensorLoad, load), (tirx.BufferStore, stored)])


def _linear(indices: Sequence[Expr], sizes: Sequence[int]) -> Expr:
    place: Expr = i64(0)
    for index, size in zip(indices, sizes, strict=True):
        place = place * i64(size) + index.astype("int64")
    return place
