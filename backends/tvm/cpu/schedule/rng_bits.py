"""RngBitGenerator: vectors of counters, in parallel; each counter gives several words.

A `CounterLayout` maps the words of a counter to the result. If that is a single stride for all
counters the vector stores them; otherwise (ThreeFry's halves of odd sizes) a scalar loop does.
"""

from __future__ import annotations

from tracejit.backends.tvm.codegen.emitter import Emitter
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.codegen.scalar.random import CounterLayout, Generate
from tracejit.backends.tvm.cpu.schedule.lanes import as_index
from tracejit.backends.tvm.ir.tir import (
    PARALLEL,
    VECTORIZED,
    AllocBuffer,
    Buffer,
    Expr,
    IfThenElse,
    Stmt,
    buffer,
    const,
    i32,
    loop,
    seq,
    store,
    tirx,
)
from tracejit.shapes import ElementType

# The cost of one counter, in additions.
COST = 100


def generating(
    frame: Frame, count: int, generate: Generate, layout: CounterLayout, target: Buffer
) -> Stmt:
    """Store the words of ``count`` counters; ``generate`` makes values of ``target``'s type."""
    frame.schedule = "random bits"
    dtype = frame.index_dtype
    in_vectors = layout.whole and layout.inner == 1
    lanes = frame.lanes(ElementType.U32, count)
    blocks = -(-count // lanes)

    def block(number: Expr) -> list[Stmt]:
        first = number * const(lanes, dtype)
        if count % lanes:
            first = tirx.min(first, const(count - lanes, dtype))
        held = [
            buffer("word", (lanes,), target.dtype, scope="local")
            for _ in range(0 if in_vectors else layout.words)
        ]
        allocations: list[Stmt] = [AllocBuffer(each) for each in held]

        def vector(lane: Expr) -> Stmt:
            emitter = Emitter(
                frame.inputs, {}, lanes=lanes, lane=lane, uses=frame.uses, index_dtype=dtype
            )
            counter = first + as_index(lane, dtype)
            words = generate(emitter, tirx.Cast("uint64", counter))
            allocations.extend(emitter.allocations)
            if in_vectors:
                stores = [
                    store(target, layout.place(counter, n, dtype)[0], word)
                    for n, word in enumerate(words)
                ]
            else:
                stores = [store(b, lane, word) for b, word in zip(held, words, strict=True)]
            return seq(*emitter.statements, *stores)

        def scattered(lane: Expr) -> list[Stmt]:
            counter = first + as_index(lane, dtype)
            made = []
            for n, each in enumerate(held):
                address, exists = layout.place(counter, n, dtype)
                made.append(IfThenElse(exists, store(target, address, each[lane]), None))
            return made

        # A single lane is not vectorised.
        one = lanes == 1
        statements = [vector(i32(0)) if one else loop(lanes, vector, VECTORIZED)]
        if not in_vectors:
            statements.append(loop(lanes, scattered))
        return [*allocations, *statements]

    chunks = frame.pieces(count * COST)
    chunks = min(chunks, blocks)
    if chunks == 1:
        return loop(blocks, block, dtype=dtype)
    size = -(-blocks // chunks)

    def chunk(number: Expr) -> Stmt:
        begin = number * const(size, dtype)
        left = tirx.max(tirx.min(const(size, dtype), const(blocks, dtype) - begin), const(0, dtype))
        return loop(left, lambda n: block(begin + n), dtype=dtype)

    return loop(chunks, chunk, PARALLEL, dtype=dtype)
