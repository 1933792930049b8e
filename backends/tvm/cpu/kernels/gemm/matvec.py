"""Matrix products with few columns or few rows, bound by the bandwidth of one operand.

`Dot` runs vectors along the contraction: a few rows at a time against all columns. `Axpy` adds
multiples of the right operand's rows to the result's, several at a time.
"""

from __future__ import annotations

from tracejit.backends.tvm.cpu.kernels.arithmetic import Parts
from tracejit.backends.tvm.cpu.kernels.gemm.contraction import Contraction
from tracejit.backends.tvm.cpu.kernels.sharing import Partials, on_workers, share
from tracejit.backends.tvm.cpu.kernels.tile import (
    RegisterTile,
    by_vectors,
    pieces,
    vector,
    vector_loop,
)
from tracejit.backends.tvm.cpu.kernels.tiling import ceil_div
from tracejit.backends.tvm.cpu.machine import Machine
from tracejit.backends.tvm.ir.tir import (
    AllocBuffer,
    Buffer,
    Expr,
    IfThenElse,
    Stmt,
    i32,
    loop,
    seq,
    tirx,
)

_ROWS_AT_ONCE = 8
"""Rows of the right operand that `Axpy` adds in one pass over the result."""

_RESULT_BYTES = 16 << 10
"""Bytes of the result that `Axpy` keeps at a time: half of a first-level cache."""


class Dot:
    """Statements for one matrix of a batch; ``ranges`` and ``threads`` as for `Tiled`."""

    def __init__(
        self, problem: Contraction, machine: Machine, ranges: int, threads: int, copies: int = 1
    ) -> None:
        self._problem = problem
        arithmetic, n = problem.arithmetic, problem.n
        self._lanes = machine.lanes(arithmetic.dtype)
        most = machine.registers * 3 // 4 // (n * arithmetic.parts)
        self._rows = max(1, min(problem.m, 2 if n == 1 else 4, most))
        vectors = max(1, min(8 // (self._rows * n), ceil_div(problem.k, self._lanes)))
        self._tile = RegisterTile(arithmetic, self._rows * n, vectors, self._lanes)
        self._step = self._tile.columns
        self._groups = problem.k // self._step
        self._row_tiles = ceil_div(problem.m, self._rows)
        access = problem.right_access
        self._copies_right = not (access.plain and access.walks(1))
        self._right = arithmetic.scratch("right", (copies, n, problem.k))
        self._ranges = Partials(problem, ranges, machine)
        self._range_count = ranges
        self._workers = min(threads, ranges if ranges > 1 else self._row_tiles)

    @property
    def scratch(self) -> tuple[Buffer, ...]:
        """The buffers that the statements work in."""
        needed = [(self._copies_right, self._right), (self._range_count > 1, self._ranges.scratch)]
        return tuple(buffer for is_needed, buffer in needed if is_needed)

    def statement(self, b: Expr, copy: Expr) -> Stmt:
        """The product of the matrices ``b`` of the batch."""
        return seq(
            [self._copy_right(b, copy)] if self._copies_right else [],
            on_workers(self._workers, lambda w: self._worker(b, copy, w)),
            [self._ranges.combine(b)] if self._range_count > 1 else [],
        )

    def _copy_right(self, b: Expr, copy: Expr) -> Stmt:
        problem = self._problem
        return loop(
            problem.n,
            lambda j: vector_loop(
                problem.k,
                self._lanes,
                lambda q: problem.arithmetic.store(
                    self._right, [copy, j, q], problem.right(b, q, j)
                ),
            ),
        )

    def _worker(self, b: Expr, copy: Expr, w: Expr) -> Stmt:
        if self._range_count == 1:
            r0, rows = share(w, self._row_tiles, self._workers)
            body = loop(rows, lambda r: self._rows_of(b, copy, r0 + r, i32(0)))
        else:
            s0, ranges = share(w, self._range_count, self._workers)
            body = loop(
                ranges,
                lambda s: loop(self._row_tiles, lambda r: self._rows_of(b, copy, r, s0 + s)),
            )
        return seq(self._tile.allocate(), body)

    def _rows_of(self, b: Expr, copy: Expr, row_tile: Expr, s: Expr) -> Stmt:
        """One tile of rows, through range ``s`` of the contraction."""
        problem, tile, n = self._problem, self._tile, self._problem.n
        first = row_tile * self._rows
        start = tirx.min(first, i32(problem.m - self._rows)) if problem.m % self._rows else first
        g0, groups = share(s, self._groups, self._range_count)

        def left(a: Expr, q: Expr) -> Parts:
            return problem.left(b, start + a // n, q)

        def right(a: Expr, q: Expr) -> Parts:
            if self._copies_right:
                return problem.arithmetic.load(self._right, copy, a % n, q)
            return problem.right(b, q, a % n)

        def products(g: Expr) -> Stmt:
            q0 = (g0 + g) * self._step
            return tile.add_products(
                lambda a, u, v: left(a, q0 + u * self._lanes + v),
                lambda a, u, v: right(a, q0 + u * self._lanes + v),
            )

        rest = [tile.add_narrow(width, left, right, q) for q, width in self._rest()]
        if self._range_count > 1 and rest:
            rest = [IfThenElse(s == self._range_count - 1, seq(rest), None)]
        store = problem.store if self._range_count == 1 else self._ranges.store(s)

        def result(a: Expr) -> Stmt:
            return seq(
                [
                    store(b, start + a, i32(j), problem.arithmetic.load(tile.panel, a * n + j, 0))
                    for j in range(n)
                ]
            )

        skipped = first - start
        return seq(
            tile.clear(),
            loop(groups, products),
            rest,
            tile.fold(),
            loop(self._rows - skipped, lambda a: result(skipped + a)),
        )

    def _rest(self) -> list[tuple[int, int]]:
        """The remainder of the contraction after whole vectors, in ever narrower pieces."""
        done = self._groups * self._step
        return [
            (done + start, width) for start, width in pieces(self._problem.k - done, self._lanes)
        ]


class Axpy:
    """Statements for one matrix of a batch; ``ranges`` and ``threads`` as for `Tiled`."""

    def __init__(
        self, problem: Contraction, machine: Machine, ranges: int, threads: int, copies: int = 1
    ) -> None:
        self._problem = problem
        arithmetic = problem.arithmetic
        self._lanes = machine.lanes(arithmetic.dtype, problem.n)
        self._range_count = ranges
        sharing = threads if ranges == 1 else 1
        most = _RESULT_BYTES // (problem.m * arithmetic.itemsize)
        width = ceil_div(problem.n, sharing * ceil_div(problem.n, sharing * most))
        self._width = min(problem.n, ceil_div(width, 4 * self._lanes) * 4 * self._lanes)
        self._column_blocks = ceil_div(problem.n, self._width)
        self._workers = min(threads, ranges if ranges > 1 else self._column_blocks)
        self._copies_left = not problem.left_access.plain
        self._left = arithmetic.scratch("left", (copies, problem.k, problem.m))
        self._sums = arithmetic.scratch("sums", (copies * self._workers, problem.m, self._width))
        self._ranges = Partials(problem, ranges, machine)

    @property
    def scratch(self) -> tuple[Buffer, ...]:
        """The buffers that the statements work in."""
        needed = [
            (True, self._sums),
            (self._copies_left, self._left),
            (self._range_count > 1, self._ranges.scratch),
        ]
        return tuple(buffer for is_needed, buffer in needed if is_needed)

    def statement(self, b: Expr, copy: Expr) -> Stmt:
        """The product of the matrices ``b`` of the batch."""
        return seq(
            [self._copy_left(b, copy)] if self._copies_left else [],
            on_workers(self._workers, lambda w: self._worker(b, copy, w)),
            [self._ranges.combine(b)] if self._range_count > 1 else [],
        )

    def _copy_left(self, b: Expr, copy: Expr) -> Stmt:
        problem, arithmetic = self._problem, self._problem.arithmetic
        return loop(
            problem.k,
            lambda q: vector_loop(
                problem.m,
                self._lanes,
                lambda i: arithmetic.store(self._left, [copy, q, i], problem.left(b, i, q)),
            ),
        )

    def _worker(self, b: Expr, copy: Expr, w: Expr) -> Stmt:
        private = copy * self._workers + w
        if self._range_count == 1:
            c0, blocks = share(w, self._column_blocks, self._workers)
            return loop(blocks, lambda c: self._block(b, copy, private, c0 + c, i32(0)))
        s0, ranges = share(w, self._range_count, self._workers)
        return loop(
            ranges,
            lambda s: loop(self._column_blocks, lambda c: self._block(b, copy, private, c, s0 + s)),
        )

    def _block(self, b: Expr, copy: Expr, private: Expr, block: Expr, s: Expr) -> Stmt:
        """One block of columns, through range ``s`` of the contraction."""
        problem, arithmetic, width = self._problem, self._problem.arithmetic, self._width
        overlap = self._column_blocks * width - problem.n
        first = block * width
        start = tirx.min(first, i32(problem.n - width)) if overlap else first
        q0, steps = share(s, problem.k, self._range_count)

        def left(i: Expr, q: Expr) -> Parts:
            if self._copies_left:
                return arithmetic.load(self._left, copy, q, i)
            return problem.left(b, i, q)

        def add(q: Expr, count: int) -> Stmt:
            factors = arithmetic.scratch("factors", (count, self._lanes), "local")

            def factor(i: Expr, g: int) -> Stmt:
                place = i32(g)
                return vector(
                    self._lanes, lambda v: arithmetic.store(factors, [place, v], left(i, q + g))
                )

            def one(i: Expr, first: Expr, v: Expr) -> Stmt:
                j = first + v
                total = arithmetic.load(self._sums, private, i, j)
                for g in range(count):
                    other = problem.right(b, q + g, start + j)
                    total = arithmetic.multiply_add(
                        total, arithmetic.load(factors, i32(g), v), other
                    )
                return arithmetic.store(self._sums, [private, i, j], total)

            def row(i: Expr) -> Stmt:
                return seq(
                    AllocBuffer(factors),
                    [factor(i, g) for g in range(count)],
                    by_vectors(width, self._lanes, lambda first, v: one(i, first, v)),
                )

            return loop(problem.m, row)

        groups = steps // _ROWS_AT_ONCE
        done = groups * _ROWS_AT_ONCE
        store = problem.store if self._range_count == 1 else self._ranges.store(s)

        def results(skipped: int) -> Stmt:
            return loop(
                problem.m,
                lambda i: vector_loop(
                    width - skipped,
                    self._lanes,
                    lambda j: store(
                        b,
                        i,
                        start + skipped + j,
                        arithmetic.load(self._sums, private, i, skipped + j),
                    ),
                ),
            )

        end = results(0)
        if overlap and self._column_blocks > 1:
            end = IfThenElse(block == self._column_blocks - 1, results(overlap), end)
        return seq(
            loop(
                problem.m,
                lambda i: vector_loop(
                    width,
                    self._lanes,
                    lambda j: arithmetic.store(self._sums, [private, i, j], arithmetic.zero),
                ),
            ),
            loop(groups, lambda g: add(q0 + g * _ROWS_AT_ONCE, _ROWS_AT_ONCE)),
            loop(steps - done, lambda q: add(q0 + done + q, 1)),
            end,
        )
