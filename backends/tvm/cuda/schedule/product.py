"""Matrix products in tiles: a block computes a tile of the result, each thread a part of it.

    tiled(frame, instruction, results)

A block copies a slice of both operands to shared memory, computed there if they are fused, and its
threads multiply it from there: an element is fetched once for a whole row or column of the tile.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tracejit.backends.tvm.codegen.access_analysis import Accesses, Load
from tracejit.backends.tvm.codegen.emitter import Emitter
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.codegen.loop_nest import Axis, Space, merge, settle
from tracejit.backends.tvm.codegen.root_rules import Results
from tracejit.backends.tvm.codegen.scalar.elements import place
from tracejit.backends.tvm.codegen.scalar.loops import store_results
from tracejit.backends.tvm.codegen.stores import identity
from tracejit.backends.tvm.cuda.blocks import ENOUGH_BLOCKS, barrier, blocks
from tracejit.backends.tvm.cuda.products import Sum
from tracejit.backends.tvm.ir.affine import Index, LoopVariable
from tracejit.backends.tvm.ir.tir import (
    UNROLLED,
    AllocBuffer,
    Buffer,
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

    def locate(
        self,
        side: int,
        batch: Sequence[Index],
        free: Sequence[Index],
        over: Sequence[Index],
    ) -> list[Index]:
        """The indices of an operand's element."""
        dimensions = (*self.batch[side], *self.free[side], *self.summed[side])
        where = dict(zip(dimensions, (*batch, *free, *over), strict=True))
        return [where[d] for d in range(len(dimensions))]


def tiles_pay(parts: Dimensions) -> bool:
    """Whether a result has enough rows and columns for tiles."""
    return min(map(math.prod, parts.free_sizes)) >= LEAST and math.prod(parts.summed_sizes) > 1


def tiled(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    """The kernel of a DotGeneral of real numbers with its epilogue."""
    return _Tiled(frame, instruction, results).statement()


class _Tiled:
    """A kernel under construction."""

    def __init__(self, frame: Frame, instruction: Instruction, results: Results) -> None:
        self.frame, self.instruction, self.results = frame, instruction, results
        self.dtype = frame.index_dtype
        self.parts = parts = Dimensions(instruction)
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

    @property
    def at(self) -> list[Index]:
        """The indices of the result's element."""
        return [*self.batch.indices, *self.sides[0].indices, *self.sides[1].indices]

    def _operand(self, scope: Accesses | Emitter, side: int) -> object:
        where = self.parts.locate(
            side, self.batch.indices, self.sides[side].indices, self.over.indices
        )
        return scope.value((self.parts.lhs, self.parts.rhs)[side], where)

    def _ask(self, scope: Accesses) -> None:
        for side in range(2):
            before = len(scope.loads)
            self._operand(scope, side)
            self.loads[side] = scope.loads[before:]
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

    def _tile(self) -> Tile:
        """The largest tile that leaves enough blocks to keep a device busy."""
        for tile in TILES:
            count = -(-self.rows // tile.rows) * -(-self.columns // tile.columns)
            if count * self.batches >= ENOUGH_BLOCKS // 2:
                return tile
        return SMALLEST

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
        return blocks(
            self.batches * across * down,
            tile.threads,
            lambda block, thread: self._body(self._index(block), thread, across, down),
        )

    def _body(self, block: Expr, thread: Expr, across: int, down: int) -> list[Stmt]:
        tile, dtype = self.tile, self.dtype
        first_column = tirx.truncmod(block, self.c(across)) * self.c(tile.columns)
        others = tirx.truncdiv(block, self.c(across))
        first_row = tirx.truncmod(others, self.c(down)) * self.c(tile.rows)
        place(tirx.truncdiv(others, self.c(down)), self.batch_axes, self.positions, dtype)
        total = Sum(self.instruction.array_shape.element_type, tile.own_rows * tile.own_columns)
        # One element more in a line, so that those of a column lie in different banks.
        copies = [
            buffer("shared", (tile.depth * (size + 1),), total.dtype, scope="shared")
            for size in (tile.rows, tile.columns)
        ]
        starts = first_row, first_column
        steps = -(-self.depth // tile.depth)
        wide = const(tile.columns // tile.own_columns, "int32")
        lane, line = tirx.truncmod(thread, wide), tirx.truncdiv(thread, wide)

        def step(number: Expr) -> list[Stmt]:
            begin = number * self.c(tile.depth)
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
            self._stored(starts, line, lane, total),
        ]

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
            value = total.number(self._operand(emitter, side))
            where = deep * const(size + 1, "int32") + own
            made = seq(*emitter.allocations, *emitter.statements, store(copy, where, value))
            inside: Expr | None = None
            if self.depth % tile.depth:
                inside = k < self.c(self.depth)
            if extent % size:
                fits = at < self.c(extent)
                inside = fits if inside is None else tirx.And(inside, fits)
            if inside is not None:
                made = IfThenElse(inside, made, store(copy, where, total.zero))
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
        tile = self.tile
        shape = self.instruction.array_shape

        def column(i: Expr) -> Callable[[Expr], Stmt]:
            row = starts[0] + self._index(i * const(tile.rows // tile.own_rows, "int32") + line)

            def one(j: Expr) -> Stmt:
                step = const(tile.columns // tile.own_columns, "int32")
                at = starts[1] + self._index(j * step + lane)
                place(row, self.side_axes[0], self.positions, self.dtype)
                place(at, self.side_axes[1], self.positions, self.dtype)
                scope = self.emitter()
                value = total.value_at(i * const(tile.own_columns, "int32") + j)
                scope.given[self.instruction] = scope.settled(value, shape.element_type)
                stores = store_results(scope, self.results, shape.dimensions, self.at)
                inside = tirx.And(row < self.c(self.rows), at < self.c(self.columns))
                made = seq(*scope.allocations, *scope.statements, *stores)
                return IfThenElse(inside, made, None)

            return one

        return loop(tile.own_rows, lambda i: loop(tile.own_columns, column(i), UNROLLED), UNROLLED)


def _extent(axes: Sequence[Axis]) -> int:
    return math.prod(axis.extent for axis in axes)
