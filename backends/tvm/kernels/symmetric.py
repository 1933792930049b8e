"""Eigenvalues of real symmetric matrices: by rotations of many small ones at once, or by bisection
of what has been made tridiagonal."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tracejit.backends.tvm.kernels.bisection import Bisection
from tracejit.backends.tvm.kernels.jacobi import LARGEST, eigenvalues_in_lanes, group
from tracejit.backends.tvm.kernels.machine import Machine
from tracejit.backends.tvm.kernels.powers import Powers
from tracejit.backends.tvm.kernels.sharing import on_workers, share
from tracejit.backends.tvm.kernels.tile import vector
from tracejit.backends.tvm.kernels.tiling import ceil_div
from tracejit.backends.tvm.kernels.triangular import Load
from tracejit.backends.tvm.kernels.tridiagonal import Tridiagonal
from tracejit.backends.tvm.kernels.work import Work
from tracejit.backends.tvm.tir import (
    AllocBuffer,
    Expr,
    Stmt,
    buffer,
    const,
    i32,
    loop,
    reinterpret,
    seq,
    store,
    tirx,
)

_SQUARE = 16
"""Rows and columns that are copied at a time, so that either may be what lies together."""

_PARALLEL = 10_000
"""Multiplications from which on several matrices are given to several threads."""

_SHARED = 30_000
"""Multiplications from which on threads share the eigenvalues of one matrix."""


@dataclass(frozen=True)
class Symmetric:
    """``batch`` matrices of ``size``, of ``dtype``: ``matrix(b, i, j)`` is asked for i >= j.

    ``store(b, i, value)`` takes eigenvalue i: NaN for all of a matrix that is not finite.
    """

    batch: int
    size: int
    dtype: str
    matrix: Load
    store: Callable[[Expr, Expr, Expr], Stmt]


def symmetric_eigenvalues(problem: Symmetric, machine: Machine) -> Work:
    """Ascending, each as exact as the greatest element of the matrix allows."""
    batch, size = problem.batch, problem.size
    groups = ceil_div(batch, group(batch, problem.dtype, machine))
    # Cycles, as measured.
    if size <= LARGEST and groups * 50 * size**3 <= batch * (6000 + 1000 * size):
        return eigenvalues_in_lanes(
            batch, size, problem.dtype, problem.matrix, problem.store, None, machine
        )
    cost = problem.size**3
    outer = min(machine.threads, problem.batch)
    if problem.batch * cost < _PARALLEL or problem.batch < 2 * machine.threads:
        outer = 1
    inner = machine.threads if outer == 1 and cost >= _SHARED else 1
    made = _Eigenvalues(problem, machine, outer, inner)

    def worker(w: Expr) -> Stmt:
        first, count = share(w, problem.batch, outer)
        return loop(count, lambda b: made.find(first + b, w))

    return Work(on_workers(outer, worker), made.scratch, "eigenvalues by bisection")


class _Eigenvalues:
    """One of ``copies`` matrices at a time; ``workers`` threads share its eigenvalues."""

    def __init__(self, problem: Symmetric, machine: Machine, copies: int, workers: int) -> None:
        self._problem = problem
        self._workers = workers
        dtype = problem.dtype
        self._reduced = Tridiagonal(copies, problem.size, dtype, machine)
        self._bisection = Bisection(problem.size, dtype, machine)
        self._powers = Powers(dtype)
        self._lanes = machine.lanes(dtype, problem.size)
        self._greatest = buffer("greatest", (copies,), dtype)
        self._bound = buffer("bound", (copies,), dtype)
        self._found = buffer(
            "found", (copies, self._bisection.chunks * self._bisection.chunk), dtype
        )
        self.scratch = (*self._reduced.scratch, self._greatest, self._bound, self._found)

    def find(self, b: Expr, copy: Expr) -> Stmt:
        """Read matrix ``b``, work on it in the memory ``copy``, and store its eigenvalues."""
        problem, powers, greatest = self._problem, self._powers, self._greatest[copy]
        nan = const(math.nan, problem.dtype)

        def given(i: Expr) -> Stmt:
            value = self._found[copy, i] * powers.power(powers.exponent(greatest))
            return problem.store(b, i, tirx.Select(powers.is_finite(greatest), value, nan))

        return seq(
            self._take(b, copy),
            self._scale(copy),
            self._reduced.reduce(copy),
            self._limit(copy),
            self._values(copy),
            loop(problem.size, given),
        )

    def _take(self, b: Expr, copy: Expr) -> Stmt:
        """Both triangles from one, and zeros around them."""
        problem, reduced = self._problem, self._reduced
        matrix, n = reduced.matrix, problem.size

        def square(i0: Expr, j0: Expr) -> Stmt:
            def one(i: Expr, j: Expr) -> list[Stmt]:
                return [
                    store(matrix, [copy, i, j], problem.matrix(b, i, j)),
                    store(matrix, [copy, j, i], matrix[copy, i, j]),
                ]

            def row(i: Expr) -> Stmt:
                count = tirx.min(i32(_SQUARE), i0 + i + 1 - j0)
                return loop(count, lambda j: one(i0 + i, j0 + j))

            return loop(tirx.min(i32(_SQUARE), n - i0), row)

        def band(q: Expr) -> Stmt:
            return loop(q + 1, lambda p: square(q * _SQUARE, p * _SQUARE))

        def clear(i: Expr) -> Stmt:
            zero = const(0.0, problem.dtype)
            return reduced.each(lambda j: store(matrix, [copy, i, j], zero), 0)

        return seq(
            loop(reduced.rows, clear),
            loop(ceil_div(n, _SQUARE), band),
        )

    def _scale(self, copy: Expr) -> Stmt:
        """Scale by a power of two, so that squares neither overflow nor vanish."""
        reduced, powers, lanes = self._reduced, self._powers, self._lanes
        matrix, greatest = reduced.matrix, self._greatest
        most = buffer("most", (lanes,), powers.bits, scope="local")

        def compare(i: Expr) -> Stmt:
            return reduced.each(
                lambda j: store(
                    most,
                    j % lanes,
                    tirx.max(most[j % lanes], powers.magnitude(matrix[copy, i, j])),
                )
            )

        def scaled(i: Expr) -> Stmt:
            factor = powers.reciprocal(powers.exponent(greatest[copy]))
            return reduced.each(lambda j: store(matrix, [copy, i, j], matrix[copy, i, j] * factor))

        zero = i32(0)
        return seq(
            AllocBuffer(most),
            vector(lanes, lambda v: store(most, v, const(0, powers.bits))),
            loop(self._problem.size, compare),
            loop(lanes, lambda v: store(most, zero, tirx.max(most[zero], most[v]))),
            store(greatest, copy, reinterpret(self._problem.dtype, most[zero])),
            loop(self._problem.size, scaled),
        )

    def _limit(self, copy: Expr) -> Stmt:
        """A bound of all eigenvalues (S. Gershgorin, 1931); and the squares of what is beside the
        diagonal, in its place."""
        reduced, bound, n = self._reduced, self._bound, self._problem.size
        diagonal, beside, dtype = reduced.diagonal, reduced.beside, self._problem.dtype
        # So much more that rounding does not matter.
        above = const(1 + 16 * float(np.finfo(dtype).eps), dtype)

        def widen(i: Expr) -> Stmt:
            radius = tirx.abs(beside[copy, i]) + tirx.abs(beside[copy, i + 1])
            value = tirx.abs(diagonal[copy, i]) + radius
            return store(bound, copy, tirx.max(bound[copy], value * above))

        return seq(
            store(bound, copy, const(0.0, dtype)),
            loop(n, widen),
            loop(n, lambda i: store(beside, [copy, i], beside[copy, i] * beside[copy, i])),
        )

    def _values(self, copy: Expr) -> Stmt:
        reduced, bisection = self._reduced, self._bisection

        def worker(w: Expr) -> Stmt:
            first, count = share(w, bisection.chunks, self._workers)
            return loop(
                count,
                lambda c: bisection.find(
                    first + c,
                    lambda i: reduced.diagonal[copy, i],
                    lambda i: reduced.beside[copy, i],
                    self._bound[copy],
                    lambda i, value: store(self._found, [copy, i], value),
                ),
            )

        return on_workers(self._workers, worker)
