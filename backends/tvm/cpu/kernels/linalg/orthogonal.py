"""Blocked QR factorisation of real matrices, by Householder reflections.

A block of columns is a *panel*. Its reflections, I - tau v v^T each, are computed in a copy whose
rows are short; their product is I - V T V^T (R. Schreiber and C. Van Loan, 1989), which register
tiles apply to strips of the other columns, and at the end, last panel first, to the identity,
which gives Q. A small matrix is a single panel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tvm import DataType

from tracejit.backends.tvm.codegen.kernel_body import KernelBody
from tracejit.backends.tvm.cpu.kernels.linalg.householder_panel import Panel
from tracejit.backends.tvm.cpu.kernels.linalg.power_of_two_scaling import Powers
from tracejit.backends.tvm.cpu.kernels.linalg.triangular import Load, Store
from tracejit.backends.tvm.cpu.kernels.sharing import on_workers, share
from tracejit.backends.tvm.cpu.kernels.tile import not_repeated, pieces, vector
from tracejit.backends.tvm.cpu.kernels.tiling import ceil_div
from tracejit.backends.tvm.cpu.machine import Machine
from tracejit.backends.tvm.ir.tir import (
    UNROLLED,
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

_BLOCK_BYTES = 128
"""Bytes of a row of a panel."""

_VECTORS = 2
"""Vectors in a row of a strip."""

_LINE = 64
"""Bytes of a cache line."""

_SHARED = 100_000
"""The least multiplications of one matrix for several threads."""

_PARALLEL = 30_000
"""The least multiplications of a batch for several threads."""


@dataclass(frozen=True)
class Orthogonal:
    """``batch`` matrices of ``rows`` x ``columns``, of ``dtype``, neither of them 0.

    ``store_r(b, i, j, value)`` receives ``r_rows`` rows of R, ``store_q`` ``q_columns`` columns of
    Q; Q is not computed if it is None.
    """

    batch: int
    rows: int
    columns: int
    dtype: str
    matrix: Load
    store_r: Store
    r_rows: int
    store_q: Store | None = None
    q_columns: int = 0

    @property
    def cost(self) -> int:
        """The approximate number of multiplications for one matrix."""
        rank = min(self.rows, self.columns)
        return self.rows * rank * (self.columns + self.q_columns)


def orthogonal_factors(problem: Orthogonal, machine: Machine) -> KernelBody:
    """R, and Q where it is wanted, with the signs of LAPACK.

    Columns are first scaled by powers of two, so that squares neither overflow nor underflow; R's
    columns are scaled back.
    """
    threads = machine.threads
    outer = min(threads, problem.batch)
    if problem.batch * problem.cost < _PARALLEL or problem.batch < 2 * threads:
        outer = 1
    inner = threads if outer == 1 and problem.cost >= _SHARED else 1
    made = _Factors(problem, machine, outer, inner)

    def worker(w: Expr) -> Stmt:
        first, count = share(w, problem.batch, outer)
        return loop(count, lambda b: made.factor(first + b, w))

    return KernelBody(on_workers(outer, worker), made.scratch, "orthogonal factors")


class _Factors:
    """The factorisation of ``copies`` matrices at a time; ``workers`` threads share one matrix."""

    def __init__(self, problem: Orthogonal, machine: Machine, copies: int, workers: int) -> None:
        self._problem = problem
        dtype = self._dtype = problem.dtype
        self._workers = workers
        rank = min(problem.rows, problem.columns)
        itemsize = int(DataType(dtype).itemsize)
        n = self._block = min(_BLOCK_BYTES // itemsize, 1 << (rank - 1).bit_length())
        self._rank = rank
        self._blocks = ceil_div(rank, n)
        self._lanes = machine.lanes(dtype, max(problem.columns, problem.q_columns))
        self._strip = _VECTORS * self._lanes
        self._tile = min(n, 8 if machine.registers == 32 else 4)
        least = max(problem.rows, self._blocks * n)
        self._rows = ceil_div(least, self._tile) * self._tile
        panels = self._blocks * n
        beside = max(0, problem.columns - panels)
        # The strips begin behind a panel, and so does Q.
        self._begin = panels + ceil_div(beside, self._strip) * self._strip
        self._end = self._begin + ceil_div(problem.q_columns, self._strip) * self._strip
        items = _LINE // itemsize
        # Rows an even number of lines apart would conflict in the sets of the first-level cache.
        row = self._end + items if self._end // items % 2 == 0 else self._end
        # Two more blocks of rows hold intermediate results of a strip.
        self._memory: Buffer = buffer("matrix", (copies, self._rows + 2 * n, row), dtype)
        self._scale = buffer("scale", (copies, self._begin), dtype)
        kept = self._blocks if problem.store_q is not None else 1
        self._panel = Panel(copies, kept, self._rows, n, dtype, machine)
        self.scratch = (self._memory, self._scale, *self._panel.scratch)

    def factor(self, b: Expr, copy: Expr) -> Stmt:
        """Read matrix ``b``, factorise it in the memory ``copy``, and store R and Q."""
        problem = self._problem
        memory, blocks, n = self._memory, self._blocks, self._block
        with_q = problem.store_q is not None
        steps = 2 * blocks if with_q else blocks

        def step(s: Expr) -> Stmt:
            forward = s < blocks if with_q else True
            number = tirx.min(s, steps - 1 - s) if with_q else s
            kept = number if with_q else i32(0)
            top = number * n
            steps_of_panel = tirx.min(i32(n), self._rank - top)
            first, end = top + n, i32(self._begin)
            find = self._panel.find(
                copy,
                kept,
                top,
                steps_of_panel,
                lambda i, j: memory[copy, i, top + j],
                lambda i, j, value: store(memory, [copy, i, top + j], value),
            )
            if with_q:
                find = IfThenElse(forward, find, None)
                first = tirx.Select(forward, first, self._begin + top)
                end = tirx.Select(forward, end, i32(self._end))
            return seq(
                find,
                self._strips(first, end, lambda x: self._apply(copy, kept, top, x, forward)),
            )

        return seq(
            self._take(b, copy),
            self._identity(copy) if with_q else [],
            loop(steps, step),
            self._give(b, copy),
        )

    def _strips(self, first: Expr, end: Expr, body: Callable[[Expr], Stmt]) -> Stmt:
        """``body(column)`` of the strips between two columns, assigned to workers round-robin."""
        count = (end - first) // self._strip
        workers = self._workers

        def worker(w: Expr) -> Stmt:
            mine = (count - w + (workers - 1)) // workers
            return loop(mine, lambda i: body(first + (w + i * workers) * self._strip))

        every = on_workers(workers, worker)
        return IfThenElse(count > 0, every, None) if workers > 1 else every

    def _shared(self, total: int, body: Callable[[Expr], Stmt | list[Stmt]]) -> Stmt:
        def worker(w: Expr) -> Stmt:
            first, count = share(w, total, self._workers)
            return not_repeated(count, lambda i: body(first + i))

        return on_workers(self._workers, worker)

    def _along(self, count: int, body: Callable[[Expr], Stmt]) -> list[Stmt]:
        """``body(j)`` for ``count`` columns of a row: in vectors, the remainder in
        narrower ones.
        """
        lanes = self._lanes
        whole = count // lanes
        made = []
        if whole:
            made.append(loop(whole, lambda q: vector(lanes, lambda v: body(q * lanes + v))))
        for at, width in pieces(count % lanes, lanes):
            made.append(vector(width, body, whole * lanes + at))
        return made

    def _take(self, b: Expr, copy: Expr) -> Stmt:
        """Copy a matrix, pad it with zeros, and scale its columns."""
        problem, memory, scale, dtype = self._problem, self._memory, self._scale, self._dtype
        rows, columns = problem.rows, problem.columns
        width = self._strip
        whole, rest = divmod(columns, width)
        zero = const(0.0, dtype)
        powers = Powers(dtype)
        greatest = buffer("greatest", (width,), dtype, scope="local")

        def strip(first: Expr, each: Callable[[Callable[[Expr], Stmt]], Stmt]) -> Stmt:
            def read(i: Expr) -> list[Stmt]:
                def one(j: Expr) -> Stmt:
                    return store(memory, [copy, i, first + j], problem.matrix(b, i, first + j))

                def compare(j: Expr) -> Stmt:
                    size = tirx.abs(memory[copy, i, first + j])
                    return store(greatest, j, tirx.max(greatest[j], size))

                return [each(one), each(compare)]

            def scaled(i: Expr) -> Stmt:
                def one(j: Expr) -> Stmt:
                    factor = powers.reciprocal(powers.exponent(greatest[j]))
                    value = memory[copy, i, first + j] * factor
                    return store(memory, [copy, i, first + j], value)

                return each(one)

            return seq(
                AllocBuffer(greatest),
                each(lambda j: store(greatest, j, zero)),
                not_repeated(rows, read),
                not_repeated(rows, scaled),
                each(
                    lambda j: store(
                        scale, [copy, first + j], powers.power(powers.exponent(greatest[j]))
                    )
                ),
            )

        def in_vectors(body: Callable[[Expr], Stmt]) -> Stmt:
            return loop(
                _VECTORS,
                lambda u: vector(self._lanes, lambda v: body(u * self._lanes + v)),
                UNROLLED,
            )

        def cleared(i: Expr, start: int) -> list[Stmt]:
            count = self._begin - start
            return self._along(count, lambda j: store(memory, [copy, i, start + j], zero))

        made = []
        if whole:
            made.append(self._shared(whole, lambda s: strip(s * width, in_vectors)))
        if rest:
            made.append(strip(i32(whole * width), lambda body: seq(self._along(rest, body))))
        if self._begin > columns:
            made.append(not_repeated(rows, lambda i: cleared(i, columns)))
        if self._rows > rows:
            made.append(not_repeated(self._rows - rows, lambda i: cleared(rows + i, 0)))
        return seq(made)

    def _identity(self, copy: Expr) -> Stmt:
        """The identity, which the reflections turn into Q."""

        def row(i: Expr) -> list[Stmt]:
            def element(j: Expr) -> Stmt:
                one, zero = const(1.0, self._dtype), const(0.0, self._dtype)
                value = tirx.Select(i == j, one, zero)
                return store(self._memory, [copy, i, self._begin + j], value)

            return self._along(self._end - self._begin, element)

        return self._shared(self._rows, row)

    def _apply(self, copy: Expr, kept: Expr, top: Expr, x: Expr, forward: Expr) -> Stmt:
        """Apply a panel's reflections to the strip at column ``x``: the last first unless
        ``forward``.

        C - V (op(T) (V^T C)), where op is the transpose if ``forward``.
        """
        rows, n, panel = self._rows, self._block, self._panel
        first, second = i32(rows), i32(rows + n)
        height = rows - top

        def inner(g: Expr) -> Stmt:
            return self._products(
                copy,
                x,
                first + g * self._tile,
                i32(0),
                height,
                lambda a, k: panel.vectors[copy, kept, top + k, g * self._tile + a],
                lambda k: top + k,
            )

        def middle(g: Expr) -> Stmt:
            start, end = g * self._tile, (g + 1) * self._tile
            if forward is not True:
                start = tirx.Select(forward, i32(0), start)
                end = tirx.Select(forward, end, i32(n))
            else:
                start = i32(0)

            def factor(a: Expr, k: Expr) -> Expr:
                i, j = g * self._tile + a, k
                if forward is not True:
                    i, j = tirx.Select(forward, i, j), tirx.Select(forward, j, i)
                return panel.triangle[copy, kept, i, j]

            return self._products(
                copy, x, second + g * self._tile, start, end, factor, lambda k: first + k
            )

        def outer(t: Expr) -> Stmt:
            return self._products(
                copy,
                x,
                top + t * self._tile,
                i32(0),
                i32(n),
                lambda a, k: panel.vectors[copy, kept, top + t * self._tile + a, k],
                lambda k: second + k,
                take_off=True,
            )

        return seq(
            not_repeated(n // self._tile, inner),
            not_repeated(n // self._tile, middle),
            not_repeated(height // self._tile, outer),
        )

    def _products(
        self,
        copy: Expr,
        x: Expr,
        place: Expr,
        start: Expr,
        end: Expr,
        left: Callable[[Expr, Expr], Expr],
        right: Callable[[Expr], Expr],
        take_off: bool = False,
    ) -> Stmt:
        """A register tile of rows from ``place`` on: sums of ``left(a, k)`` times row ``right(k)``
        for k from ``start`` to ``end``; with ``take_off`` the old values minus the sums.
        """
        memory, lanes = self._memory, self._lanes
        sums = buffer("sums", (self._tile, _VECTORS, lanes), self._dtype, scope="local")

        def each(body: Callable[[Expr, Expr, Expr, Expr], Stmt]) -> Stmt:
            def row(a: Expr) -> Stmt:
                return loop(
                    _VECTORS,
                    lambda u: vector(lanes, lambda v: body(a, u, v, x + u * lanes + v)),
                    UNROLLED,
                )

            return loop(self._tile, row, UNROLLED)

        def product(k: Expr) -> Stmt:
            def one(a: Expr, u: Expr, v: Expr, column: Expr) -> Stmt:
                value = left(a, start + k) * memory[copy, right(start + k), column]
                total = sums[a, u, v] - value if take_off else sums[a, u, v] + value
                return store(sums, [a, u, v], total)

            return each(one)

        def given(a: Expr, u: Expr, v: Expr, column: Expr) -> Stmt:
            zero = const(0.0, self._dtype)
            value = memory[copy, place + a, column] if take_off else zero
            return store(sums, [a, u, v], value)

        return seq(
            AllocBuffer(sums),
            each(given),
            not_repeated(end - start, product),
            each(lambda a, u, v, column: store(memory, [copy, place + a, column], sums[a, u, v])),
        )

    def _give(self, b: Expr, copy: Expr) -> Stmt:
        problem, memory, scale = self._problem, self._memory, self._scale
        zero = const(0.0, self._dtype)

        def row_of_r(i: Expr) -> list[Stmt]:
            def element(j: Expr) -> Stmt:
                value = memory[copy, i, j] * scale[copy, j]
                return problem.store_r(b, i, j, tirx.Select(i <= j, value, zero))

            return self._along(problem.columns, element)

        def row_of_q(i: Expr) -> list[Stmt]:
            assert problem.store_q is not None
            put = problem.store_q
            return self._along(
                problem.q_columns, lambda j: put(b, i, j, memory[copy, i, self._begin + j])
            )

        return seq(
            self._shared(problem.r_rows, row_of_r),
            self._shared(problem.rows, row_of_q) if problem.store_q is not None else [],
        )
