"""A matrix product by register tiles, over packed panels and cache blocks.

Columns of the right operand are packed into panels one tile wide; threads share rows, columns or
ranges of the contraction; each takes a block of rows at a time past all its panels. The left
operand is read in place where it can be, else packed block by block.
"""

from __future__ import annotations

from collections.abc import Callable

from tracejit.backends.tvm.cpu.kernels.arithmetic import Parts
from tracejit.backends.tvm.cpu.kernels.gemm.contraction import Contraction
from tracejit.backends.tvm.cpu.kernels.gemm.packing import pack
from tracejit.backends.tvm.cpu.kernels.sharing import Partials, on_workers, share
from tracejit.backends.tvm.cpu.kernels.tile import RegisterTile
from tracejit.backends.tvm.cpu.kernels.tiling import TiledPlan, ceil_div
from tracejit.backends.tvm.cpu.machine import Machine
from tracejit.backends.tvm.cpu.mathematics import opaque
from tracejit.backends.tvm.ir.tir import Buffer, Expr, IfThenElse, Stmt, i32, loop, seq, tirx

_PACKED_STEPS = 256
"""The most steps of the contraction that are packed as one piece of work."""

_RUN_TILES = 8
"""Column tiles that are packed together where that makes for long runs of memory."""


class TiledProduct:
    """Statements for one matrix of a batch; up to ``copies`` matrices may be computed
    concurrently.
    """

    def __init__(
        self, problem: Contraction, plan: TiledPlan, machine: Machine, copies: int = 1
    ) -> None:
        self._problem = problem
        self._plan = plan
        arithmetic, size = problem.arithmetic, plan.tile
        self._tile = RegisterTile(arithmetic, size.rows, size.vectors, size.lanes)
        self._tail = problem.n % size.columns
        # Sums that are stored as they are need no panel.
        is_whole = problem.m % size.rows == 0 or plan.shares[0] == 1
        self._stores_sums = problem.result_access.plain and plan.ranges == 1 and is_whole
        most_columns = ceil_div(plan.panels, plan.shares[1])
        private = copies * plan.workers
        self._packed_right = arithmetic.scratch(
            "packed_right", (copies, plan.panels, problem.k, size.columns)
        )
        self._packed_left = arithmetic.scratch(
            "packed_left", (private, plan.block_rows, plan.depth, size.rows)
        )
        self._partial = arithmetic.scratch(
            "partial", (private, plan.block_rows, most_columns, size.rows, size.columns)
        )
        self._ranges = Partials(problem, plan.ranges, machine)

    @property
    def scratch(self) -> tuple[Buffer, ...]:
        """The buffers that the statements work in."""
        plan = self._plan
        needed = [
            (plan.pack_right, self._packed_right),
            (plan.pack_left, self._packed_left),
            (plan.blocks > plan.ranges, self._partial),
            (plan.ranges > 1, self._ranges.scratch),
        ]
        return tuple(buffer for is_needed, buffer in needed if is_needed)

    def statement(self, b: Expr, copy: Expr) -> Stmt:
        """The product of the matrices ``b`` of the batch."""
        plan = self._plan
        groups = ceil_div(plan.column_tiles, plan.panels)
        if groups == 1:
            body = self._columns(b, copy, i32(0), i32(plan.column_tiles))
        else:
            body = loop(
                groups,
                lambda g: self._columns(
                    b,
                    copy,
                    g * plan.panels,
                    tirx.min(i32(plan.panels), plan.column_tiles - g * plan.panels),
                ),
            )
        return seq(body, [self._ranges.combine(b)] if plan.ranges > 1 else [])

    def _columns(self, b: Expr, copy: Expr, first: Expr, count: Expr) -> Stmt:
        """All of ``count`` column tiles, from tile ``first`` on."""
        plan = self._plan
        workers, by_columns = plan.workers, plan.shares[1]

        def packed(w: Expr) -> Stmt:
            return self._pack_right(b, copy, first, i32(0), count, share_of=(w, workers))

        def work(w: Expr) -> Stmt:
            body = self._worker(b, copy, w, first, count)
            if not plan.pack_right or by_columns < workers:
                return body
            # Nobody else multiplies these columns: no thread waits for another.
            begin, columns = share(w, count, by_columns)
            return seq(self._pack_right(b, copy, first, begin, columns), body)

        if plan.pack_right and by_columns < workers:
            return seq(on_workers(workers, packed), on_workers(workers, work))
        return on_workers(workers, work)

    def _pack_right(
        self,
        b: Expr,
        copy: Expr,
        first: Expr,
        begin: Expr,
        count: Expr,
        share_of: tuple[Expr, int] = (i32(0), 1),
    ) -> Stmt:
        """Pack a worker's share of ``count`` column tiles, from ``begin`` on of those from
        ``first`` on, in pieces that are contiguous in the operand.
        """
        problem, arithmetic = self._problem, self._problem.arithmetic
        columns, lanes = self._tile.columns, self._tile.lanes
        side_by_side = _RUN_TILES if problem.right_access.walks(2) else 1
        # At least two: loops of a few known steps would be unrolled at length.
        chunk = min(_PACKED_STEPS, ceil_div(problem.k, 2))
        chunks = ceil_div(problem.k, chunk)
        groups = (count + (side_by_side - 1)) // side_by_side
        u0, units = share(share_of[0], groups * chunks, share_of[1])

        def one(p: Expr, q: Expr, valid: int) -> Stmt:
            return pack(
                arithmetic,
                columns,
                lambda x: problem.right(b, q, (first + p) * columns + x),
                lambda x, v: arithmetic.store(self._packed_right, [copy, p, q, x], v),
                lanes=lanes,
                valid=valid,
            )

        def unit(at: Expr) -> Stmt:
            p0 = begin + opaque(at // chunks * side_by_side, "int32")
            q0 = opaque(at % chunks * chunk, "int32")
            steps = tirx.min(i32(chunk), problem.k - q0)
            full = problem.n // columns - first
            last = tirx.min(p0 + side_by_side, begin + count)
            # LLVM would unroll a loop of few steps.
            beside = opaque(tirx.min(last, full) - p0, "int32")
            whole = loop(steps, lambda q: loop(beside, lambda p: one(p0 + p, q0 + q, columns)))
            if not self._tail:
                return whole
            rest = loop(steps, lambda q: one(full, q0 + q, self._tail))
            return seq(whole, IfThenElse(last > full, rest, None))

        return loop(units, lambda u: unit(u0 + u))

    def _by_width(self, tile: Expr, body: Callable[[int], Stmt]) -> Stmt:
        """``body(number of columns)`` of a column tile: the last one may be narrower."""
        full = self._problem.n // self._tile.columns
        if not self._tail:
            return body(self._tile.columns)
        if not full:
            return body(self._tail)
        return IfThenElse(tile < full, body(self._tile.columns), body(self._tail))

    def _worker(self, b: Expr, copy: Expr, w: Expr, first: Expr, count: Expr) -> Stmt:
        plan = self._plan
        by_rows, by_columns, by_ranges = plan.shares
        r0, rows = share(w // (by_columns * by_ranges), plan.row_tiles, by_rows)
        c0, columns = share(w // by_ranges % by_columns, count, by_columns)
        s0, ranges = share(w % by_ranges, plan.ranges, by_ranges)
        worker = _Worker(b, copy, copy * plan.workers + w, first + c0, c0, columns)

        def rows_of(s: Expr) -> Stmt:
            most = plan.block_rows
            if by_rows == 1 and most == plan.row_tiles:
                return self._block(worker, s, r0, rows)
            return loop(
                (rows + (most - 1)) // most,
                lambda g: self._block(
                    worker, s, r0 + g * most, tirx.min(i32(most), rows - g * most)
                ),
            )

        body = rows_of(i32(0)) if plan.ranges == 1 else loop(ranges, lambda s: rows_of(s0 + s))
        return seq(self._tile.allocate(), body)

    def _block(self, worker: _Worker, s: Expr, r0: Expr, rows: Expr) -> Stmt:
        """A block of rows, through range ``s`` of the contraction."""
        plan = self._plan
        if plan.blocks == plan.ranges:
            return self._depth(worker, s, r0, rows, s, i32(1), i32(1))
        k0, blocks = share(s, plan.blocks, plan.ranges)
        return loop(
            blocks, lambda i: self._depth(worker, s, r0, rows, k0 + i, i == 0, i == blocks - 1)
        )

    def _depth(
        self,
        worker: _Worker,
        s: Expr,
        r0: Expr,
        rows: Expr,
        block: Expr,
        is_first: Expr,
        is_last: Expr,
    ) -> Stmt:
        """A block of rows past all columns, in one block of the contraction."""
        problem, plan, tile = self._problem, self._plan, self._tile
        arithmetic = problem.arithmetic
        in_parts = plan.blocks > plan.ranges
        q0 = block * plan.depth
        steps = tirx.min(i32(plan.depth), problem.k - q0) if plan.blocks > 1 else problem.k

        def left(r: Expr, q: Expr, a: Expr) -> Parts:
            if plan.pack_left:
                return arithmetic.load(self._packed_left, worker.private, r, q, a)
            return problem.left(worker.b, self._start(r0 + r) + a, q0 + q)

        def right(c: Expr, q: Expr, x: Expr) -> Parts:
            if plan.pack_right:
                return arithmetic.load(self._packed_right, worker.copy, worker.c0 + c, q0 + q, x)
            return problem.right(worker.b, q0 + q, self._first_column(worker.first + c) + x)

        def one(c: Expr, r: Expr) -> Stmt:
            place = [worker.private, r, c]
            begin = tile.clear()
            end = self._store(worker, s, r0 + r, worker.first + c)
            if not self._stores_sums:
                end = seq(tile.spill(), end)
            if in_parts:
                resume = tile.load(lambda a, x: arithmetic.load(self._partial, *place, a, x))
                begin = IfThenElse(is_first, begin, resume)
                keep = tile.keep(lambda a, x, v: arithmetic.store(self._partial, [*place, a, x], v))
                end = IfThenElse(is_last, end, keep)
            products = tile.steps(
                steps,
                lambda q: tile.add_products(
                    lambda a, u, v: left(r, q, a),
                    lambda a, u, v: right(c, q, u * tile.lanes + v),
                ),
            )
            return seq(begin, products, end)

        return seq(
            [self._pack_left(worker, r0, rows, q0, steps)] if plan.pack_left else [],
            loop(worker.columns, lambda c: loop(rows, lambda r: one(c, r))),
        )

    def _pack_left(self, worker: _Worker, r0: Expr, rows: Expr, q0: Expr, steps: Expr) -> Stmt:
        problem, arithmetic = self._problem, self._problem.arithmetic

        def one(r: Expr, q: Expr) -> Stmt:
            start, place = self._start(r0 + r), [worker.private, r, q]
            return pack(
                arithmetic,
                self._tile.rows,
                lambda a: problem.left(worker.b, start + a, q0 + q),
                lambda a, v: arithmetic.store(self._packed_left, [*place, a], v),
                lanes=self._tile.lanes,
                valid=self._tile.rows,
            )

        return loop(
            rows,
            lambda r: loop(steps, lambda q: one(r, q)),
        )

    def _start(self, tile: Expr) -> Expr:
        """The first row of a row tile; the last tile is moved up to end with the matrix."""
        rows = self._tile.rows
        start = tile * rows
        return tirx.min(start, i32(self._problem.m - rows)) if self._problem.m % rows else start

    def _first_column(self, tile: Expr) -> Expr:
        """The first column of a column tile; packed columns are padded, others must exist."""
        n, columns = self._problem.n, self._tile.columns
        start = tile * columns
        return (
            start if self._plan.pack_right or not self._tail else tirx.min(start, i32(n - columns))
        )

    def _store(self, worker: _Worker, s: Expr, row_tile: Expr, column_tile: Expr) -> Stmt:
        """Store the tile's sums, without those that overlap with earlier tiles.

        A thread that computes all rows stores equal numbers again instead.
        """
        problem, tile = self._problem, self._tile
        start = self._start(row_tile)
        column = self._first_column(column_tile)
        store = problem.store if self._plan.ranges == 1 else self._ranges.store(s)

        def one(a: Expr, x: Expr, v: Parts) -> Stmt:
            return store(worker.b, start + a, column + x, v)

        def columns(valid: int) -> Stmt:
            first = 0 if self._plan.pack_right else tile.columns - valid
            if self._stores_sums:
                return tile.keep(one, first, valid)
            return tile.rows_of_panel(row_tile * tile.rows - start, first, valid, one)

        return self._by_width(column_tile, columns)


class _Worker:
    """The share of one worker: its scratch, and its column tiles, ``first`` of all and ``c0`` of
    those that are packed.
    """

    def __init__(
        self, b: Expr, copy: Expr, private: Expr, first: Expr, c0: Expr, columns: Expr
    ) -> None:
        self.b = b
        self.copy = copy
        self.private = private
        self.first = first
        self.c0 = c0
        self.columns = columns
