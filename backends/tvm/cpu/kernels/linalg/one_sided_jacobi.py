"""Singular values of many small matrices by one-sided Jacobi rotations (M. R. Hestenes, 1958)."""

from __future__ import annotations

from collections.abc import Callable

from tracejit.backends.tvm.codegen.kernel_body import KernelBody
from tracejit.backends.tvm.cpu.kernels.linalg.batched_rotations import LaneMatrices, group
from tracejit.backends.tvm.cpu.kernels.linalg.triangular import Load, workers_for
from tracejit.backends.tvm.cpu.kernels.tiling import ceil_div
from tracejit.backends.tvm.cpu.machine import Machine
from tracejit.backends.tvm.ir.tir import Expr, Stmt, buffer, const, loop, seq, store, tirx


def singular_values_in_lanes(
    batch: int,
    rows: int,
    columns: int,
    dtype: str,
    matrix: Load,
    put: Callable[[Expr, Expr, Expr], Stmt],
    machine: Machine,
) -> KernelBody:
    """Singular values of ``matrix(b, i, j)``, which has at most as many rows as columns.

    ``put(b, i, value)`` receives them in ascending order, NaN for a matrix that is not finite.
    """
    groups = ceil_div(batch, group(batch, dtype, machine))
    workers = workers_for(groups, batch * rows**2 * columns * 8, machine)
    made = _Rotations(batch, rows, columns, dtype, workers, machine)

    def give(w: Expr, b: Expr, lane: Expr) -> Stmt:
        return loop(rows, lambda i: put(b, i, made.restored(w, lane, made.values[w, i, lane])))

    statement = made.in_groups(matrix, made.find, give)
    return KernelBody(statement, made.scratch, "singular values in lanes")


class _Rotations(LaneMatrices):
    """Rotations that make rows orthogonal; ``values[worker, i, lane]`` are the rows' norms after
    that.
    """

    def __init__(
        self, batch: int, rows: int, columns: int, dtype: str, workers: int, machine: Machine
    ) -> None:
        super().__init__(batch, rows, columns, dtype, workers, machine)
        self.values = buffer("values", (workers, rows, self.group), dtype)
        self._products = [
            buffer(name, self._tangent.shape, dtype, scope="local")
            for name in ("low", "high", "crossing")
        ]
        self._local += self._products
        self.scratch += (self.values,)

    def find(self, w: Expr, given: Load) -> Stmt:
        """Orthogonalise a group; ``given(lane, i, j)`` reads an element."""
        n, columns, zero = self._rows, self._columns, const(0.0, self._dtype)
        low, high, crossing = self._products
        least = self.negligible

        def element(lane: Expr, i: Expr, j: Expr) -> Stmt:
            return store(self.matrix, [w, i, j, lane], given(lane, i, j))

        def measure(p: Expr, q: Expr) -> Stmt:
            def keep(u: Expr, v: Expr, x: Expr) -> Stmt:
                # Rows with small norms need not be orthogonal.
                whole = tirx.max(low[u, v] * high[u, v], least * least)
                share = tirx.div(crossing[u, v] * crossing[u, v], whole)
                return store(self._off, [u, v], tirx.max(self._off[u, v], share))

            return seq(self._multiply(w, p, q), self.each(keep))

        def rotate(p: Expr, q: Expr) -> Stmt:
            return seq(
                self._multiply(w, p, q),
                self.each(
                    lambda u, v, x: self.find_angle(u, v, low[u, v], high[u, v], crossing[u, v])
                ),
                loop(columns, lambda j: self.rotate(self.matrix, ((w, p, j), (w, q, j)))),
            )

        def size(i: Expr) -> Stmt:
            def add(j: Expr) -> Stmt:
                def one(u: Expr, v: Expr, x: Expr) -> Stmt:
                    here = self.matrix[w, i, j, x]
                    return store(low, [u, v], low[u, v] + here * here)

                return self.each(one)

            return seq(
                self.each(lambda u, v, x: store(low, [u, v], zero)),
                loop(columns, add),
                self.each(lambda u, v, x: store(self.values, [w, i, x], tirx.sqrt(low[u, v]))),
            )

        def sort(i: Expr) -> Stmt:
            def ordered(u: Expr, v: Expr, x: Expr) -> list[Stmt]:
                a, b = self.values[w, i, x], self.values[w, i + 1, x]
                return [
                    store(low, [u, v], tirx.min(a, b)),
                    store(high, [u, v], tirx.max(a, b)),
                    store(self.values, [w, i, x], low[u, v]),
                    store(self.values, [w, i + 1, x], high[u, v]),
                ]

            return self.each(ordered)

        return seq(
            self.allocate(),
            loop(
                self.group,
                lambda lane: loop(n, lambda i: loop(columns, lambda j: element(lane, i, j))),
            ),
            self.scale(w),
            self.sweeps(measure, rotate),
            loop(n, size),
            loop(n, lambda r: loop((n - r % 2) // 2, lambda k: sort(r % 2 + 2 * k))),
        )

    def _multiply(self, w: Expr, p: Expr, q: Expr) -> Stmt:
        """The squared norms of two rows, and their inner product."""
        zero = const(0.0, self._dtype)
        pairs = list(zip(self._products, ((p, p), (q, q), (p, q)), strict=True))

        def add(j: Expr) -> Stmt:
            def one(u: Expr, v: Expr, x: Expr) -> list[Stmt]:
                return [
                    store(
                        sums,
                        [u, v],
                        sums[u, v] + self.matrix[w, a, j, x] * self.matrix[w, b, j, x],
                    )
                    for sums, (a, b) in pairs
                ]

            return self.each(one)

        return seq(
            self.each(lambda u, v, x: [store(sums, [u, v], zero) for sums, _ in pairs]),
            loop(self._columns, add),
        )
