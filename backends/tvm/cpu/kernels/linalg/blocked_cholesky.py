"""Blocked storage and updates of large matrices: factorisations whose work is in GEMM-like tiles.

Each row of a copy holds a row of the matrix and of the right-hand sides. The size is rounded up to
whole blocks, padded with the identity. Steps of an elimination update a block of rows, and then
strips of columns, which are independent of each other.
"""

from __future__ import annotations

from collections.abc import Callable

from tvm import DataType

from tracejit.backends.tvm.cpu.kernels.access import reading, writing
from tracejit.backends.tvm.cpu.kernels.sharing import on_workers, share
from tracejit.backends.tvm.cpu.kernels.tile import as_written, not_repeated, vector
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

BLOCK = 32
"""Rows and columns of a block: a multiple of the sizes of a strip and of a register tile."""

_VECTORS = 2
"""Vectors in a row of a strip."""

_FEW = 4
"""Rows that are solved for together: more would be a triangle of statements."""

_NEAR = 96
"""Rows whose coefficients stay in the first-level cache: whole register tiles, of any height."""

_SQUARE = 16
"""Rows and columns that are copied at a time, so that either may be contiguous."""

_LINE = 64
"""Bytes of a cache line."""

Element = Callable[[Expr, Expr], Expr]
Row = Callable[[Expr], Expr]


class Blocks:
    """``copies`` matrices of ``size`` at a time, with ``columns`` more columns from ``begin`` on.

    ``workers`` threads share the work on one matrix.
    """

    def __init__(
        self, size: int, columns: int, dtype: str, machine: Machine, copies: int, workers: int
    ) -> None:
        self.size = size
        self.columns = columns
        self.dtype = dtype
        self.workers = workers
        self._parallel_work = machine.parallel_work
        self.lanes = machine.lanes(dtype)
        self.strip = _VECTORS * self.lanes
        self.tile = 8 if machine.registers == 32 else 6
        self.blocks = ceil_div(size, BLOCK)
        self.begin = self.blocks * BLOCK
        self.width = self.begin + ceil_div(columns, self.strip) * self.strip
        items = _LINE // int(DataType(dtype).itemsize)
        # Rows an even number of lines apart would conflict in the sets of the first-level cache.
        row = self.width + items if self.width // items % 2 == 0 else self.width
        self.memory: Buffer = buffer("matrix", (copies, self.begin, row), dtype)
        self.near: Buffer = buffer("near", (copies, workers, _NEAR, BLOCK), dtype)

    def take(self, copy: Expr, part: str, matrix: Element, right: Element | None = None) -> Stmt:
        """Copy a matrix, or its "upper" or "lower" ``part``, and the right-hand sides.

        Some elements of the other triangle are copied too.
        """
        n, zero = self.size, const(0.0, self.dtype)

        def put(i: Expr, j: Expr, value: Expr) -> Stmt:
            return store(self.memory, [copy, i, j], value)

        def copied(i0: Expr, rows: Expr, first: Expr, last: Expr, at: int, given: Element) -> Stmt:
            access, _ = reading(given, 2, "int32")
            return self._rectangle(
                (i0, rows),
                (first, last),
                access.walks(0) and not access.walks(1),
                lambda i, j: put(i, at + j, given(i, j)),
            )

        def cleared(i: Expr, start: int, end: int) -> Stmt:
            return loop(end - start, lambda j: put(i, start + j, zero))

        def padded(i: Expr) -> list[Stmt]:
            return [cleared(i, n, self.begin), cleared(i, self.begin + self.columns, self.width)]

        def band(number: Expr) -> list[Stmt]:
            i0 = number * _SQUARE
            rows = tirx.min(i32(_SQUARE), n - i0)
            first = i0 if part == "upper" else i32(0)
            last = tirx.min(i0 + _SQUARE, i32(n)) if part == "lower" else i32(n)
            made = [copied(i0, rows, first, last, 0, matrix)]
            if right is not None:
                made.append(copied(i0, rows, i32(0), i32(self.columns), self.begin, right))
            made.append(as_written(rows, lambda i: padded(i0 + i)))
            return made

        def added(i: Expr) -> list[Stmt]:
            row = n + i
            return [cleared(row, 0, self.width), put(row, row, const(1.0, self.dtype))]

        return seq(
            self._copied(n + self.columns, band),
            as_written(self.begin - n, added),
        )

    def give(self, put: Callable[[Expr, Expr], Stmt], columns: int) -> Stmt:
        """``put(i, j)`` for all rows and ``columns`` columns, in square tiles."""
        n = self.size
        access = writing(lambda i, j, _: put(i, j), 2, const(0.0, self.dtype), "int32")
        transposed = access.walks(0) and not access.walks(1)

        def band(number: Expr) -> Stmt:
            i0 = number * _SQUARE
            rows = tirx.min(i32(_SQUARE), n - i0)
            return self._rectangle((i0, rows), (i32(0), i32(columns)), transposed, put)

        return self._copied(columns, band)

    def _rectangle(
        self,
        rows: tuple[Expr, Expr],
        columns: tuple[Expr, Expr],
        transposed: bool,
        body: Callable[[Expr, Expr], Stmt],
    ) -> Stmt:
        """``body(i, j)`` of rows (first, count) and columns (first, end), vectorised along rows.

        Vectors run along columns if ``transposed``, where all rows are present.
        """
        (top, height), (first, end) = rows, columns

        def row(r: Expr) -> list[Stmt]:
            whole = (end - first) // _SQUARE
            i, rest = top + r, first + whole * _SQUARE
            return [
                as_written(
                    whole,
                    lambda q: vector(_SQUARE, lambda v: body(i, first + q * _SQUARE + v)),
                ),
                loop(end - rest, lambda j: body(i, rest + j)),
            ]

        def column(c: Expr) -> Stmt:
            j = first + c
            return IfThenElse(
                height == _SQUARE,
                vector(_SQUARE, lambda v: body(top + v, j)),
                as_written(height, lambda r: body(top + r, j)),
            )

        return as_written(end - first, column) if transposed else as_written(height, row)

    def _copied(self, columns: int, body: Callable[[Expr], Stmt | list[Stmt]]) -> Stmt:
        """``body(number)`` of bands of `_SQUARE` rows with ``columns`` columns to copy; each
        worker takes a contiguous range.
        """
        workers = self.workers if self.size * columns >= self._parallel_work else 1

        def worker(w: Expr) -> Stmt:
            first, count = share(w, ceil_div(self.size, _SQUARE), workers)
            return as_written(count, lambda i: body(first + i))

        return on_workers(workers, worker)

    def strips(
        self,
        first: Expr,
        body: Callable[[Expr], Stmt],
        below: Callable[[Expr, Expr, Expr, Element], Stmt] | None = None,
        copy: Expr | int = 0,
    ) -> Stmt:
        """``body(column)`` of the strips from column ``first`` on, a multiple of `BLOCK`.

        Workers own the blocks of columns by turns, whatever ``first`` is, so that no column moves
        between caches. Then ``below(column, row, end, left)`` of some rows from row ``first`` on at
        a time, for all strips. ``left(row, k)`` is number k of the block of columns before
        ``first``: another thread wrote it, and each worker copies it, line after line.
        """
        start, total = first // BLOCK, ceil_div(self.width, BLOCK)
        near, before = self.near, first - BLOCK

        def worker(w: Expr) -> Stmt:
            mine = start + (w + self.workers - start % self.workers) % self.workers
            groups = (total - mine + (self.workers - 1)) // self.workers

            def each(body: Callable[[Expr], Stmt]) -> Stmt:
                def group(g: Expr) -> Stmt:
                    column = (mine + g * self.workers) * BLOCK
                    strips = tirx.min(i32(BLOCK), self.width - column) // self.strip
                    return as_written(strips, lambda s: body(column + s * self.strip))

                return as_written(groups, group)

            def rows(n: Expr) -> Stmt:
                assert below is not None
                row = first + n * _NEAR
                end = tirx.min(row + _NEAR, i32(self.begin))

                def put(r: Expr) -> Stmt:
                    def put_one(v: Expr) -> Stmt:
                        value = self.memory[copy, row + r, before + v]
                        return store(near, [copy, w, r, v], value)

                    return vector(BLOCK, put_one)

                def left(r: Expr, k: Expr) -> Expr:
                    return near[copy, w, r - row, k]

                return seq(
                    as_written(end - row, put),
                    each(lambda column: below(column, row, end, left)),
                )

            if below is None:
                return each(body)
            return seq(each(body), as_written((self.begin - first + (_NEAR - 1)) // _NEAR, rows))

        return on_workers(self.workers, worker)

    def sides(self, body: Callable[[Expr], Stmt]) -> Stmt:
        """``body(column)`` of the strips of the right-hand sides, assigned to workers."""
        if self.width - self.begin == self.strip:
            return body(i32(self.begin))
        return self.strips(i32(self.begin), body)

    def in_vectors(self, first: Expr, end: Expr, body: Callable[[Expr], Stmt]) -> Stmt:
        """``body(column)`` of columns in whole vectors."""
        return as_written(
            (end - first) // self.lanes,
            lambda q: vector(self.lanes, lambda v: body(first + q * self.lanes + v)),
        )

    def update(
        self,
        copy: Expr,
        rows: tuple[Expr, Expr],
        column: Expr,
        vectors: int,
        depth: int,
        left: Element,
        right: Row,
    ) -> Stmt:
        """Subtract ``left(row, k)`` times row ``right(k)``, for k < ``depth``, from the ``rows``
        (first, end) of a strip.
        """
        first, end = rows

        def tiles(first: Expr, count: Expr, height: int) -> Stmt:
            def tile(t: Expr) -> Stmt:
                top = first + t * height
                return self._tile(
                    copy,
                    height,
                    lambda a: top + a,
                    column,
                    vectors,
                    i32(depth),
                    lambda a, k: left(top + a, k),
                    right,
                )

            return as_written(count, tile)

        whole = (end - first) // self.tile
        if BLOCK % self.tile == 0:
            return tiles(first, whole, self.tile)
        rest = first + whole * self.tile
        return seq(tiles(first, whole, self.tile), tiles(rest, (end - rest) // 2, 2))

    def substitute(
        self,
        copy: Expr,
        place: Row,
        count: int,
        column: Expr,
        vectors: int,
        coefficient: Element,
        finish: Callable[[Expr, Expr], Expr] | None = None,
    ) -> Stmt:
        """Solve a triangular system of ``count`` rows for a strip of right-hand sides.

        Unknown i, at row ``place(i)``, is its old value minus ``coefficient(i, p)`` times unknown
        p for all p < i, then ``finish(value, i)`` of that.
        """

        rows = _FEW

        def tile(g: Expr) -> Stmt:
            begin = g * rows
            return self._tile(
                copy,
                rows,
                lambda a: place(begin + a),
                column,
                vectors,
                begin,
                lambda a, k: coefficient(begin + a, k),
                place,
                lambda a, p: coefficient(begin + a, begin + p),
                None if finish is None else lambda value, a: finish(value, begin + a),
            )

        return as_written(count // rows, tile)

    def _tile(
        self,
        copy: Expr,
        rows: int,
        place: Row,
        column: Expr,
        vectors: int,
        depth: Expr,
        left: Element,
        right: Row,
        within: Element | None = None,
        finish: Callable[[Expr, Expr], Expr] | None = None,
    ) -> Stmt:
        """A register tile that subtracts products, and solves for its own rows if ``within`` is
        given.
        """
        memory, width = self.memory, vectors * self.lanes
        sums = buffer("sums", (rows, width), self.dtype, scope="local")

        def across(body: Callable[[Expr, Expr], Stmt]) -> Stmt:
            return vector(width, lambda v: body(v, column + v))

        def each(body: Callable[[Expr, Expr, Expr], Stmt]) -> Stmt:
            return loop(rows, lambda a: across(lambda v, x: body(a, v, x)), UNROLLED)

        def product(k: Expr) -> Stmt:
            return each(
                lambda a, v, x: store(
                    sums, [a, v], sums[a, v] - left(a, k) * memory[copy, right(k), x]
                )
            )

        def own(a: int) -> list[Stmt]:
            assert within is not None
            row = i32(a)
            made = [
                across(
                    lambda v, x, p=p: store(  # type: ignore[misc]
                        sums, [row, v], sums[row, v] - within(row, i32(p)) * sums[p, v]
                    ),
                )
                for p in range(a)
            ]
            if finish is not None:
                made.append(across(lambda v, x: store(sums, [row, v], finish(sums[row, v], row))))
            return made

        return seq(
            AllocBuffer(sums),
            each(lambda a, v, x: store(sums, [a, v], memory[copy, place(a), x])),
            not_repeated(depth, product),
            [s for a in range(rows) for s in own(a)] if within is not None else [],
            each(lambda a, v, x: store(memory, [copy, place(a), x], sums[a, v])),
        )
