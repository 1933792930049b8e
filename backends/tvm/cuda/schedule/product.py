"""Matrix products in tiles: a block computes a tile of the result, each thread a part of it.

    tiled(frame, instruction, results, Dimensions(instruction)).statement()

A block copies a slice of both operands to shared memory, computed there if they are fused, and its
threads multiply it from there: an element is fetched once for a whole row or column of the tile.
Warps multiply numbers of 16 bits by tensor cores, with sums in f32.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tracejit.backends.tvm.codegen.access_analysis import Accesses, Load
from tracejit.backends.tvm.codegen.emitter import Emitter
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.codegen.loop_nest import Axis, Space, merge, settle
from tracejit.backends.tvm.codegen.root_rules import Results
from tracejit.backends.tvm.codegen.scalar.elements import place, shared_loop
from tracejit.backends.tvm.codegen.scalar.loops import store_results
from tracejit.backends.tvm.codegen.stores import identity
from tracejit.backends.tvm.cuda.blocks import ENOUGH_BLOCKS, WARP, barrier, blocks, shared
from tracejit.backends.tvm.cuda.products import Sum
from tracejit.backends.tvm.cuda.schedule.implicit_product import ConvolutionParts
from tracejit.backends.tvm.ir.affine import Index, LoopVariable
from tracejit.backends.tvm.ir.tir import (
    UNROLLED,
    AllocBuffer,
    Buffer,
    Evaluate,
    Expr,
    IfThenElse,
    Stmt,
    buffer,
    const,
    loop,
    seq,
    store,
    tirx,
)
from tracejit.graph import Instruction
from tracejit.shapes import ElementType, Shape


@dataclass(frozen=True)
class Tile:
    """A block's part of the result, the elements summed at a time, and a thread's part."""

    rows: int
    columns: int
    depth: int
    own_rows: int
    own_columns: int

    @property
    def threads(self) -> int:
        return self.rows // self.own_rows * (self.columns // self.own_columns)


TILES = (Tile(128, 128, 8, 8, 8), Tile(64, 64, 16, 4, 4), Tile(32, 32, 32, 2, 2))
SMALLEST = Tile(16, 16, 16, 1, 1)
TENSOR_TILES = (Tile(128, 128, 32, 8, 8), Tile(64, 64, 32, 4, 8))
SMALLEST_OF_TENSORS = Tile(32, 32, 32, 2, 4)
"""A thread has two rows of each of its warp's fragments of 16, and two of 8 columns."""
_SUMMED_IN_F32 = (ElementType.F16, ElementType.BF16, ElementType.F32)
LEAST_OF_PART = 256
"""Products of a result that a block sums at least, where blocks share them."""
LEAST = 8
"""Results with fewer rows or columns fill no tile."""


class Dimensions:
    """The parts of a product: which dimensions of the operands are batches, free and summed."""

    def __init__(self, instruction: Instruction) -> None:
        self.lhs, self.rhs = instruction.operands[:2]
        given = instruction.attributes
        shapes = self.lhs.array_shape.dimensions, self.rhs.array_shape.dimensions
        self.batch = given["lhs_batch_dims"], given["rhs_batch_dims"]
        self.summed = given["lhs_contracting_dims"], given["rhs_contracting_dims"]
        self.free = tuple(
            [d for d in range(len(shapes[n])) if d not in (*self.batch[n], *self.summed[n])]
            for n in range(2)
        )
        self.batch_sizes = [shapes[0][d] for d in self.batch[0]]
        self.summed_sizes = [shapes[0][d] for d in self.summed[0]]
        self.free_sizes = tuple([shapes[n][d] for d in self.free[n]] for n in range(2))

    def arranged(
        self, batch: Sequence[Index], rows: Sequence[Index], columns: Sequence[Index]
    ) -> list[Index]:
        """The indices of the result's element."""
        return [*batch, *rows, *columns]

    def inside(
        self, side: int, free: Sequence[Index], over: Sequence[Index], scope: Emitter
    ) -> Expr | None:
        """Whether an operand has the element; None where it always has."""
        return None

    def apart(
        self, free: Sequence[Sequence[Index]], over: Sequence[Index]
    ) -> frozenset[LoopVariable]:
        """The loop variables that `inside` asks for."""
        return frozenset()

    def locate(
        self,
        side: int,
        batch: Sequence[Index],
        free: Sequence[Index],
        over: Sequence[Index],
        scope: Accesses | Emitter | None = None,
    ) -> list[Index]:
        """The indices of an operand's element."""
        dimensions = (*self.batch[side], *self.free[side], *self.summed[side])
        where = dict(zip(dimensions, (*batch, *free, *over), strict=True))
        return [where[d] for d in range(len(dimensions))]


Parts = Dimensions | ConvolutionParts


def tiles_pay(parts: Parts) -> bool:
    """Whether a result has enough rows and columns for tiles."""
    return min(map(math.prod, parts.free_sizes)) >= LEAST and math.prod(parts.summed_sizes) > 1


def tiled(frame: Frame, instruction: Instruction, results: Results, parts: Parts) -> Tiled:
    """How the result of a product or convolution with its epilogue is cut into tiles."""
    types = {operand.array_shape.element_type for operand in (parts.lhs, parts.rhs)}
    found = Tiled(frame, instruction, results, parts)
    if types in ({ElementType.F16}, {ElementType.BF16}) and found.suits_tensor_cores:
        return _OnTensorCores(frame, instruction, results, parts)
    return found


class Tiled:
    """A kernel under construction, by `statement`; complex numbers have no tiles."""

    _tiles: Sequence[Tile] = TILES
    _smallest = SMALLEST

    def __init__(
        self, frame: Frame, instruction: Instruction, results: Results, parts: Parts
    ) -> None:
        self.frame, self.instruction, self.results = frame, instruction, results
        self.dtype = frame.index_dtype
        self.parts = parts
        self.batch, self.over = Space(parts.batch_sizes), Space(parts.summed_sizes)
        self.sides = [Space(sizes) for sizes in parts.free_sizes]
        self.visible = frame.inputs.without({instruction, *(root for root, _ in results)})
        self.positions: dict[LoopVariable, Expr] = {}
        self.loads: dict[int, Sequence[Load]] = {}
        accesses = settle(
            [self.batch, *self.sides, self.over], self._ask, self.visible.__contains__
        )
        addresses = [load.address for load in accesses.loads]
        addresses.append(identity(instruction.array_shape.dimensions)(self.at))

        def merged(space: Space) -> list[Axis]:
            return merge(space.variables, addresses, accesses.opaque)

        self.batch_axes, self.over_axes = merged(self.batch), merged(self.over)
        self.side_axes = [merged(space) for space in self.sides]
        self.batches, self.depth = _extent(self.batch_axes), _extent(self.over_axes)
        self.rows, self.columns = map(_extent, self.side_axes)
        self.along_depth = [self._along_depth(side) for side in range(2)]
        self.tile = self._tile()
        self.split = self._split()

    @property
    def at(self) -> list[Index]:
        """The indices of the result's element."""
        rows, columns = (side.indices for side in self.sides)
        return self.parts.arranged(self.batch.indices, rows, columns)

    def _operand(self, scope: Accesses | Emitter, side: int) -> object:
        where = self.parts.locate(
            side, self.batch.indices, self.sides[side].indices, self.over.indices, scope
        )
        return scope.value((self.parts.lhs, self.parts.rhs)[side], where)

    def _ask(self, scope: Accesses) -> None:
        for side in range(2):
            before = len(scope.loads)
            self._operand(scope, side)
            self.loads[side] = scope.loads[before:]
        free = [side.indices for side in self.sides]
        scope.opaque |= self.parts.apart(free, self.over.indices)
        scope.known.add(self.instruction)
        for root, _ in self.results:
            if root is not self.instruction:
                scope.result(root, self.at)

    def _along_depth(self, side: int) -> bool:
        """Whether neighbours in an operand's memory are summed, rather than in other results."""
        if not self.over_axes:
            return False
        inner = self.over_axes[-1].last
        return any(load.address.coefficient(inner) == 1 for load in self.loads[side])

    @property
    def suits_tensor_cores(self) -> bool:
        """Whether the product fills a step of them, and its sums are in f32."""
        narrow = self.instruction.array_shape.element_type in _SUMMED_IN_F32
        return narrow and self.depth >= 16 and min(self.rows, self.columns) >= 16

    def _tile(self) -> Tile:
        """The largest tile that leaves enough blocks to keep a device busy."""
        for tile in self._tiles:
            if self._blocks(tile) >= ENOUGH_BLOCKS // 2:
                return tile
        return self._smallest

    def _blocks(self, tile: Tile) -> int:
        """The tiles of all results."""
        return -(-self.rows // tile.rows) * -(-self.columns // tile.columns) * self.batches

    def _split(self) -> int:
        """The parts of the sums that blocks share: as many as keep a device busy."""
        wanted = ENOUGH_BLOCKS // 2 // self._blocks(self.tile)
        return max(1, min(wanted, self.depth // LEAST_OF_PART))

    def c(self, number: int) -> Expr:
        return const(number, self.dtype)

    def emitter(self) -> Emitter:
        return Emitter(self.visible, self.positions, uses=self.frame.uses, index_dtype=self.dtype)

    def _index(self, number: Expr) -> Expr:
        return number if self.dtype == "int32" else tirx.Cast(self.dtype, number)

    def statement(self) -> Stmt:
        tile = self.tile
        self.frame.schedule = f"tiles of {tile.rows} x {tile.columns}"
        across, down = -(-self.columns // tile.columns), -(-self.rows // tile.rows)
        partial = None
        if self.split > 1:
            self.frame.schedule += f", sums in {self.split} parts"
            sums = Sum(self.instruction.array_shape.element_type)
            count = self.split * self.batches * self.rows * self.columns
            partial = buffer("partial", (count,), sums.dtype)
            self.frame.scratch.append(partial)
        grid = blocks(
            self.split * self.batches * across * down,
            tile.threads,
            lambda block, thread: self._body(self._index(block), thread, across, down, partial),
        )
        return grid if partial is None else seq(grid, self._joined(partial))

    def _joined(self, partial: Buffer) -> Stmt:
        """The sums of all parts, in their order, with the epilogue."""
        size = self.batches * self.rows * self.columns
        shape = self.instruction.array_shape

        def element(number: Expr) -> list[Stmt]:
            axes = [*self.batch_axes, *self.side_axes[0], *self.side_axes[1]]
            place(number, axes, self.positions, self.dtype)
            total = Sum(shape.element_type)
            zero = const(0, "int32")

            def add(part: Expr) -> Stmt:
                one = partial[part * self.c(size) + number]
                return store(total.buffer, zero, total.buffer[zero] + one)

            scope = self.emitter()
            scope.given[self.instruction] = scope.settled(total.value(), shape.element_type)
            stores = store_results(scope, self.results, shape.dimensions, self.at)
            sums = loop(self.split, add, dtype=self.dtype)
            return [*total.begin(), sums, *scope.allocations, *scope.statements, *stores]

        return shared_loop(size, element, self.dtype)

    def _body(
        self, block: Expr, thread: Expr, across: int, down: int, partial: Buffer | None
    ) -> list[Stmt]:
        tile, dtype = self.tile, self.dtype
        first_column = tirx.truncmod(block, self.c(across)) * self.c(tile.columns)
        others = tirx.truncdiv(block, self.c(across))
        first_row = tirx.truncmod(others, self.c(down)) * self.c(tile.rows)
        batch = tirx.truncdiv(others, self.c(down))
        part = self.c(0)
        if partial is not None:
            part = tirx.truncdiv(batch, self.c(self.batches))
            batch = tirx.truncmod(batch, self.c(self.batches))
        place(batch, self.batch_axes, self.positions, dtype)
        total = Sum(self.instruction.array_shape.element_type, tile.own_rows * tile.own_columns)
        copies = [self._copy(size, total) for size in (tile.rows, tile.columns)]
        starts = first_row, first_column
        line, lane = self._own_place(thread)
        steps = self._steps

        def step(number: Expr) -> list[Stmt]:
            begin = (part * self.c(steps) + number) * self.c(tile.depth)
            filled = [
                self._fill(side, copies[side], starts[side], begin, thread, total)
                for side in range(2)
            ]
            made = [*filled, barrier(), self._multiplied(copies, line, lane, total)]
            return [*made, barrier()] if steps > 1 else made

        return [
            *total.begin(),
            *map(AllocBuffer, copies),
            loop(steps, step, dtype=dtype),
            self._stored(starts, line, lane, total)
            if partial is None
            else self._kept(
                partial, part * self.c(self.batches) + batch, starts, line, lane, total
            ),
        ]

    @property
    def _steps(self) -> int:
        """Slices that a block sums."""
        return -(-self.depth // (self.tile.depth * self.split))

    def _copy(self, size: int, total: Sum) -> Buffer:
        """Shared memory for an operand's slice: a line for each element that is summed."""
        # One element more in a line, so that those of a column lie in different banks.
        return buffer("shared", (self.tile.depth * (size + 1),), total.dtype, scope="shared")

    def _place(self, size: int, deep: Expr, own: Expr) -> Expr:
        """Where an element of a slice lies in its copy."""
        return deep * const(size + 1, "int32") + own

    def _put(self, scope: Emitter, copy: Buffer, where: Expr, value: object, total: Sum) -> Stmt:
        """Stores a value of an operand in its copy."""
        return store(copy, where, total.number(value))

    def _own_place(self, thread: Expr) -> tuple[Expr, Expr]:
        """The first row and the first column of a thread in its tile."""
        wide = const(self.tile.columns // self.tile.own_columns, "int32")
        return tirx.truncdiv(thread, wide), tirx.truncmod(thread, wide)

    def _own(self, i: Expr, j: Expr) -> tuple[Expr, Expr, Expr]:
        """How far a thread's result lies from its first, and the number of its sum."""
        tile = self.tile
        row = i * const(tile.rows // tile.own_rows, "int32")
        column = j * const(tile.columns // tile.own_columns, "int32")
        return row, column, i * const(tile.own_columns, "int32") + j

    def _fill(
        self, side: int, copy: Buffer, start: Expr, begin: Expr, thread: Expr, total: Sum
    ) -> Stmt:
        """An operand's slice: neighbouring threads fetch neighbours in memory."""
        tile = self.tile
        size = (tile.rows, tile.columns)[side]
        extent = (self.rows, self.columns)[side]
        count = size * tile.depth
        turns = -(-count // tile.threads)

        def fetched(turn: Expr) -> Stmt:
            number = turn * const(tile.threads, "int32") + thread
            fast = const(tile.depth if self.along_depth[side] else size, "int32")
            pair = tirx.truncmod(number, fast), tirx.truncdiv(number, fast)
            deep, own = pair if self.along_depth[side] else pair[::-1]
            k, at = begin + self._index(deep), start + self._index(own)
            place(k, self.over_axes, self.positions, self.dtype)
            place(at, self.side_axes[side], self.positions, self.dtype)
            emitter = self.emitter()
            where = self._place(size, deep, own)
            put = self._put(emitter, copy, where, self._operand(emitter, side), total)
            made = seq(*emitter.allocations, *emitter.statements, put)
            inside: Expr | None = None
            if self.depth != self._steps * self.split * tile.depth:
                inside = k < self.c(self.depth)
            if extent % size:
                fits = at < self.c(extent)
                inside = fits if inside is None else tirx.And(inside, fits)
            own_space = self.sides[side].indices
            there = self.parts.inside(side, own_space, self.over.indices, emitter)
            if there is not None:
                inside = there if inside is None else tirx.And(inside, there)
            if inside is not None:
                nothing = tirx.Cast(str(copy.dtype), total.zero)
                made = IfThenElse(inside, made, store(copy, where, nothing))
            if count % tile.threads:
                made = IfThenElse(number < const(count, "int32"), made, None)
            return made

        return loop(turns, fetched, UNROLLED)

    def _multiplied(self, copies: Sequence[Buffer], line: Expr, lane: Expr, total: Sum) -> Stmt:
        """A thread's sums of products, of one slice."""
        tile = self.tile
        sizes = (tile.rows, tile.own_rows), (tile.columns, tile.own_columns)
        held = [buffer("own", (own,), total.dtype, scope="local") for _, own in sizes]

        def deep(k: Expr) -> list[Stmt]:
            def fetched(side: int, first: Expr) -> Stmt:
                size, own = sizes[side]
                line_of = k * const(size + 1, "int32") + first
                stride = const(size // own, "int32")
                return loop(
                    own,
                    lambda n: store(held[side], n, copies[side][line_of + n * stride]),
                    UNROLLED,
                )

            def row(i: Expr) -> Stmt:
                return loop(
                    tile.own_columns,
                    lambda j: [total.add_at(at(i, j), held[0][i], held[1][j])],
                    UNROLLED,
                )

            def at(i: Expr, j: Expr) -> Expr:
                return i * const(tile.own_columns, "int32") + j

            return [fetched(0, line), fetched(1, lane), loop(tile.own_rows, row, UNROLLED)]

        return seq(*map(AllocBuffer, held), loop(tile.depth, deep))

    def _stored(self, starts: Sequence[Expr], line: Expr, lane: Expr, total: Sum) -> Stmt:
        """The results of a thread, with their epilogue."""
        shape = self.instruction.array_shape

        def stored(row: Expr, column: Expr, number: Expr) -> list[Stmt]:
            place(row, self.side_axes[0], self.positions, self.dtype)
            place(column, self.side_axes[1], self.positions, self.dtype)
            scope = self.emitter()
            value = total.value_at(number)
            scope.given[self.instruction] = scope.settled(value, shape.element_type)
            stores = store_results(scope, self.results, shape.dimensions, self.at)
            return [*scope.allocations, *scope.statements, *stores]

        return self._each(starts, line, lane, stored)

    def _kept(
        self,
        partial: Buffer,
        matrix: Expr,
        starts: Sequence[Expr],
        line: Expr,
        lane: Expr,
        total: Sum,
    ) -> Stmt:
        """The sums of a thread, to be joined with other parts'."""

        def stored(row: Expr, column: Expr, number: Expr) -> list[Stmt]:
            at = (matrix * self.c(self.rows) + row) * self.c(self.columns) + column
            return [store(partial, at, total.buffer[number])]

        return self._each(starts, line, lane, stored)

    def _each(
        self,
        starts: Sequence[Expr],
        line: Expr,
        lane: Expr,
        stored: Callable[[Expr, Expr, Expr], Sequence[Stmt]],
    ) -> Stmt:
        """``stored`` for the row, the column and the number of each sum of a thread."""
        tile = self.tile

        def column(i: Expr) -> Callable[[Expr], Stmt]:
            def one(j: Expr) -> Stmt:
                down, across, number = self._own(i, j)
                row = starts[0] + self._index(down + line)
                at = starts[1] + self._index(across + lane)
                inside = tirx.And(row < self.c(self.rows), at < self.c(self.columns))
                return IfThenElse(inside, seq(*stored(row, at, number)), None)

            return one

        return loop(tile.own_rows, lambda i: loop(tile.own_columns, column(i), UNROLLED), UNROLLED)


class _OnTensorCores(Tiled):
    """Warps multiply fragments of the slices, whose lines hold what is summed.

    A lane holds results of rows 8 apart and of two neighbouring columns (PTX: mma.m16n8k16).
    """

    _tiles, _smallest = TENSOR_TILES, SMALLEST_OF_TENSORS

    def statement(self) -> Stmt:
        made = super().statement()
        self.frame.schedule += " by mma"
        return made

    @property
    def _fragments(self) -> tuple[int, int]:
        """Fragments of a warp, of 16 rows and of 8 columns."""
        return self.tile.own_rows // 2, self.tile.own_columns // 2

    @property
    def _line(self) -> int:
        """Elements of a line, a few of them between lines, so that lanes read different banks."""
        return self.tile.depth + 8

    @property
    def _type(self) -> ElementType:
        return self.parts.lhs.array_shape.element_type

    def _copy(self, size: int, total: Sum) -> Buffer:
        return shared(Shape(self._type, (size * self._line,)))

    def _place(self, size: int, deep: Expr, own: Expr) -> Expr:
        return own * const(self._line, "int32") + deep

    def _put(self, scope: Emitter, copy: Buffer, where: Expr, value: Any, total: Sum) -> Stmt:
        made = scope.store(copy, where, scope.settled(value, self._type), self._type)
        return seq(*made) if isinstance(made, list) else made

    def _warp(self, thread: Expr) -> tuple[Expr, Expr]:
        """The first row and the first column of a thread's warp."""
        rows, columns = (f * s for f, s in zip(self._fragments, (16, 8), strict=True))
        across = const(self.tile.columns // columns, "int32")
        warp = tirx.truncdiv(thread, const(WARP, "int32"))
        return (
            tirx.truncdiv(warp, across) * const(rows, "int32"),
            tirx.truncmod(warp, across) * const(columns, "int32"),
        )

    def _own_place(self, thread: Expr) -> tuple[Expr, Expr]:
        self._first = row, column = self._warp(thread)
        lane = tirx.truncmod(thread, const(WARP, "int32"))
        four, two = const(4, "int32"), const(2, "int32")
        return row + tirx.truncdiv(lane, four), column + tirx.truncmod(lane, four) * two

    def _own(self, i: Expr, j: Expr) -> tuple[Expr, Expr, Expr]:
        _, across = self._fragments
        two, four, eight = (const(n, "int32") for n in (2, 4, 8))
        down, lower = tirx.truncdiv(i, two), tirx.truncmod(i, two)
        right, odd = tirx.truncdiv(j, two), tirx.truncmod(j, two)
        number = (down * const(across, "int32") + right) * four + lower * two + odd
        return i * eight, right * eight + odd, number

    def _multiplied(self, copies: Sequence[Buffer], line: Expr, lane: Expr, total: Sum) -> Stmt:
        down, across = self._fragments
        is_bf16 = "true" if self._type is ElementType.BF16 else "false"
        sizes = f"{down}, {across}, {self.tile.depth}, {self._line}, {is_bf16}"
        pointers = [
            tirx.address_of(copy[first * const(self._line, "int32")])
            for copy, first in zip(copies, self._first, strict=True)
        ]
        sums = tirx.address_of(total.buffer[const(0, "int32")])
        return Evaluate(tirx.call_extern("int32", f"tj_mma_tile<{sizes}>", sums, *pointers))


def _extent(axes: Sequence[Axis]) -> int:
    return math.prod(axis.extent for axis in axes)
