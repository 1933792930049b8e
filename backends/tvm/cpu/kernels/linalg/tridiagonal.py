"""Tridiagonalisation of symmetric matrices by Householder reflections, with one pass over rows
each.

A reflection's update of the rows, A - v w^T - w v^T, is fused with the matrix-vector product of
the next reflection.
"""

from __future__ import annotations

from collections.abc import Callable

from tracejit.backends.tvm.cpu.kernels.linalg.diagonal_reductions import DiagonalReduction
from tracejit.backends.tvm.cpu.machine import Machine
from tracejit.backends.tvm.ir.tir import (
    AllocBuffer,
    Expr,
    Stmt,
    buffer,
    const,
    i32,
    loop,
    seq,
    store,
    tirx,
)


class Tridiagonal(DiagonalReduction):
    """Tridiagonal reduction of symmetric matrices of ``size``, stored with both triangles.

    With ``keep`` row k of the matrix becomes the vector of reflection k, and ``taus[copy, k]`` its
    factor: the tridiagonal matrix is Q^T A Q with Q = H_0 H_1 …, and H = I - tau v v^T.
    """

    def __init__(
        self, copies: int, size: int, dtype: str, machine: Machine, keep: bool = False
    ) -> None:
        super().__init__(copies, size, size, dtype, machine)
        vectors = self._along_columns(copies, "old", "new", "w", "y")
        self._old, self._new, self._w, self._y = vectors
        self._half = buffer("half", (1,), dtype, scope="local")
        self.scratch += tuple(vectors)
        self._keep = keep
        if keep:
            (self.taus,) = self._along_columns(copies, "taus")
            self.scratch += (self.taus,)

    def reduce(self, copy: Expr) -> Stmt:
        """Compute both diagonals; overwrites the matrix."""
        zero = const(0.0, self.dtype)
        return seq(
            self._allocate(),
            AllocBuffer(self._half),
            [
                self.each(lambda j, v=v: store(v, [copy, j], zero))  # type: ignore[misc]
                for v in (self._old, self._w, self.beside)
            ],
            loop(self._columns, lambda k: self._step(copy, k)),
        )

    def _step(self, copy: Expr, k: Expr) -> list[Stmt]:
        """Eliminate column ``k``; its row has been updated already."""
        matrix, dtype, half = self.matrix, self.dtype, self._half
        old, new, w, y = self._old, self._new, self._w, self._y
        zero, one, first = const(0.0, dtype), const(1.0, dtype), i32(0)
        following = k + 1

        def reflected(j: Expr) -> Expr:
            scaled = tirx.Select(j > following, matrix[copy, k, j] * self.inverse, zero)
            return tirx.Select(j == following, one, scaled)

        def squared(j: Expr) -> Expr:
            return tirx.Select(j > following, matrix[copy, k, j] * matrix[copy, k, j], zero)

        def of_w(j: Expr) -> Expr:
            value = self.tau * (y[copy, j] - half[first] * new[copy, j])
            return tirx.Select(j > k, value, zero)

        def next_row(j: Expr) -> Expr:
            return matrix[copy, following, j] - w[copy, j] - half[first] * new[copy, j]

        square, squares = self._sum(following, squared)
        multiply, product = self._sum(following, lambda j: y[copy, j] * new[copy, j])
        return [
            store(self.diagonal, [copy, k], matrix[copy, k, k]),
            *square,
            *self._reflect(matrix[copy, k, following], squares),
            store(self.beside, [copy, following], self.beta),
            self.each(lambda j: store(new, [copy, j], reflected(j)), following),
            *self._kept(copy, k),
            self.each(lambda j: store(y, [copy, j], zero), following),
            loop(
                self._groups(k),
                lambda g: self._pass(copy, k, following + g * self._together),
            ),
            # w = tau (y - tau / 2 (y v) v)
            *multiply,
            store(half, first, product * self.tau * const(0.5, dtype)),
            self.each(lambda j: store(w, [copy, j], of_w(j)), following),
            # The row of the next column comes first.
            store(half, first, w[copy, following]),
            self.each(
                lambda j: store(matrix, [copy, following, j], next_row(j)),
                following,
            ),
            self.each(lambda j: store(old, [copy, j], new[copy, j]), following),
        ]

    def _kept(self, copy: Expr, k: Expr) -> list[Stmt]:
        if not self._keep:
            return []

        def put(j: Expr) -> Stmt:
            return store(self.matrix, [copy, k, j], self._new[copy, j])

        return [store(self.taus, [copy, k], self.tau), self.each(put, k + 1)]

    def _pass(self, copy: Expr, k: Expr, first: Expr) -> Stmt:
        """Update a group of rows, and accumulate their products with the new vector."""
        pairs = ((self._old, self._w), (self._w, self._old))

        def hold(h: Expr, _: Callable[[Expr], Expr]) -> list[Stmt]:
            return [store(self._factors, [i32(2), h], self._new[copy, first + h])]

        return self._update(copy, first, k + 1, pairs, self._y, hold)
