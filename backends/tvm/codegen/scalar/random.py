"""RngBitGenerator: each counter gives several words; the bits are the same on every target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tracejit.affine import Affine
from tracejit.backends.tvm.codegen.emitter import Emitter
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.codegen.root_rules import Results
from tracejit.backends.tvm.codegen.scalar.elements import shared_loop
from tracejit.backends.tvm.codegen.scalar.table import scalar
from tracejit.backends.tvm.ir import mathematics
from tracejit.backends.tvm.ir.dtypes import memory_dtype
from tracejit.backends.tvm.ir.tir import (
    AllocBuffer,
    Buffer,
    Expr,
    IfThenElse,
    Stmt,
    buffer,
    const,
    reinterpret,
    seq,
    store,
    tirx,
)
from tracejit.graph import Instruction
from tracejit.ops.random import RNG_BIT_GENERATOR, THREE_FRY, Halves, counters
from tracejit.shapes import ElementType, Shape, TupleShape

Generate = Callable[[Emitter, Expr], Sequence[Expr]]
"""The register values of the words of one counter, given as its offset (u64) from the first."""


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


@scalar.attach(RNG_BIT_GENERATOR)
def rng_bit_generator(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    """The new state, then the words of all counters."""
    frame.schedule = "random bits"
    return bits_by(generating, frame, instruction, results)


def bits_by(
    schedule: Callable[[Frame, int, Generate, CounterLayout, Buffer], Stmt],
    frame: Frame,
    instruction: Instruction,
    results: Results,
) -> Stmt:
    """The new state, then the words that ``schedule`` makes of all counters."""
    assert isinstance(instruction.shape, TupleShape)
    (state,) = instruction.operands
    shape = instruction.shape.elements[1]
    assert isinstance(shape, Shape)
    algorithm = instruction.attributes["algorithm"]
    (_, new_state), (_, bits) = results
    count = counters(algorithm, shape)
    statements = moved(frame, state, count, new_state)
    if shape.size:
        make = three_fry if algorithm == THREE_FRY else philox
        generate = make(state, shape.element_type)
        layout = layout_of(algorithm, shape)
        statements.append(schedule(frame, count, generate, layout, bits))
    return seq(*statements)


def generating(
    frame: Frame, count: int, generate: Generate, layout: CounterLayout, bits: Buffer
) -> Stmt:
    """The words of each counter in one step of a shared loop."""
    dtype = frame.index_dtype

    def words_of(number: Expr) -> list[Stmt]:
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

    return shared_loop(count, words_of, dtype)


def layout_of(algorithm: str, shape: Shape) -> CounterLayout:
    if shape.element_type.bits == 64:
        return CounterLayout(1 if algorithm == THREE_FRY else 2, shape.size, 1)
    if algorithm == THREE_FRY:
        halves = Halves.of(shape.dimensions)
        return CounterLayout(2, halves.size, halves.inner)
    return CounterLayout(4, shape.size, 1)


def _word(emitter: Emitter, state: Instruction, position: int) -> Expr:
    return emitter.hold(emitter.value(state, [Affine(position)]), ElementType.U64)


def _sum(emitter: Emitter, lhs: Expr, rhs: Expr) -> Expr:
    return emitter.hold(lhs + rhs, ElementType.U64)


def moved(frame: Frame, state: Instruction, count: int, target: Buffer) -> list[Stmt]:
    """The state with its counter advanced by ``count``, with the carry into a third word."""
    emitter = Emitter(frame.inputs, {}, uses=frame.uses, index_dtype=frame.index_dtype)
    size = state.array_shape.size
    old = [_word(emitter, state, n) for n in range(size)]
    new = [old[0], _sum(emitter, old[1], const(count, "uint64"))]
    if size == 3:
        new.append(_sum(emitter, old[2], tirx.Cast("uint64", new[1] < old[1])))
    stores = [store(target, const(n, "int32"), word) for n, word in enumerate(new)]
    return [*emitter.allocations, *emitter.statements, *stores]


def _halves(wide: Expr) -> tuple[Expr, Expr]:
    """The lower and the upper 32 bits of a 64-bit word."""
    return tirx.Cast("uint32", wide), tirx.Cast("uint32", wide >> const(32, "uint64"))


def three_fry(state: Instruction, element_type: ElementType) -> Generate:
    def generate(emitter: Emitter, offset: Expr) -> Sequence[Expr]:
        key = _word(emitter, state, 0)
        counter = _sum(emitter, _word(emitter, state, 1), offset)
        pair = mathematics.threefry(*_halves(key), *_halves(counter), dtype="uint32")
        return _in_memory(emitter, [pair], element_type)

    return generate


def philox(state: Instruction, element_type: ElementType) -> Generate:
    def generate(emitter: Emitter, offset: Expr) -> Sequence[Expr]:
        key = _word(emitter, state, 0)
        start = _word(emitter, state, 1)
        above = _word(emitter, state, 2) if state.array_shape.size == 3 else key
        low = _sum(emitter, start, offset)
        high = _sum(emitter, above, tirx.Cast("uint64", low < start))
        words = [*_halves(key), *_halves(low), *_halves(high)]
        pairs = [
            make(*words, dtype="uint32")
            for make in (mathematics.philox_low, mathematics.philox_high)
        ]
        return _in_memory(emitter, pairs, element_type)

    return generate


def _in_memory(emitter: Emitter, pairs: Sequence[Expr], element_type: ElementType) -> list[Expr]:
    """Pairs of random words converted to the type of a buffer."""
    held = [emitter.hold(pair, ElementType.U64) for pair in pairs]
    memory = memory_dtype(element_type)
    if element_type.bits == 64:
        return [reinterpret(memory, pair) for pair in held]
    words = [word for pair in held for word in _halves(pair)]
    if element_type.bits < 8:
        words = [word & const((1 << element_type.bits) - 1, "uint32") for word in words]
    unsigned = f"uint{max(element_type.bits, 8)}"
    return [reinterpret(memory, tirx.Cast(unsigned, word)) for word in words]
