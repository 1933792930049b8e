"""General systems of small real matrices: Gaussian elimination with partial pivoting."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from tracejit.backends.tvm.kernels.determinants import Product
from tracejit.backends.tvm.kernels.machine import Machine
from tracejit.backends.tvm.kernels.tile import vector
from tracejit.backends.tvm.kernels.tiling import ceil_div
from tracejit.backends.tvm.kernels.triangular import Load, Store, for_each_matrix, workers_for
from tracejit.backends.tvm.kernels.work import Work
from tracejit.backends.tvm.tir import (
    AllocBuffer,
    Expr,
    IfThenElse,
    Stmt,
    buffer,
    const,
    i32,
    loop,
    real,
    seq,
    store,
    tirx,
)


@dataclass(frozen=True)
class General:
    """``batch`` systems of ``size`` unknowns with ``columns`` right sides each, of ``dtype``.

    ``store(b, i, j, value)`` takes unknown i of right side j: NaN for all of a singular matrix.
    With a ``product``, which is multiplied by each matrix's pivots, there are no right sides.
    """

    batch: int
    size: int
    columns: int
    dtype: str
    matrix: Load
    right: Load
    store: Store
    product: Product | None = None


def general_systems(systems: General, machine: Machine) -> Work:
    """The matrix and its right sides lie beside each other, in rows that whole vectors fill."""
    n, m, dtype = systems.size, systems.columns, systems.dtype
    lanes = machine.lanes(dtype, max(n, m))
    begin = ceil_div(n, lanes) * lanes
    width = begin + ceil_div(m, lanes) * lanes
    workers = workers_for(systems.batch, systems.batch * n * n * (n // 3 + m), machine)
    rows = buffer("rows", (workers, n, width), dtype)
    number = buffer("number", (1,), dtype, scope="local")
    greatest = buffer("greatest", (1,), dtype, scope="local")
    chosen = buffer("chosen", (1,), "int32", scope="local")
    fails = buffer("fails", (1,), "int32", scope="local")
    zero, first = real(0.0, dtype), i32(0)
    product = systems.product

    def multiply(pivot: Expr, exchanged: Expr) -> list[Stmt]:
        return [] if product is None else product.multiply(pivot, exchanged)

    def take(b: Expr, worker: Expr, i: Expr) -> list[Stmt]:
        return [
            loop(n, lambda j: store(rows, [worker, i, j], systems.matrix(b, i, j))),
            loop(begin - n, lambda j: store(rows, [worker, i, n + j], zero)),
            loop(m, lambda j: store(rows, [worker, i, begin + j], systems.right(b, i, j))),
            loop(width - begin - m, lambda j: store(rows, [worker, i, begin + m + j], zero)),
        ]

    def in_vectors(start: Expr, body: Callable[[Expr], Stmt]) -> Stmt:
        """Along a row from vector number ``start`` on."""
        return loop(
            width // lanes - start,
            lambda q: vector(lanes, lambda v: body((start + q) * lanes + v)),
        )

    def choose(worker: Expr, k: Expr) -> list[Stmt]:
        def compare(i: Expr) -> Stmt:
            size = tirx.abs(rows[worker, i, k])
            return IfThenElse(
                size > greatest[first],
                seq(store(greatest, first, size), store(chosen, first, i)),
                None,
            )

        return [
            store(greatest, first, tirx.abs(rows[worker, k, k])),
            store(chosen, first, k),
            loop(n - 1 - k, lambda i: compare(k + 1 + i)),
            store(fails, first, tirx.Select(greatest[first] == zero, i32(1), fails[first])),
        ]

    def exchange(worker: Expr, k: Expr) -> Stmt:
        def swap(j: Expr) -> list[Stmt]:
            return [
                store(number, first, rows[worker, k, j]),
                store(rows, [worker, k, j], rows[worker, chosen[first], j]),
                store(rows, [worker, chosen[first], j], number[first]),
            ]

        return IfThenElse(chosen[first] != k, loop(width - k, lambda j: seq(swap(k + j))), None)

    def subtract(worker: Expr, i: Expr, k: Expr, start: Expr) -> Stmt:
        return in_vectors(
            start,
            lambda j: store(
                rows, [worker, i, j], rows[worker, i, j] - number[first] * rows[worker, k, j]
            ),
        )

    def eliminate(worker: Expr, k: Expr) -> list[Stmt]:
        def row(i: Expr) -> list[Stmt]:
            factor = tirx.div(rows[worker, i, k], rows[worker, k, k])
            return [store(number, first, factor), subtract(worker, i, k, (k + 1) // lanes)]

        return [
            *choose(worker, k),
            exchange(worker, k),
            *multiply(rows[worker, k, k], chosen[first] != k),
            loop(n - 1 - k, lambda i: seq(row(k + 1 + i))),
        ]

    def substitute(worker: Expr, k: Expr) -> list[Stmt]:
        def row(i: Expr) -> list[Stmt]:
            return [
                store(number, first, rows[worker, i, k]),
                subtract(worker, i, k, i32(begin // lanes)),
            ]

        return [
            store(number, first, rows[worker, k, k]),
            in_vectors(
                i32(begin // lanes),
                lambda j: store(rows, [worker, k, j], tirx.div(rows[worker, k, j], number[first])),
            ),
            loop(k, lambda i: seq(row(i))),
        ]

    def give(b: Expr, worker: Expr, i: Expr) -> Stmt:
        def value(j: Expr) -> Expr:
            found = rows[worker, i, begin + j]
            return tirx.Select(fails[first] == 0, found, const(math.nan, dtype))

        return loop(m, lambda j: systems.store(b, i, j, value(j)))

    def solve(b: Expr, worker: Expr) -> Stmt:
        eliminated = [
            [AllocBuffer(each) for each in (number, greatest, chosen, fails)],
            store(fails, first, i32(0)),
            product.begin() if product is not None else [],
            loop(n, lambda i: take(b, worker, i)),
            loop(n, lambda k: eliminate(worker, k)),
        ]
        if product is not None:
            return seq(*eliminated, product.end(b, fails[first] != 0))
        return seq(
            *eliminated,
            loop(n, lambda k: substitute(worker, n - 1 - k)),
            loop(n, lambda i: give(b, worker, i)),
        )

    return Work(for_each_matrix(systems.batch, workers, solve), (rows,), "elimination")
