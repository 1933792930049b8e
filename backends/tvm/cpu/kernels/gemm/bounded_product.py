"""Matrix-vector products over a contiguous range of the terms that is known only at run time.

    bounded(problem, first, end, machine)     sums over first <= q < end

If the matrix is contiguous along the sums, vectors run along them, a few rows at a time; otherwise
vectors run across, and rows are multiplied and added in registers.
"""

from __future__ import annotations

from tracejit.backends.tvm.codegen.kernel_body import KernelBody
from tracejit.backends.tvm.cpu.kernels.arithmetic import Parts
from tracejit.backends.tvm.cpu.kernels.gemm.contraction import Contraction
from tracejit.backends.tvm.cpu.kernels.sharing import on_workers, share
from tracejit.backends.tvm.cpu.kernels.tile import RegisterTile, pieces
from tracejit.backends.tvm.cpu.machine import Machine
from tracejit.backends.tvm.ir.tir import Expr, Stmt, i32, loop, seq, tirx

# Vectors of a row that are summed in a step, over all rows that are processed together.
_VECTORS = 8
_ROWS = 4


def bounded(
    problem: Contraction, first: Expr, end: Expr, machine: Machine, is_shared: bool
) -> KernelBody:
    """The product, of a problem with one row or one column; ``is_shared`` by all threads.

    ``first`` and ``end`` are int32, 0 <= first <= k and end <= k; where end <= first, sums are 0.
    """
    if problem.n > 1:
        problem = problem.transposed()
    threads = machine.threads if is_shared else 1
    across = problem.left_access.permuted(0, 2, 1)
    if problem.m > 1 and across.walks(2) and not problem.left_access.walks(2):
        return _Across(problem, first, end, machine, threads).work()
    return _Along(problem, first, end, machine, threads).work()


class _Along:
    """Vectors along the sums."""

    def __init__(
        self, problem: Contraction, first: Expr, end: Expr, machine: Machine, threads: int
    ) -> None:
        self._problem, self._first = problem, first
        self._rows = min(problem.m, _ROWS)
        self._lanes = machine.lanes(problem.arithmetic.dtype, problem.k)
        vectors = max(1, _VECTORS // (self._rows * problem.arithmetic.parts))
        self._tile = RegisterTile(problem.arithmetic, self._rows, vectors, self._lanes)
        self._count = tirx.max(end - first, i32(0))
        self._tiles = -(-problem.m // self._rows)
        self._workers = min(threads, self._tiles)

    def work(self) -> KernelBody:
        def worker(w: Expr) -> Stmt:
            first, count = share(w, self._tiles, self._workers)
            return seq(self._tile.allocate(), loop(count, lambda r: self._rows_of(first + r)))

        return KernelBody(on_workers(self._workers, worker), (), "dot products within bounds")

    def _rows_of(self, row_tile: Expr) -> Stmt:
        problem, tile, lanes = self._problem, self._tile, self._lanes
        arithmetic = problem.arithmetic
        wanted = row_tile * self._rows
        start = tirx.min(wanted, i32(problem.m - self._rows))
        steps = self._count // tile.columns
        vectors = (self._count - steps * tile.columns) // lanes
        last = self._first + steps * tile.columns
        rest = self._count - steps * tile.columns - vectors * lanes

        def left(a: Expr, q: Expr) -> Parts:
            return problem.left(i32(0), start + a, q)

        def right(_: Expr, q: Expr) -> Parts:
            return problem.right(i32(0), q, i32(0))

        def step(g: Expr) -> Stmt:
            q = self._first + g * tile.columns
            return tile.add_products(
                lambda a, u, v: left(a, q + u * lanes + v),
                lambda a, u, v: right(a, q + u * lanes + v),
            )

        def narrow(g: Expr) -> Stmt:
            return tile.add_narrow(lanes, left, right, last + g * lanes)

        def single(g: Expr) -> Stmt:
            q = last + vectors * lanes + g

            def add(a: Expr) -> Stmt:
                total = arithmetic.load(tile.panel, a, i32(0))
                total = arithmetic.multiply_add(total, left(a, q), right(a, q))
                return arithmetic.store(tile.panel, [a, i32(0)], total)

            return loop(self._rows, add)

        skipped = wanted - start

        def result(a: Expr) -> Stmt:
            total = arithmetic.load(tile.panel, skipped + a, i32(0))
            return problem.store(i32(0), wanted + a, i32(0), total)

        return seq(
            tile.clear(),
            loop(steps, step),
            loop(vectors, narrow) if lanes > 1 else [],
            tile.fold(),
            loop(rest, single) if lanes > 1 else [],
            loop(self._rows - skipped, result),
        )


class _Across:
    """Vectors across the sums, along the matrix's rows in memory."""

    def __init__(
        self, problem: Contraction, first: Expr, end: Expr, machine: Machine, threads: int
    ) -> None:
        self._problem = problem.transposed()
        self._first = first
        self._count = tirx.max(end - first, i32(0))
        arithmetic = problem.arithmetic
        self._lanes = machine.lanes(arithmetic.dtype, problem.m)
        most = max(machine.registers * 3 // 8 // arithmetic.parts, 1)
        in_all = max(problem.m // self._lanes, 1)
        # As few blocks as possible, of about equal width.
        self._vectors = -(-in_all // -(-in_all // most))
        self._blocks = problem.m // (self._vectors * self._lanes)
        self._workers = max(min(threads, self._blocks), 1)

    def work(self) -> KernelBody:
        width = self._vectors * self._lanes
        whole = RegisterTile(self._problem.arithmetic, 1, self._vectors, self._lanes)

        def worker(w: Expr) -> Stmt:
            first, count = share(w, self._blocks, self._workers)
            return seq(
                whole.allocate(),
                loop(count, lambda c: self._columns(whole, (first + c) * width)),
            )

        rest = []
        done = self._blocks * width
        left = self._problem.n - done
        vectors = left // self._lanes
        if vectors:
            tile = RegisterTile(self._problem.arithmetic, 1, vectors, self._lanes)
            rest.append(seq(tile.allocate(), self._columns(tile, i32(done))))
            done += vectors * self._lanes
        for at, lanes in pieces(self._problem.n - done, self._lanes):
            tile = RegisterTile(self._problem.arithmetic, 1, 1, lanes)
            rest.append(seq(tile.allocate(), self._columns(tile, i32(done + at))))
        main = [on_workers(self._workers, worker)] if self._blocks else []
        return KernelBody(seq(main, rest), (), "sums of rows within bounds")

    def _columns(self, tile: RegisterTile, start: Expr) -> Stmt:
        problem, lanes = self._problem, tile.lanes

        def step(g: Expr) -> Stmt:
            q = self._first + g
            return tile.add_products(
                lambda a, u, v: problem.left(i32(0), i32(0), q),
                lambda a, u, v: problem.right(i32(0), q, start + u * lanes + v),
            )

        def result(_: Expr, x: Expr, total: Parts) -> Stmt:
            return problem.store(i32(0), i32(0), start + x, total)

        return seq(
            tile.clear(),
            loop(self._count, step),
            tile.spill(),
            tile.rows_of_panel(i32(0), 0, tile.columns, result),
        )
