"""Common part of reductions to tridiagonal and bidiagonal form: memory, sums, reflections."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tracejit.backends.tvm.cpu.kernels.linalg.power_of_two_scaling import Powers
from tracejit.backends.tvm.cpu.kernels.tile import as_written, not_repeated, vector
from tracejit.backends.tvm.cpu.kernels.tiling import ceil_div
from tracejit.backends.tvm.cpu.machine import Machine
from tracejit.backends.tvm.ir.tir import (
    UNROLLED,
    AllocBuffer,
    Buffer,
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

_LEAST = {"float32": 1e-30, "float64": 1e-280}
"""A column with a smaller square, next to elements near 1, needs no reflection."""


class DiagonalReduction:
    """Matrices of ``rows`` x ``columns`` in ``matrix[copy]``, padded with rows and columns of
    zeros.

    ``diagonal[copy]`` and ``beside[copy]`` are the resulting diagonals; element i of the latter is
    the one between i - 1 and i. ``greatest[copy]`` is the magnitude of the greatest element, which
    may be infinite or NaN.
    """

    def __init__(self, copies: int, rows: int, columns: int, dtype: str, machine: Machine) -> None:
        self._rows = rows
        self._columns = columns
        self.dtype = dtype
        self._lanes = machine.lanes(dtype, columns)
        # Rows that are read together.
        self._together = 4 if machine.registers == 32 else 2
        self._width = ceil_div(columns + 1 + self._together, self._lanes) * self._lanes
        self._height = rows + self._together
        self.matrix: Buffer = buffer("matrix", (copies, self._height, self._width), dtype)
        self.greatest: Buffer = buffer("greatest", (copies,), dtype)
        self.diagonal, self.beside = self._along_columns(copies, "diagonal", "beside")
        self._partial = buffer("partial", (self._lanes,), dtype, scope="local")
        self._numbers = buffer("numbers", (4,), dtype, scope="local")
        self._factors = buffer("factors", (3, self._together), dtype, scope="local")
        self.beta, self.tau, self.inverse = (self._numbers[i32(n)] for n in range(3))
        self.scratch: tuple[Buffer, ...] = (
            self.matrix,
            self.greatest,
            self.diagonal,
            self.beside,
        )

    def _along_columns(self, copies: int, *names: str) -> list[Buffer]:
        return [buffer(name, (copies, self._width), self.dtype) for name in names]

    def each(self, body: Callable[[Expr], Stmt], first: Expr | int = 0) -> Stmt:
        """``body(j)`` in vectors along a row, from the one that contains column ``first``."""
        start = first // self._lanes
        return loop(
            self._width // self._lanes - start,
            lambda q: vector(self._lanes, lambda v: body((start + q) * self._lanes + v)),
        )

    def clear(self, copy: Expr) -> Stmt:
        """Set the matrix to zeros."""
        zero = const(0.0, self.dtype)
        return not_repeated(
            self._height,
            lambda i: self.each(lambda j: store(self.matrix, [copy, i, j], zero)),
        )

    def scale(self, copy: Expr) -> Stmt:
        """Scale by a power of two, so that squares neither overflow nor underflow."""
        powers, lanes, matrix, greatest = Powers(self.dtype), self._lanes, self.matrix, i32(0)
        most = buffer("most", (lanes,), powers.bits, scope="local")

        def compare(i: Expr) -> Stmt:
            def one(q: Expr) -> Stmt:
                return vector(
                    lanes,
                    lambda v: store(
                        most,
                        v,
                        tirx.max(most[v], powers.magnitude(matrix[copy, i, q * lanes + v])),
                    ),
                )

            return not_repeated(self._width // lanes, one)

        def scaled(i: Expr) -> Stmt:
            factor = powers.reciprocal(powers.exponent(self.greatest[copy]))
            return self.each(lambda j: store(matrix, [copy, i, j], matrix[copy, i, j] * factor))

        return seq(
            AllocBuffer(most),
            vector(lanes, lambda v: store(most, v, const(0, powers.bits))),
            as_written(self._rows, compare),
            not_repeated(lanes, lambda v: store(most, greatest, tirx.max(most[greatest], most[v]))),
            store(self.greatest, copy, reinterpret(self.dtype, most[greatest])),
            as_written(self._rows, scaled),
        )

    def _allocate(self) -> list[Stmt]:
        return [AllocBuffer(b) for b in (self._partial, self._numbers, self._factors)]

    def _sum(self, first: Expr, value: Callable[[Expr], Expr]) -> tuple[list[Stmt], Expr]:
        """Statements that sum ``value(j)`` in the vectors from column ``first`` on, and the sum."""
        partial, lanes, zero = self._partial, self._lanes, const(0.0, self.dtype)
        start = first // lanes

        def add(q: Expr) -> Stmt:
            return vector(
                lanes,
                lambda v: store(partial, v, partial[v] + value((start + q) * lanes + v)),
            )

        def fold(width: int) -> Stmt:
            return vector(width, lambda v: store(partial, v, partial[v] + partial[width + v]))

        statements = [
            vector(lanes, lambda v: store(partial, v, zero)),
            loop(self._width // lanes - start, add),
            *(fold(lanes >> n) for n in range(1, lanes.bit_length())),
        ]
        return statements, partial[i32(0)]

    def _reflect(self, alpha: Expr, square: Expr) -> list[Stmt]:
        """Find the reflection of a vector with first element ``alpha`` and sum of squares
        ``square`` of the others.

        Sets ``beta``, ``tau``, and the factor for the other elements.
        """
        numbers, zero, one = self._numbers, const(0.0, self.dtype), const(1.0, self.dtype)
        is_some = square >= const(_LEAST[self.dtype], self.dtype)
        norm = numbers[i32(3)]
        negative = Powers(self.dtype).is_negative(alpha)

        def if_some(value: Expr, other: Expr) -> Expr:
            return tirx.Select(is_some, value, other)

        return [
            store(numbers, i32(3), tirx.sqrt(alpha * alpha + square)),
            store(numbers, i32(0), if_some(tirx.Select(negative, norm, zero - norm), alpha)),
            store(numbers, i32(1), if_some(tirx.div(self.beta - alpha, self.beta), zero)),
            store(numbers, i32(2), if_some(tirx.div(one, alpha - self.beta), zero)),
        ]

    def _groups(self, k: Expr) -> Expr:
        """The number of groups of rows from row ``k`` + 1 on."""
        return (self._rows - 1 - k + (self._together - 1)) // self._together

    def _update(
        self,
        copy: Expr,
        first: Expr,
        column: Expr,
        pairs: Sequence[tuple[Buffer, Buffer]],
        y: Buffer,
        hold: Callable[[Expr, Callable[[Expr], Expr]], list[Stmt]],
    ) -> Stmt:
        """Update a group of rows, and add their products with a vector to ``y``.

        Subtracts a b^T of both ``pairs`` (a, b) from the rows from ``first`` on, in the vectors
        from that of ``column`` on. ``hold`` stores row h's element of the vector in ``factors[2,
        h]``; it may read the updated elements of the row.
        """
        matrix, factors = self.matrix, self._factors
        (a, b), (c, d) = pairs

        def updated(h: Expr, j: Expr) -> Expr:
            return (
                matrix[copy, first + h, j]
                - factors[i32(0), h] * b[copy, j]
                - factors[i32(1), h] * d[copy, j]
            )

        def held(h: Expr) -> list[Stmt]:
            return [
                store(factors, [i32(0), h], a[copy, first + h]),
                store(factors, [i32(1), h], c[copy, first + h]),
                *hold(h, lambda j: updated(h, j)),
            ]

        def total(j: Expr) -> Expr:
            value = y[copy, j]
            for h in range(self._together):
                value = value + factors[i32(2), i32(h)] * matrix[copy, first + h, j]
            return value

        start = column // self._lanes

        def columns(q: Expr) -> list[Stmt]:
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
            loop(self._together, held, UNROLLED),
            loop(self._width // self._lanes - start, columns),
        )
