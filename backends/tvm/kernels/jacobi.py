"""Eigenvalues of many small symmetric matrices: C. G. J. Jacobi's rotations (1846).

Every lane of a vector works on a matrix of its own. Rotations make one element after the other
zero, sweep after sweep, until what is left beside the diagonals vanishes in all lanes.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tracejit.backends.tvm.kernels.machine import Machine
from tracejit.backends.tvm.kernels.powers import Powers
from tracejit.backends.tvm.kernels.sharing import on_workers, share
from tracejit.backends.tvm.kernels.tile import vector
from tracejit.backends.tvm.kernels.tiling import ceil_div
from tracejit.backends.tvm.kernels.triangular import Load, Store, workers_for
from tracejit.backends.tvm.kernels.work import Work
from tracejit.backends.tvm.tir import (
    UNROLLED,
    AllocBuffer,
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
"""More than matrices of these sizes need."""

_TOGETHER = 2
"""Vectors whose square roots and divisions overlap."""

LARGEST = 16
"""Matrices of so many rows, together, lie in the nearest cache."""


def group(batch: int, dtype: str, machine: Machine) -> int:
    """How many matrices are worked on at once."""
    lanes = machine.lanes(dtype, batch)
    return lanes * min(_TOGETHER, ceil_div(batch, lanes))


def eigenvalues_in_lanes(
    batch: int,
    size: int,
    dtype: str,
    matrix: Load,
    put_value: Callable[[Expr, Expr, Expr], Stmt],
    put_vector: Store | None,
    machine: Machine,
) -> Work:
    """Of ``matrix(b, i, j)``, asked for i >= j: ``put_value(b, i, value)``, ascending.

    ``put_vector(b, i, j, value)`` takes element i of eigenvector j, if they are wanted. All is NaN
    for a matrix that is not finite.
    """
    workers = workers_for(
        ceil_div(batch, group(batch, dtype, machine)), batch * size**3 * 8, machine
    )
    made = _Rotations(batch, size, dtype, put_vector is not None, workers, machine)
    groups = ceil_div(batch, made.group)

    def one(w: Expr, number: Expr) -> Stmt:
        first = number * made.group
        count = tirx.min(i32(made.group), batch - first)

        def give(lane: Expr) -> list[Stmt]:
            values = loop(size, lambda i: put_value(first + lane, i, made.value(w, i, lane)))
            if put_vector is None:
                return [values]
            put = put_vector
            rows = loop(
                size,
                lambda i: loop(size, lambda j: put(first + lane, i, j, made.vector(w, i, j, lane))),
            )
            return [values, rows]

        def given(lane: Expr, i: Expr, j: Expr) -> Expr:
            return matrix(tirx.min(first + lane, i32(batch - 1)), i, j)

        return seq(made.find(w, given), loop(count, give))

    def worker(w: Expr) -> Stmt:
        first, count = share(w, groups, workers)
        return loop(count, lambda g: one(w, first + g))

    return Work(on_workers(workers, worker), made.scratch, "eigenvalues in lanes")


def _at(place: list[Expr], lane: Expr) -> tuple[Expr, ...]:
    return (*place, lane)


class _Rotations:
    def __init__(
        self, batch: int, size: int, dtype: str, vectors: bool, workers: int, machine: Machine
    ) -> None:
        self._size = size
        self._dtype = dtype
        self._powers = Powers(dtype)
        self.group = group(batch, dtype, machine)
        self._lanes = machine.lanes(dtype, batch)
        together = self.group // self._lanes
        self._matrix = buffer("matrix", (workers, size, size, self.group), dtype)
        self._vectors = buffer("vectors", (workers, size, size, self.group), dtype)
        self._greatest = buffer("greatest", (workers, self.group), dtype)
        self._with_vectors = vectors
        names = ("tangent", "sine", "ratio", "other")
        self._tangent, self._sine, self._ratio, self._other = (
            buffer(name, (together, self._lanes), dtype, scope="local") for name in names
        )
        self._off = buffer("off", (together, self._lanes), dtype, scope="local")
        self._more = buffer("more", (1,), dtype, scope="local")
        self.scratch = (self._matrix, self._greatest, *((self._vectors,) if vectors else ()))

    def value(self, w: Expr, i: Expr, lane: Expr) -> Expr:
        """Eigenvalue ``i`` of the matrix in a lane."""
        factor = self._powers.power(self._powers.exponent(self._greatest[w, lane]))
        return self._if_finite(w, lane, self._matrix[w, i, i, lane] * factor)

    def vector(self, w: Expr, i: Expr, j: Expr, lane: Expr) -> Expr:
        """Element ``i`` of its eigenvector ``j``."""
        return self._if_finite(w, lane, self._vectors[w, j, i, lane])

    def _if_finite(self, w: Expr, lane: Expr, value: Expr) -> Expr:
        finite = self._powers.is_finite(self._greatest[w, lane])
        return tirx.Select(finite, value, const(math.nan, self._dtype))

    def find(self, w: Expr, given: Load) -> Stmt:
        """``given(lane, i, j)`` is asked for i >= j."""
        n = self._size
        least = const((float(np.finfo(self._dtype).eps) / 16) ** 2, self._dtype)

        def pairs(body: Callable[[Expr, Expr], Stmt | list[Stmt]]) -> Stmt:
            return loop(n - 1, lambda p: loop(n - 1 - p, lambda q: body(p, p + 1 + q)))

        def measured(p: Expr, q: Expr) -> Stmt:
            value = self._matrix
            return self._each(
                lambda u, v, x: store(
                    self._off,
                    [u, v],
                    self._off[u, v] + value[w, p, q, x] * value[w, p, q, x],
                )
            )

        def compared(lane: Expr) -> Stmt:
            here = self._off[lane // self._lanes, lane % self._lanes]
            return store(self._more, i32(0), tirx.max(self._more[i32(0)], here))

        def sweep(_: Expr) -> list[Stmt]:
            zero = const(0.0, self._dtype)
            return [
                self._each(lambda u, v, x: store(self._off, [u, v], zero)),
                pairs(measured),
                store(self._more, i32(0), zero),
                loop(self.group, compared),
                IfThenElse(
                    self._more[i32(0)] > least, pairs(lambda p, q: self._rotate(w, p, q)), None
                ),
            ]

        local = (self._tangent, self._sine, self._ratio, self._other, self._off, self._more)
        return seq(
            [AllocBuffer(each) for each in local],
            self._take(w, given),
            loop(_SWEEPS, sweep),
            # By as many rounds of exchanges as there are values.
            loop(n, lambda r: loop((n - r % 2) // 2, lambda k: self._sort(w, r % 2 + 2 * k))),
        )

    def _each(self, body: Callable[[Expr, Expr, Expr], Stmt | list[Stmt]]) -> Stmt:
        """``body(vector, lane, place)`` for all matrices."""
        lanes = self._lanes
        return loop(
            self.group // lanes,
            lambda u: vector(lanes, lambda v: seq(body(u, v, u * lanes + v))),
            UNROLLED,
        )

    def _take(self, w: Expr, given: Load) -> Stmt:
        """Both triangles of the matrices from one, each scaled by a power of two."""
        n, powers, matrix, greatest = self._size, self._powers, self._matrix, self._greatest
        dtype = self._dtype

        def element(lane: Expr, i: Expr, j: Expr) -> list[Stmt]:
            return [
                store(matrix, [w, i, j, lane], given(lane, i, j)),
                store(matrix, [w, j, i, lane], matrix[w, i, j, lane]),
            ]

        def compare(i: Expr, j: Expr) -> Stmt:
            def one(u: Expr, v: Expr, x: Expr) -> Stmt:
                most = powers.magnitude(greatest[w, x])
                here = powers.magnitude(matrix[w, i, j, x])
                return store(greatest, [w, x], reinterpret(dtype, tirx.max(most, here)))

            return self._each(one)

        def scaled(i: Expr, j: Expr) -> Stmt:
            def one(u: Expr, v: Expr, x: Expr) -> Stmt:
                factor = powers.reciprocal(powers.exponent(greatest[w, x]))
                finite = powers.is_finite(greatest[w, x])
                value = tirx.Select(finite, matrix[w, i, j, x] * factor, const(0.0, dtype))
                return store(matrix, [w, i, j, x], value)

            return self._each(one)

        def unit(i: Expr, j: Expr) -> Stmt:
            value = tirx.Select(i == j, const(1.0, dtype), const(0.0, dtype))
            return self._each(lambda u, v, x: store(self._vectors, [w, i, j, x], value))

        def all_(body: Callable[[Expr, Expr], Stmt]) -> Stmt:
            return loop(n, lambda i: loop(n, lambda j: body(i, j)))

        return seq(
            loop(
                self.group,
                lambda lane: loop(n, lambda i: loop(i + 1, lambda j: element(lane, i, j))),
            ),
            self._each(lambda u, v, x: store(greatest, [w, x], const(0.0, dtype))),
            all_(compare),
            all_(scaled),
            all_(unit) if self._with_vectors else [],
        )

    def _rotate(self, w: Expr, p: Expr, q: Expr) -> list[Stmt]:
        """Turn rows and columns ``p`` and ``q`` so that the element at their crossing is zero."""
        matrix, dtype = self._matrix, self._dtype
        tangent, sine, ratio, other = self._tangent, self._sine, self._ratio, self._other
        zero, one, two = (const(value, dtype) for value in (0.0, 1.0, 2.0))
        least = const(float(np.finfo(dtype).tiny), dtype)

        def angle(u: Expr, v: Expr, x: Expr) -> list[Stmt]:
            twice = two * matrix[w, p, q, x]
            gap = matrix[w, q, q, x] - matrix[w, p, p, x]
            root = tirx.sqrt(gap * gap + twice * twice)
            whole = tirx.abs(gap) + root
            signed = tirx.Select(gap < zero, zero - twice, twice)
            return [
                store(
                    tangent,
                    [u, v],
                    tirx.Select(whole > least, tirx.div(signed, tirx.max(whole, least)), zero),
                ),
                # The cosine, then what makes the turned numbers of the old ones.
                store(
                    other,
                    [u, v],
                    tirx.div(one, tirx.sqrt(tangent[u, v] * tangent[u, v] + one)),
                ),
                store(sine, [u, v], tangent[u, v] * other[u, v]),
                store(ratio, [u, v], tirx.div(sine[u, v], one + other[u, v])),
                store(tangent, [u, v], tangent[u, v] * matrix[w, p, q, x]),
                store(other, [u, v], matrix[w, p, p, x] - tangent[u, v]),
                store(tangent, [u, v], matrix[w, q, q, x] + tangent[u, v]),
            ]

        def turned(u: Expr, v: Expr, g: Expr, h: Expr) -> tuple[Expr, Expr]:
            s, r = sine[u, v], ratio[u, v]
            return g - s * (h + r * g), h + s * (g - r * h)

        held = [buffer("held", tangent.shape, dtype, scope="local") for _ in range(2)]

        def pair(memory: Expr, places: list[list[Expr]], mirrored: list[list[Expr]]) -> Stmt:
            first, second = held

            def one_(u: Expr, v: Expr, x: Expr) -> list[Stmt]:
                g, h = turned(u, v, memory[_at(places[0], x)], memory[_at(places[1], x)])
                made = [store(first, [u, v], g), store(second, [u, v], h)]
                for target in (places, mirrored):
                    for place, value in zip(target, held, strict=False):
                        made.append(store(memory, [*place, x], value[u, v]))
                return made

            return self._each(one_)

        def row(r: Expr) -> list[Stmt]:
            made = [pair(matrix, [[w, p, r], [w, q, r]], [[w, r, p], [w, r, q]])]
            if self._with_vectors:
                made.append(pair(self._vectors, [[w, p, r], [w, q, r]], []))
            return made

        return [
            *(AllocBuffer(each) for each in held),
            self._each(angle),
            loop(self._size, row),
            self._each(
                lambda u, v, x: [
                    store(matrix, [w, p, p, x], other[u, v]),
                    store(matrix, [w, q, q, x], tangent[u, v]),
                    store(matrix, [w, p, q, x], zero),
                    store(matrix, [w, q, p, x], zero),
                ]
            ),
        ]

    def _sort(self, w: Expr, i: Expr) -> Stmt:
        """Exchange eigenvalue ``i`` and the next, where they are not in order."""
        matrix, vectors, dtype = self._matrix, self._vectors, self._dtype
        first, second = self._sine, self._ratio
        one, zero = const(1.0, dtype), const(0.0, dtype)

        def exchange(memory: Expr, place: list[Expr], other: list[Expr]) -> Stmt:
            def one_(u: Expr, v: Expr, x: Expr) -> list[Stmt]:
                a, b = memory[_at(place, x)], memory[_at(other, x)]
                is_wrong = self._tangent[u, v] > zero
                return [
                    store(first, [u, v], tirx.Select(is_wrong, b, a)),
                    store(second, [u, v], tirx.Select(is_wrong, a, b)),
                    store(memory, [*place, x], first[u, v]),
                    store(memory, [*other, x], second[u, v]),
                ]

            return self._each(one_)

        def compared(u: Expr, v: Expr, x: Expr) -> Stmt:
            wrong = matrix[w, i, i, x] > matrix[w, i + 1, i + 1, x]
            return store(self._tangent, [u, v], tirx.Select(wrong, one, zero))

        made = [
            self._each(compared),
            exchange(matrix, [w, i, i], [w, i + 1, i + 1]),
        ]
        if self._with_vectors:
            made.append(loop(self._size, lambda r: exchange(vectors, [w, i, r], [w, i + 1, r])))
        return seq(made)
