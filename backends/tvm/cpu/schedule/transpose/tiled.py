"""Pointwise kernels with strided loads: transposes a tile of the source in the first-level cache.

If vectors of the result run across an operand's memory order, each load would take one item of a
cache line, and the line would be evicted before the next item is needed. So the lines of a tile
are copied along their contiguous axis, and vectors are gathered from the copy. If the computation
is cheap, square blocks are transposed and used in registers instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tracejit.backends.tvm.codegen.access_analysis import Load
from tracejit.backends.tvm.codegen.emitter import Emitter
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.codegen.loop_nest import Axis, Count, nest
from tracejit.backends.tvm.cpu.machine import machine_of
from tracejit.backends.tvm.cpu.mathematics.lanes import ZIPS
from tracejit.backends.tvm.cpu.schedule.lanes import as_index
from tracejit.backends.tvm.ir.affine import LoopVariable
from tracejit.backends.tvm.ir.dtypes import memory_dtype
from tracejit.backends.tvm.ir.tir import (
    VECTORIZED,
    AllocBuffer,
    Buffer,
    Expr,
    Stmt,
    buffer,
    const,
    loop,
    seq,
    store,
    tirx,
)
from tracejit.backends.tvm.tune.knobs import either
from tracejit.graph import Instruction

# Squares in a tile, and the number of them side by side along results. LLVM must not unroll the
# loop over all of them: it would see through the shuffles, and split vectors into lanes.
SQUARES = 16
ALONG = 8
# The highest cost of an element that is computed directly from a register transpose.
CHEAP = 4
# The most operands that one kernel transposes: each takes 32 KiB of stack.
MOST = 3
# The least elements: fewer stay in the first-level cache anyway.
LEAST = 1 << 12

Make = Callable[
    [int, Expr, Mapping[Instruction, tuple[Buffer, Expr]]], tuple[list[Stmt], list[Stmt]]
]
"""``make(lanes, lane, tiles)`` returns the allocations and statements for a vector of results at
the current positions; ``tiles`` maps transposed loads to their buffer and offset.
"""


def aligned(size: int, dtype: str) -> Buffer:
    """A local buffer whose vectors are aligned to cache lines."""
    return tirx.decl_buffer((size,), dtype, name="tile", data_alignment=64)


def steps(side: int) -> list[int]:
    """The number of vectors that are interleaved in each step of transposing ``side`` vectors."""
    levels = side.bit_length() - 1
    return [4] * (levels // 2) + [2] * (levels % 2)


Vector = Callable[[Expr], Expr]
"""A function from the lane to an expression."""


def zipped(vectors: Sequence[Vector], side: int, dtype: str) -> tuple[list[Stmt], list[Buffer]]:
    """Interleave a power of two of vectors: all first lanes, then all second lanes …

    If ``vectors`` are i, i + side / n, i + 2 side / n … of a square, the results are n i, n i + 1,
    n i + 2 … of the next step's input, and after the last step of the transpose.
    """
    statements: list[Stmt] = []

    def held(vector: Vector) -> Buffer:
        local = buffer("row", (side,), dtype, scope="local")
        kept = loop(side, lambda lane: store(local, lane, vector(lane)), VECTORIZED)
        statements.extend([AllocBuffer(local), kept])
        return local

    def both(half: Callable[[Expr, Expr, str], Expr], pair: tuple[Buffer, Buffer]) -> Vector:
        return lambda lane: half(pair[0][lane], pair[1][lane], dtype)

    made = [held(vector) for vector in vectors]
    for _ in range(len(vectors).bit_length() - 1):
        pairs = zip(made[: len(made) // 2], made[len(made) // 2 :], strict=True)
        made = [held(both(half, pair)) for pair in pairs for half in ZIPS[1]]
    return statements, made


Source = Callable[[Expr, Expr], Vector]
"""``source(block, row)``: vector ``row`` of square ``block``."""


@dataclass(frozen=True)
class StridedLoads:
    """The loads that are contiguous along ``across`` while results are along ``inner``."""

    across: Axis
    inner: Axis
    loads: tuple[Load, ...]

    def square(self, vector_bytes: int) -> int:
        """The side of a register transpose: a power of two, at most a vector."""
        most = min(vector_bytes // self.item_bytes, self.inner.extent, self.across.extent)
        return 1 << (most.bit_length() - 1)

    def tile(self, frame: Frame) -> tuple[int, int, int]:
        """The side of a square, and the numbers of squares in a tile along ``inner`` and
        ``across``.

        If no element may be computed twice, the tile size with the smallest remainder.
        """
        side = self.square(machine_of(frame).vector_bytes)
        along, deep = self.inner.extent // side, self.across.extent // side
        if not frame.apart:
            along = min(ALONG, along)
            return side, along, min(SQUARES // along, deep)
        along = max(count for count in range(1, ALONG + 1) if along % count == 0)
        return side, along, max(n for n in range(1, SQUARES // along + 1) if deep % n == 0)

    def covered(self, frame: Frame) -> tuple[int, int]:
        """The extents of ``across`` and ``inner`` that whole tiles cover."""
        side, along, deep = self.tile(frame)
        across, inner = self.across.extent, self.inner.extent
        return across - across % (deep * side), inner - inner % (along * side)

    @property
    def item_bytes(self) -> int:
        types = [load.instruction.array_shape.element_type for load in self.loads]
        return max(4, *(t.dtype.itemsize for t in types))


def strided_loads(
    loads: Sequence[Load], axes: Sequence[Axis], elements: int
) -> StridedLoads | None:
    """The strided loads of a kernel over ``axes``, if transposing a tile pays."""
    if len(axes) < 2 or elements < LEAST or axes[-1].extent < 4:
        return None
    *others, inner = axes
    for across in others:
        found = tuple(load for load in loads if _is_strided(load, across, inner, loads))
        if found and across.extent >= 4:
            return StridedLoads(across, inner, found[:MOST])
    return None


def _is_strided(load: Load, across: Axis, inner: Axis, loads: Sequence[Load]) -> bool:
    shape = load.instruction.array_shape
    return (
        load.known
        and not shape.element_type.is_complex
        and load.address.coefficient(across.last) == 1
        and load.address.coefficient(inner.last) * shape.element_type.dtype.itemsize >= 64
        and sum(other.instruction is load.instruction for other in loads) == 1
    )


def in_tiles(
    frame: Frame,
    what: StridedLoads,
    axes: Sequence[Axis],
    positions: dict[LoopVariable, Expr],
    parallel: int,
    make: Make,
) -> Stmt:
    """The whole nest; only the whole tiles if no element may be computed twice."""
    dtype = frame.index_dtype
    side, along, deep = what.tile(frame)
    length, width = deep * side, along * side
    begin: dict[Axis, Expr] = {}

    def number(value: int) -> Expr:
        return const(value, dtype)

    def index(lane: Expr) -> Expr:
        return as_index(lane, dtype)

    def placing(axis: Axis, size: int | None) -> Count:
        def place(at: Expr) -> None:
            if size is None:
                positions[axis.last] = at
                return
            first = at * number(size)
            if axis.extent % size and not frame.apart:
                first = tirx.min(first, number(axis.extent - size))
            begin[axis] = first

        if size is None:
            return Count(axis.extent, place)
        return Count(axis.extent // size if frame.apart else -(-axis.extent // size), place)

    def tile() -> list[Stmt]:
        held = {}
        statements: list[Stmt] = []
        for load in what.loads:
            kind = memory_dtype(load.instruction.array_shape.element_type)
            source: Source = reading(load)
            for step in steps(side):
                local = aligned(width * length, kind)
                body = zipping(source, local, step)
                statements += [AllocBuffer(local), loop(along * length // step, body, dtype=dtype)]
                source = rereading(local)
            held[load.instruction] = local
        allocations: list[Stmt] = []

        def vectors(at: Expr, square: Expr) -> Stmt:
            positions[what.across.last] = begin[what.across] + at
            block = square * number(deep) + tirx.truncdiv(at, number(side))

            def vector(lane: Expr) -> Stmt:
                offset = square * number(side) + index(lane)
                positions[what.inner.last] = begin[what.inner] + offset
                where = place(block, tirx.truncmod(at, number(side)), lane)
                places = {key: (local, where) for key, local in held.items()}
                needed, made = make(side, lane, places)
                allocations.extend(needed)
                return seq(*made)

            return loop(side, vector, VECTORIZED)

        def line(at: Expr) -> Stmt:
            return loop(along, lambda square: vectors(at, square), dtype=dtype)

        lines = loop(length, line, dtype=dtype)
        return [*statements, *allocations, lines]

    def reading(load: Load) -> Source:
        """The vectors of the operand, untransposed."""

        def read(block: Expr, row: Expr) -> Vector:
            across = tirx.truncmod(block, number(deep)) * number(side)
            inner = tirx.truncdiv(block, number(deep)) * number(side) + row

            def item(lane: Expr) -> Expr:
                positions[what.across.last] = begin[what.across] + across + index(lane)
                positions[what.inner.last] = begin[what.inner] + inner
                emitter = Emitter(frame.inputs, positions, index_dtype=dtype)
                return frame.inputs[load.instruction][emitter.expression(load.address)]

            return item

        return read

    def place(block: Expr, row: Expr, lane: Expr) -> Expr:
        return (block * number(side) + row) * number(side) + index(lane)

    def rereading(local: Buffer) -> Source:
        return lambda block, row: lambda lane: local[place(block, row, lane)]

    def zipping(source: Source, target: Buffer, count: int) -> Callable[[Expr], list[Stmt]]:
        """A loop body: iteration ``each`` interleaves ``count`` vectors of one square."""
        groups = number(side // count)

        def step(each: Expr) -> list[Stmt]:
            block, first = tirx.truncdiv(each, groups), tirx.truncmod(each, groups)
            rows = [source(block, first + number(n * (side // count))) for n in range(count)]
            statements, made = zipped(rows, side, str(target.dtype))
            for n, vector in enumerate(made):
                row = first * number(count) + number(n)

                def kept(lane: Expr, row: Expr = row, vector: Buffer = vector) -> Stmt:
                    return store(target, place(block, row, lane), vector[lane])

                statements.append(loop(side, kept, VECTORIZED))
            return statements

        return step

    def square(along: Expr, down: Expr) -> list[Stmt]:
        """One square, transposed and used in registers."""
        statements: list[Stmt] = []
        held = {}
        for load in what.loads:
            read, kind = reading(load), memory_dtype(load.instruction.array_shape.element_type)
            block = along * number(deep) + down
            rows = [read(block, number(row)) for row in range(side)]
            made, held[load.instruction] = zipped(rows, side, kind)
            statements += made
        for row in range(side):
            allocations: list[Stmt] = []

            def vector(lane: Expr, row: int = row, allocations: list[Stmt] = allocations) -> Stmt:
                offset = along * number(side) + index(lane)
                positions[what.inner.last] = begin[what.inner] + offset
                line = down * number(side) + number(row)
                positions[what.across.last] = begin[what.across] + line
                places = {key: (vectors[row], lane) for key, vectors in held.items()}
                needed, made = make(side, lane, places)
                allocations.extend(needed)
                return seq(*made)

            body = loop(side, vector, VECTORIZED)
            statements += [*allocations, body]
        return statements

    def squares() -> Stmt:
        def line(down: Expr) -> Stmt:
            return loop(along, lambda number: square(number, down), dtype=dtype)

        return loop(deep, line, dtype=dtype)

    outer = [axis for axis in axes if axis not in (what.across, what.inner)]
    counts = [placing(axis, None) for axis in outer]
    counts += [placing(what.across, length), placing(what.inner, width)]
    fits = len(what.loads) == 1 and frame.cost <= CHEAP and 2 * side <= machine_of(frame).registers
    by_square = frame.choices.of("turning", either(fits, "square by square", "tile by tile"))
    return nest(counts, squares if by_square else tile, parallel=parallel, dtype=dtype)
