"""Custom calls with kernels of the user's: their operands' memory, and TVM functions on it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tvm.ir import TensorLoad
from tvm_ffi import structural_map

from tracejit.backends.tvm.codegen.kernel_frame import Frame, memory_buffer
from tracejit.backends.tvm.codegen.root_rules import Results
from tracejit.backends.tvm.ir.dtypes import memory_dtype, words
from tracejit.backends.tvm.ir.tir import (
    AllocBuffer,
    Buffer,
    Expr,
    Stmt,
    const,
    i64,
    seq,
    store,
    tirx,
)
from tracejit.errors import CompilationError
from tracejit.graph import Instruction
from tracejit.ops.constants import CONSTANT
from tracejit.shapes import Shape


def operand_memory(frame: Frame, operand: Instruction, prepared: list[Stmt]) -> Buffer:
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


def inlined_kernel(frame: Frame, instruction: Instruction, results: Results, kernel: Any) -> Stmt:
    """The body of a TVM function on the memory of a call's operands and results.

    Raises `CompilationError` for a function whose parameters do not fit.
    """
    prepared: list[Stmt] = []
    buffers = [operand_memory(frame, operand, prepared) for operand in instruction.operands]
    buffers += [target for _, target in results]
    shapes = [o.array_shape for o in (*instruction.operands, *(r for r, _ in results))]
    return seq(*prepared, _with_buffers(kernel, buffers, shapes, instruction))


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
