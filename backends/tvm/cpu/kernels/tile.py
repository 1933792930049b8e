"""The register tile of every contraction: accumulates products in rows of vector registers.

    sums[row, vector] += left(row) * right(vector)

The sums live in registers through the innermost loops; then they are spilled to a small panel in
memory, and handed on row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tracejit.backends.tvm.cpu.kernels.arithmetic import Arithmetic, Parts
from tracejit.backends.tvm.cpu.mathematics import kept, once, opaque
from tracejit.backends.tvm.ir.tir import (
    UNROLLED,
    VECTORIZED,
    AllocBuffer,
    Expr,
    Stmt,
    const,
    i32,
    loop,
    seq,
    tirx,
    var,
)

_AT_ONCE = 48
"""Vector multiply-adds of an iteration: with few, the loop's own instructions, which run on the
same ports, take a fifth of the time."""


class RegisterTile:
    """``rows`` x ``vectors`` vectors of ``lanes`` numbers; ``columns`` is vectors times lanes."""

    def __init__(self, arithmetic: Arithmetic, rows: int, vectors: int, lanes: int) -> None:
        self.arithmetic = arithmetic
        self.rows = rows
        self.vectors = vectors
        self.lanes = lanes
        self.columns = vectors * lanes
        # Accessed by constant indices only, the sums stay in registers through a loop.
        self.sums = arithmetic.scratch("sums", (rows, vectors, lanes), "local")
        self.panel = arithmetic.scratch("panel", (rows, self.columns))

    def allocate(self) -> list[Stmt]:
        return [AllocBuffer(self.sums), AllocBuffer(self.panel)]

    def clear(self) -> Stmt:
        return self._each(lambda a, u, v: self.arithmetic.zero)

    def load(self, partial: Callable[[Expr, Expr], Parts]) -> Stmt:
        """Start from ``partial(row, column)``, sums of an earlier part of the contraction."""
        return self._each(lambda a, u, v: partial(a, u * self.lanes + v))

    def add_products(
        self,
        left: Callable[[Expr, Expr, Expr], Parts],
        right: Callable[[Expr, Expr, Expr], Parts],
        lane_dtype: str = "int32",
    ) -> Stmt:
        """Add ``left(row, vector, lane) * right(row, vector, lane)`` to every sum."""
        arithmetic = self.arithmetic
        return self._each(
            lambda a, u, v: arithmetic.multiply_add(
                arithmetic.load(self.sums, a, u, v), left(a, u, v), right(a, u, v)
            ),
            lane_dtype,
        )

    def steps(self, count: int | Expr, body: Callable[[Expr], Stmt]) -> Stmt:
        """``body(q)`` for q in range(count), each adding a product to all sums: several to an
        iteration of the loop, as far as they are few instructions.
        """
        at_once = 1
        while 2 * at_once * self.rows * self.vectors <= _AT_ONCE:
            at_once *= 2
        whole = count // at_once
        left = count - whole * at_once

        def some(g: Expr) -> Stmt:
            return seq([body(g * at_once + u) for u in range(at_once)])

        most = loop(whole, some)
        return (
            most
            if at_once == 1 or left == 0
            else seq(most, loop(left, lambda u: body(whole * at_once + u)))
        )

    def add_narrow(
        self,
        width: int,
        left: Callable[[Expr, Expr], Parts],
        right: Callable[[Expr, Expr], Parts],
        start: int,
    ) -> Stmt:
        """Add ``left(row, x) * right(row, x)`` to ``width`` lanes of each row, x from ``start``."""
        arithmetic, zero = self.arithmetic, i32(0)

        def add(a: Expr, v: Expr) -> Stmt:
            total = arithmetic.load(self.sums, a, zero, v)
            total = arithmetic.multiply_add(total, left(a, start + v), right(a, start + v))
            return arithmetic.store(self.sums, [a, zero, v], total)

        return loop(self.rows, lambda a: vector(width, lambda v: add(a, v)), UNROLLED)

    def fold(self) -> Stmt:
        """Sum each row, by halves, into the first column of the panel."""
        arithmetic, zero = self.arithmetic, i32(0)

        def add(a: Expr, x: Expr, distance: int) -> Stmt:
            far = arithmetic.load(self.sums, a, zero, distance + x)
            total = arithmetic.add(arithmetic.load(self.sums, a, zero, x), far)
            return arithmetic.store(self.sums, [a, zero, x], total)

        def halve(a: Expr, width: int) -> Stmt:
            kept = width - width // 2
            parts = pieces(width // 2, self.columns)
            return seq([vector(lanes, lambda x: add(a, x, kept), first) for first, lanes in parts])

        widths = [self.columns]
        while widths[-1] > 1:
            widths.append(widths[-1] - widths[-1] // 2)

        def row(a: Expr) -> Stmt:
            total = arithmetic.load(self.sums, a, zero, zero)
            halved = [halve(a, width) for width in widths[:-1]]
            return seq(halved, arithmetic.store(self.panel, [a, zero], total))

        return loop(self.rows, row, UNROLLED)

    def spill(self) -> Stmt:
        """Put the sums into ``panel[row, column]``."""
        return self.keep(lambda a, x, total: self.arithmetic.store(self.panel, [a, x], total))

    def keep(
        self,
        store: Callable[[Expr, Expr, Parts], Stmt],
        first_column: int = 0,
        columns: int | None = None,
    ) -> Stmt:
        """``store(row, column, sum)`` for ``columns`` columns from the first on; for all, by
        default.
        """
        parts = pieces(self.columns if columns is None else columns, self.columns)

        def move(a: Expr, x: Expr) -> Stmt:
            return store(a, x, self.arithmetic.load(self.sums, a, i32(0), x))

        def row(a: Expr) -> Stmt:
            some = [(first_column + start, width) for start, width in parts]
            return seq([vector(width, lambda x: move(a, x), start) for start, width in some])

        return loop(self.rows, row, UNROLLED)

    def rows_of_panel(
        self,
        first_row: Expr,
        first_column: int,
        columns: int,
        body: Callable[[Expr, Expr, Parts], Stmt],
    ) -> Stmt:
        """``body(row, column, sum)`` for the panel's rows and for ``columns`` columns from the
        first on, vectorised along columns.
        """

        def row(a: Expr) -> Stmt:
            return vector_loop(
                columns,
                self.lanes,
                lambda x: body(a, x, self.arithmetic.load(self.panel, a, x)),
                start=first_column,
            )

        return loop(self.rows - first_row, lambda a: row(first_row + a))

    def _each(self, value: Callable[[Expr, Expr, Expr], Parts], lane_dtype: str = "int32") -> Stmt:
        return self._unrolled(
            lambda a, u, v: self.arithmetic.store(self.sums, [a, u, v], value(a, u, v)), lane_dtype
        )

    def _unrolled(
        self, body: Callable[[Expr, Expr, Expr], Stmt], lane_dtype: str = "int32"
    ) -> Stmt:
        """``body(row, vector, lane)`` of all sums, unrolled.

        Adjacent vectors are joined to one, of a power of two of them, and lanes are counted from
        its first: TVM and LLVM then process one operation where the processor executes several.
        """

        def some(a: Expr, first: int, count: int) -> Stmt:
            return vector(count * self.lanes, lambda v: body(a, i32(first), v), dtype=lane_dtype)

        def row(a: Expr) -> Stmt:
            return seq([some(a, *each) for each in pieces(self.vectors, self.vectors)])

        return loop(self.rows, row, UNROLLED)


def rolled(extent: int, body: Callable[[Expr], Stmt]) -> Stmt:
    """``body(i)`` for i in range(extent), in a loop that LLVM does not unroll.

    For bodies that take longer to compile, unrolled, than they ever run.
    """
    return body(i32(0)) if extent == 1 else loop(opaque(i32(extent), "int32"), body)


def as_written(extent: int | Expr, body: Callable[[Expr], Stmt | Sequence[Stmt]]) -> Stmt:
    """``body(i)`` for i in range(extent), in a loop that LLVM leaves as it is.

    It is not unrolled, nor are addresses strength-reduced, which takes most of the compile time;
    if a body is more than a few instructions, that costs no run time.
    """
    return _with_index(extent, body, kept)


def not_repeated(extent: int | Expr, body: Callable[[Expr], Stmt | Sequence[Stmt]]) -> Stmt:
    """``body(i)`` for i in range(extent), in a loop that LLVM does not unroll, for short bodies."""
    return _with_index(extent, body, once)


def _with_index(
    extent: int | Expr,
    body: Callable[[Expr], Stmt | Sequence[Stmt]],
    through: Callable[[Expr, str], Expr],
) -> Stmt:
    """A loop whose body sees the index after ``through``."""
    if isinstance(extent, int) and extent == 1:
        return loop(extent, body)

    def inside(i: Expr) -> list[Stmt]:
        index = var("index", "int32")
        return [tirx.Bind(index, through(i, "int32")), seq(body(index))]

    return loop(extent, inside)


def pieces(extent: int, lanes: int) -> list[tuple[int, int]]:
    """``extent`` cut into vectors: (start, power-of-two width), at most ``lanes`` wide."""
    cut = []
    start = 0
    while start < extent:
        width = min(lanes, 1 << ((extent - start).bit_length() - 1))
        cut.append((start, width))
        start += width
    return cut


def vector_loop(extent: int, lanes: int, body: Callable[[Expr], Stmt], start: int = 0) -> Stmt:
    """``body(i)`` for ``extent`` i from ``start`` on, vectorised; the remainder in narrower
    vectors.
    """
    return by_vectors(extent, lanes, lambda first, v: body(first + v), start)


def by_vectors(extent: int, lanes: int, body: Callable[[Expr, Expr], Stmt], start: int = 0) -> Stmt:
    """``body(first, lane)`` of all vectors of `vector_loop`, each from index ``first`` on."""
    full = extent // lanes

    def whole(first: Expr, width: int) -> Stmt:
        return vector(width, lambda v: body(first, v))

    statements = []
    if full:
        statements.append(loop(full, lambda q: whole(q * lanes + start, lanes)))
    done = start + full * lanes
    for at, width in pieces(extent - full * lanes, lanes):
        statements.append(whole(i32(done + at), width))
    return seq(statements)


def vector(width: int, body: Callable[[Expr], Stmt], start: int = 0, dtype: str = "int32") -> Stmt:
    """``body(i)`` for ``width`` i from ``start`` on, as one vector."""
    if width == 1:
        return body(const(start, dtype))
    return loop(width, lambda v: body(start + v), VECTORIZED, dtype=dtype)
