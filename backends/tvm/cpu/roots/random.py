"""Lowers RngBitGenerator to a kernel, and its state to a callback where Python holds it."""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.backends.tvm.codegen.emitter import Emitter
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.codegen.root_rules import Results
from tracejit.backends.tvm.cpu import mathematics
from tracejit.backends.tvm.cpu.root_rules import rooted
from tracejit.backends.tvm.cpu.schedule.rng_bits import CounterLayout, Generate, generating
from tracejit.backends.tvm.ir.affine import Affine
from tracejit.backends.tvm.ir.dtypes import memory_dtype
from tracejit.backends.tvm.ir.tir import Buffer, Expr, Stmt, const, reinterpret, seq, store, tirx
from tracejit.graph import Instruction
from tracejit.ops.random import (
    RNG_BIT_GENERATOR,
    THREE_FRY,
    Halves,
    counters,
)
from tracejit.shapes import ElementType, Shape, TupleShape


@rooted.attach(RNG_BIT_GENERATOR)
def rng_bit_generator(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
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
        statements.append(generating(frame, count, generate, layout, bits))
    return seq(*statements)


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
    if element_type.bits == 4:
        words = [word & const(15, "uint32") for word in words]
    unsigned = f"uint{max(element_type.bits, 8)}"
    return [reinterpret(memory, tirx.Cast(unsigned, word)) for word in words]
