"""Fourier transforms of rows whose length is a power of two, in vectors without a bit reversal.

Stockham's algorithm by fours: a stage of stride s reads x[q + s (p + k m)] and writes
y[q + s (4 p + k)] for k in 0 … 3, where q < s, p < m and 4 m s is the length. Reading is contiguous
in j = q + s p; so is writing, once a vector's lanes have one p. Before that, its lanes are zipped.
Where the logarithm of the length is odd, a stage by twos comes last.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tracejit.backends.tvm.mathematics.lanes import ZIPS
from tracejit.backends.tvm.schedule.butterflies import Butterflies, Lanes, Pair
from tracejit.backends.tvm.schedule.frame import Frame
from tracejit.backends.tvm.tir import (
    PARALLEL,
    SERIAL,
    AllocBuffer,
    Buffer,
    Expr,
    Stmt,
    const,
    loop,
    real,
    seq,
    tirx,
)

# Shorter rows have too few vectors, longer ones too much scratch memory for the stack.
SHORTEST, LONGEST = 16, 4096
# From this stride on all lanes of a vector have the same factor, whatever the processor.
UNIFORM = 16


def strides(length: int) -> list[int]:
    """The strides of the stages by fours."""
    return [4**stage for stage in range((length.bit_length() - 1) // 2)]


@functools.lru_cache(maxsize=64)
def factors(length: int, inverse: bool, uniform: int = UNIFORM) -> np.ndarray:
    """The factors of all stages in f64: for each stage three arrays, real and imaginary parts.

    A stage of stride s has length / 4 of each, or one for each p from ``uniform`` on.
    """
    parts = []
    for s in strides(length):
        m = length // (4 * s)
        p = np.arange(m) if s >= uniform else np.arange(length // 4) // s
        for k in (1, 2, 3):
            # In eighths of a turn the angle is exact where sine and cosine are.
            angle = 2 * np.pi * ((k * p) % (4 * m)) / (4 * m)
            parts += [np.cos(angle), np.sin(angle) if inverse else -np.sin(angle)]
    return np.concatenate(parts)


@dataclass(frozen=True)
class Rows:
    """``count`` rows of ``length`` complex numbers, the parts of each side by side."""

    count: int
    length: int
    inverse: bool
    source: Buffer
    table: Buffer
    target: Buffer


def fourier(frame: Frame, rows: Rows) -> Stmt:
    """The whole kernel."""
    work = rows.count * rows.length * 2 * rows.length.bit_length()
    kind = PARALLEL if rows.count > 1 and frame.is_shared(work) else SERIAL
    return loop(
        rows.count, lambda row: _Row(frame, rows, row).statement(), kind, dtype=frame.index_dtype
    )


class _Row:
    def __init__(self, frame: Frame, rows: Rows, row: Expr) -> None:
        self.rows = rows
        self.row = row
        self.length = rows.length
        self.dtype = str(rows.source.dtype)
        self.index = frame.index_dtype
        itemsize = 4 if self.dtype == "float32" else 8
        self.lanes = min(frame.machine.vector_bytes // itemsize, UNIFORM, self.length // 4)
        self.made = Butterflies(self.lanes, self.dtype, self.index, rows.inverse)
        self.scratch = [
            [
                tirx.decl_buffer((self.length,), self.dtype, name="stage", data_alignment=64)
                for _ in ("real", "imaginary")
            ]
            for _ in range(2)
        ]

    def statement(self) -> Stmt:
        steps = [*strides(self.length)]
        by_twos = self.length.bit_length() % 2 == 0
        stages: list[Stmt] = []
        offset = 0
        for number, stride in enumerate(steps):
            is_last = number == len(steps) - 1 and not by_twos
            stages.append(self._stage(number, stride, offset, is_last))
            per = self.length // (4 * stride) if stride >= UNIFORM else self.length // 4
            offset += 6 * per
        if by_twos:
            stages.append(self._last_by_twos(len(steps)))
        allocations = [AllocBuffer(each) for pair in self.scratch for each in pair]
        return seq(*allocations, *stages)

    def _loaded(self, into: list[Stmt], number: int, first: Expr) -> Pair:
        """The numbers from ``first`` on, as stage ``number`` finds them."""
        if number:
            re, im = self.scratch[(number - 1) % 2]
            return self.made.held_pair(
                into, (lambda lane: re[first + lane], lambda lane: im[first + lane])
            )
        at = (self.row * self.length + first) * 2
        return self.made.read_numbers(into, self.rows.source, at)

    def _kept(self, into: list[Stmt], number: int, first: Expr, pair: Pair, last: bool) -> None:
        """Stores what stage ``number`` has made of the numbers from ``first`` on."""
        if not last:
            for memory, part in zip(self.scratch[number % 2], pair, strict=True):
                into.append(self.made.write(memory, first, part))
            return
        if self.rows.inverse:
            pair = self.made.scaled(into, pair, real(1 / self.length, self.dtype))
        at = (self.row * self.length + first) * 2
        self.made.write_numbers(into, self.rows.target, at, pair)

    def _stage(self, number: int, stride: int, offset: int, last: bool) -> Stmt:
        quarter = self.length // 4
        turns = stride < quarter  # elsewhere all factors are 1
        per = self.length // (4 * stride) if stride >= UNIFORM else quarter

        def factor(k: int, first: Expr) -> Pair:
            table = self.rows.table
            at = [offset + (2 * (k - 1) + part) * per for part in range(2)]
            if stride >= UNIFORM:
                p = tirx.truncdiv(first, const(stride, self.index))
                return lambda lane: table[p + at[0]], lambda lane: table[p + at[1]]
            return lambda lane: table[first + lane + at[0]], lambda lane: table[
                first + lane + at[1]
            ]

        def block(each: Expr) -> list[Stmt]:
            first = each * self.lanes
            made: list[Stmt] = []
            given = [self._loaded(made, number, first + k * quarter) for k in range(4)]
            results = []
            for k, result in enumerate(self.made.by_fours(made, given)):
                is_turned = k > 0 and turns
                results.append(
                    self.made.turned(made, result, factor(k, first)) if is_turned else result
                )
            if stride < self.lanes:
                results = self._zipped(made, results, stride)
                places = [first * 4 + k * self.lanes for k in range(4)]
            else:
                p = tirx.truncdiv(first, const(stride, self.index))
                places = [first + p * (3 * stride) + k * stride for k in range(4)]
            for place, result in zip(places, results, strict=True):
                self._kept(made, number, place, result, last)
            return made

        return loop(quarter // self.lanes, block, dtype=self.index)

    def _zipped(self, into: list[Stmt], results: Sequence[Pair], group: int) -> list[Pair]:
        """Four vectors zipped, ``group`` lanes staying together."""
        low, high = ZIPS[group]

        def four(vectors: Sequence[Lanes]) -> list[Lanes]:
            made = list(vectors)
            for _ in range(2):
                pairs = list(zip(made[:2], made[2:], strict=True))
                made = [
                    self.made.joined(into, half, *pair) for pair in pairs for half in (low, high)
                ]
            return made

        parts = [four([result[part] for result in results]) for part in range(2)]
        return list(zip(*parts, strict=True))

    def _last_by_twos(self, number: int) -> Stmt:
        half = self.length // 2

        def block(each: Expr) -> list[Stmt]:
            first = each * self.lanes
            made: list[Stmt] = []
            x, y = (self._loaded(made, number, first + k * half) for k in range(2))
            for k, result in enumerate(self.made.by_twos(made, x, y)):
                self._kept(made, number, first + k * half, result, True)
            return made

        return loop(half // self.lanes, block, dtype=self.index)
