"""Triangular systems and Cholesky factors of small matrices, in memory that stays in cache.

Both work on a copy per thread, laid out so that vectors run along contiguous elements for either
triangle and either memory order of the operands.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from tracejit.backends.tvm.codegen.kernel_body import KernelBody
from tracejit.backends.tvm.cpu.kernels.arithmetic import Arithmetic, Parts, Value
from tracejit.backends.tvm.cpu.kernels.sharing import on_workers, share
from tracejit.backends.tvm.cpu.kernels.tile import vector
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
    seq,
    store,
    tirx,
)

_VECTORS = 6
"""Vectors of right-hand sides that are solved for at once."""

_FEW = 2
"""Up to this many right-hand sides are solved one by one, with vectors along the unknowns."""

_PARALLEL = 200_000
"""The least multiplications of a batch for several threads."""

Load = Callable[[Expr, Expr, Expr], Expr]
Store = Callable[[Expr, Expr, Expr, Expr], Stmt]


@dataclass(frozen=True)
class Systems:
    """``batch`` systems of ``size`` unknowns with ``columns`` right-hand sides each, of ``dtype``.

    ``matrix(b, i, p)`` is read for p < i, and for p == i unless ``unit``: the system is lower
    triangular. ``right(b, i, j)`` and ``store(b, i, j, value)`` are row i of right-hand side j.
    ``pair`` is the type of complex numbers, None for real ones.
    """

    batch: int
    size: int
    columns: int
    dtype: str
    unit: bool
    matrix: Load
    right: Load
    store: Store
    pair: Callable[..., Value] | None = None

    @property
    def arithmetic(self) -> Arithmetic:
        return Arithmetic(self.dtype, self.pair)


def triangular_systems(systems: Systems, machine: Machine) -> KernelBody:
    """Forward substitution."""
    solver = _OneByOne if systems.columns <= _FEW else _Together
    products = systems.arithmetic.parts**2
    cost = systems.batch * systems.size**2 * systems.columns * products // 2
    workers = workers_for(systems.batch, cost, machine)
    made = solver(systems, machine, workers)
    statement = for_each_matrix(systems.batch, workers, made.solve)
    return KernelBody(statement, made.scratch, "triangular systems")


def workers_for(batch: int, cost: int, machine: Machine) -> int:
    """The number of threads for a batch that takes ``cost`` multiplications in all."""
    return min(batch, machine.threads) if cost >= _PARALLEL else 1


def for_each_matrix(batch: int, workers: int, body: Callable[[Expr, Expr], Stmt]) -> Stmt:
    """``body(b, worker)`` for each matrix of the batch."""

    def work(worker: Expr) -> Stmt:
        first, count = share(worker, batch, workers)
        return loop(count, lambda b: body(first + b, worker))

    return on_workers(workers, work)


class _Together:
    """Forward substitution with right-hand sides in vectors: subtracts multiples of
    earlier rows.
    """

    def __init__(self, systems: Systems, machine: Machine, workers: int) -> None:
        self._systems = systems
        self._lanes = machine.lanes(systems.dtype, systems.columns)
        vectors = ceil_div(systems.columns, self._lanes)
        self._arithmetic = systems.arithmetic
        parts = self._arithmetic.parts
        self._strips = ceil_div(vectors, _VECTORS // parts)
        self._vectors = ceil_div(vectors, self._strips)
        width = self._strips * self._vectors * self._lanes
        n = systems.size
        self._lower = buffer("lower", (parts, workers, n, n), systems.dtype)
        self._x = buffer("x", (parts, workers, n, width), systems.dtype)
        sums = (parts, self._vectors, self._lanes)
        self._sums = buffer("sums", sums, systems.dtype, scope="local")
        self._divisor = buffer("divisor", (parts, 1), systems.dtype, scope="local")
        self.scratch = self._lower, self._x

    def solve(self, b: Expr, worker: Expr) -> Stmt:
        systems, n, m = self._systems, self._systems.size, self._systems.columns
        lower, x, lanes, arithmetic = self._lower, self._x, self._lanes, self._arithmetic
        zero = arithmetic.zero

        def put(memory: Buffer, i: Expr, j: Expr, value: Parts) -> Stmt:
            return arithmetic.store(memory, [worker, i, j], value)

        def take(i: Expr) -> list[Stmt]:
            padding = self._strips * self._vectors * lanes
            before = i if systems.unit else i + 1
            return [
                loop(before, lambda p: put(lower, i, p, arithmetic.split(systems.matrix(b, i, p)))),
                loop(m, lambda j: put(x, i, j, arithmetic.split(systems.right(b, i, j)))),
                loop(padding - m, lambda j: put(x, i, m + j, zero)) if padding > m else [],
            ]

        def give(i: Expr) -> Stmt:
            def found(j: Expr) -> Value:
                return arithmetic.join(arithmetic.load(x, worker, i, j))

            return loop(m, lambda j: systems.store(b, i, j, found(j)))

        return seq(
            loop(n, take), loop(self._strips, lambda s: self._strip(worker, s)), loop(n, give)
        )

    def _strip(self, worker: Expr, strip: Expr) -> Stmt:
        systems, lower, x, sums = self._systems, self._lower, self._x, self._sums
        arithmetic, divisor, one = self._arithmetic, self._divisor, i32(0)
        load, put = arithmetic.load, arithmetic.store
        first = strip * (self._vectors * self._lanes)

        def each(body: Callable[[Expr, Expr, Expr], Stmt]) -> Stmt:
            return loop(
                self._vectors,
                lambda u: vector(self._lanes, lambda v: body(u, v, first + u * self._lanes + v)),
                UNROLLED,
            )

        def row(i: Expr) -> list[Stmt]:
            def subtract(p: Expr) -> Stmt:
                factor = load(lower, worker, i, p)
                return each(
                    lambda u, v, j: put(
                        sums,
                        [u, v],
                        arithmetic.multiply_subtract(
                            load(sums, u, v), factor, load(x, worker, p, j)
                        ),
                    )
                )

            def solution(u: Expr, v: Expr) -> Parts:
                if systems.unit:
                    return load(sums, u, v)
                return arithmetic.divided(load(sums, u, v), load(divisor, one))

            return [
                each(lambda u, v, j: put(sums, [u, v], load(x, worker, i, j))),
                loop(i, subtract),
                []
                if systems.unit
                else put(divisor, [one], arithmetic.divisor(load(lower, worker, i, i))),
                each(lambda u, v, j: put(x, [worker, i, j], solution(u, v))),
            ]

        return seq(AllocBuffer(sums), AllocBuffer(divisor), loop(systems.size, row))


class _OneByOne:
    """Forward substitution for one right-hand side: subtracts multiples of each unknown from later
    rows.
    """

    def __init__(self, systems: Systems, machine: Machine, workers: int) -> None:
        self._systems = systems
        self._lanes = machine.lanes(systems.dtype, systems.size)
        self._width = ceil_div(systems.size, self._lanes) * self._lanes
        n = systems.size
        self._arithmetic = systems.arithmetic
        parts = self._arithmetic.parts
        # By columns, without the elements above the diagonal.
        self._columns = buffer("columns", (parts, workers, n, self._width), systems.dtype)
        self._left = buffer("left", (parts, workers, self._width), systems.dtype)
        self._known = buffer("known", (parts, 1), systems.dtype, scope="local")
        self.scratch = self._columns, self._left

    def solve(self, b: Expr, worker: Expr) -> Stmt:
        systems, n, lanes = self._systems, self._systems.size, self._lanes
        columns, left, known = self._columns, self._left, self._known
        arithmetic, first = self._arithmetic, i32(0)
        load, put = arithmetic.load, arithmetic.store
        zero = arithmetic.zero

        def take(p: Expr) -> list[Stmt]:
            below = p + 1 if systems.unit else p
            return [
                loop(below, lambda i: put(columns, [worker, p, i], zero)),
                loop(
                    n - below,
                    lambda i: put(
                        columns,
                        [worker, p, below + i],
                        arithmetic.split(systems.matrix(b, below + i, p)),
                    ),
                ),
                loop(self._width - n, lambda i: put(columns, [worker, p, n + i], zero)),
            ]

        def unknown(j: Expr, i: Expr) -> list[Stmt]:
            value = load(left, worker, i)
            if not systems.unit:
                value = arithmetic.divided(value, arithmetic.divisor(load(columns, worker, i, i)))
            start = (i + 1) // lanes

            def subtract(at: Expr) -> Stmt:
                product = load(known, first), load(columns, worker, i, at)
                left_over = arithmetic.multiply_subtract(load(left, worker, at), *product)
                return put(left, [worker, at], left_over)

            return [
                put(known, [first], value),
                systems.store(b, i, j, arithmetic.join(load(known, first))),
                loop(
                    self._width // lanes - start,
                    lambda q: vector(lanes, lambda v: subtract((start + q) * lanes + v)),
                ),
            ]

        def solution(j: Expr) -> list[Stmt]:
            return [
                loop(n, lambda i: put(left, [worker, i], arithmetic.split(systems.right(b, i, j)))),
                loop(self._width - n, lambda i: put(left, [worker, n + i], zero)),
                loop(n, lambda i: unknown(j, i)),
            ]

        return seq(AllocBuffer(known), loop(n, take), loop(systems.columns, solution))


@dataclass(frozen=True)
class Factors:
    """``batch`` Hermitian matrices of ``size``, of ``dtype``.

    ``matrix(b, i, j)`` is read for i <= j. ``store(b, i, j, value)`` receives the upper factor's
    element where i <= j, and a zero elsewhere; NaN everywhere if the matrix is not positive
    definite. ``pair`` is the type of complex numbers, None for real ones.
    """

    batch: int
    size: int
    dtype: str
    matrix: Load
    store: Store
    pair: Callable[..., Value] | None = None

    @property
    def arithmetic(self) -> Arithmetic:
        return Arithmetic(self.dtype, self.pair)


def cholesky_factors(factors: Factors, machine: Machine) -> KernelBody:
    """Right-looking Cholesky: subtracts multiples of each row of the factor from all later rows."""
    n, dtype, arithmetic = factors.size, factors.dtype, factors.arithmetic
    lanes = machine.lanes(dtype, n)
    width = ceil_div(n, lanes) * lanes
    cost = factors.batch * n**3 * arithmetic.parts**2 // 6
    workers = workers_for(factors.batch, cost, machine)
    rows = buffer("rows", (arithmetic.parts, workers, n, width), dtype)
    factor_of_row = buffer("factor", (arithmetic.parts, 1), dtype, scope="local")
    fails = buffer("fails", (1,), "int32", scope="local")
    nothing, first = arithmetic.zero, i32(0)

    def at(worker: Expr, i: Expr, j: Expr) -> Parts:
        return arithmetic.load(rows, worker, i, j)

    def put(worker: Expr, i: Expr, j: Expr, value: Parts) -> Stmt:
        return arithmetic.store(rows, [worker, i, j], value)

    def take(b: Expr, worker: Expr, i: Expr) -> list[Stmt]:
        def given(j: Expr) -> Parts:
            return arithmetic.split(factors.matrix(b, i, i + j))

        return [
            loop(i, lambda j: put(worker, i, j, nothing)),
            loop(n - i, lambda j: put(worker, i, i + j, given(j))),
            loop(width - n, lambda j: put(worker, i, n + j, nothing)),
        ]

    def from_block(at: Expr, body: Callable[[Expr], Stmt]) -> Stmt:
        """Vectors along a row, from the one that contains element ``at``."""
        start = at // lanes
        return loop(
            width // lanes - start,
            lambda q: vector(lanes, lambda v: body((start + q) * lanes + v)),
        )

    def step(worker: Expr, k: Expr) -> list[Stmt]:
        def subtract(i: Expr) -> list[Stmt]:
            factor = arithmetic.load(factor_of_row, first)
            return [
                arithmetic.store(factor_of_row, [first], arithmetic.conjugate(at(worker, k, i))),
                from_block(
                    i,
                    lambda j: put(
                        worker,
                        i,
                        j,
                        arithmetic.multiply_subtract(at(worker, i, j), factor, at(worker, k, j)),
                    ),
                ),
            ]

        def scale(j: Expr) -> Stmt:
            factor = factor_of_row[0, first]
            return put(worker, k, j, tuple(part * factor for part in at(worker, k, j)))

        # Only the real part of the diagonal is read.
        diagonal = rows[0, worker, k, k]
        return [
            store(
                fails,
                first,
                tirx.Select(diagonal > nothing[0], fails[first], i32(1)),
            ),
            put(worker, k, k, (tirx.sqrt(diagonal), *nothing[1:])),
            store(factor_of_row, [0, first], tirx.div(const(1.0, dtype), diagonal)),
            # The first vector begins before the diagonal, whose element is not to be scaled.
            loop(
                lanes - 1 - k % lanes,
                lambda j: scale(k + 1 + j),
            ),
            from_block(k + lanes, scale),
            loop(n - (k + 1), lambda i: subtract(k + 1 + i)),
        ]

    def give(b: Expr, worker: Expr, i: Expr) -> list[Stmt]:
        nan = const(math.nan, dtype)

        def unless_failed(value: Parts) -> Value:
            return arithmetic.join([tirx.Select(fails[first] == 0, part, nan) for part in value])

        return [
            loop(i, lambda j: factors.store(b, i, j, unless_failed(nothing))),
            loop(
                n - i,
                lambda j: factors.store(b, i, i + j, unless_failed(at(worker, i, i + j))),
            ),
        ]

    def factor(b: Expr, worker: Expr) -> Stmt:
        return seq(
            AllocBuffer(factor_of_row),
            AllocBuffer(fails),
            store(fails, first, i32(0)),
            loop(n, lambda i: take(b, worker, i)),
            loop(n, lambda k: step(worker, k)),
            loop(n, lambda i: give(b, worker, i)),
        )

    return KernelBody(for_each_matrix(factors.batch, workers, factor), (rows,), "Cholesky factors")
