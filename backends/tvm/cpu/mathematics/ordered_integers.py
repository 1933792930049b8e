"""Order-preserving integers (ranks) of floats, for fast maximum and minimum reductions.

The maximum of two floats takes six instructions if NaN and the sign of zero are to be right; the
maximum of two ranks is one. Ranking an element costs three, so that a reduction over many saves a
third. Ranks of maxima rise with the float, those of minima fall, and NaN has the highest. Ranks
stay in the floats' registers:

    bits of x             -NaN         -inf … -0 | +0 … +inf    +NaN
    rank for maxima       wraps to     lowest  …  rising         highest
                          the top
"""

from __future__ import annotations

from tracejit.backends.tvm.cpu.llvm.builder import Value
from tracejit.backends.tvm.cpu.llvm.kinds import Kind
from tracejit.backends.tvm.cpu.mathematics.vocabulary import reinterpret, select, to_bits


def rank_for_maximum(x: Value) -> Value:
    """The rank of ``x``, as the bits of a float: lowest for -inf, highest for NaN."""
    return reinterpret(_ordered(to_bits(x)) - _below_infinity(x.kind), x.kind)


def rank_for_minimum(x: Value) -> Value:
    """The rank of ``x`` for minima: lowest for +inf, highest for NaN."""
    return reinterpret(_mirror(x.kind) - _ordered(to_bits(x)), x.kind)


def maximum_of_rank(rank: Value) -> Value:
    """The float of a rank for maxima."""
    return reinterpret(_ordered(to_bits(rank) + _below_infinity(rank.kind)), rank.kind)


def minimum_of_rank(rank: Value) -> Value:
    """The float of a rank for minima."""
    return reinterpret(_ordered(_mirror(rank.kind) - to_bits(rank)), rank.kind)


def higher_rank(x: Value, y: Value) -> Value:
    """The higher of two ranks."""
    a, b = to_bits(x), to_bits(y)
    return reinterpret(select(a > b, a, b), x.kind)


def _ordered(bits: Value) -> Value:
    """An integer that rises with the float of these bits; the function is its own inverse."""
    greatest = (1 << (bits.kind.bits - 1)) - 1
    return bits ^ ((bits >> (bits.kind.bits - 1)) & greatest)


def _below_infinity(kind: Kind) -> int:
    """The number of negative NaNs: subtracting it wraps them around to the top."""
    return (1 << kind.fraction) - 1


def _mirror(kind: Kind) -> int:
    return -1 - _below_infinity(kind)
