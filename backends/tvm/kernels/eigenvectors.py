"""Eigenvalues and eigenvectors of symmetric matrices: two diagonals, and then the QL method.

Reflections make a matrix tridiagonal, rotations of neighbouring rows diagonal (J. G. F. Francis,
1961; H. Bowdler, R. S. Martin, C. Reinsch and J. H. Wilkinson, 1968). The rotations are found from
the two diagonals alone; what they make of the vectors is done to many at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tracejit.backends.tvm.kernels.machine import Machine
from tracejit.backends.tvm.kernels.mixing import Record, Rows
from tracejit.backends.tvm.kernels.powers import Powers
from tracejit.backends.tvm.kernels.sharing import on_workers, share
from tracejit.backends.tvm.kernels.spectrum import SQUARE
from tracejit.backends.tvm.kernels.tiling import ceil_div
from tracejit.backends.tvm.kernels.triangular import Store
from tracejit.backends.tvm.kernels.tridiagonal import Tridiagonal
from tracejit.backends.tvm.kernels.work import Work
from tracejit.backends.tvm.tir import (
    AllocBuffer,
    Expr,
    IfThenElse,
    Stmt,
    While,
    buffer,
    const,
    i32,
    loop,
    seq,
    store,
    tirx,
)

_SWEEPS = 60
"""More than any eigenvalue needs."""

_LEAST = {"float32": 1e-35, "float64": 1e-290}
"""Squares below this, beside elements near 1, may have lost some of their bits."""

_SHARED = 200_000
"""Multiplications from which on several matrices, or the strips of one, are given to threads."""


def eigenvectors(
    batch: int,
    size: int,
    dtype: str,
    take: Callable[[Tridiagonal, Expr, Expr], Stmt],
    put_value: Callable[[Expr, Expr, Expr], Stmt],
    put_vector: Store,
    machine: Machine,
) -> Work:
    """``take(reduced, b, copy)`` puts matrix b into memory, both of its triangles, among zeros.

    ``put_value(b, i, value)`` takes the eigenvalues, ascending, and ``put_vector(b, i, j, value)``
    element i of eigenvector j. All is NaN for a matrix that is not finite.
    """
    is_large = batch * size**3 >= _SHARED
    outer = min(machine.threads, batch) if is_large and batch >= 2 * machine.threads else 1
    inner = machine.threads if is_large and outer == 1 else 1
    made = _Vectors(size, dtype, machine, outer, inner)

    def worker(w: Expr) -> Stmt:
        first, count = share(w, batch, outer)
        return loop(
            count,
            lambda b: seq(
                take(made.reduced, first + b, w), made.find(first + b, w, put_value, put_vector)
            ),
        )

    return Work(on_workers(outer, worker), made.scratch, "eigenvectors by QL")


class _Vectors:
    """One of ``copies`` matrices at a time; ``workers`` threads share what is done to vectors."""

    def __init__(self, size: int, dtype: str, machine: Machine, copies: int, workers: int) -> None:
        self._size = size
        self._dtype = dtype
        self._workers = workers
        self.reduced = Tridiagonal(copies, size, dtype, machine, keep=True)
        self._rows = Rows(copies, size, size, dtype, machine, workers)
        # Sweeps are shorter than the matrix, and there are many in a record.
        self._record = Record(copies, 32 * size, dtype)
        self._place = buffer("place", (copies, size), "int32")
        self._numbers = buffer("numbers", (8,), dtype, scope="local")
        self._state = buffer("state", (4,), "int32", scope="local")
        self.scratch = (
            *self.reduced.scratch,
            self._rows.memory,
            *self._record.scratch,
            self._place,
        )

    def find(
        self, b: Expr, copy: Expr, put: Callable[[Expr, Expr, Expr], Stmt], put_vector: Store
    ) -> Stmt:
        reduced, n = self.reduced, self._size
        return seq(
            reduced.scale(copy),
            reduced.reduce(copy),
            self._rows.reflect(
                copy,
                max(n - 2, 0),
                lambda k, i: reduced.matrix[copy, k, i],
                lambda k: reduced.taus[copy, k],
            ),
            [AllocBuffer(each) for each in (self._numbers, self._state)],
            self._diagonalise(copy),
            self._sort(copy),
            self._give(b, copy, put, put_vector),
        )

    def _diagonalise(self, copy: Expr) -> Stmt:
        """Sweeps until nothing is left beside the diagonal that the greatest element could tell."""
        n, record = self._size, self._record
        diagonal, beside = self.reduced.diagonal, self.reduced.beside
        limit_at, first_at, last_at, tries_at, fails_at = i32(7), i32(0), i32(1), i32(2), i32(3)
        limit = self._numbers[limit_at]
        first, last, tries = (self._state[at] for at in (first_at, last_at, tries_at))

        def widen(i: Expr) -> Stmt:
            size = tirx.abs(diagonal[copy, i]) + tirx.abs(beside[copy, i])
            return store(self._numbers, limit_at, tirx.max(limit, size))

        half = const(float(np.finfo(self._dtype).eps) / 2, self._dtype)
        is_left = tirx.abs(beside[copy, last + 1]) > limit
        step = seq(
            store(self._state, last_at, first),
            While(tirx.And(last < n - 1, is_left), store(self._state, last_at, last + 1)),
            IfThenElse(
                last == first,
                seq(
                    store(self._state, first_at, first + 1),
                    store(self._state, tries_at, i32(0)),
                ),
                seq(
                    self._sweep(copy, first, last),
                    store(self._state, tries_at, tries + 1),
                    IfThenElse(
                        tries > _SWEEPS,
                        seq(
                            store(self._state, fails_at, i32(1)),
                            store(self._state, first_at, i32(n)),
                        ),
                        None,
                    ),
                ),
            ),
            IfThenElse(
                tirx.Or(record.counts[copy, i32(0)] > record.room - n, first >= n - 1),
                seq(self._rows.rotate(copy, record), record.clear(copy)),
                None,
            ),
        )
        return seq(
            record.clear(copy),
            store(self._numbers, limit_at, const(0.0, self._dtype)),
            loop(n, widen),
            store(self._numbers, limit_at, limit * half),
            [store(self._state, at, i32(0)) for at in (first_at, tries_at, fails_at)],
            While(first < n - 1, step),
        )

    def _sweep(self, copy: Expr, first: Expr, last: Expr) -> list[Stmt]:
        """One of the QL method on the rows from ``first`` to ``last``."""
        dtype, numbers = self._dtype, self._numbers
        diagonal, beside = self.reduced.diagonal, self.reduced.beside
        g, s, c, p, f, b, r = (i32(place) for place in range(7))
        one, two, zero = (const(value, dtype) for value in (1.0, 2.0, 0.0))

        def get(place: Expr) -> Expr:
            return numbers[place]

        def set_(place: Expr, value: Expr) -> Stmt:
            return store(numbers, place, value)

        def turn(t: Expr) -> list[Stmt]:
            i = last - 1 - t
            usable = get(r) > const(_LEAST[dtype], dtype)
            return [
                set_(f, get(s) * beside[copy, i + 1]),
                set_(b, get(c) * beside[copy, i + 1]),
                set_(r, get(f) * get(f) + get(g) * get(g)),
                # What is negligible needs no rotation.
                set_(c, tirx.Select(usable, tirx.div(get(g), tirx.sqrt(get(r))), one)),
                set_(s, tirx.Select(usable, tirx.div(get(f), tirx.sqrt(get(r))), zero)),
                store(
                    beside,
                    [copy, i + 2],
                    tirx.Select(usable, tirx.sqrt(get(r)), zero),
                ),
                *self._record.put(copy, t, get(c), get(s)),
                set_(g, diagonal[copy, i + 1] - get(p)),
                set_(r, (diagonal[copy, i] - get(g)) * get(s) + two * get(c) * get(b)),
                set_(p, get(s) * get(r)),
                store(diagonal, [copy, i + 1], get(g) + get(p)),
                set_(g, get(c) * get(r) - get(b)),
            ]

        gap = diagonal[copy, first + 1] - diagonal[copy, first]
        negative = Powers(dtype).is_negative(get(g))
        root = tirx.Select(negative, zero - get(r), get(r))
        return [
            set_(g, tirx.div(gap, two * beside[copy, first + 1])),
            set_(r, tirx.sqrt(get(g) * get(g) + one)),
            set_(
                g,
                (diagonal[copy, last] - diagonal[copy, first])
                + tirx.div(beside[copy, first + 1], get(g) + root),
            ),
            set_(s, one),
            set_(c, one),
            set_(p, zero),
            loop(last - first, turn),
            store(diagonal, [copy, first], diagonal[copy, first] - get(p)),
            store(beside, [copy, first + 1], get(g)),
            store(beside, [copy, last + 1], zero),
            *self._record.end(copy, first, last),
        ]

    def _sort(self, copy: Expr) -> list[Stmt]:
        """``place[copy, j]``: which row has eigenvector j."""
        n, diagonal, rank = self._size, self.reduced.diagonal, i32(0)
        state = self._state

        def count(i: Expr, j: Expr) -> Stmt:
            here, other = diagonal[copy, i], diagonal[copy, j]
            before = tirx.Or(other < here, tirx.And(other == here, j < i))
            return store(state, rank, state[rank] + before.astype("int32"))

        def ranked(i: Expr) -> list[Stmt]:
            return [
                store(state, rank, i32(0)),
                loop(n, lambda j: count(i, j)),
                store(self._place, [copy, state[rank]], i),
            ]

        # Values that are NaN have no order.
        return [
            loop(n, lambda i: store(self._place, [copy, i], i)),
            loop(n, ranked),
        ]

    def _give(
        self, b: Expr, copy: Expr, put: Callable[[Expr, Expr, Expr], Stmt], put_vector: Store
    ) -> list[Stmt]:
        n, powers, greatest = self._size, Powers(self._dtype), self.reduced.greatest[copy]
        nan, fails = const(math.nan, self._dtype), self._state[i32(3)]
        suits = tirx.And(powers.is_finite(greatest), fails == 0)

        def value(i: Expr) -> Stmt:
            found = self.reduced.diagonal[copy, self._place[copy, i]]
            scaled = found * powers.power(powers.exponent(greatest))
            return put(b, i, tirx.Select(suits, scaled, nan))

        def element(i: Expr, j: Expr) -> Stmt:
            found = self._rows.memory[copy, self._place[copy, j], i]
            return put_vector(b, i, j, tirx.Select(suits, found, nan))

        def square(i0: Expr, j0: Expr) -> Stmt:
            return loop(
                tirx.min(i32(SQUARE), n - i0),
                lambda i: loop(tirx.min(i32(SQUARE), n - j0), lambda j: element(i0 + i, j0 + j)),
            )

        squares = ceil_div(n, SQUARE)
        return [
            loop(n, value),
            loop(squares, lambda q: loop(squares, lambda p: square(q * SQUARE, p * SQUARE))),
        ]
