"""Rounding to integers, signs, finiteness, and the larger and smaller of two."""

from __future__ import annotations

from tracejit.backends.tvm.cpu.llvm.builder import Value
from tracejit.backends.tvm.cpu.mathematics.vocabulary import (
    absolute,
    ceil,
    copy_sign,
    floor,
    maximum,
    minimum,
    reinterpret,
    round_away,
    round_even,
    select,
    to_bits,
    truncate,
)

__all__ = [
    "ceil",
    "combined_max",
    "combined_min",
    "floor",
    "is_finite",
    "max_",
    "min_",
    "round_away",
    "round_even",
    "sign",
    "truncate",
]


def sign(x: Value) -> Value:
    """-1, 0 or 1; a float's zero keeps its sign and NaN stays NaN."""
    if x.kind.is_float:
        return select(absolute(x) > 0.0, copy_sign(x.like(1.0), x), x)
    positive = select(x > 0, x.like(1), 0)
    return select(x < 0, -1, positive) if x.kind.is_signed else positive


def is_finite(x: Value) -> Value:
    """Whether x is neither infinite nor NaN."""
    return absolute(x) < float("inf")


def max_(x: Value, y: Value) -> Value:
    """The larger; of floats NaN if either is NaN, and -0 < +0."""
    return -_least(-x, -y) if x.kind.is_float else select(x > y, x, y)


def min_(x: Value, y: Value) -> Value:
    """The smaller; of floats NaN if either is NaN, and -0 < +0."""
    return _least(x, y) if x.kind.is_float else select(x < y, x, y)


def combined_max(x: Value, y: Value) -> Value:
    """The larger of two floats, as `max_` has it: an instruction that LLVM makes vectors of."""
    return maximum(x, y)


def combined_min(x: Value, y: Value) -> Value:
    """The smaller of two floats, as `min_` has it: an instruction that LLVM makes vectors of."""
    return minimum(x, y)


def _least(x: Value, y: Value) -> Value:
    """The smaller of two floats, as three instructions.

    Each choice takes its second operand where neither is less: both have one of two zeros, or NaN.
    Of zeros the sign is set if either has it, and what is NaN in one stays NaN.
    """
    either, other = select(x < y, x, y), select(y < x, y, x)
    return reinterpret(to_bits(either) | to_bits(other), x.kind)
