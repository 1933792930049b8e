"""Maxima and minima of many floats in the fewest instructions: NaN and the sign of zero apart.

    best, seen = [-inf], extremes.seen(-inf)
    best, seen = extremes.step(loaded, best, seen)      # for each group of vectors
    value = extremes.value(best, seen)

x86's instruction for the greater of two floats ignores NaN and the sign of zero. So one vector
keeps the lanes that have seen a NaN, for two vectors by one comparison, and one the sign bits
that all zeros have in common: three instructions for a vector, where a rank takes five.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tracejit.backends.tvm.cpu.llvm.builder import Value
from tracejit.backends.tvm.cpu.llvm.kinds import BOOL, Kind
from tracejit.backends.tvm.cpu.machine import Machine
from tracejit.backends.tvm.cpu.mathematics.vocabulary import reinterpret, select, to_bits


@dataclass(frozen=True)
class FloatExtremes:
    """The maximum, or the minimum, of floats of a kind; all methods are lane by lane."""

    kind: Kind
    is_least: bool

    @staticmethod
    def registers(group: int, lanes: int, kind: Kind, machine: Machine) -> int:
        """What a step over ``group`` vectors holds: loaded, the best, NaN in pairs, signs."""
        vectors = 2 * group + -(-group // 2) + 1
        return vectors * -(-lanes * kind.bits // 8 // machine.vector_bytes)

    def seen(self, identity: Value, group: int) -> list[Value]:
        """What is known of no vectors: the sign bit of zeros, then the lanes with a NaN for each
        pair in a group. Pairs are apart because LLVM would pack their masks to combine them.
        """
        nothing = to_bits(identity)
        pairs = -(-group // 2)
        return [nothing.like(0 if self.is_least else -1), *[nothing.like(0)] * pairs]

    def step(
        self, loaded: Sequence[Value], best: Sequence[Value], seen: Sequence[Value]
    ) -> tuple[list[Value], list[Value]]:
        """As many more vectors combined with as many partial results, and with what is seen."""
        signs, *has_nan = seen
        others = [*loaded[1::2], loaded[-1]]
        for number, (x, y) in enumerate(zip(loaded[::2], others, strict=False)):
            either = x.function.emit(BOOL, f"fcmp uno {x.typed}, {y.text}")
            has_nan[number] = select(either, -1, has_nan[number])
        both: Callable[[Value, Value], Value] = operator.or_ if self.is_least else operator.and_
        signs = functools.reduce(both, map(to_bits, loaded), signs)
        return [self.better(x, b) for x, b in zip(loaded, best, strict=True)], [signs, *has_nan]

    def better(self, x: Value, best: Value) -> Value:
        """One instruction of x86: ``best`` where ``x`` is NaN."""
        return select(x < best if self.is_least else x > best, x, best)

    def value(self, best: Value, seen: Sequence[Value]) -> Value:
        """The extreme itself: NaN if there was one, and -0 < +0."""
        signs, *has_nan = seen
        sign_bit = -1 << (self.kind.bits - 1)
        found = select(best.equals(0.0), signs & sign_bit, to_bits(best))
        return reinterpret(functools.reduce(operator.or_, has_nan, found), self.kind)
