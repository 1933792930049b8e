"""Symmetric matrices made tridiagonal by Householder's reflections, one pass over rows for each.

A reflection's update of the rows, A - v w^T - w v^T, waits for the next reflection, whose product
with the matrix is summed while the rows are at hand.
"""

from __future__ import annotations

from collections.abc import Callable

from tracejit.backends.tvm.kernels.machine import Machine
from tracejit.backends.tvm.kernels.powers import Powers
from tracejit.backends.tvm.kernels.tile import vector
from tracejit.backends.tvm.kernels.tiling import ceil_div
from tracejit.backends.tvm.tir import (
    UNROLLED,
    AllocBuffer,
    Buffer,
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

_LEAST = {"float32": 1e-30, "float64": 1e-280}
"""A column whose square is less, beside elements near 1, needs no reflection."""


class Tridiagonal:
    """Matrices of ``size`` in ``matrix[copy]``, rounded up to whole vectors and rows of zeros.

    `reduce` leaves the diagonal in ``diagonal[copy]``, and what is beside it in ``beside[copy]``,
    element i that between i - 1 and i.
    """

    def __init__(self, copies: int, size: int, dtype: str, machine: Machine) -> None:
        self._size = size
        self._dtype = dtype
        self._lanes = machine.lanes(dtype, size)
        self._together = 4 if machine.registers == 32 else 2
        self._width = ceil_div(size + 1 + self._together, self._lanes) * self._lanes
        self.rows = size + self._together
        self.matrix: Buffer = buffer("matrix", (copies, self.rows, self._width), dtype)
        self.diagonal, self.beside, self._old, self._new, self._w, self._y = (
            buffer(name, (copies, self._width), dtype)
            for name in ("diagonal", "beside", "old", "new", "w", "y")
        )
        self._partial = buffer("partial", (self._lanes,), dtype, scope="local")
        self._numbers = buffer("numbers", (8,), dtype, scope="local")
        self._factors = buffer("factors", (3, self._together), dtype, scope="local")
        self.scratch = (
            self.matrix,
            self.diagonal,
            self.beside,
            self._old,
            self._new,
            self._w,
            self._y,
        )

    def each(self, body: Callable[[Expr], Stmt], first: Expr | int = 0) -> Stmt:
        """``body(j)`` in vectors along a row, from the one that holds column ``first``."""
        start = first // self._lanes
        return loop(
            self._width // self._lanes - start,
            lambda q: vector(self._lanes, lambda v: body((start + q) * self._lanes + v)),
        )

    def reduce(self, copy: Expr) -> Stmt:
        zero = const(0.0, self._dtype)
        return seq(
            [AllocBuffer(b) for b in (self._partial, self._numbers, self._factors)],
            self.each(lambda j: store(self._old, [copy, j], zero)),
            self.each(lambda j: store(self._w, [copy, j], zero)),
            self.each(lambda j: store(self.beside, [copy, j], zero)),
            loop(self._size, lambda k: self._step(copy, k)),
        )

    def _sum(self, place: int, first: Expr, value: Callable[[Expr], Expr]) -> list[Stmt]:
        """``numbers[place]`` is the sum of ``value(j)`` in the vectors from column ``first`` on."""
        partial, lanes, zero = self._partial, self._lanes, const(0.0, self._dtype)
        start = first // lanes

        def add(q: Expr) -> Stmt:
            return vector(
                lanes,
                lambda v: store(partial, v, partial[v] + value((start + q) * lanes + v)),
            )

        folds = []
        width = lanes // 2
        while width:
            folds.append(
                vector(width, lambda v, w=width: store(partial, v, partial[v] + partial[w + v]))  # type: ignore[misc]
            )
            width //= 2
        return [
            vector(lanes, lambda v: store(partial, v, zero)),
            loop(self._width // lanes - start, add),
            *folds,
            store(self._numbers, i32(place), partial[i32(0)]),
        ]

    def _step(self, copy: Expr, k: Expr) -> list[Stmt]:
        """Column ``k``, of a row that has been updated already."""
        matrix, numbers, dtype = self.matrix, self._numbers, self._dtype
        old, new, w, y = self._old, self._new, self._w, self._y
        zero, one = const(0.0, dtype), const(1.0, dtype)
        square, alpha, norm, beta, tau, inverse, half = (i32(n) for n in range(7))
        following = k + 1

        def set_(place: Expr, value: Expr) -> Stmt:
            return store(numbers, place, value)

        def get(place: Expr) -> Expr:
            return numbers[place]

        def behind(j: Expr, value: Expr) -> Expr:
            return tirx.Select(j > following, value, zero)

        is_some = get(square) >= const(_LEAST[dtype], dtype)
        negative = Powers(dtype).is_negative(get(alpha))

        def reflected(j: Expr) -> Expr:
            scaled = behind(j, matrix[copy, k, j] * get(inverse))
            return tirx.Select(j == following, one, scaled)

        def squared(j: Expr) -> Expr:
            return behind(j, matrix[copy, k, j] * matrix[copy, k, j])

        return [
            store(self.diagonal, [copy, k], matrix[copy, k, k]),
            *self._sum(0, following, squared),
            set_(alpha, matrix[copy, k, following]),
            set_(norm, tirx.sqrt(get(alpha) * get(alpha) + get(square))),
            set_(beta, tirx.Select(negative, get(norm), zero - get(norm))),
            set_(tau, tirx.Select(is_some, tirx.div(get(beta) - get(alpha), get(beta)), zero)),
            set_(inverse, tirx.Select(is_some, tirx.div(one, get(alpha) - get(beta)), zero)),
            store(self.beside, [copy, following], tirx.Select(is_some, get(beta), get(alpha))),
            self.each(lambda j: store(new, [copy, j], reflected(j)), following),
            self.each(lambda j: store(y, [copy, j], zero), following),
            loop(
                (self._size - 1 - k + (self._together - 1)) // self._together,
                lambda g: self._pass(copy, k, following + g * self._together),
            ),
            # w = tau (y - tau / 2 (y v) v)
            *self._sum(6, following, lambda j: y[copy, j] * new[copy, j]),
            set_(half, get(half) * get(tau) * const(0.5, dtype)),
            self.each(
                lambda j: store(
                    w,
                    [copy, j],
                    tirx.Select(j > k, get(tau) * (y[copy, j] - get(half) * new[copy, j]), zero),
                ),
                following,
            ),
            self.each(lambda j: store(old, [copy, j], new[copy, j]), following),
            # The next column's row comes first.
            set_(alpha, w[copy, following]),
            self.each(
                lambda j: store(
                    matrix,
                    [copy, following, j],
                    matrix[copy, following, j] - w[copy, j] - get(alpha) * old[copy, j],
                ),
                following,
            ),
        ]

    def _pass(self, copy: Expr, k: Expr, first: Expr) -> Stmt:
        """Update a few rows, and add their products with the new vector."""
        matrix, factors, y = self.matrix, self._factors, self._y
        vectors = (self._old, self._w, self._new)

        def row(h: Expr, j: Expr) -> list[Stmt]:
            i = first + h
            value = (
                matrix[copy, i, j]
                - factors[i32(0), h] * self._w[copy, j]
                - factors[i32(1), h] * self._old[copy, j]
            )
            return [store(matrix, [copy, i, j], value)]

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
            return [
                loop(
                    self._together,
                    lambda h: vector(self._lanes, lambda v: seq(row(h, at + v))),
                    UNROLLED,
                ),
                vector(self._lanes, lambda v: store(y, [copy, at + v], total(at + v))),
            ]

        return seq(
            loop(self._together, hold, UNROLLED),
            loop(self._width // self._lanes - start, column),
        )
