"""Blocked solvers of large real matrices: triangular and general systems, Cholesky factors.

The rows of a block are eliminated as in the kernels for small matrices; the rest of the matrix is
updated by products of blocks.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tracejit.backends.tvm.codegen.kernel_body import KernelBody
from tracejit.backends.tvm.cpu.kernels.linalg.blocked_cholesky import BLOCK, Blocks, Element
from tracejit.backends.tvm.cpu.kernels.linalg.elimination import General
from tracejit.backends.tvm.cpu.kernels.linalg.triangular import Factors, Systems
from tracejit.backends.tvm.cpu.kernels.sharing import on_workers, share
from tracejit.backends.tvm.cpu.kernels.tile import as_written, vector
from tracejit.backends.tvm.cpu.machine import Machine
from tracejit.backends.tvm.ir.tir import (
    AllocBuffer,
    Buffer,
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

_LEAST_PANEL = 8
"""Columns that are eliminated one by one before the rest of the block is updated; vectors are
shorter here.
"""


def _threads(batch: int, machine: Machine) -> tuple[int, int]:
    """Threads for the batch, and threads for each matrix: with many matrices, each is one
    thread's.
    """
    whole = batch >= 2 * machine.threads
    return (machine.threads, 1) if whole else (1, machine.threads)


def _each(batch: int, outer: int, body: Callable[[Expr, Expr], Stmt]) -> Stmt:
    def worker(w: Expr) -> Stmt:
        first, count = share(w, batch, outer)
        return loop(count, lambda b: body(first + b, w))

    return on_workers(outer, worker)


def triangular_systems_by_blocks(systems: Systems, machine: Machine) -> KernelBody:
    """Forward substitution, strip by strip of the right-hand sides."""
    outer, inner = _threads(systems.batch, machine)
    blocks = Blocks(systems.size, systems.columns, systems.dtype, machine, outer, inner)
    memory, begin = blocks.memory, blocks.begin

    def strip(copy: Expr, column: Expr) -> Stmt:
        def block(number: Expr) -> Stmt:
            top = number * BLOCK

            def divided(value: Expr, i: Expr) -> Expr:
                return tirx.div(value, memory[copy, top + i, top + i])

            return seq(
                blocks.substitute(
                    copy,
                    lambda i: top + i,
                    BLOCK,
                    column,
                    2,
                    lambda i, p: memory[copy, top + i, top + p],
                    None if systems.unit else divided,
                ),
                blocks.update(
                    copy,
                    (top + BLOCK, i32(begin)),
                    column,
                    2,
                    BLOCK,
                    lambda row, k: memory[copy, row, top + k],
                    lambda k: top + k,
                ),
            )

        return as_written(blocks.blocks, block)

    def one(b: Expr, copy: Expr) -> Stmt:
        return seq(
            blocks.take(
                copy,
                "lower",
                lambda i, p: systems.matrix(b, i, p),
                lambda i, j: systems.right(b, i, j),
            ),
            blocks.sides(lambda column: strip(copy, column)),
            blocks.give(
                lambda i, j: systems.store(b, i, j, memory[copy, i, begin + j]), systems.columns
            ),
        )

    return KernelBody(_each(systems.batch, outer, one), (memory,), "triangular systems by blocks")


def cholesky_factors_by_blocks(factors: Factors, machine: Machine) -> KernelBody:
    """Upper Cholesky factors: a diagonal block, the rows beside it, and the update of the rest."""
    outer, inner = _threads(factors.batch, machine)
    dtype = factors.dtype
    blocks = Blocks(factors.size, 0, dtype, machine, outer, inner)
    memory = blocks.memory
    inverse = buffer("inverse", (outer, BLOCK), dtype)
    fails = buffer("fails", (outer,), "int32")
    number = buffer("number", (1,), dtype, scope="local")
    first = i32(0)

    def column(copy: Expr, top: Expr, c: Expr) -> list[Stmt]:
        k = top + c
        diagonal = memory[copy, k, k]

        def scaled(j: Expr) -> Stmt:
            value = memory[copy, k, j]
            right = j > k
            return store(memory, [copy, k, j], tirx.Select(right, value * number[first], value))

        def row(i: Expr) -> list[Stmt]:
            start = i // blocks.lanes * blocks.lanes
            return [
                store(number, first, memory[copy, k, top + i]),
                blocks.in_vectors(
                    top + start,
                    top + BLOCK,
                    lambda j: store(
                        memory,
                        [copy, top + i, j],
                        memory[copy, top + i, j] - number[first] * memory[copy, k, j],
                    ),
                ),
            ]

        return [
            store(fails, copy, tirx.Select(diagonal > const(0.0, dtype), fails[copy], i32(1))),
            store(memory, [copy, k, k], tirx.sqrt(diagonal)),
            store(number, first, tirx.div(const(1.0, dtype), memory[copy, k, k])),
            store(inverse, [copy, c], number[first]),
            blocks.in_vectors(top, top + BLOCK, scaled),
            loop(BLOCK - 1 - c, lambda i: seq(row(c + 1 + i))),
        ]

    def block(copy: Expr, n: Expr) -> Stmt:
        top = n * BLOCK

        def beside(at: Expr) -> Stmt:
            return blocks.substitute(
                copy,
                lambda i: top + i,
                BLOCK,
                at,
                2,
                lambda i, p: memory[copy, top + p, top + i],
                lambda value, i: value * inverse[copy, i],
            )

        def below(at: Expr) -> Stmt:
            return blocks.update(
                copy,
                (top + BLOCK, at + blocks.strip),
                at,
                2,
                BLOCK,
                lambda row, k: memory[copy, top + k, row],
                lambda k: top + k,
            )

        return seq(
            loop(BLOCK, lambda c: column(copy, top, c)),
            blocks.strips(top + BLOCK, beside),
            blocks.strips(top + BLOCK, below),
        )

    def one(b: Expr, copy: Expr) -> Stmt:
        nan, zero = const(math.nan, dtype), const(0.0, dtype)

        def put(i: Expr, j: Expr) -> Stmt:
            value = tirx.Select(i <= j, memory[copy, i, j], zero)
            return factors.store(b, i, j, tirx.Select(fails[copy] == 0, value, nan))

        return seq(
            AllocBuffer(number),
            store(fails, copy, i32(0)),
            blocks.take(copy, "upper", lambda i, j: factors.matrix(b, i, j)),
            as_written(blocks.blocks, lambda n: block(copy, n)),
            blocks.give(put, factors.size),
        )

    scratch = (memory, inverse, fails)
    return KernelBody(_each(factors.batch, outer, one), scratch, "Cholesky factors by blocks")


def general_systems_by_blocks(systems: General, machine: Machine) -> KernelBody:
    """Gaussian elimination with partial pivoting of the matrix and its right sides."""
    outer, inner = _threads(systems.batch, machine)
    made = _General(
        systems, Blocks(systems.size, systems.columns, systems.dtype, machine, outer, inner), outer
    )
    statement = _each(systems.batch, outer, made.solve)
    return KernelBody(statement, made.scratch, "general systems by blocks")


class _General:
    def __init__(self, systems: General, blocks: Blocks, copies: int) -> None:
        self._systems = systems
        self._blocks = blocks
        self._memory = blocks.memory
        self._panel = max(blocks.lanes, _LEAST_PANEL)
        dtype = systems.dtype
        self._fails = buffer("fails", (copies,), "int32")
        self._number = buffer("number", (1,), dtype, scope="local")
        self._greatest = buffer("greatest", (1,), dtype, scope="local")
        self._chosen = buffer("chosen", (1,), "int32", scope="local")
        self._pivot = buffer("pivot", (self._panel,), dtype, scope="local")
        self._exchanged = buffer("exchanged", (copies, BLOCK), "int32")
        """The row that each row of the current block was exchanged with."""
        self.scratch: tuple[Buffer, ...] = (
            blocks.memory,
            blocks.near,
            self._fails,
            self._exchanged,
        )

    def solve(self, b: Expr, copy: Expr) -> Stmt:
        systems, blocks, memory = self._systems, self._blocks, self._memory
        nan = const(math.nan, systems.dtype)

        def put(i: Expr, j: Expr) -> Stmt:
            value = memory[copy, i, blocks.begin + j]
            return systems.store(b, i, j, tirx.Select(self._fails[copy] == 0, value, nan))

        local = (self._number, self._greatest, self._chosen, self._pivot)
        product = systems.product
        eliminated = [
            [AllocBuffer(each) for each in local],
            store(self._fails, copy, i32(0)),
            product.begin() if product is not None else [],
            blocks.take(
                copy,
                "all",
                lambda i, j: systems.matrix(b, i, j),
                lambda i, j: systems.right(b, i, j),
            ),
            as_written(blocks.blocks, lambda n: self._block(copy, n * BLOCK)),
        ]
        if product is not None:
            return seq(*eliminated, product.end(b, self._fails[copy] != 0))
        return seq(
            *eliminated,
            blocks.sides(lambda column: self._back(copy, column)),
            blocks.give(put, systems.columns),
        )

    def _block(self, copy: Expr, top: Expr) -> Stmt:
        """Eliminate a block of columns."""
        blocks, panel = self._blocks, self._panel
        vectors = panel // blocks.lanes
        panels = BLOCK // panel

        def one(s: Expr) -> Stmt:
            at = top + s * panel
            return seq(
                loop(panel, lambda c: self._column(copy, top, at, c)),
                loop(
                    panels - 1 - s,
                    lambda t: self._rest(copy, at, panel, at + (t + 1) * panel, vectors),
                ),
            )

        def beside(column: Expr) -> Stmt:
            # Each thread exchanges rows of its own strips, which its cache holds.
            def exchange(c: Expr) -> Stmt:
                return self._exchange(copy, top + c, self._exchanged[copy, c], column, 2)

            return seq(
                as_written(BLOCK, exchange),
                self._solved(copy, top, BLOCK, column, 2),
            )

        def below(column: Expr, row: Expr, end: Expr, left: Element) -> Stmt:
            return blocks.update(copy, (row, end), column, 2, BLOCK, left, lambda k: top + k)

        return seq(as_written(panels, one), blocks.strips(top + BLOCK, beside, below, copy))

    def _exchange(self, copy: Expr, k: Expr, other: Expr, column: Expr, vectors: int) -> Stmt:
        """Exchange the vectors from ``column`` on of two rows."""
        blocks, memory = self._blocks, self._memory
        held = buffer("held", (blocks.lanes,), self._systems.dtype, scope="local")

        def one(q: Expr) -> list[Stmt]:
            start = column + q * blocks.lanes

            def each(body: Callable[[Expr], Stmt]) -> Stmt:
                return vector(blocks.lanes, body)

            return [
                AllocBuffer(held),
                each(lambda v: store(held, v, memory[copy, k, start + v])),
                each(lambda v: store(memory, [copy, k, start + v], memory[copy, other, start + v])),
                each(lambda v: store(memory, [copy, other, start + v], held[v])),
            ]

        return IfThenElse(other != k, loop(vectors, one), None)

    def _rest(self, copy: Expr, top: Expr, count: int, column: Expr, vectors: int) -> Stmt:
        """Apply the elimination of ``count`` columns to a strip of the others."""
        blocks, memory = self._blocks, self._memory
        return seq(
            self._solved(copy, top, count, column, vectors),
            blocks.update(
                copy,
                (top + count, i32(blocks.begin)),
                column,
                vectors,
                count,
                lambda row, k: memory[copy, row, top + k],
                lambda k: top + k,
            ),
        )

    def _solved(self, copy: Expr, top: Expr, count: int, column: Expr, vectors: int) -> Stmt:
        """The same for the ``count`` rows from ``top`` on alone."""
        return self._blocks.substitute(
            copy,
            lambda i: top + i,
            count,
            column,
            vectors,
            lambda i, p: self._memory[copy, top + i, top + p],
        )

    def _column(self, copy: Expr, top: Expr, at: Expr, c: Expr) -> list[Stmt]:
        """Eliminate column ``at + c`` within its panel, which begins at ``at``.

        The multipliers stay in its place.
        """
        blocks, memory, first = self._blocks, self._memory, i32(0)
        greatest, chosen, pivot, number = self._greatest, self._chosen, self._pivot, self._number
        dtype, panel = self._systems.dtype, self._panel
        k = at + c
        rows = blocks.begin - 1 - k

        def compare(i: Expr) -> Stmt:
            size = tirx.abs(memory[copy, i, k])
            larger = seq(store(greatest, first, size), store(chosen, first, i))
            return IfThenElse(size > greatest[first], larger, None)

        def hold(j: Expr) -> Stmt:
            value = memory[copy, k, at + j]
            return store(pivot, j, tirx.Select(j > c, value, const(0.0, dtype)))

        def take_off(i: Expr, factor: Expr) -> list[Stmt]:
            return [
                store(number, first, factor),
                loop(
                    panel // blocks.lanes,
                    lambda q: vector(
                        blocks.lanes,
                        lambda v: store(
                            memory,
                            [copy, i, at + q * blocks.lanes + v],
                            memory[copy, i, at + q * blocks.lanes + v]
                            - number[first] * pivot[q * blocks.lanes + v],
                        ),
                    ),
                ),
                store(memory, [copy, i, k], number[first]),
            ]

        def divide(i: Expr) -> Stmt:
            return store(memory, [copy, i, k], tirx.div(memory[copy, i, k], diagonal))

        diagonal = memory[copy, k, k]
        # Multiply by the reciprocal unless it might be infinite.
        inverse = buffer("reciprocal", (1,), dtype, scope="local")
        return [
            store(greatest, first, tirx.abs(diagonal)),
            store(chosen, first, k),
            loop(rows, lambda i: compare(k + 1 + i)),
            store(
                self._fails,
                copy,
                tirx.Select(greatest[first] == const(0.0, dtype), i32(1), self._fails[copy]),
            ),
            store(self._exchanged, [copy, k - top], chosen[first]),
            self._exchange(copy, k, chosen[first], top, BLOCK // blocks.lanes),
            loop(
                panel // blocks.lanes,
                lambda q: vector(blocks.lanes, lambda v: hold(q * blocks.lanes + v)),
            ),
            *self._multiplied(diagonal, chosen[first] != k),
            AllocBuffer(inverse),
            IfThenElse(
                greatest[first] > const(_SMALL[dtype], dtype),
                store(inverse, first, tirx.div(const(1.0, dtype), diagonal)),
                seq(
                    as_written(rows, lambda i: divide(k + 1 + i)),
                    store(inverse, first, const(1.0, dtype)),
                ),
            ),
            loop(rows, lambda i: take_off(k + 1 + i, memory[copy, k + 1 + i, k] * inverse[first])),
        ]

    def _multiplied(self, pivot: Expr, exchanged: Expr) -> list[Stmt]:
        product = self._systems.product
        return [] if product is None else product.multiply(pivot, exchanged)

    def _back(self, copy: Expr, column: Expr) -> Stmt:
        """Backward substitution for a strip of right-hand sides."""
        blocks, memory = self._blocks, self._memory

        def block(n: Expr) -> Stmt:
            top = (blocks.blocks - 1 - n) * BLOCK

            def place(i: Expr) -> Expr:
                return top + (BLOCK - 1) - i

            return seq(
                blocks.substitute(
                    copy,
                    place,
                    BLOCK,
                    column,
                    2,
                    lambda i, p: memory[copy, place(i), place(p)],
                    lambda value, i: tirx.div(value, memory[copy, place(i), place(i)]),
                ),
                blocks.update(
                    copy,
                    (i32(0), top),
                    column,
                    2,
                    BLOCK,
                    lambda row, k: memory[copy, row, top + k],
                    lambda k: top + k,
                ),
            )

        return as_written(blocks.blocks, block)


_SMALL = {"float32": 1e-37, "float64": 1e-307}
"""The least pivot that surely has a finite reciprocal."""
