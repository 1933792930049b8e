"""Eigenvalues of tridiagonal and singular values of bidiagonal matrices, by bisection.

The number of eigenvalues less than x is the number of negative pivots of the matrix minus x (W.
Givens, 1954). A vector holds the intervals of several values, and the divisions of several vectors
overlap.
"""

from __future__ import annotations

from collections.abc import Callable

from tvm import DataType

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
    loop,
    reinterpret,
    seq,
    store,
    tirx,
)

_TOGETHER = 4
"""The number of vectors whose divisions overlap."""

_STEPS = {"float32": 30, "float64": 60}
"""The number of bisections: the bits of a fraction, and some for intervals wider than the greatest
eigenvalue.
"""

_LEAST = {"float32": 1e-35, "float64": 1e-290}
"""Pivots nearer to zero count as negative, as in LAPACK."""

Value = Callable[[Expr], Expr]
Rests = Callable[[Expr, Expr, Expr, Expr], Expr]


def of_eigenvalues(squares: Value) -> Rests:
    """For a tridiagonal matrix; ``squares(i)`` is the square of the element between i - 1 and i."""
    return lambda i, x, pivot, rest: -(x + tirx.div(squares(i), pivot))


def of_singular_values(squares: Value) -> Rests:
    """For B^T B of a bidiagonal B, without computing the product (K. V. Fernando, 1998)."""
    return lambda i, x, pivot, rest: squares(i) * tirx.div(rest, pivot) - x * x


class Bisection:
    """Bisection for matrices of ``size`` whose elements are at most about 1."""

    def __init__(self, size: int, dtype: str, machine: Machine) -> None:
        self._size = size
        self._dtype = dtype
        self._lanes = machine.lanes(dtype, size)
        self._vectors = min(_TOGETHER, ceil_div(size, self._lanes))
        self.chunk = self._vectors * self._lanes
        self.chunks = ceil_div(size, self.chunk)

    def find(
        self,
        number: Expr,
        diagonal: Value,
        rests: Rests,
        low_bound: Expr,
        high_bound: Expr,
        put: Callable[[Expr, Expr], Stmt],
    ) -> Stmt:
        """Find chunk ``number`` of the ascending values: ``put(index, value)``, also for padding
        indices from ``size`` on.

        Pivot i of the matrix minus x is ``diagonal(i) + rests(i, x, pivot, rest)``, where
        ``pivot`` and ``rest`` are those of row i - 1. All values lie between the bounds.
        """
        dtype, lanes = self._dtype, self._lanes
        integer = f"int{8 * int(DataType(dtype).itemsize)}"
        shift = const(8 * int(DataType(dtype).itemsize) - 1, integer)
        least = const(_LEAST[dtype], dtype)
        shape = (self._vectors, lanes)
        low, high, middle, pivot, rest = (
            buffer(name, shape, dtype, scope="local")
            for name in ("low", "high", "middle", "pivot", "rest")
        )
        count = buffer("count", shape, integer, scope="local")
        one = const(1.0, dtype)

        def each(body: Callable[[Expr, Expr, Expr], Stmt]) -> Stmt:
            return loop(
                self._vectors,
                lambda u: vector(lanes, lambda v: body(u, v, number * self.chunk + u * lanes + v)),
                UNROLLED,
            )

        def step(i: Expr) -> list[Stmt]:
            def next_rest(u: Expr, v: Expr, _: Expr) -> Stmt:
                return store(rest, [u, v], rests(i, middle[u, v], pivot[u, v], rest[u, v]))

            def next_pivot(u: Expr, v: Expr, _: Expr) -> Stmt:
                return store(pivot, [u, v], diagonal(i) + rest[u, v])

            def away(u: Expr, v: Expr, _: Expr) -> Stmt:
                value = pivot[u, v]
                near = tirx.abs(value) < least
                return store(pivot, [u, v], tirx.Select(near, const(-_LEAST[dtype], dtype), value))

            def counted(u: Expr, v: Expr, _: Expr) -> Stmt:
                sign = reinterpret(integer, pivot[u, v]) >> shift
                return store(count, [u, v], count[u, v] - sign)

            return [each(next_rest), each(next_pivot), each(away), each(counted)]

        def halve(_: Expr) -> list[Stmt]:
            def narrowed(u: Expr, v: Expr, index: Expr) -> list[Stmt]:
                below = count[u, v] > index.astype(integer)
                return [
                    store(low, [u, v], tirx.Select(below, low[u, v], middle[u, v])),
                    store(high, [u, v], tirx.Select(below, middle[u, v], high[u, v])),
                ]

            half = const(0.5, dtype)
            return [
                each(lambda u, v, _: store(middle, [u, v], (low[u, v] + high[u, v]) * half)),
                each(lambda u, v, _: store(pivot, [u, v], one)),
                each(lambda u, v, _: store(rest, [u, v], const(0.0, dtype))),
                each(lambda u, v, _: store(count, [u, v], const(0, integer))),
                loop(self._size, step),
                each(lambda u, v, index: seq(narrowed(u, v, index))),
            ]

        return seq(
            [AllocBuffer(each_) for each_ in (low, high, middle, pivot, rest, count)],
            each(lambda u, v, _: store(low, [u, v], low_bound)),
            each(lambda u, v, _: store(high, [u, v], high_bound)),
            loop(_STEPS[dtype], halve),
            each(lambda u, v, index: put(index, high[u, v])),
        )
