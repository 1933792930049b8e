"""Fourier transforms of columns, whose numbers lie a row apart: vectors run across columns.

The stages are those of `fourier`, and all lanes have the same factor in each. A long transform is
two of columns: of numbers n = columns * r + c those with one c are transformed to numbers k, each
is turned by k c / (rows * columns) of a circle, and those with one k are transformed in their turn,
for which they are stored side by side.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from tracejit.backends.tvm.kernels.sharing import on_workers, share
from tracejit.backends.tvm.schedule.butterflies import Butterflies, Pair
from tracejit.backends.tvm.schedule.fourier import UNIFORM, factors, strides
from tracejit.backends.tvm.schedule.frame import Frame
from tracejit.backends.tvm.tir import (
    Buffer,
    Expr,
    Stmt,
    buffer,
    const,
    loop,
    real,
    seq,
    store,
    tirx,
)

SHORTEST, LONGEST = 4, 4096

_TOGETHER = 64
"""Rows whose numbers are stored a column at a time: what the first cache holds of a strip."""


@functools.lru_cache(maxsize=64)
def column_factors(length: int, inverse: bool) -> np.ndarray:
    """The factors of all stages: for each three arrays, real and imaginary parts, by p."""
    return factors(length, inverse, 1)


@functools.lru_cache(maxsize=16)
def turning_factors(length: int, columns: int, inverse: bool) -> np.ndarray:
    """The same, and what number k of column c is turned by, as a product of two.

    First for each multiple of `UNIFORM` among columns and each k, then for each k and the columns
    up to `UNIFORM`; real parts, then imaginary ones.
    """
    parts = [column_factors(length, inverse)]
    k, size = np.arange(length), length * columns
    for turn in (np.arange(0, columns, UNIFORM)[:, None] * k, k[:, None] * np.arange(UNIFORM)):
        angle = 2 * np.pi * (turn % size) / size
        parts += [np.cos(angle).ravel(), (np.sin(angle) * (1 if inverse else -1)).ravel()]
    return np.concatenate(parts)


@dataclass(frozen=True)
class Columns:
    """``count`` times ``columns`` transforms of ``length`` numbers, parts side by side.

    The source is [count, length, columns]; so is the target, or [count, columns, length] of
    numbers that are ``turned``. Then ``columns`` is a multiple of `UNIFORM`. Rows of what lies
    between the two halves of a long transform, the target of the turned and the source of the
    others, are followed by a ``gap`` of so many numbers.
    """

    count: int
    length: int
    columns: int
    inverse: bool
    turned: bool
    gap: int
    source: Buffer
    table: Buffer
    target: Buffer


def fourier_columns(frame: Frame, what: Columns) -> Stmt:
    """The whole kernel."""
    dtype = str(what.source.dtype)
    lanes = min(frame.machine.lanes(dtype), UNIFORM, 1 << (what.columns.bit_length() - 1))
    strips = -(-what.columns // lanes)
    units = what.count * strips
    work = units * lanes * what.length * 2 * what.length.bit_length()
    workers = min(frame.machine.threads, units) if frame.is_shared(work) else 1
    scratch = buffer("stages", (workers, 2, 2, what.length * lanes), dtype)

    def unit(number: Expr, worker: Expr) -> Stmt:
        first = number % strips * lanes
        if what.columns % lanes:
            first = tirx.min(first, const(what.columns - lanes, "int32"))
        return _Strip(frame, what, lanes, scratch, worker, number // strips, first).statement()

    def work_of(worker: Expr) -> Stmt:
        begin, count = share(worker, units, workers)
        return loop(count, lambda number: unit(begin + number, worker))

    return seq(frame.allocate([scratch]), on_workers(workers, work_of))


class _Strip:
    """As many columns as a vector has lanes, from column ``first`` of batch ``outer`` on."""

    def __init__(
        self,
        frame: Frame,
        what: Columns,
        lanes: int,
        scratch: Buffer,
        worker: Expr,
        outer: Expr,
        first: Expr,
    ) -> None:
        self.what = what
        self.lanes = lanes
        self.scratch = scratch
        self.worker = worker
        self.index = frame.index_dtype
        self.first = first.astype(self.index)
        self.outer = outer.astype(self.index)
        self.dtype = str(what.source.dtype)
        self.made = Butterflies(lanes, self.dtype, "int32", what.inverse)
        self.offset = sum(6 * (what.length // (4 * stride)) for stride in strides(what.length))

    def statement(self) -> Stmt:
        length = self.what.length
        steps = strides(length)
        by_twos = length.bit_length() % 2 == 0
        stages: list[Stmt] = []
        offset = 0
        for number, stride in enumerate(steps):
            is_last = number == len(steps) - 1 and not by_twos
            stages.append(self._stage(number, stride, offset, is_last))
            offset += 6 * (length // (4 * stride))
        if by_twos:
            half = length // 2

            def pair(row: Expr) -> list[Stmt]:
                made: list[Stmt] = []
                x, y = (self._loaded(made, len(steps), row + k * half) for k in range(2))
                for k, result in enumerate(self.made.by_twos(made, x, y)):
                    self._kept(made, len(steps), row + k * half, result, True)
                return made

            stages.append(loop(half, pair))
        if self.what.turned:
            stages.append(self._stored_by_columns((len(steps) - (not by_twos)) % 2))
        return seq(*stages)

    def _stage(self, number: int, stride: int, offset: int, last: bool) -> Stmt:
        quarter = self.what.length // 4
        table, per = self.what.table, quarter // stride

        def factor(k: int, p: Expr) -> Pair:
            at = [offset + (2 * (k - 1) + part) * per for part in range(2)]
            return lambda lane: table[p + at[0]], lambda lane: table[p + at[1]]

        def block(p: Expr, q: Expr) -> list[Stmt]:
            made: list[Stmt] = []
            row = p * stride + q
            given = [self._loaded(made, number, row + k * quarter) for k in range(4)]
            for k, result in enumerate(self.made.by_fours(made, given)):
                if k and per > 1:  # else all factors are 1
                    result = self.made.turned(made, result, factor(k, p))
                self._kept(made, number, p * (4 * stride) + q + k * stride, result, last)
            return made

        return loop(per, lambda p: loop(stride, lambda q: block(p, q)))

    def _address(self, row: Expr, gap: int = 0) -> Expr:
        """The item at which ``row`` begins."""
        row = self.outer * const(self.what.length, self.index) + row.astype(self.index)
        at = row * const(self.what.columns + gap, self.index)
        return (at + self.first) * const(2, self.index)

    def _loaded(self, into: list[Stmt], number: int, row: Expr) -> Pair:
        if not number:
            gap = 0 if self.what.turned else self.what.gap
            return self.made.read_numbers(into, self.what.source, self._address(row, gap))
        which, at = (number - 1) % 2, row * self.lanes
        return self.made.held_pair(
            into,
            (
                lambda lane: self.scratch[self.worker, which, 0, at + lane],
                lambda lane: self.scratch[self.worker, which, 1, at + lane],
            ),
        )

    def _kept(self, into: list[Stmt], number: int, row: Expr, pair: Pair, last: bool) -> None:
        what = self.what
        if last and what.inverse:
            pair = self.made.scaled(into, pair, real(1 / what.length, self.dtype))
        if last and what.turned:
            for by in self._turns(row):
                pair = self.made.turned(into, pair, by)
        if last and not what.turned:
            self.made.write_numbers(into, what.target, self._address(row), pair)
            return

        def keep(part: int) -> Stmt:
            def lane_of(lane: Expr) -> Stmt:
                where = [self.worker, number % 2, part, row * self.lanes + lane]
                return store(self.scratch, where, pair[part](lane))

            return self.made.lanes_of(lane_of)

        into += [keep(part) for part in range(2)]

    def _turns(self, row: Expr) -> list[Pair]:
        table, length = self.what.table, self.what.length
        first = self.first.astype("int32")
        coarse = self.offset + first // UNIFORM * length + row
        coarse_count = self.what.columns // UNIFORM * length
        fine = self.offset + 2 * coarse_count + row * UNIFORM + first % UNIFORM
        fine_count = UNIFORM * length
        return [
            (lambda lane: table[coarse], lambda lane: table[coarse + coarse_count]),
            (lambda lane: table[fine + lane], lambda lane: table[fine + fine_count + lane]),
        ]

    def _stored_by_columns(self, which: int) -> Stmt:
        """Column after column, from the scratch that the last stage has filled."""
        length = self.what.length
        together = min(_TOGETHER, length)
        before = self.outer * const(self.what.columns, self.index) + self.first

        def number(block: Expr, lane: Expr, k: Expr) -> Stmt:
            row = block * together + k
            column = before + lane.astype(self.index)
            at = column * const(length + self.what.gap, self.index) + row.astype(self.index)
            at = at * const(2, self.index)
            return seq(
                [
                    store(
                        self.what.target,
                        at + part,
                        self.scratch[self.worker, which, part, row * self.lanes + lane],
                    )
                    for part in range(2)
                ]
            )

        return loop(
            length // together,
            lambda block: loop(
                self.lanes, lambda lane: loop(together, lambda k: number(block, lane, k))
            ),
        )
