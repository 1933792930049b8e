"""Divides work among threads, and adds up partial sums of a split contraction."""

from __future__ import annotations

from collections.abc import Callable

from tracejit.backends.tvm.cpu.kernels.gemm.contraction import Contraction
from tracejit.backends.tvm.cpu.kernels.tile import vector_loop
from tracejit.backends.tvm.cpu.machine import Machine
from tracejit.backends.tvm.ir.tir import PARALLEL, Buffer, Expr, Stmt, const, i32, loop, tirx


def share(index: Expr, total: int | Expr, shares: int) -> tuple[Expr, Expr]:
    """The first item and the number of items of share ``index``, for shares of about equal size."""
    if shares == 1:
        return i32(0), i32(total) if isinstance(total, int) else total
    most = (total + (shares - 1)) // shares
    first = index * most
    if isinstance(total, int) and total % shares == 0:
        return first, i32(most)
    return first, tirx.max(tirx.min(most, total - first), i32(0))


def on_workers(workers: int, body: Callable[[Expr], Stmt]) -> Stmt:
    """``body(worker)`` for each worker, in a parallel loop if there are several."""
    return body(i32(0)) if workers == 1 else loop(workers, body, PARALLEL)


class Partials:
    """Sums over several ranges of the contraction, added to the final result in a fixed order.

    The number of ranges never depends on the number of threads, nor does the order of the sums.
    """

    def __init__(self, problem: Contraction, ranges: int, machine: Machine) -> None:
        self._problem = problem
        self._ranges = ranges
        self._lanes = machine.lanes(problem.arithmetic.dtype)
        self.scratch: Buffer = problem.arithmetic.scratch(
            "partials", (ranges, problem.m, problem.n)
        )

    def store(self, which: Expr) -> Callable[..., Stmt]:
        """The ``store`` of one range's kernel: writes to the range's partial sums."""
        arithmetic = self._problem.arithmetic
        return lambda b, i, j, v: arithmetic.store(self.scratch, [which, i, j], v)

    def combine(self, b: Expr) -> Stmt:
        """Store the sum over all ranges."""
        problem = self._problem

        def total(i: Expr, j: Expr) -> Stmt:
            value = problem.arithmetic.zero
            for which in range(self._ranges):
                part = problem.arithmetic.load(self.scratch, const(which, "int32"), i, j)
                value = problem.arithmetic.add(value, part)
            return problem.store(b, i, j, value)

        return loop(problem.m, lambda i: vector_loop(problem.n, self._lanes, lambda j: total(i, j)))
