"""Bidiagonalisation by Householder reflections from the left and from the right.

Two passes over the rows make one column and one row. The first applies the previous reflections, A
- v w^T - z u^T, and accumulates the products of the next column with the rows; the second
multiplies the rows with the next row.
"""

from __future__ import annotations

from collections.abc import Callable

from tracejit.backends.tvm.cpu.kernels.linalg.diagonal_reductions import DiagonalReduction
from tracejit.backends.tvm.cpu.kernels.tile import vector
from tracejit.backends.tvm.cpu.kernels.tiling import ceil_div
from tracejit.backends.tvm.cpu.machine import Machine
from tracejit.backends.tvm.ir.tir import (
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


class Bidiagonal(DiagonalReduction):
    """Bidiagonal reduction of matrices with at least as many rows as columns.

    With ``keep`` the vectors of the reflections are kept, and their factors: those from the left
    in ``left[copy, k]`` and ``left_taus``, those from the right in row k of the matrix and in
    ``right_taus``. The bidiagonal matrix is Q^T A P with Q = H_0 H_1 …, H = I - tau v v^T, and P
    likewise.
    """

    def __init__(
        self,
        copies: int,
        rows: int,
        columns: int,
        dtype: str,
        machine: Machine,
        keep: bool = False,
    ) -> None:
        super().__init__(copies, rows, columns, dtype, machine)
        along = self._along_columns(copies, "w", "u", "y")
        self._w, self._u, self._y = along
        lanes = machine.lanes(dtype, rows)
        self._left_width = ceil_div(rows, lanes) * lanes
        self._left_lanes = lanes
        height = max(self._height, self._left_width)
        down = [buffer(name, (copies, height), dtype) for name in ("v", "z", "x")]
        self._v, self._z, self._x = down
        self._dots = buffer("dots", (self._together, self._lanes), dtype, scope="local")
        self._product = buffer("product", (1,), dtype, scope="local")
        self.scratch += (*along, *down)
        self._keep = keep
        if keep:
            self.left = buffer("left", (copies, columns, self._left_width), dtype)
            self.left_taus, self.right_taus = self._along_columns(copies, "left", "right")
            self.scratch += (self.left, self.left_taus, self.right_taus)

    def reduce(self, copy: Expr) -> Stmt:
        """Compute both diagonals; overwrites the matrix."""
        zero = const(0.0, self.dtype)
        columns = (self._w, self._u, self.beside)
        return seq(
            self._allocate(),
            [AllocBuffer(b) for b in (self._dots, self._product)],
            [
                self.each(lambda j, v=v: store(v, [copy, j], zero))  # type: ignore[misc]
                for v in columns
            ],
            loop(
                max(self._height, self._left_width),
                lambda i: [store(v, [copy, i], zero) for v in (self._v, self._z, self._x)],
            ),
            loop(self._columns, lambda k: self._step(copy, k)),
        )

    def _step(self, copy: Expr, k: Expr) -> list[Stmt]:
        """Eliminate column ``k`` and row ``k``."""
        matrix, dtype = self.matrix, self.dtype
        v, w, x, y, u = self._v, self._w, self._x, self._y, self._u
        zero, one = const(0.0, dtype), const(1.0, dtype)
        following = k + 1

        def of_row(j: Expr) -> Expr:
            left = self._v[copy, k] * w[copy, j] + self._z[copy, k] * u[copy, j]
            return matrix[copy, k, j] - left

        def of_w(j: Expr) -> Expr:
            value = self.tau * (matrix[copy, k, j] + self.inverse * y[copy, j])
            return tirx.Select(j > k, value, zero)

        def of_u(j: Expr) -> Expr:
            scaled = tirx.Select(j > following, matrix[copy, k, j] * self.inverse, zero)
            return tirx.Select(j == following, one, scaled)

        def squared(j: Expr) -> Expr:
            return tirx.Select(j > following, matrix[copy, k, j] * matrix[copy, k, j], zero)

        square, squares = self._sum(following, squared)
        multiply, product = self._sum(following, lambda j: w[copy, j] * u[copy, j])
        return [
            self.each(lambda j: store(matrix, [copy, k, j], of_row(j)), k),
            self.each(lambda j: store(y, [copy, j], zero), k),
            loop(
                self._groups(k),
                lambda g: self._pass(copy, k, following + g * self._together),
            ),
            *self._reflect(matrix[copy, k, k], y[copy, k]),
            store(self.diagonal, [copy, k], self.beta),
            self.each(lambda j: store(w, [copy, j], of_w(j)), k),
            loop(
                self._rows - 1 - k,
                lambda i: store(v, [copy, following + i], x[copy, following + i] * self.inverse),
            ),
            *self._kept_left(copy, k),
            self.each(lambda j: store(matrix, [copy, k, j], matrix[copy, k, j] - w[copy, j]), k),
            *square,
            *self._reflect(matrix[copy, k, following], squares),
            store(self.beside, [copy, following], self.beta),
            self.each(lambda j: store(u, [copy, j], of_u(j)), k),
            *self._kept_right(copy, k),
            *multiply,
            store(self._product, i32(0), product),
            loop(
                self._groups(k),
                lambda g: self._multiply(copy, k, following + g * self._together),
            ),
        ]

    def _kept_left(self, copy: Expr, k: Expr) -> list[Stmt]:
        if not self._keep:
            return []
        lanes, zero, one = self._left_lanes, const(0.0, self.dtype), const(1.0, self.dtype)
        start = k // lanes

        def put(j: Expr) -> Stmt:
            value = tirx.Select(j > k, self._v[copy, j], tirx.Select(j == k, one, zero))
            return store(self.left, [copy, k, j], value)

        count = self._left_width // lanes - start
        return [
            store(self.left_taus, [copy, k], self.tau),
            loop(count, lambda q: vector(lanes, lambda v: put((start + q) * lanes + v))),
        ]

    def _kept_right(self, copy: Expr, k: Expr) -> list[Stmt]:
        if not self._keep:
            return []

        def put(j: Expr) -> Stmt:
            return store(self.matrix, [copy, k, j], self._u[copy, j])

        return [store(self.right_taus, [copy, k], self.tau), self.each(put, k + 1)]

    def _pass(self, copy: Expr, k: Expr, first: Expr) -> Stmt:
        """Update a group of rows, and accumulate their products with column ``k``."""
        factors, pairs = self._factors, ((self._v, self._w), (self._z, self._u))

        def hold(h: Expr, updated: Callable[[Expr], Expr]) -> list[Stmt]:
            return [
                store(factors, [i32(2), h], updated(k)),
                store(self._x, [copy, first + h], factors[i32(2), h]),
            ]

        return self._update(copy, first, k, pairs, self._y, hold)

    def _multiply(self, copy: Expr, k: Expr, first: Expr) -> Stmt:
        """Apply the row's reflection to a group of rows: tau (A - v w^T) u."""
        dots, lanes, zero = self._dots, self._lanes, const(0.0, self.dtype)

        def each(width: int, value: Callable[[Expr, Expr], Expr]) -> Stmt:
            def row(h: Expr) -> Stmt:
                return vector(width, lambda v: store(dots, [h, v], value(h, v)))

            return loop(self._together, row, UNROLLED)

        start = k // lanes

        def add(q: Expr) -> Stmt:
            at = (start + q) * lanes
            return each(
                lanes,
                lambda h, v: (
                    dots[h, v] + self.matrix[copy, first + h, at + v] * self._u[copy, at + v]
                ),
            )

        def fold(width: int) -> Stmt:
            return each(width, lambda h, v: dots[h, v] + dots[h, width + v])

        def give(h: Expr) -> Stmt:
            product = dots[h, i32(0)] - self._v[copy, first + h] * self._product[i32(0)]
            return store(self._z, [copy, first + h], self.tau * product)

        return seq(
            each(lanes, lambda h, v: zero),
            loop(self._width // lanes - start, add),
            [fold(lanes >> n) for n in range(1, lanes.bit_length())],
            loop(self._together, give, UNROLLED),
        )
