"""Singular values and vectors: bidiagonalisation, then the method of G. H. Golub and C. Reinsch
(1970), with sweeps from the last row to the first.

Reflections make a matrix bidiagonal, rotations of neighbouring rows and columns diagonal. They are
computed from the two diagonals alone, recorded, and applied to the vectors many at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tracejit.backends.tvm.codegen.kernel_body import KernelBody
from tracejit.backends.tvm.cpu.kernels.linalg.bidiagonal import Bidiagonal
from tracejit.backends.tvm.cpu.kernels.linalg.implicit_sweeps import (
    LEAST,
    RECORDED,
    Sweeps,
    in_squares,
    workers_for,
)
from tracejit.backends.tvm.cpu.kernels.linalg.power_of_two_scaling import Powers
from tracejit.backends.tvm.cpu.kernels.linalg.reflect_and_rotate import Record, VectorRows
from tracejit.backends.tvm.cpu.kernels.linalg.triangular import Store
from tracejit.backends.tvm.cpu.kernels.sharing import on_workers, share
from tracejit.backends.tvm.cpu.machine import Machine
from tracejit.backends.tvm.ir.tir import (
    Expr,
    Stmt,
    const,
    i32,
    loop,
    seq,
    store,
    tirx,
)

Put = Callable[[Expr, Expr, Expr], Stmt]


def singular_vectors(
    batch: int,
    rows: int,
    columns: int,
    dtype: str,
    take: Callable[[Bidiagonal, Expr, Expr], Stmt],
    put_value: Put,
    put_left: Store,
    put_right: Store,
    machine: Machine,
) -> KernelBody:
    """``take(reduced, b, copy)`` copies matrix b, not wider than it is high, into memory.

    ``put_value(b, i, value)`` receives the singular values, descending, ``put_left(b, i, j,
    value)`` and ``put_right(b, i, j, value)`` element i of the vectors j. All is NaN for a matrix
    that is not finite.
    """
    outer, inner = workers_for(batch, rows * columns**2, machine)
    made = _Vectors(rows, columns, dtype, machine, outer, inner)

    def worker(w: Expr) -> Stmt:
        first, count = share(w, batch, outer)
        return loop(
            count,
            lambda b: seq(
                take(made.reduced, first + b, w),
                made.find(w),
                made.give(first + b, w, put_value, put_left, put_right),
            ),
        )

    return KernelBody(on_workers(outer, worker), made.scratch, "singular vectors by QR")


class _Vectors(Sweeps):
    """The method for ``copies`` matrices at a time; ``workers`` threads share the vectors."""

    def __init__(
        self, rows: int, columns: int, dtype: str, machine: Machine, copies: int, workers: int
    ) -> None:
        self.reduced = Bidiagonal(copies, rows, columns, dtype, machine, keep=True)
        super().__init__(self.reduced, copies, columns)
        self._height = rows
        self._left = VectorRows(copies, columns, rows, dtype, machine, workers)
        self._right = VectorRows(copies, columns, columns, dtype, machine, workers)
        self._of_left, self._of_right = (
            Record(copies, RECORDED * columns, dtype) for _ in range(2)
        )
        self.scratch = (
            *self.reduced.scratch,
            self._left.memory,
            self._right.memory,
            *self._of_left.scratch,
            *self._of_right.scratch,
            self.place,
        )

    def find(self, copy: Expr) -> Stmt:
        reduced, n = self.reduced, self._size
        return seq(
            reduced.scale(copy),
            reduced.reduce(copy),
            self._left.reflect(
                copy,
                n,
                lambda k, j: reduced.left[copy, k, j],
                lambda k: reduced.left_taus[copy, k],
                0,
            ),
            self._right.reflect(
                copy,
                max(n - 2, 0),
                lambda k, j: reduced.matrix[copy, k, j],
                lambda k: reduced.right_taus[copy, k],
                1,
            ),
            self.diagonalise(
                copy,
                [self._of_left, self._of_right],
                lambda first, last, has_none: self._sweep(copy, first, last, has_none),
                seq(
                    self._left.rotate(copy, self._of_left),
                    self._right.rotate(copy, self._of_right),
                ),
            ),
            # Descending, whatever their signs.
            self.sort(copy, lambda row: -tirx.abs(reduced.diagonal[copy, row])),
        )

    def _sweep(self, copy: Expr, first: Expr, last: Expr, has_none: Expr) -> list[Stmt]:
        """One sweep over the rows from ``first`` to ``last``.

        Without a shift if the diagonal has a zero, beyond which it would have no effect.
        """
        dtype, numbers = self._dtype, self._numbers
        diagonal, beside = self.reduced.diagonal, self.reduced.beside
        f, g, c, s, r, h, shift = (i32(place) for place in range(7))
        one, zero = const(1.0, dtype), const(0.0, dtype)

        def get(place: Expr) -> Expr:
            return numbers[place]

        def set_(place: Expr, value: Expr) -> Stmt:
            return store(numbers, place, value)

        def rotation(record: Record, t: Expr) -> list[Stmt]:
            """Record the rotation by ``c`` and ``s``, which maps (f, g) to (r, 0)."""
            usable = get(h) > const(LEAST[dtype], dtype)
            return [
                set_(h, get(f) * get(f) + get(g) * get(g)),
                set_(r, tirx.sqrt(get(h))),
                # A negligible element needs no rotation.
                set_(c, tirx.Select(usable, tirx.div(get(f), get(r)), one)),
                set_(s, tirx.Select(usable, tirx.div(get(g), get(r)), zero)),
                set_(r, tirx.Select(usable, get(r), get(f))),
                *record.put(copy, t, get(c), get(s)),
            ]

        def rotate(t: Expr) -> list[Stmt]:
            i = last - t
            here, above, between = diagonal[copy, i], diagonal[copy, i - 1], beside[copy, i]

            return [
                *rotation(self._of_left, t),
                store(beside, [copy, i + 1], tirx.Select(t > 0, get(r), beside[copy, i + 1])),
                set_(f, get(c) * here + get(s) * between),
                store(beside, [copy, i], get(c) * between - get(s) * here),
                set_(g, get(s) * above),
                store(diagonal, [copy, i - 1], get(c) * above),
                *rotation(self._of_right, t),
                store(diagonal, [copy, i], get(r)),
                set_(f, get(c) * between + get(s) * above),
                store(diagonal, [copy, i - 1], get(c) * above - get(s) * between),
                set_(g, get(s) * beside[copy, i - 1]),
                store(
                    beside,
                    [copy, i - 1],
                    tirx.Select(
                        t < last - first - 1, get(c) * beside[copy, i - 1], beside[copy, i - 1]
                    ),
                ),
            ]

        end = diagonal[copy, last]
        size = tirx.abs(end)
        negative = Powers(dtype).is_negative(end)
        signed = tirx.Select(negative, zero - one, one)
        shifted = tirx.And(has_none, get(shift) > zero)
        return [
            *self._shift(copy, first, shift),
            set_(
                f,
                tirx.Select(
                    shifted, (size - get(shift)) * (signed + tirx.div(get(shift), end)), end
                ),
            ),
            set_(g, beside[copy, last]),
            loop(last - first, rotate),
            store(beside, [copy, first + 1], get(f)),
            *self._of_left.end(copy, first, last),
            *self._of_right.end(copy, first, last),
        ]

    def _shift(self, copy: Expr, first: Expr, place: Expr) -> list[Stmt]:
        """The smaller singular value of the first two rows and columns."""
        dtype, numbers = self._dtype, self._numbers
        diagonal, beside = self.reduced.diagonal, self.reduced.beside
        one, zero = const(1.0, dtype), const(0.0, dtype)
        a, b, c = (
            tirx.abs(value)
            for value in (
                diagonal[copy, first],
                beside[copy, first + 1],
                diagonal[copy, first + 1],
            )
        )
        low, high, ratio, plus, minus = (i32(n) for n in range(5))

        def get(at: Expr) -> Expr:
            return numbers[at]

        above = tirx.div(get(low), get(high))
        less = tirx.div(get(high) - get(low), get(high))
        square = tirx.div(b, get(high))
        # sigma = low 2 / (sqrt((1 + low / high)^2 + (b / high)^2) + sqrt((1 - …)^2 + …))
        whole = tirx.sqrt(get(plus) * get(plus) + get(ratio)) + tirx.sqrt(
            get(minus) * get(minus) + get(ratio)
        )
        found = tirx.div(get(low) + get(low), whole)
        return [
            store(numbers, low, tirx.min(a, c)),
            store(numbers, high, tirx.max(a, c)),
            store(numbers, ratio, square * square),
            store(numbers, plus, one + above),
            store(numbers, minus, less),
            store(numbers, place, tirx.Select(get(high) > zero, found, zero)),
        ]

    def give(self, b: Expr, copy: Expr, put: Put, put_left: Store, put_right: Store) -> list[Stmt]:
        n, powers, greatest = self._size, Powers(self._dtype), self.reduced.greatest[copy]
        nan = const(math.nan, self._dtype)
        suits = tirx.And(powers.is_finite(greatest), tirx.Not(self.failed))
        diagonal, place = self.reduced.diagonal, self.place
        zero = const(0.0, self._dtype)

        def value(i: Expr) -> Stmt:
            found = tirx.abs(diagonal[copy, place[copy, i]])
            scaled = found * powers.power(powers.exponent(greatest))
            return put(b, i, tirx.Select(suits, scaled, nan))

        def left(i: Expr, j: Expr) -> Stmt:
            found = self._left.memory[copy, place[copy, j], i]
            return put_left(b, i, j, tirx.Select(suits, found, nan))

        def right(i: Expr, j: Expr) -> Stmt:
            found = self._right.memory[copy, place[copy, j], i]
            negative = diagonal[copy, place[copy, j]] < zero
            signed = tirx.Select(negative, zero - found, found)
            return put_right(b, i, j, tirx.Select(suits, signed, nan))

        return [
            loop(n, value),
            in_squares(self._height, n, left),
            in_squares(n, n, right),
        ]
