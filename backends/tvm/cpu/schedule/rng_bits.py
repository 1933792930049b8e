"""RngBitGenerator: vectors of counters, in parallel; each counter gives several words.

A `CounterLayout` maps the words of a counter to the result. If that is a single stride for all
counters the vector stores them; otherwise (ThreeFry's halves of odd sizes) a scalar loop does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tracejit.backends.tvm.codegen.emitter import Emitter
from tracejit.backends.tvm.codegen.kernel_frame import Frame
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

Generate = Callable[[Emitter, Expr], Sequence[Expr]]
"""The register values of the words of one counter, given as its offset (u64) from the first."""

# The cost of one counter, in additions.
COST = 100


@dataclass(frozen=True)
class CounterLayout:
    """Word ``w`` of counter (outer * ``half`` + i) * ``inner`` + rest goes to
    (outer * ``size`` + ``words`` * i + w) * ``inner`` + rest, if ``words`` * i + w < ``size``.
    """

    words: int
    size: int
    inner: int

    @property
    def half(self) -> int:
        return -(-self.size // self.words)

    @property
    def whole(self) -> bool:
        """Whether every word of every counter has an index in the result."""
        return self.size % self.words == 0

    def place(self, counter: Expr, word: int, dtype: str) -> tuple[Expr, Expr]:
        """The index of a word, and whether it is inside the result."""

        def number(value: int) -> Expr:
            return const(value, dtype)

        line = tirx.truncdiv(counter, number(self.inner)) if self.inner > 1 else counter
        rest = tirx.truncmod(counter, number(self.inner)) if self.inner > 1 else number(0)
        if self.whole:
            address = line * number(self.words) + number(word)
            return address * number(self.inner) + rest, const(True, "bool")
        outer = tirx.truncdiv(line, number(self.half))
        along = tirx.truncmod(line, number(self.half)) * number(self.words) + number(word)
        address = (outer * number(self.size) + along) * number(self.inner) + rest
        return address, along < number(self.size)


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
