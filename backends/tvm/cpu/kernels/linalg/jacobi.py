"""Eigenvalues of many small symmetric matrices by C. G. J. Jacobi's rotations (1846)."""

from __future__ import annotations

from collections.abc import Callable

from tracejit.backends.tvm.codegen.kernel_body import KernelBody
from tracejit.backends.tvm.cpu.kernels.linalg.batched_rotations import LaneMatrices, group
from tracejit.backends.tvm.cpu.kernels.linalg.triangular import Load, Store, workers_for
from tracejit.backends.tvm.cpu.kernels.tiling import ceil_div
from tracejit.backends.tvm.cpu.machine import Machine
from tracejit.backends.tvm.ir.tir import Expr, Stmt, buffer, const, loop, seq, store, tirx


def eigenvalues_in_lanes(
    batch: int,
    size: int,
    dtype: str,
    matrix: Load,
    put_value: Callable[[Expr, Expr, Expr], Stmt],
    put_vector: Store | None,
    machine: Machine,
) -> KernelBody:
    """Eigenvalues of ``matrix(b, i, j)``, read for i >= j: ``put_value(b, i, value)``, ascending.

    ``put_vector(b, i, j, value)`` receives element i of eigenvector j, if given. All is NaN for a
    matrix that is not finite.
    """
    groups = ceil_div(batch, group(batch, dtype, machine))
    workers = workers_for(groups, batch * size**3 * 8, machine)
    made = _Rotations(batch, size, dtype, workers, machine, put_vector is not None)

    def value(w: Expr, b: Expr, lane: Expr) -> Stmt:
        return loop(
            size, lambda i: put_value(b, i, made.restored(w, lane, made.matrix[w, i, i, lane]))
        )

    def give(w: Expr, b: Expr, lane: Expr) -> Stmt:
        if put_vector is None:
            return value(w, b, lane)
        put = put_vector

        def element(i: Expr, j: Expr) -> Stmt:
            return put(b, i, j, made.if_finite(w, lane, made.vectors[w, j, i, lane]))

        elements = loop(size, lambda i: loop(size, lambda j: element(i, j)))
        return seq(value(w, b, lane), elements)

    statement = made.in_groups(matrix, made.find, give)
    return KernelBody(statement, made.scratch, "eigenvalues in lanes")


class _Rotations(LaneMatrices):
    """Two-sided rotations; each makes one off-diagonal element and its mirror image zero.

    ``vectors[worker, j, i, lane]`` is element i of eigenvector j, if they are wanted.
    """

    def __init__(
        self, batch: int, size: int, dtype: str, workers: int, machine: Machine, with_vectors: bool
    ) -> None:
        super().__init__(batch, size, size, dtype, workers, machine)
        self._with_vectors = with_vectors
        self.vectors = buffer("vectors", (workers, size, size, self.group), dtype)
        if with_vectors:
            self.scratch += (self.vectors,)

    def find(self, w: Expr, given: Load) -> Stmt:
        """Diagonalise a group; ``given(lane, i, j)`` is read for i >= j."""
        n, matrix, off = self._rows, self.matrix, self._off

        def element(lane: Expr, i: Expr, j: Expr) -> list[Stmt]:
            return [
                store(matrix, [w, i, j, lane], given(lane, i, j)),
                store(matrix, [w, j, i, lane], matrix[w, i, j, lane]),
            ]

        def triangle(lane: Expr) -> Stmt:
            return loop(n, lambda i: loop(i + 1, lambda j: element(lane, i, j)))

        def unit(i: Expr, j: Expr) -> Stmt:
            value = tirx.Select(i == j, const(1.0, self._dtype), const(0.0, self._dtype))
            return self.each(lambda u, v, x: store(self.vectors, [w, i, j, x], value))

        def measure(p: Expr, q: Expr) -> Stmt:
            def add(u: Expr, v: Expr, x: Expr) -> Stmt:
                here = matrix[w, p, q, x]
                return store(off, [u, v], off[u, v] + here * here)

            return self.each(add)

        return seq(
            self.allocate(),
            loop(self.group, triangle),
            self.scale(w),
            loop(n, lambda i: loop(n, lambda j: unit(i, j))) if self._with_vectors else [],
            self.sweeps(measure, lambda p, q: self._rotate(w, p, q)),
            # Odd-even transposition sort, in as many rounds as there are values.
            loop(n, lambda r: loop((n - r % 2) // 2, lambda k: self._sort(w, r % 2 + 2 * k))),
        )

    def _rotate(self, w: Expr, p: Expr, q: Expr) -> Stmt:
        """Rotate rows and columns ``p`` and ``q``."""
        matrix, tangent, other = self.matrix, self._tangent, self._other
        zero = const(0.0, self._dtype)

        def angle(u: Expr, v: Expr, x: Expr) -> list[Stmt]:
            low, high, crossing = matrix[w, p, p, x], matrix[w, q, q, x], matrix[w, p, q, x]
            return [
                *self.find_angle(u, v, low, high, crossing),
                # The new diagonal elements.
                store(tangent, [u, v], tangent[u, v] * crossing),
                store(other, [u, v], low - tangent[u, v]),
                store(tangent, [u, v], high + tangent[u, v]),
            ]

        def row(r: Expr) -> list[Stmt]:
            made = [self.rotate(matrix, ((w, p, r), (w, q, r)), ((w, r, p), (w, r, q)))]
            if self._with_vectors:
                made.append(self.rotate(self.vectors, ((w, p, r), (w, q, r))))
            return made

        return seq(
            self.each(angle),
            loop(self._rows, row),
            self.each(
                lambda u, v, x: [
                    store(matrix, [w, p, p, x], other[u, v]),
                    store(matrix, [w, q, q, x], tangent[u, v]),
                    store(matrix, [w, p, q, x], zero),
                    store(matrix, [w, q, p, x], zero),
                ]
            ),
        )

    def _sort(self, w: Expr, i: Expr) -> Stmt:
        """Exchange eigenvalue ``i`` and the next one where they are out of order."""
        matrix, wrong = self.matrix, self._tangent
        one, zero = const(1.0, self._dtype), const(0.0, self._dtype)

        def compared(u: Expr, v: Expr, x: Expr) -> Stmt:
            later = matrix[w, i, i, x] > matrix[w, i + 1, i + 1, x]
            return store(wrong, [u, v], tirx.Select(later, one, zero))

        def is_wrong(u: Expr, v: Expr) -> Expr:
            return wrong[u, v] > zero

        def element(r: Expr) -> Stmt:
            return self.exchange(self.vectors, (w, i, r), (w, i + 1, r), is_wrong)

        return seq(
            self.each(compared),
            self.exchange(matrix, (w, i, i), (w, i + 1, i + 1), is_wrong),
            loop(self._rows, element) if self._with_vectors else [],
        )
