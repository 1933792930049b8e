"""Jacobi rotations on a batch of small matrices, one matrix per vector lane.

Rotations are applied to pairs of rows, sweep after sweep, until all pairs in all lanes converge.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tracejit.backends.tvm.cpu.kernels.linalg.power_of_two_scaling import Powers
from tracejit.backends.tvm.cpu.kernels.linalg.triangular import Load
from tracejit.backends.tvm.cpu.kernels.sharing import on_workers, share
from tracejit.backends.tvm.cpu.kernels.tile import vector
from tracejit.backends.tvm.cpu.kernels.tiling import ceil_div
from tracejit.backends.tvm.cpu.machine import Machine
from tracejit.backends.tvm.ir.tir import (
    UNROLLED,
    AllocBuffer,
    Buffer,
    Expr,
    IfThenElse,
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

_SWEEPS = 15
"""The most sweeps; matrices of these sizes need fewer."""

_TOGETHER = 2
"""The number of vectors whose square roots and divisions overlap."""

LARGEST = 16
"""The most rows of all matrices of a group together; these fit the first-level cache."""

Subscripts = tuple[Expr, ...]


def _at(place: Subscripts, lane: Expr) -> Subscripts:
    return (*place, lane)


def group(batch: int, dtype: str, machine: Machine) -> int:
    """The number of matrices that are processed together."""
    lanes = machine.lanes(dtype, batch)
    return lanes * min(_TOGETHER, ceil_div(batch, lanes))


class LaneMatrices:
    """A group of matrices of ``rows`` x ``columns`` in ``matrix[worker, i, j, lane]``."""

    def __init__(
        self, batch: int, rows: int, columns: int, dtype: str, workers: int, machine: Machine
    ) -> None:
        self._batch = batch
        self._rows = rows
        self._columns = columns
        self._dtype = dtype
        self._workers = workers
        self._powers = Powers(dtype)
        self.group = group(batch, dtype, machine)
        self._lanes = machine.lanes(dtype, batch)
        shape = (self.group // self._lanes, self._lanes)
        self.matrix: Buffer = buffer("matrix", (workers, rows, columns, self.group), dtype)
        self._greatest = buffer("greatest", (workers, self.group), dtype)
        local = ("tangent", "sine", "ratio", "other", "off", "first", "second")
        self._local = [buffer(name, shape, dtype, scope="local") for name in local]
        self._tangent, self._sine, self._ratio, self._other, self._off = self._local[:5]
        self._held = self._local[5:]
        self._more = buffer("more", (1,), dtype, scope="local")
        self.scratch: tuple[Buffer, ...] = (self.matrix, self._greatest)
        eps = float(np.finfo(dtype).eps) / 16
        self.negligible = const(eps * eps, dtype)

    def in_groups(
        self,
        given: Load,
        find: Callable[[Expr, Load], Stmt],
        give: Callable[[Expr, Expr, Expr], Stmt],
    ) -> Stmt:
        """``find(worker, element)`` for each group, then ``give(worker, b, lane)`` for its
        matrices.

        ``element(lane, i, j)`` is ``given(b, i, j)`` of the matrix in that lane.
        """
        groups = ceil_div(self._batch, self.group)

        def one(w: Expr, number: Expr) -> Stmt:
            first = number * self.group
            count = tirx.min(i32(self.group), self._batch - first)

            def element(lane: Expr, i: Expr, j: Expr) -> Expr:
                return given(tirx.min(first + lane, i32(self._batch - 1)), i, j)

            return seq(find(w, element), loop(count, lambda lane: give(w, first + lane, lane)))

        def worker(w: Expr) -> Stmt:
            first, count = share(w, groups, self._workers)
            return loop(count, lambda g: one(w, first + g))

        return on_workers(self._workers, worker)

    def restored(self, w: Expr, lane: Expr, value: Expr) -> Expr:
        """Undoes the scaling of a value of the matrix in a lane: NaN if the matrix is
        not finite.
        """
        factor = self._powers.power(self._powers.exponent(self._greatest[w, lane]))
        return self.if_finite(w, lane, value * factor)

    def if_finite(self, w: Expr, lane: Expr, value: Expr) -> Expr:
        """``value`` if the matrix in the lane is finite; NaN if not."""
        finite = self._powers.is_finite(self._greatest[w, lane])
        return tirx.Select(finite, value, const(math.nan, self._dtype))

    def each(self, body: Callable[[Expr, Expr, Expr], Stmt | list[Stmt]]) -> Stmt:
        """``body(vector, lane, index)`` for all matrices of the group."""
        lanes = self._lanes
        return loop(
            self.group // lanes,
            lambda u: vector(lanes, lambda v: seq(body(u, v, u * lanes + v))),
            UNROLLED,
        )

    def allocate(self) -> list[Stmt]:
        return [AllocBuffer(each) for each in (*self._local, self._more)]

    def scale(self, w: Expr) -> Stmt:
        """Scale each matrix by a power of two; one that is not finite becomes zero."""
        powers, matrix, greatest, dtype = self._powers, self.matrix, self._greatest, self._dtype
        zero = const(0.0, dtype)

        def compare(i: Expr, j: Expr) -> Stmt:
            def one(u: Expr, v: Expr, x: Expr) -> Stmt:
                most = powers.magnitude(greatest[w, x])
                here = powers.magnitude(matrix[w, i, j, x])
                return store(greatest, [w, x], reinterpret(dtype, tirx.max(most, here)))

            return self.each(one)

        def scaled(i: Expr, j: Expr) -> Stmt:
            def one(u: Expr, v: Expr, x: Expr) -> Stmt:
                factor = powers.reciprocal(powers.exponent(greatest[w, x]))
                finite = powers.is_finite(greatest[w, x])
                value = tirx.Select(finite, matrix[w, i, j, x] * factor, zero)
                return store(matrix, [w, i, j, x], value)

            return self.each(one)

        return seq(
            self.each(lambda u, v, x: store(greatest, [w, x], zero)),
            [
                loop(self._rows, lambda i, f=f: loop(self._columns, lambda j: f(i, j)))  # type: ignore[misc]
                for f in (compare, scaled)
            ],
        )

    def sweeps(self, measure: Callable[[Expr, Expr], Stmt], rotate: Callable[..., Stmt]) -> Stmt:
        """Sweeps of ``rotate(p, q)`` over all pairs of rows until the remainder is negligible.

        ``measure(p, q)`` adds a pair's remainder to ``off``, or keeps the greatest there.
        """
        n, zero, first = self._rows, const(0.0, self._dtype), i32(0)

        def pairs(body: Callable[[Expr, Expr], Stmt]) -> Stmt:
            return loop(n - 1, lambda p: loop(n - 1 - p, lambda q: body(p, p + 1 + q)))

        def compared(lane: Expr) -> Stmt:
            here = self._off[lane // self._lanes, lane % self._lanes]
            return store(self._more, first, tirx.max(self._more[first], here))

        def sweep(_: Expr) -> list[Stmt]:
            return [
                self.each(lambda u, v, x: store(self._off, [u, v], zero)),
                pairs(measure),
                store(self._more, first, zero),
                loop(self.group, compared),
                IfThenElse(self._more[first] > self.negligible, pairs(rotate), None),
            ]

        return loop(_SWEEPS, sweep)

    def find_angle(self, u: Expr, v: Expr, low: Expr, high: Expr, crossing: Expr) -> list[Stmt]:
        """The rotation that makes ``crossing`` zero between the diagonal elements ``low`` and
        ``high``: its tangent, its sine, and the factor tau that `rotate` uses.
        """
        zero, one, two = (const(value, self._dtype) for value in (0.0, 1.0, 2.0))
        least = const(float(np.finfo(self._dtype).tiny), self._dtype)
        tangent, cosine = self._tangent[u, v], self._other[u, v]
        twice, gap = two * crossing, high - low
        whole = tirx.abs(gap) + tirx.sqrt(gap * gap + twice * twice)
        signed = tirx.Select(gap < zero, zero - twice, twice)
        found = tirx.Select(whole > least, tirx.div(signed, tirx.max(whole, least)), zero)
        return [
            store(self._tangent, [u, v], found),
            store(self._other, [u, v], tirx.div(one, tirx.sqrt(tangent * tangent + one))),
            store(self._sine, [u, v], tangent * cosine),
            store(self._ratio, [u, v], tirx.div(self._sine[u, v], one + cosine)),
        ]

    def rotate(
        self,
        memory: Buffer,
        places: tuple[Subscripts, Subscripts],
        mirrored: tuple[Subscripts, ...] = (),
    ) -> Stmt:
        """Rotate two elements of every matrix; the new ones are stored at ``mirrored`` too."""

        def one(u: Expr, v: Expr, x: Expr) -> list[Stmt]:
            g, h = (memory[_at(place, x)] for place in places)
            s, r = self._sine[u, v], self._ratio[u, v]
            made = [
                store(self._held[0], [u, v], g - s * (h + r * g)),
                store(self._held[1], [u, v], h + s * (g - r * h)),
            ]
            for target in (places, mirrored):
                for place, value in zip(target, self._held, strict=False):
                    made.append(store(memory, [*place, x], value[u, v]))
            return made

        return self.each(one)

    def exchange(
        self,
        memory: Buffer,
        place: Subscripts,
        other: Subscripts,
        is_wrong: Callable[[Expr, Expr], Expr],
    ) -> Stmt:
        """Exchange two elements in the matrices where ``is_wrong``."""
        first, second = self._held

        def one(u: Expr, v: Expr, x: Expr) -> list[Stmt]:
            a, b = memory[_at(place, x)], memory[_at(other, x)]
            wrong = is_wrong(u, v)
            return [
                store(first, [u, v], tirx.Select(wrong, b, a)),
                store(second, [u, v], tirx.Select(wrong, a, b)),
                store(memory, [*place, x], first[u, v]),
                store(memory, [*other, x], second[u, v]),
            ]

        return self.each(one)
