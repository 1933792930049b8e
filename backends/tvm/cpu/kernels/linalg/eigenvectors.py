"""Eigenvalues and eigenvectors of symmetric matrices: tridiagonalisation, then the QL algorithm.

Reflections make a matrix tridiagonal, rotations of neighbouring rows diagonal (J. G. F. Francis,
1961; H. Bowdler, R. S. Martin, C. Reinsch and J. H. Wilkinson, 1968). The rotations are computed
from the two diagonals alone, recorded, and applied to the vectors many at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tracejit.backends.tvm.codegen.kernel_body import KernelBody
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
from tracejit.backends.tvm.cpu.kernels.linalg.tridiagonal import Tridiagonal
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


def eigenvectors(
    batch: int,
    size: int,
    dtype: str,
    take: Callable[[Tridiagonal, Expr, Expr], Stmt],
    put_value: Callable[[Expr, Expr, Expr], Stmt],
    put_vector: Store,
    machine: Machine,
) -> KernelBody:
    """``take(reduced, b, copy)`` copies both triangles of matrix b into zero-initialised memory.

    ``put_value(b, i, value)`` receives the eigenvalues, ascending, and ``put_vector(b, i, j,
    value)`` element i of eigenvector j. All is NaN for a matrix that is not finite.
    """
    outer, inner = workers_for(batch, size**3, machine)
    made = _Vectors(size, dtype, machine, outer, inner)

    def worker(w: Expr) -> Stmt:
        first, count = share(w, batch, outer)
        return loop(
            count,
            lambda b: seq(
                take(made.reduced, first + b, w), made.find(first + b, w, put_value, put_vector)
            ),
        )

    return KernelBody(on_workers(outer, worker), made.scratch, "eigenvectors by QL")


class _Vectors(Sweeps):
    """The QL algorithm for ``copies`` matrices at a time; ``workers`` threads share the vectors."""

    def __init__(self, size: int, dtype: str, machine: Machine, copies: int, workers: int) -> None:
        self.reduced = Tridiagonal(copies, size, dtype, machine, keep=True)
        super().__init__(self.reduced, copies, size)
        self._rows = VectorRows(copies, size, size, dtype, machine, workers)
        self._record = Record(copies, RECORDED * size, dtype)
        self.scratch = (
            *self.reduced.scratch,
            self._rows.memory,
            *self._record.scratch,
            self.place,
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
                lambda k, j: reduced.matrix[copy, k, j],
                lambda k: reduced.taus[copy, k],
                1,
            ),
            self.diagonalise(
                copy,
                [self._record],
                lambda first, last, _: self._sweep(copy, first, last),
                self._rows.rotate(copy, self._record),
            ),
            self.sort(copy, lambda row: reduced.diagonal[copy, row]),
            self._give(b, copy, put, put_vector),
        )

    def _sweep(self, copy: Expr, first: Expr, last: Expr) -> list[Stmt]:
        """One QL sweep over the rows from ``first`` to ``last``."""
        dtype, numbers = self._dtype, self._numbers
        diagonal, beside = self.reduced.diagonal, self.reduced.beside
        g, s, c, p, f, b, r = (i32(place) for place in range(7))
        one, two, zero = (const(value, dtype) for value in (1.0, 2.0, 0.0))

        def get(place: Expr) -> Expr:
            return numbers[place]

        def set_(place: Expr, value: Expr) -> Stmt:
            return store(numbers, place, value)

        def rotate(t: Expr) -> list[Stmt]:
            i = last - 1 - t
            usable = get(r) > const(LEAST[dtype], dtype)
            return [
                set_(f, get(s) * beside[copy, i + 1]),
                set_(b, get(c) * beside[copy, i + 1]),
                set_(r, get(f) * get(f) + get(g) * get(g)),
                # A negligible element needs no rotation.
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
            loop(last - first, rotate),
            store(diagonal, [copy, first], diagonal[copy, first] - get(p)),
            store(beside, [copy, first + 1], get(g)),
            store(beside, [copy, last + 1], zero),
            *self._record.end(copy, first, last),
        ]

    def _give(
        self, b: Expr, copy: Expr, put: Callable[[Expr, Expr, Expr], Stmt], put_vector: Store
    ) -> list[Stmt]:
        n, powers, greatest = self._size, Powers(self._dtype), self.reduced.greatest[copy]
        nan = const(math.nan, self._dtype)
        suits = tirx.And(powers.is_finite(greatest), tirx.Not(self.failed))

        def value(i: Expr) -> Stmt:
            found = self.reduced.diagonal[copy, self.place[copy, i]]
            scaled = found * powers.power(powers.exponent(greatest))
            return put(b, i, tirx.Select(suits, scaled, nan))

        def element(i: Expr, j: Expr) -> Stmt:
            found = self._rows.memory[copy, self.place[copy, j], i]
            return put_vector(b, i, j, tirx.Select(suits, found, nan))

        return [loop(n, value), in_squares(n, n, element)]
