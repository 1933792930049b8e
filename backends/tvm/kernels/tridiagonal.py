"""Symmetric matrices made tridiagonal by Householder's reflections, one pass over rows for each.

A reflection's update of the rows, A - v w^T - w v^T, waits for the next reflection, whose product
with the matrix is summed while the rows are at hand.
"""

from __future__ import annotations

from tracejit.backends.tvm.kernels.machine import Machine
from tracejit.backends.tvm.kernels.reduction import Reduction
from tracejit.backends.tvm.kernels.tile import vector
from tracejit.backends.tvm.tir import (
    UNROLLED,
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


class Tridiagonal(Reduction):
    """Symmetric matrices of ``size``, both of whose triangles are there."""

    def __init__(self, copies: int, size: int, dtype: str, machine: Machine) -> None:
        super().__init__(copies, size, size, dtype, machine)
        vectors = self._along_columns(copies, "old", "new", "w", "y")
        self._old, self._new, self._w, self._y = vectors
        self._factors = buffer("factors", (3, self._together), dtype, scope="local")
        self._half = buffer("half", (1,), dtype, scope="local")
        self.scratch += tuple(vectors)

    def reduce(self, copy: Expr) -> Stmt:
        """Make the two diagonals of the matrix, which is lost."""
        zero = const(0.0, self.dtype)
        return seq(
            self._allocate(),
            AllocBuffer(self._factors),
            AllocBuffer(self._half),
            [
                self.each(lambda j, v=v: store(v, [copy, j], zero))  # type: ignore[misc]
                for v in (self._old, self._w, self.beside)
            ],
            loop(self._columns, lambda k: self._step(copy, k)),
        )

    def _step(self, copy: Expr, k: Expr) -> list[Stmt]:
        """Column ``k``, of a row that has been updated already."""
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
            self.each(lambda j: store(y, [copy, j], zero), following),
            loop(
                (self._rows - 1 - k + (self._together - 1)) // self._together,
                lambda g: self._pass(copy, k, following + g * self._together),
            ),
            # w = tau (y - tau / 2 (y v) v)
            *multiply,
            store(half, first, product * self.tau * const(0.5, dtype)),
            self.each(lambda j: store(w, [copy, j], of_w(j)), following),
            # The next column's row comes first.
            store(half, first, w[copy, following]),
            self.each(
                lambda j: store(matrix, [copy, following, j], next_row(j)),
                following,
            ),
            self.each(lambda j: store(old, [copy, j], new[copy, j]), following),
        ]

    def _pass(self, copy: Expr, k: Expr, first: Expr) -> Stmt:
        """Update a few rows, and add their products with the new vector."""
        matrix, factors, y = self.matrix, self._factors, self._y
        vectors = (self._old, self._w, self._new)

        def updated(h: Expr, j: Expr) -> Expr:
            return (
                matrix[copy, first + h, j]
                - factors[i32(0), h] * self._w[copy, j]
                - factors[i32(1), h] * self._old[copy, j]
            )

        def hold(h: Expr) -> list[Stmt]:
            return [
                store(factors, [i32(n), h], each[copy, first + h]) for n, each in enumerate(vectors)
            ]

        def total(j: Expr) -> Expr:
            value = y[copy, j]
            for h in range(self._together):
                value = value + factors[i32(2), i32(h)] * matrix[copy, first + h, j]
            return value

        start = (k + 1) // self._lanes

        def column(q: Expr) -> list[Stmt]:
            at = (start + q) * self._lanes

            def row(h: Expr) -> Stmt:
                return vector(
                    self._lanes,
                    lambda v: store(matrix, [copy, first + h, at + v], updated(h, at + v)),
                )

            return [
                loop(self._together, row, UNROLLED),
                vector(self._lanes, lambda v: store(y, [copy, at + v], total(at + v))),
            ]

        return seq(
            loop(self._together, hold, UNROLLED),
            loop(self._width // self._lanes - start, column),
        )
