"""Eigenvalues of real symmetric matrices: batched Jacobi for many small ones, tridiagonalisation
and bisection for others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tracejit.backends.tvm.codegen.kernel_body import KernelBody
from tracejit.backends.tvm.cpu.kernels.linalg.batched_rotations import LARGEST, group
from tracejit.backends.tvm.cpu.kernels.linalg.eigenvectors import eigenvectors
from tracejit.backends.tvm.cpu.kernels.linalg.jacobi import eigenvalues_in_lanes
from tracejit.backends.tvm.cpu.kernels.linalg.parallel_spectrum import SQUARE, threads_for, values
from tracejit.backends.tvm.cpu.kernels.linalg.triangular import Load, Store
from tracejit.backends.tvm.cpu.kernels.linalg.tridiagonal import Tridiagonal
from tracejit.backends.tvm.cpu.kernels.tiling import ceil_div
from tracejit.backends.tvm.cpu.machine import Machine
from tracejit.backends.tvm.ir.tir import Expr, Stmt, i32, loop, seq, store, tirx


@dataclass(frozen=True)
class Symmetric:
    """``batch`` matrices of ``size``, of ``dtype``: ``matrix(b, i, j)`` is read for i >= j.

    ``store(b, i, value)`` receives eigenvalue i: NaN for all of a matrix that is not finite.
    ``store_vector(b, i, j, value)`` receives element i of eigenvector j, if they are wanted.
    """

    batch: int
    size: int
    dtype: str
    matrix: Load
    store: Callable[[Expr, Expr, Expr], Stmt]
    store_vector: Store | None = None


def vectors_suit(problem: Symmetric, machine: Machine) -> bool:
    """Whether eigenvectors are computed here in less time than by a callback to LAPACK."""
    batch, size = problem.batch, problem.size
    groups = ceil_div(batch, group(batch, problem.dtype, machine))
    # Cycles, as measured.
    return size <= LARGEST and groups * 75 * size**3 <= 20_000 + batch * 400 * size**2


def symmetric_eigenvalues(problem: Symmetric, machine: Machine) -> KernelBody:
    """Ascending; the error is relative to the greatest element of the matrix.

    Vectors are computed only if `vectors_suit`.
    """
    batch, size, dtype = problem.batch, problem.size, problem.dtype
    groups = ceil_div(batch, group(batch, dtype, machine))
    # Cycles, as measured.
    suits = size <= LARGEST and groups * 50 * size**3 <= batch * (6000 + 1000 * size)
    if vectors_suit(problem, machine) if problem.store_vector is not None else suits:
        return eigenvalues_in_lanes(
            batch, size, dtype, problem.matrix, problem.store, problem.store_vector, machine
        )
    if problem.store_vector is not None:
        return eigenvectors(
            batch,
            size,
            dtype,
            lambda reduced, b, copy: seq(
                reduced.clear(copy), _both_triangles(problem, reduced, b, copy)
            ),
            problem.store,
            problem.store_vector,
            machine,
        )
    threads = threads_for(batch, size**3, machine)
    reduced = Tridiagonal(threads[0], size, dtype, machine)

    def take(b: Expr, copy: Expr) -> Stmt:
        return seq(reduced.clear(copy), _both_triangles(problem, reduced, b, copy))

    work = values(reduced, batch, size, threads, take, problem.store, machine)
    return work._replace(schedule="eigenvalues by bisection")


def _both_triangles(problem: Symmetric, reduced: Tridiagonal, b: Expr, copy: Expr) -> Stmt:
    matrix, n = reduced.matrix, problem.size

    def square(i0: Expr, j0: Expr) -> Stmt:
        def one(i: Expr, j: Expr) -> list[Stmt]:
            return [
                store(matrix, [copy, i, j], problem.matrix(b, i, j)),
                store(matrix, [copy, j, i], matrix[copy, i, j]),
            ]

        def row(i: Expr) -> Stmt:
            count = tirx.min(i32(SQUARE), i0 + i + 1 - j0)
            return loop(count, lambda j: one(i0 + i, j0 + j))

        return loop(tirx.min(i32(SQUARE), n - i0), row)

    return loop(
        ceil_div(n, SQUARE), lambda q: loop(q + 1, lambda p: square(q * SQUARE, p * SQUARE))
    )
