"""Householder reflections of a panel of columns, and the triangular factor T of their product.

Reflection c, I - tau v v^T, makes column c zero below row c. One pass over the rows applies it to
the panel and accumulates, for the next column x, the products x^T A with all columns: with the
columns behind x for its reflection, and with those before it, which hold the v's, for the next
column of T.
"""

from __future__ import annotations

from collections.abc import Callable

from tracejit.backends.tvm.cpu.kernels.linalg.power_of_two_scaling import Powers
from tracejit.backends.tvm.cpu.kernels.tile import as_written, not_repeated, vector
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

_TOGETHER = 2
"""Rows whose sums are kept apart, so that the additions of one do not wait for the other's."""

_LEAST = {"float32": 1e-30, "float64": 1e-280}
"""Sums of squares below this may have underflowed in part."""

Element = Callable[[Expr, Expr], Expr]


class Panel:
    """Panels of ``width`` columns, a power of two, and ``rows`` rows, an even number.

    ``vectors[copy, kept, i, c]`` are the v's, zeros above their ones; ``triangle[copy, kept]`` is
    T^T of H_1 H_2 … = I - V T V^T.
    """

    def __init__(
        self, copies: int, kept: int, rows: int, width: int, dtype: str, machine: Machine
    ) -> None:
        self._rows = rows
        self._width = width
        self._dtype = dtype
        self._lanes = machine.lanes(dtype, width)
        # Rows are processed in pairs; an odd last row is padded.
        self.vectors: Buffer = buffer("vectors", (copies, kept, rows + 1, width), dtype)
        self.triangle: Buffer = buffer("triangle", (copies, kept, width, width), dtype)
        self.scratch = (self.vectors, self.triangle)
        shape = (width // self._lanes, self._lanes)
        local = {"dtype": dtype, "scope": "local"}
        self._sums = buffer("sums", (_TOGETHER, *shape), **local)
        self._row = buffer("row", shape, **local)
        self._taken = buffer("taken", shape, **local)
        self._column = buffer("column", shape, **local)
        self._found = buffer("found", (width,), **local)
        self._numbers = buffer("numbers", (8,), **local)
        self._ours = buffer("ours", (_TOGETHER,), **local)
        self._next = buffer("next", (_TOGETHER,), **local)

    def find(
        self,
        copy: Expr,
        kept: Expr,
        top: Expr,
        steps: Expr,
        given: Element,
        put: Callable[[Expr, Expr, Expr], Stmt],
    ) -> Stmt:
        """Find ``steps`` reflections of the columns ``given(i, j)``, of the rows from ``top`` on.

        ``put(i, j, value)`` receives the rows from ``top`` to ``top + width`` of R, arbitrary
        below the diagonal.
        """
        vectors, triangle, width = self.vectors, self.triangle, self._width
        zero, one = const(0.0, self._dtype), const(1.0, self._dtype)

        def read(i: Expr) -> Stmt:
            return self._each(
                lambda u, v, j: store(vectors, [copy, kept, top + i, j], given(top + i, j))
            )

        def clear(c: Expr) -> Stmt:
            return self._each(lambda u, v, j: store(triangle, [copy, kept, c, j], zero))

        def finish(c: Expr) -> list[Stmt]:
            def ended(j: Expr) -> Expr:
                here = vectors[copy, kept, top + c, j]
                diagonal = tirx.Select(c < steps, one, zero)
                return tirx.Select(j < c, here, tirx.Select(j == c, diagonal, zero))

            return [
                self._each(lambda u, v, j: put(top + c, j, vectors[copy, kept, top + c, j])),
                self._each(lambda u, v, j: store(vectors, [copy, kept, top + c, j], ended(j))),
            ]

        local = (
            self._sums,
            self._row,
            self._taken,
            self._column,
            self._found,
            self._numbers,
            self._ours,
            self._next,
        )
        return seq(
            [AllocBuffer(each) for each in local],
            not_repeated(self._rows - top, read),
            self._each(lambda u, v, j: store(vectors, [copy, kept, self._rows, j], zero)),
            # Products are recomputed if they seem to vanish, and before the first column.
            self._each(lambda u, v, j: store(self._found, j, zero)),
            not_repeated(width, clear),
            loop(steps, lambda c: self._reflection(copy, kept, top, c)),
            not_repeated(width, finish),
        )

    def _each(self, body: Callable[[Expr, Expr, Expr], Stmt]) -> Stmt:
        """``body(vector, lane, column)`` along a row."""
        lanes = self._lanes
        return loop(
            self._width // lanes,
            lambda u: vector(lanes, lambda v: body(u, v, u * lanes + v)),
            UNROLLED,
        )

    def _clear_sums(self) -> Stmt:
        zero = const(0.0, self._dtype)
        return loop(
            _TOGETHER,
            lambda h: self._each(lambda u, v, j: store(self._sums, [h, u, v], zero)),
            UNROLLED,
        )

    def _total(self) -> Stmt:
        sums, zero, one = self._sums, i32(0), i32(1)
        return self._each(lambda u, v, j: store(self._found, j, sums[zero, u, v] + sums[one, u, v]))

    def _products(self, copy: Expr, kept: Expr, pivot: Expr, c: Expr) -> Stmt:
        """The products of column ``c``, below row ``pivot``, with all columns."""
        vectors, found, number = self.vectors, self._found, self._ours[i32(0)]

        def row(r: Expr) -> list[Stmt]:
            i = pivot + 1 + r
            return [
                store(self._ours, i32(0), vectors[copy, kept, i, c]),
                self._each(
                    lambda u, v, j: store(found, j, found[j] + number * vectors[copy, kept, i, j])
                ),
            ]

        zero = const(0.0, self._dtype)
        return seq(
            self._each(lambda u, v, j: store(found, j, zero)),
            as_written(self._rows - 1 - pivot, row),
        )

    def _reflection(self, copy: Expr, kept: Expr, top: Expr, c: Expr) -> list[Stmt]:
        """Find reflection ``c``, and apply it to the panel."""
        vectors, triangle, found = self.vectors, self.triangle, self._found
        dtype, numbers, column, taken = self._dtype, self._numbers, self._column, self._taken
        zero, one = const(0.0, dtype), const(1.0, dtype)
        alpha, back, some, norm, beta, tau, inverse = (i32(n) for n in range(7))
        p = top + c

        def set_(place: Expr, value: Expr) -> Stmt:
            return store(numbers, place, value)

        def get(place: Expr) -> Expr:
            return numbers[place]

        is_some = get(some) > zero
        negative = Powers(dtype).is_negative(get(alpha))

        def earlier(q: Expr) -> Stmt:
            return self._each(
                lambda u, v, j: store(
                    column, [u, v], column[u, v] + found[q] * triangle[copy, kept, q, j]
                )
            )

        def of_triangle(u: Expr, v: Expr, j: Expr) -> Stmt:
            before = zero - get(tau) * column[u, v]
            value = tirx.Select(j < c, before, tirx.Select(j == c, get(tau), zero))
            return store(triangle, [copy, kept, c, j], value)

        def of_row(u: Expr, v: Expr, j: Expr) -> Stmt:
            less = vectors[copy, kept, p, j] - taken[u, v]
            value = tirx.Select(j == c, get(beta) * get(back), less)
            return store(vectors, [copy, kept, p, j], value)

        return [
            set_(some, one),
            set_(back, one),
            IfThenElse(
                found[c] < const(_LEAST[dtype], dtype), self._rescale(copy, kept, p, c), None
            ),
            set_(alpha, vectors[copy, kept, p, c]),
            set_(norm, tirx.sqrt(get(alpha) * get(alpha) + found[c])),
            set_(beta, tirx.Select(negative, get(norm), zero - get(norm))),
            set_(tau, tirx.Select(is_some, tirx.div(get(beta) - get(alpha), get(beta)), zero)),
            set_(inverse, tirx.Select(is_some, tirx.div(one, get(alpha) - get(beta)), zero)),
            set_(beta, tirx.Select(is_some, get(beta), get(alpha))),
            # v^T A, since v is one in row p and the column times the factor below it.
            self._each(
                lambda u, v, j: store(found, j, vectors[copy, kept, p, j] + get(inverse) * found[j])
            ),
            self._each(lambda u, v, j: store(column, [u, v], zero)),
            loop(c, earlier),
            self._each(of_triangle),
            self._each(
                lambda u, v, j: store(taken, [u, v], tirx.Select(j > c, get(tau) * found[j], zero))
            ),
            self._each(lambda u, v, j: store(found, j, taken[u, v])),
            self._each(of_row),
            self._pass(copy, kept, p, c, get(inverse)),
        ]

    def _pass(self, copy: Expr, kept: Expr, p: Expr, c: Expr, inverse: Expr) -> Stmt:
        """Scale v, apply the reflection below row ``p``, and accumulate products for the next
        column.
        """
        vectors, row, taken, sums = self.vectors, self._row, self._taken, self._sums
        following = tirx.min(c + 1, i32(self._width - 1))

        def applied(i: Expr, h: Expr) -> list[Stmt]:
            def value(u: Expr, v: Expr, j: Expr) -> Expr:
                less = vectors[copy, kept, i, j] - self._ours[h] * taken[u, v]
                return tirx.Select(j == c, self._ours[h], less)

            return [
                store(self._ours, h, vectors[copy, kept, i, c] * inverse),
                store(
                    self._next,
                    h,
                    vectors[copy, kept, i, following] - self._ours[h] * self._found[following],
                ),
                self._each(lambda u, v, j: store(row, [u, v], value(u, v, j))),
                self._each(lambda u, v, j: store(vectors, [copy, kept, i, j], row[u, v])),
            ]

        def pair(r: Expr) -> Stmt:
            def one(h: Expr) -> Stmt:
                return seq(
                    applied(p + 2 + r * _TOGETHER + h, h),
                    self._each(
                        lambda u, v, j: store(
                            sums, [h, u, v], sums[h, u, v] + self._next[h] * row[u, v]
                        )
                    ),
                )

            return loop(_TOGETHER, one, UNROLLED)

        return seq(
            self._clear_sums(),
            applied(p + 1, i32(0)),
            loop((self._rows - 1 - p) // _TOGETHER, pair),
            self._total(),
        )

    def _rescale(self, copy: Expr, kept: Expr, p: Expr, c: Expr) -> Stmt:
        """Scale a column whose squares underflow by a power of two.

        Afterwards the column is zero, which needs no reflection, or negligible beside its first
        element.
        """
        vectors, numbers, dtype = self.vectors, self._numbers, self._dtype
        powers = Powers(dtype)
        back, some, greatest, power = (i32(n) for n in (1, 2, 6, 7))

        def compare(r: Expr) -> Stmt:
            size = tirx.abs(vectors[copy, kept, p + 1 + r, c])
            return store(numbers, some, tirx.max(numbers[some], size))

        def scale(r: Expr) -> Stmt:
            here = [copy, kept, p + r, c]
            return store(vectors, here, vectors[here] * numbers[power])

        first = tirx.abs(vectors[copy, kept, p, c])
        exponent = powers.exponent(numbers[greatest])
        return seq(
            store(numbers, some, const(0.0, dtype)),
            as_written(self._rows - 1 - p, compare),
            store(numbers, greatest, tirx.max(numbers[some], first)),
            store(numbers, power, powers.reciprocal(exponent)),
            store(numbers, back, powers.power(exponent)),
            as_written(self._rows - p, scale),
            self._products(copy, kept, p, c),
        )
