"""General systems of small matrices: Gaussian elimination with partial pivoting."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from tracejit.backends.tvm.codegen.kernel_body import KernelBody
from tracejit.backends.tvm.cpu.kernels.arithmetic import Arithmetic, Parts, Value
from tracejit.backends.tvm.cpu.kernels.linalg.determinants import Product
from tracejit.backends.tvm.cpu.kernels.linalg.triangular import (
    Load,
    Store,
    for_each_matrix,
    workers_for,
)
from tracejit.backends.tvm.cpu.kernels.tile import vector
from tracejit.backends.tvm.cpu.kernels.tiling import ceil_div
from tracejit.backends.tvm.cpu.machine import Machine
from tracejit.backends.tvm.ir.tir import (
    AllocBuffer,
    Expr,
    IfThenElse,
    Stmt,
    buffer,
    const,
    i32,
    loop,
    seq,
    store,
    tirx,
)


@dataclass(frozen=True)
class General:
    """``batch`` systems of ``size`` unknowns with ``columns`` right-hand sides each, of ``dtype``.

    ``store(b, i, j, value)`` receives unknown i of right-hand side j: all NaN for a singular
    matrix. With a ``product``, which is multiplied by each matrix's pivots, there are no
    right-hand sides; the numbers are real then. ``pair`` is the type of complex numbers, None for
    real ones.
    """

    batch: int
    size: int
    columns: int
    dtype: str
    matrix: Load
    right: Load
    store: Store
    product: Product | None = None
    pair: Callable[..., Value] | None = None

    @property
    def arithmetic(self) -> Arithmetic:
        return Arithmetic(self.dtype, self.pair)


def general_systems(systems: General, machine: Machine) -> KernelBody:
    """Solve; each row of the working memory holds a matrix row and its right-hand sides, in whole
    vectors.
    """
    n, m, dtype = systems.size, systems.columns, systems.dtype
    arithmetic = systems.arithmetic
    lanes = machine.lanes(dtype, max(n, m))
    begin = ceil_div(n, lanes) * lanes
    width = begin + ceil_div(m, lanes) * lanes
    cost = systems.batch * n * n * (n // 3 + m) * arithmetic.parts**2
    workers = workers_for(systems.batch, cost, machine)
    rows = buffer("rows", (arithmetic.parts, workers, n, width), dtype)
    number = buffer("number", (arithmetic.parts, 1), dtype, scope="local")
    pivot = buffer("pivot", (arithmetic.parts, 1), dtype, scope="local")
    unknowns = buffer("unknowns", (arithmetic.parts, lanes), dtype, scope="local")
    greatest = buffer("greatest", (1,), dtype, scope="local")
    chosen = buffer("chosen", (1,), "int32", scope="local")
    fails = buffer("fails", (1,), "int32", scope="local")
    nothing, first = arithmetic.zero, i32(0)
    product = systems.product

    def at(worker: Expr, i: Expr, j: Expr) -> Parts:
        return arithmetic.load(rows, worker, i, j)

    def put(worker: Expr, i: Expr, j: Expr, value: Parts) -> Stmt:
        return arithmetic.store(rows, [worker, i, j], value)

    def held() -> Parts:
        return arithmetic.load(number, first)

    def hold(value: Parts) -> Stmt:
        return arithmetic.store(number, [first], value)

    def multiply(pivot: Expr, exchanged: Expr) -> list[Stmt]:
        return [] if product is None else product.multiply(pivot, exchanged)

    def take(b: Expr, worker: Expr, i: Expr) -> list[Stmt]:
        split = arithmetic.split
        return [
            loop(n, lambda j: put(worker, i, j, split(systems.matrix(b, i, j)))),
            loop(begin - n, lambda j: put(worker, i, n + j, nothing)),
            loop(m, lambda j: put(worker, i, begin + j, split(systems.right(b, i, j)))),
            loop(width - begin - m, lambda j: put(worker, i, begin + m + j, nothing)),
        ]

    def in_vectors(start: Expr, body: Callable[[Expr], Stmt]) -> Stmt:
        """Vectors along a row from vector ``start`` on."""
        return loop(
            width // lanes - start,
            lambda q: vector(lanes, lambda v: body((start + q) * lanes + v)),
        )

    def choose(worker: Expr, k: Expr) -> list[Stmt]:
        def compare(i: Expr) -> Stmt:
            size = arithmetic.size(at(worker, i, k))
            return IfThenElse(
                size > greatest[first],
                seq(store(greatest, first, size), store(chosen, first, i)),
                None,
            )

        return [
            store(greatest, first, arithmetic.size(at(worker, k, k))),
            store(chosen, first, k),
            loop(n - 1 - k, lambda i: compare(k + 1 + i)),
            store(fails, first, tirx.Select(greatest[first] == nothing[0], i32(1), fails[first])),
        ]

    def exchange(worker: Expr, k: Expr) -> Stmt:
        def swap(j: Expr) -> list[Stmt]:
            return [
                hold(at(worker, k, j)),
                put(worker, k, j, at(worker, chosen[first], j)),
                put(worker, chosen[first], j, held()),
            ]

        return IfThenElse(chosen[first] != k, loop(width - k, lambda j: seq(swap(k + j))), None)

    def subtract(worker: Expr, i: Expr, k: Expr, start: Expr) -> Stmt:
        return in_vectors(
            start,
            lambda j: put(
                worker,
                i,
                j,
                arithmetic.multiply_subtract(at(worker, i, j), held(), at(worker, k, j)),
            ),
        )

    def eliminate(worker: Expr, k: Expr) -> list[Stmt]:
        def row(i: Expr) -> list[Stmt]:
            factor = arithmetic.divided(at(worker, i, k), arithmetic.load(pivot, first))
            return [hold(factor), subtract(worker, i, k, (k + 1) // lanes)]

        return [
            *choose(worker, k),
            exchange(worker, k),
            *multiply(rows[0, worker, k, k], chosen[first] != k),
            arithmetic.store(pivot, [first], arithmetic.divisor(at(worker, k, k))),
            loop(n - 1 - k, lambda i: seq(row(k + 1 + i))),
        ]

    def solved(worker: Expr, k: Expr, j: Expr) -> list[Stmt]:
        """A vector of unknowns; nothing is stored before all are computed."""
        return [
            vector(
                lanes,
                lambda v: arithmetic.store(
                    unknowns, [v], arithmetic.divided(at(worker, k, j + v), held())
                ),
            ),
            vector(lanes, lambda v: put(worker, k, j + v, arithmetic.load(unknowns, v))),
        ]

    def substitute(worker: Expr, k: Expr) -> list[Stmt]:
        def row(i: Expr) -> list[Stmt]:
            return [hold(at(worker, i, k)), subtract(worker, i, k, i32(begin // lanes))]

        return [
            hold(arithmetic.divisor(at(worker, k, k))),
            loop((width - begin) // lanes, lambda q: solved(worker, k, begin + q * lanes)),
            loop(k, lambda i: seq(row(i))),
        ]

    def give(b: Expr, worker: Expr, i: Expr) -> Stmt:
        def value(j: Expr) -> Expr:
            return arithmetic.join(
                [
                    tirx.Select(fails[first] == 0, found, const(math.nan, dtype))
                    for found in at(worker, i, begin + j)
                ]
            )

        return loop(m, lambda j: systems.store(b, i, j, value(j)))

    def solve(b: Expr, worker: Expr) -> Stmt:
        eliminated = [
            [AllocBuffer(each) for each in (number, pivot, unknowns, greatest, chosen, fails)],
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

    return KernelBody(for_each_matrix(systems.batch, workers, solve), (rows,), "elimination")
