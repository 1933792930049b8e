"""Eigenvalues or singular values on several threads: reduction to two diagonals, then bisection."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tracejit.backends.tvm.codegen.kernel_body import KernelBody
from tracejit.backends.tvm.cpu.kernels.linalg.bidiagonal import Bidiagonal
from tracejit.backends.tvm.cpu.kernels.linalg.bisection import (
    Bisection,
    Rests,
    Value,
    of_eigenvalues,
    of_singular_values,
)
from tracejit.backends.tvm.cpu.kernels.linalg.power_of_two_scaling import Powers
from tracejit.backends.tvm.cpu.kernels.linalg.tridiagonal import Tridiagonal
from tracejit.backends.tvm.cpu.kernels.sharing import on_workers, share
from tracejit.backends.tvm.cpu.kernels.tile import not_repeated
from tracejit.backends.tvm.cpu.machine import Machine
from tracejit.backends.tvm.ir.tir import Expr, Stmt, buffer, const, loop, seq, store, tirx

_PARALLEL = 10_000
"""The least multiplications of a batch for several threads."""

_SHARED = 30_000
"""The least multiplications of one matrix for several threads."""

SQUARE = 16
"""Rows and columns that are copied at a time, so that either may be contiguous."""

Take = Callable[[Expr, Expr], Stmt]
Put = Callable[[Expr, Expr, Expr], Stmt]


def threads_for(batch: int, cost: int, machine: Machine) -> tuple[int, int]:
    """The number of threads that share the matrices, and the number that share the values of one.

    ``cost`` is the number of multiplications for one matrix.
    """
    shared = batch * cost >= _PARALLEL and batch >= 2 * machine.threads
    outer = min(machine.threads, batch) if shared else 1
    return outer, machine.threads if outer == 1 and cost >= _SHARED else 1


def values(
    reduced: Tridiagonal | Bidiagonal,
    batch: int,
    size: int,
    threads: tuple[int, int],
    take: Take,
    put: Put,
    machine: Machine,
) -> KernelBody:
    """Values of each matrix that ``take(b, copy)`` copies into the zero-initialised memory of
    ``reduced``.

    ``put(b, index, value)`` receives them in ascending order, NaN for a matrix that is not finite.
    """
    made = _Values(reduced, size, threads, machine)

    def worker(w: Expr) -> Stmt:
        first, count = share(w, batch, threads[0])
        return loop(count, lambda b: seq(take(first + b, w), made.find(first + b, w, put)))

    return KernelBody(on_workers(threads[0], worker), made.scratch)


class _Values:
    def __init__(
        self,
        reduced: Tridiagonal | Bidiagonal,
        size: int,
        threads: tuple[int, int],
        machine: Machine,
    ) -> None:
        self._reduced = reduced
        self._size = size
        self._workers = threads[1]
        dtype = self._dtype = reduced.dtype
        self._are_singular = isinstance(reduced, Bidiagonal)
        self._bisection = Bisection(size, dtype, machine)
        self._bound = buffer("bound", (threads[0],), dtype)
        places = self._bisection.chunks * self._bisection.chunk
        self._found = buffer("found", (threads[0], places), dtype)
        self.scratch = (*reduced.scratch, self._bound, self._found)

    def find(self, b: Expr, copy: Expr, put: Put) -> Stmt:
        powers, greatest = Powers(self._dtype), self._reduced.greatest[copy]
        nan = const(math.nan, self._dtype)

        def give(i: Expr) -> Stmt:
            value = self._found[copy, i] * powers.power(powers.exponent(greatest))
            return put(b, i, tirx.Select(powers.is_finite(greatest), value, nan))

        return seq(
            self._reduced.scale(copy),
            self._reduced.reduce(copy),
            self._limit(copy),
            self._bisect(copy),
            not_repeated(self._size, give),
        )

    def _limit(self, copy: Expr) -> Stmt:
        """A bound of all values (S. Gershgorin, 1931); replaces the diagonals by their squares."""
        bound, diagonal, beside = self._bound, self._reduced.diagonal, self._reduced.beside
        # A margin for rounding.
        above = const(1 + 16 * float(np.finfo(self._dtype).eps), self._dtype)

        def widen(i: Expr) -> Stmt:
            radius = tirx.abs(beside[copy, i]) + tirx.abs(beside[copy, i + 1])
            value = tirx.abs(diagonal[copy, i]) + radius
            return store(bound, copy, tirx.max(bound[copy], value * above))

        def square(i: Expr) -> list[Stmt]:
            squared = (beside, diagonal) if self._are_singular else (beside,)
            return [store(each, [copy, i], each[copy, i] * each[copy, i]) for each in squared]

        return seq(
            store(bound, copy, const(0.0, self._dtype)),
            not_repeated(self._size, widen),
            not_repeated(self._size, square),
        )

    def _bisect(self, copy: Expr) -> Stmt:
        bisection, bound = self._bisection, self._bound[copy]
        low = const(0.0, self._dtype) if self._are_singular else -bound
        of: Callable[[Value], Rests] = of_singular_values if self._are_singular else of_eigenvalues

        def worker(w: Expr) -> Stmt:
            first, count = share(w, bisection.chunks, self._workers)
            return loop(
                count,
                lambda c: bisection.find(
                    first + c,
                    lambda i: self._reduced.diagonal[copy, i],
                    of(lambda i: self._reduced.beside[copy, i]),
                    low,
                    bound,
                    lambda i, value: store(self._found, [copy, i], value),
                ),
            )

        return on_workers(self._workers, worker)
