"""Complex numbers in vectors, held in registers: what Fourier transforms are made of.

A pair is two vectors, of real and of imaginary parts; a vector is a function from its lane. What
is held is written to a list of statements that the caller puts in front of what uses it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tracejit.backends.tvm.mathematics.lanes import ZIPS, Joined, even, odd
from tracejit.backends.tvm.tir import (
    VECTORIZED,
    AllocBuffer,
    Buffer,
    Expr,
    Stmt,
    buffer,
    loop,
    store,
)

Lanes = Callable[[Expr], Expr]
Pair = tuple[Lanes, Lanes]


class Butterflies:
    """Vectors of ``lanes`` numbers of ``dtype``; ``inverse`` says which way transforms turn."""

    def __init__(self, lanes: int, dtype: str, index: str, inverse: bool) -> None:
        self.lanes = lanes
        self.dtype = dtype
        self.index = index
        self.inverse = inverse

    def lanes_of(self, body: Callable[[Expr], Stmt]) -> Stmt:
        """``body`` of all lanes at once."""
        return loop(self.lanes, body, VECTORIZED, dtype=self.index)

    def write(self, memory: Buffer, first: Expr, part: Lanes) -> Stmt:
        """A vector stored from ``first`` on."""
        return self.lanes_of(lambda lane: store(memory, first + lane, part(lane)))

    def held(self, into: list[Stmt], vector: Lanes) -> Lanes:
        local = buffer("v", (self.lanes,), self.dtype, scope="local")
        into += [AllocBuffer(local), self.lanes_of(lambda lane: store(local, lane, vector(lane)))]
        return lambda lane: local[lane]

    def held_pair(self, into: list[Stmt], pair: Pair) -> Pair:
        return self.held(into, pair[0]), self.held(into, pair[1])

    def joined(self, into: list[Stmt], how: Joined, a: Lanes, b: Lanes) -> Lanes:
        return self.held(into, lambda lane: how(a(lane), b(lane), self.dtype))

    def read_numbers(self, into: list[Stmt], memory: Buffer, at: Expr) -> Pair:
        """Complex numbers whose parts lie side by side, from item ``at`` on."""
        low = self.held(into, lambda lane: memory[at + lane])
        high = self.held(into, lambda lane: memory[at + self.lanes + lane])
        return self.joined(into, even, low, high), self.joined(into, odd, low, high)

    def write_numbers(self, into: list[Stmt], memory: Buffer, at: Expr, pair: Pair) -> None:
        """The same, stored."""
        for n, half in enumerate(ZIPS[1]):
            mixed = self.joined(into, half, *pair)
            into.append(self.write(memory, at + n * self.lanes, mixed))

    def scaled(self, into: list[Stmt], x: Pair, scale: Expr) -> Pair:
        return self.held_pair(
            into, (lambda lane: x[0](lane) * scale, lambda lane: x[1](lane) * scale)
        )

    def turned(self, into: list[Stmt], x: Pair, by: Pair) -> Pair:
        """The product of complex numbers."""
        return self.held_pair(
            into,
            (
                lambda lane: x[0](lane) * by[0](lane) - x[1](lane) * by[1](lane),
                lambda lane: x[0](lane) * by[1](lane) + x[1](lane) * by[0](lane),
            ),
        )

    def by_twos(self, into: list[Stmt], x: Pair, y: Pair) -> tuple[Pair, Pair]:
        """The transform of two numbers: their sum and their difference."""
        return self._both(into, x, y, 1), self._both(into, x, y, -1)

    def by_fours(self, into: list[Stmt], given: Sequence[Pair]) -> list[Pair]:
        """The transform of four numbers."""
        a, b, c, d = given
        sum_ac, less_ac = self.by_twos(into, a, c)
        sum_bd, less_bd = self.by_twos(into, b, d)
        sign = 1 if self.inverse else -1
        return [
            self._both(into, sum_ac, sum_bd, 1),
            self._ahead(into, less_ac, less_bd, sign),
            self._both(into, sum_ac, sum_bd, -1),
            self._ahead(into, less_ac, less_bd, -sign),
        ]

    def _both(self, into: list[Stmt], x: Pair, y: Pair, sign: int) -> Pair:
        """x + y or x - y."""
        return self.held_pair(
            into,
            (
                lambda lane: x[0](lane) + y[0](lane) if sign > 0 else x[0](lane) - y[0](lane),
                lambda lane: x[1](lane) + y[1](lane) if sign > 0 else x[1](lane) - y[1](lane),
            ),
        )

    def _ahead(self, into: list[Stmt], x: Pair, y: Pair, sign: int) -> Pair:
        """x + sign i y."""
        return self.held_pair(
            into,
            (
                lambda lane: x[0](lane) - y[1](lane) if sign > 0 else x[0](lane) + y[1](lane),
                lambda lane: x[1](lane) + y[0](lane) if sign > 0 else x[1](lane) - y[0](lane),
            ),
        )
