"""Singular values of real matrices: batched Jacobi for many small ones, bidiagonalisation and
bisection for others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tracejit.backends.tvm.codegen.kernel_body import KernelBody
from tracejit.backends.tvm.cpu.kernels.linalg.batched_rotations import LARGEST, group
from tracejit.backends.tvm.cpu.kernels.linalg.bidiagonal import Bidiagonal
from tracejit.backends.tvm.cpu.kernels.linalg.one_sided_jacobi import singular_values_in_lanes
from tracejit.backends.tvm.cpu.kernels.linalg.parallel_spectrum import SQUARE, threads_for, values
from tracejit.backends.tvm.cpu.kernels.linalg.singular_vectors import singular_vectors
from tracejit.backends.tvm.cpu.kernels.linalg.triangular import Load, Store
from tracejit.backends.tvm.cpu.kernels.tiling import ceil_div
from tracejit.backends.tvm.cpu.machine import Machine
from tracejit.backends.tvm.ir.tir import Expr, Stmt, i32, loop, seq, store, tirx


@dataclass(frozen=True)
class Rectangular:
    """``batch`` matrices of ``rows`` x ``columns``, of ``dtype``, neither of them 0.

    ``store(b, i, value)`` receives singular value i: NaN for all of a matrix that is not finite.
    ``store_left(b, i, j, value)`` receives element i of left vector j, and ``store_right`` of
    right vectors, if they are wanted.
    """

    batch: int
    rows: int
    columns: int
    dtype: str
    matrix: Load
    store: Callable[[Expr, Expr, Expr], Stmt]
    store_left: Store | None = None
    store_right: Store | None = None


def singular_values(problem: Rectangular, machine: Machine) -> KernelBody:
    """Descending; the error is relative to the greatest element of the matrix."""
    is_tall = problem.rows >= problem.columns
    rows, columns = max(problem.rows, problem.columns), min(problem.rows, problem.columns)
    batch = problem.batch

    def put(b: Expr, i: Expr, value: Expr) -> Stmt:
        return problem.store(b, columns - 1 - i, value)

    if problem.store_left is not None and problem.store_right is not None:
        left, right = problem.store_left, problem.store_right
        return singular_vectors(
            batch,
            rows,
            columns,
            problem.dtype,
            lambda reduced, b, copy: _copied(problem, reduced, b, copy),
            problem.store,
            *((left, right) if is_tall else (right, left)),
            machine,
        )
    groups = ceil_div(batch, group(batch, problem.dtype, machine))
    # Cycles, as measured.
    in_lanes = groups * columns**2 * (500 + 100 * rows) <= batch * (4000 + 1500 * columns)
    if columns <= LARGEST and rows <= 4 * LARGEST and in_lanes:
        given = problem.matrix if not is_tall else lambda b, i, j: problem.matrix(b, j, i)
        return singular_values_in_lanes(batch, columns, rows, problem.dtype, given, put, machine)
    threads = threads_for(batch, rows * columns**2, machine)
    reduced = Bidiagonal(threads[0], rows, columns, problem.dtype, machine)

    work = values(
        reduced,
        batch,
        columns,
        threads,
        lambda b, copy: _copied(problem, reduced, b, copy),
        put,
        machine,
    )
    return work._replace(schedule="singular values by bisection")


def _copied(problem: Rectangular, reduced: Bidiagonal, b: Expr, copy: Expr) -> Stmt:
    """Copy a matrix into zero-initialised memory, transposed if it is wider than high."""
    is_tall = problem.rows >= problem.columns

    def square(i0: Expr, j0: Expr) -> Stmt:
        def one(i: Expr, j: Expr) -> Stmt:
            place = [copy, i, j] if is_tall else [copy, j, i]
            return store(reduced.matrix, place, problem.matrix(b, i, j))

        return loop(
            tirx.min(i32(SQUARE), problem.rows - i0),
            lambda i: loop(
                tirx.min(i32(SQUARE), problem.columns - j0), lambda j: one(i0 + i, j0 + j)
            ),
        )

    squares = loop(
        ceil_div(problem.rows, SQUARE),
        lambda q: loop(ceil_div(problem.columns, SQUARE), lambda p: square(q * SQUARE, p * SQUARE)),
    )
    return seq(reduced.clear(copy), squares)
