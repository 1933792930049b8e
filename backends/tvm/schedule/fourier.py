"""Fourier transforms of rows whose length is a power of two, in vectors without a bit reversal.

Stockham's algorithm by fours: a stage of stride s reads x[q + s (p + k m)] and writes
y[q + s (4 p + k)] for k in 0 … 3, where q < s, p < m and 4 m s is the length. Reading is contiguous
in j = q + s p; so is writing, once a vector's lanes have one p. Before that, its lanes are zipped.
Where the logarithm of the length is odd, a stage by twos comes last.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tracejit.backends.tvm.mathematics.lanes import ZIPS, Joined, even, odd
from tracejit.backends.tvm.schedule.frame import Frame
from tracejit.backends.tvm.schedule.pointwise import PARALLEL_WORK
from tracejit.backends.tvm.tir import (
    PARALLEL,
    SERIAL,
    VECTORIZED,
    AllocBuffer,
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

# Shorter rows have too few vectors, longer ones too much scratch memory for the stack.
SHORTEST, LONGEST = 16, 4096
# From this stride on all lanes of a vector have the same factor, whatever the processor.
UNIFORM = 16


def strides(length: int) -> list[int]:
    """The strides of the stages by fours."""
    return [4**stage for stage in range((length.bit_length() - 1) // 2)]


@functools.lru_cache(maxsize=64)
def factors(length: int, inverse: bool) -> np.ndarray:
    """The factors of all stages in f64: for each stage three arrays, real and imaginary parts.

    A stage of stride s has length / 4 of each, or one for each p from `UNIFORM` on.
    """
    parts = []
    for s in strides(length):
        m = length // (4 * s)
        p = np.arange(m) if s >= UNIFORM else np.arange(length // 4) // s
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
    kind = PARALLEL if work >= PARALLEL_WORK and rows.count > 1 else SERIAL
    return loop(
        rows.count, lambda row: _Row(frame, rows, row).statement(), kind, dtype=frame.index_dtype
    )


Lanes = Callable[[Expr], Expr]


class _Row:
    def __init__(self, frame: Frame, rows: Rows, row: Expr) -> None:
        self.rows = rows
        self.row = row
        self.length = rows.length
        self.dtype = str(rows.source.dtype)
        self.index = frame.index_dtype
        itemsize = 4 if self.dtype == "float32" else 8
        self.lanes = min(frame.machine.vector_bytes // itemsize, UNIFORM, self.length // 4)
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

    # Vectors in registers

    def _held(self, into: list[Stmt], vector: Lanes) -> Lanes:
        local = buffer("v", (self.lanes,), self.dtype, scope="local")
        into += [
            AllocBuffer(local),
            self._lanes_of(lambda lane: store(local, lane, vector(lane))),
        ]
        return lambda lane: local[lane]

    def _held_pair(self, into: list[Stmt], pair: tuple[Lanes, Lanes]) -> tuple[Lanes, Lanes]:
        return self._held(into, pair[0]), self._held(into, pair[1])

    def _joined(self, into: list[Stmt], how: Joined, a: Lanes, b: Lanes) -> Lanes:
        return self._held(into, lambda lane: how(a(lane), b(lane), self.dtype))

    def _loaded(self, into: list[Stmt], number: int, first: Expr) -> tuple[Lanes, Lanes]:
        """The numbers from ``first`` on, as stage ``number`` finds them."""
        if number:
            re, im = self.scratch[(number - 1) % 2]
            return self._held_pair(
                into, (lambda lane: re[first + lane], lambda lane: im[first + lane])
            )
        at = (self.row * self.length + first) * 2
        low = self._held(into, lambda lane: self.rows.source[at + lane])
        high = self._held(into, lambda lane: self.rows.source[at + self.lanes + lane])
        return self._joined(into, even, low, high), self._joined(into, odd, low, high)

    def _kept(
        self, into: list[Stmt], number: int, first: Expr, pair: tuple[Lanes, Lanes], last: bool
    ) -> None:
        """Stores what stage ``number`` has made of the numbers from ``first`` on."""
        if not last:
            for memory, part in zip(self.scratch[number % 2], pair, strict=True):
                into.append(self._vector(memory, first, part))
            return
        if self.rows.inverse:
            scale = real(1 / self.length, self.dtype)
            re, im = pair
            pair = self._held_pair(
                into, (lambda lane: re(lane) * scale, lambda lane: im(lane) * scale)
            )
        low, high = ZIPS[1]
        at = (self.row * self.length + first) * 2
        for n, half in enumerate((low, high)):
            mixed = self._joined(into, half, *pair)
            into.append(self._vector(self.rows.target, at + n * self.lanes, mixed))

    def _vector(self, memory: Buffer, first: Expr, part: Lanes) -> Stmt:
        return self._lanes_of(lambda lane: store(memory, first + lane, part(lane)))

    def _lanes_of(self, body: Callable[[Expr], Stmt]) -> Stmt:
        return loop(self.lanes, body, VECTORIZED, dtype=self.index)

    # Stages

    def _stage(self, number: int, stride: int, offset: int, last: bool) -> Stmt:
        quarter = self.length // 4
        turns = stride < quarter  # elsewhere all factors are 1
        per = self.length // (4 * stride) if stride >= UNIFORM else quarter

        def factor(k: int, first: Expr) -> tuple[Lanes, Lanes]:
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
            for k, (re, im) in enumerate(self._by_fours(made, given)):
                if k and turns:
                    re, im = self._turned(made, (re, im), factor(k, first))
                results.append((re, im))
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

    def _turned(
        self, into: list[Stmt], x: tuple[Lanes, Lanes], by: tuple[Lanes, Lanes]
    ) -> tuple[Lanes, Lanes]:
        """The product of complex numbers."""
        return self._held_pair(
            into,
            (
                lambda lane: x[0](lane) * by[0](lane) - x[1](lane) * by[1](lane),
                lambda lane: x[0](lane) * by[1](lane) + x[1](lane) * by[0](lane),
            ),
        )

    def _by_fours(
        self, into: list[Stmt], given: Sequence[tuple[Lanes, Lanes]]
    ) -> list[tuple[Lanes, Lanes]]:
        """The transform of four numbers."""
        a, b, c, d = given

        def both(x: tuple[Lanes, Lanes], y: tuple[Lanes, Lanes], sign: int) -> tuple[Lanes, Lanes]:
            return self._held_pair(
                into,
                (
                    lambda lane: x[0](lane) + y[0](lane) if sign > 0 else x[0](lane) - y[0](lane),
                    lambda lane: x[1](lane) + y[1](lane) if sign > 0 else x[1](lane) - y[1](lane),
                ),
            )

        def turned(
            x: tuple[Lanes, Lanes], y: tuple[Lanes, Lanes], sign: int
        ) -> tuple[Lanes, Lanes]:
            """x + sign i y."""
            return self._held_pair(
                into,
                (
                    lambda lane: x[0](lane) - y[1](lane) if sign > 0 else x[0](lane) + y[1](lane),
                    lambda lane: x[1](lane) + y[0](lane) if sign > 0 else x[1](lane) - y[0](lane),
                ),
            )

        sum_ac, less_ac = both(a, c, 1), both(a, c, -1)
        sum_bd, less_bd = both(b, d, 1), both(b, d, -1)
        sign = 1 if self.rows.inverse else -1
        return [
            both(sum_ac, sum_bd, 1),
            turned(less_ac, less_bd, sign),
            both(sum_ac, sum_bd, -1),
            turned(less_ac, less_bd, -sign),
        ]

    def _zipped(
        self, into: list[Stmt], results: Sequence[tuple[Lanes, Lanes]], group: int
    ) -> list[tuple[Lanes, Lanes]]:
        """Four vectors zipped, ``group`` lanes staying together."""
        low, high = ZIPS[group]

        def four(vectors: Sequence[Lanes]) -> list[Lanes]:
            made = list(vectors)
            for _ in range(2):
                pairs = list(zip(made[:2], made[2:], strict=True))
                made = [self._joined(into, half, *pair) for pair in pairs for half in (low, high)]
            return made

        parts = [four([result[part] for result in results]) for part in range(2)]
        return list(zip(*parts, strict=True))

    def _last_by_twos(self, number: int) -> Stmt:
        half = self.length // 2

        def block(each: Expr) -> list[Stmt]:
            first = each * self.lanes
            made: list[Stmt] = []
            x, y = (self._loaded(made, number, first + k * half) for k in range(2))
            total = self._held_pair(
                made, (lambda lane: x[0](lane) + y[0](lane), lambda lane: x[1](lane) + y[1](lane))
            )
            rest = self._held_pair(
                made, (lambda lane: x[0](lane) - y[0](lane), lambda lane: x[1](lane) - y[1](lane))
            )
            self._kept(made, number, first, total, True)
            self._kept(made, number, first + half, rest, True)
            return made

        return loop(half // self.lanes, block, dtype=self.index)
