"""RngBitGenerator: a thread for each counter; the bits are the CPU's."""

from __future__ import annotations

from tracejit.backends.tvm.codegen.emitter import Emitter
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.codegen.root_rules import Results
from tracejit.backends.tvm.cpu.roots import random as counter_based
from tracejit.backends.tvm.cuda.grid import shared_loop
from tracejit.backends.tvm.cuda.table import rooted
from tracejit.backends.tvm.ir.tir import (
    AllocBuffer,
    Expr,
    IfThenElse,
    Stmt,
    buffer,
    const,
    seq,
    store,
    tirx,
)
from tracejit.graph import Instruction
from tracejit.ops.random import RNG_BIT_GENERATOR, THREE_FRY, counters
from tracejit.shapes import Shape, TupleShape


@rooted.attach(RNG_BIT_GENERATOR)
def rng_bit_generator(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    """The new state by one thread, then the words of all counters."""
    frame.schedule = "thread a counter"
    assert isinstance(instruction.shape, TupleShape)
    (state,) = instruction.operands
    shape = instruction.shape.elements[1]
    assert isinstance(shape, Shape)
    algorithm = instruction.attributes["algorithm"]
    (_, new_state), (_, bits) = results
    count = counters(algorithm, shape)
    statements = counter_based.moved(frame, state, count, new_state)
    if not shape.size:
        return seq(*statements)
    make = counter_based.three_fry if algorithm == THREE_FRY else counter_based.philox
    generate = make(state, shape.element_type)
    layout = counter_based.layout_of(algorithm, shape)
    dtype = frame.index_dtype

    def thread(number: Expr) -> list[Stmt]:
        emitter = Emitter(frame.inputs, {}, uses=frame.uses, index_dtype=dtype)
        words = generate(emitter, tirx.Cast("uint64", number))
        held = [buffer("word", (1,), str(bits.dtype), scope="local") for _ in words]
        zero = const(0, "int32")
        kept = [store(b, zero, word) for b, word in zip(held, words, strict=True)]
        made: list[Stmt] = [AllocBuffer(b) for b in held]
        made += [*emitter.allocations, *emitter.statements, *kept]
        for place, memory in enumerate(held):
            address, exists = layout.place(number, place, dtype)
            made.append(IfThenElse(exists, store(bits, address, memory[zero]), None))
        return made

    # The state is written by one thread, a launch of its own; see `cuda.launches`.
    return seq(seq(*statements), shared_loop(count, thread, dtype))
