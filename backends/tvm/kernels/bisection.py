"""Eigenvalues of symmetric tridiagonal matrices, each found by halving an interval.

As many eigenvalues are less than x as pivots of the matrix less x are negative (W. Givens, 1954). A
vector holds intervals of several eigenvalues, and the divisions of several vectors overlap.
"""

from __future__ import annotations

from collections.abc import Callable

from tvm import DataType

from tracejit.backends.tvm.kernels.machine import Machine
from tracejit.backends.tvm.kernels.tile import vector
from tracejit.backends.tvm.kernels.tiling import ceil_div
from tracejit.backends.tvm.tir import (
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
"""Vectors whose divisions overlap."""

_STEPS = {"float32": 30, "float64": 60}
"""Halvings: the bits of a fraction, and some for intervals wider than the greatest eigenvalue."""

_LEAST = {"float32": 1e-35, "float64": 1e-290}
"""Pivots nearer to zero count as negative, as in LAPACK."""

Value = Callable[[Expr], Expr]


class Bisection:
    """The eigenvalues of matrices of ``size``, all of whose elements are at most 1 or so."""

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
        squares: Value,
        bound: Expr,
        put: Callable[[Expr, Expr], Stmt],
    ) -> Stmt:
        """Of the ascending eigenvalues chunk ``number``: ``put(index, value)``, also for indices
        from ``size`` on.

        ``squares(i)`` is that of the element between i - 1 and i, 0 for i = 0. All eigenvalues are
        less than ``bound`` in size.
        """
        dtype, lanes = self._dtype, self._lanes
        integer = f"int{8 * int(DataType(dtype).itemsize)}"
        shift = const(8 * int(DataType(dtype).itemsize) - 1, integer)
        least = const(_LEAST[dtype], dtype)
        shape = (self._vectors, lanes)
        low, high, middle, pivot = (
            buffer(name, shape, dtype, scope="local") for name in ("low", "high", "middle", "pivot")
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
            def next_pivot(u: Expr, v: Expr, _: Expr) -> Stmt:
                taken = tirx.div(squares(i), pivot[u, v])
                return store(pivot, [u, v], diagonal(i) - middle[u, v] - taken)

            def away(u: Expr, v: Expr, _: Expr) -> Stmt:
                value = pivot[u, v]
                near = tirx.abs(value) < least
                return store(pivot, [u, v], tirx.Select(near, const(-_LEAST[dtype], dtype), value))

            def counted(u: Expr, v: Expr, _: Expr) -> Stmt:
                sign = reinterpret(integer, pivot[u, v]) >> shift
                return store(count, [u, v], count[u, v] - sign)

            return [each(next_pivot), each(away), each(counted)]

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
                each(lambda u, v, _: store(count, [u, v], const(0, integer))),
                loop(self._size, step),
                each(lambda u, v, index: seq(narrowed(u, v, index))),
            ]

        return seq(
            [AllocBuffer(each_) for each_ in (low, high, middle, pivot, count)],
            each(lambda u, v, _: store(low, [u, v], const(0.0, dtype) - bound)),
            each(lambda u, v, _: store(high, [u, v], bound)),
            loop(_STEPS[dtype], halve),
            each(lambda u, v, index: put(index, high[u, v])),
        )
