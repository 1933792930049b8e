"""Implicit QL and QR sweeps that diagonalise two diagonals, and the order of the
values they find.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tracejit.backends.tvm.cpu.kernels.linalg.diagonal_reductions import DiagonalReduction
from tracejit.backends.tvm.cpu.kernels.linalg.parallel_spectrum import SQUARE
from tracejit.backends.tvm.cpu.kernels.linalg.reflect_and_rotate import Record
from tracejit.backends.tvm.cpu.kernels.tiling import ceil_div
from tracejit.backends.tvm.cpu.machine import Machine
from tracejit.backends.tvm.ir.tir import (
    AllocBuffer,
    Buffer,
    Expr,
    IfThenElse,
    Stmt,
    While,
    buffer,
    const,
    i32,
    loop,
    seq,
    store,
    tirx,
)

_SWEEPS = 60
"""The most sweeps per value; no value needs so many."""

_ALLOWANCES = ((16, 1.0), (32, 4.0), (_SWEEPS + 1, 16.0))
"""The factor on the tolerance, and the number of sweeps after which it is applied again.

The roundings of a sweep may exceed half a unit in the last place where values are nearly equal,
whatever the number of sweeps.
"""

LEAST = {"float32": 1e-35, "float64": 1e-290}
"""Squares below this, next to elements near 1, may have lost bits to underflow."""

RECORDED = 32
"""Sweeps over a whole matrix that are recorded before they are applied to the vectors."""

_PARALLEL = 200_000
"""The least multiplications of a batch for several threads."""

_SHARED = 1_500_000
"""The least multiplications of one matrix for several threads."""

_FIRST, _LAST, _TRIES, _FAILS, _RANK = range(5)


def workers_for(batch: int, cost: int, machine: Machine) -> tuple[int, int]:
    """The number of threads that share the matrices, and the number that share the vectors of one.

    ``cost`` is the number of multiplications for one matrix.
    """
    if batch >= 2 * machine.threads:
        return (min(machine.threads, batch) if batch * cost >= _PARALLEL else 1), 1
    return 1, machine.threads if cost >= _SHARED else 1


class Sweeps:
    """Values of ``size`` rows whose two diagonals are in ``reduced``.

    ``place[copy, j]`` becomes the row of value j. ``numbers`` are eight scalars for the sweeps.
    """

    def __init__(self, reduced: DiagonalReduction, copies: int, size: int) -> None:
        self._diagonals = reduced
        self._size = size
        self._dtype = reduced.dtype
        self._numbers = buffer("numbers", (8,), reduced.dtype, scope="local")
        self._bounds = buffer("bounds", (2,), reduced.dtype, scope="local")
        self._state = buffer("state", (5,), "int32", scope="local")
        self.place: Buffer = buffer("place", (copies, size), "int32")

    def diagonalise(
        self,
        copy: Expr,
        records: Sequence[Record],
        sweep: Callable[[Expr, Expr, Expr], list[Stmt]],
        apply_records: Stmt,
    ) -> Stmt:
        """Sweeps until the off-diagonal elements are negligible beside the greatest element.

        ``sweep(first, last, has_none)`` runs and records, in all ``records``, one sweep over these
        rows; ``has_none`` says that no element of the diagonal is negligible. ``apply_records``
        applies the records to the vectors.
        """
        n, dtype = self._size, self._dtype
        diagonal, beside = self._diagonals.diagonal, self._diagonals.beside
        first, last, tries = (self._state[i32(at)] for at in (_FIRST, _LAST, _TRIES))
        limit, least = self._bounds[i32(0)], self._bounds[i32(1)]
        counts, room = records[0].counts, records[0].room

        def set_(at: int, value: Expr) -> Stmt:
            return store(self._state, i32(at), value)

        def widen(i: Expr) -> Stmt:
            size = tirx.abs(diagonal[copy, i]) + tirx.abs(beside[copy, i])
            return store(self._bounds, i32(0), tirx.max(limit, size))

        def compared(at: Expr) -> Stmt:
            return store(self._bounds, i32(1), tirx.min(least, tirx.abs(diagonal[copy, at])))

        half = const(float(np.finfo(dtype).eps) / 2, dtype)
        is_left = tirx.abs(beside[copy, last + 1]) > limit * self._allowance(tries)
        cleared = [statement for record in records for statement in record.clear(copy)]
        step = seq(
            set_(_LAST, first),
            store(self._bounds, i32(1), tirx.abs(diagonal[copy, first])),
            While(tirx.And(last < n - 1, is_left), seq(set_(_LAST, last + 1), compared(last))),
            IfThenElse(
                last == first,
                seq(set_(_FIRST, first + 1), set_(_TRIES, i32(0))),
                seq(
                    sweep(first, last, least > limit),
                    set_(_TRIES, tries + 1),
                    IfThenElse(
                        tries > _SWEEPS, seq(set_(_FAILS, i32(1)), set_(_FIRST, i32(n))), None
                    ),
                ),
            ),
            IfThenElse(
                tirx.Or(counts[copy, i32(0)] > room - n, first >= n - 1),
                seq(apply_records, cleared),
                None,
            ),
        )
        return seq(
            [AllocBuffer(each) for each in (self._numbers, self._bounds, self._state)],
            cleared,
            store(self._bounds, i32(0), const(0.0, dtype)),
            loop(n, widen),
            store(self._bounds, i32(0), limit * half),
            [set_(at, i32(0)) for at in (_FIRST, _TRIES, _FAILS)],
            While(first < n - 1, step),
        )

    def _allowance(self, tries: Expr) -> Expr:
        *few, (_, most) = _ALLOWANCES
        made = const(most, self._dtype)
        for sweeps, factor in reversed(few):
            made = tirx.Select(tries < sweeps, const(factor, self._dtype), made)
        return made

    @property
    def failed(self) -> Expr:
        """Whether the sweeps did not converge."""
        return self._state[i32(_FAILS)] != 0

    def sort(self, copy: Expr, key: Callable[[Expr], Expr]) -> list[Stmt]:
        """Compute `place`: rows in ascending order of ``key(row)``. Keys that are NaN have no
        order.
        """
        rank = i32(_RANK)

        def count(i: Expr, j: Expr) -> Stmt:
            before = tirx.Or(key(j) < key(i), tirx.And(key(j) == key(i), j < i))
            return store(self._state, rank, self._state[rank] + before.astype("int32"))

        def ranked(i: Expr) -> list[Stmt]:
            return [
                store(self._state, rank, i32(0)),
                loop(self._size, lambda j: count(i, j)),
                store(self.place, [copy, self._state[rank]], i),
            ]

        return [
            loop(self._size, lambda i: store(self.place, [copy, i], i)),
            loop(self._size, ranked),
        ]


def in_squares(rows: int, columns: int, element: Callable[[Expr, Expr], Stmt]) -> Stmt:
    """``element(i, j)`` of a matrix in square tiles, so that rows or columns may be contiguous."""

    def square(i0: Expr, j0: Expr) -> Stmt:
        def row(i: Expr) -> Stmt:
            count = tirx.min(i32(SQUARE), columns - j0)
            return loop(count, lambda j: element(i0 + i, j0 + j))

        return loop(tirx.min(i32(SQUARE), rows - i0), row)

    return loop(
        ceil_div(rows, SQUARE),
        lambda q: loop(ceil_div(columns, SQUARE), lambda p: square(q * SQUARE, p * SQUARE)),
    )
