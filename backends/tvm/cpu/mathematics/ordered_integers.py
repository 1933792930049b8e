"""Floats as integers in the order of maxima and minima, kept in the floats' own registers.

The maximum of two floats takes six instructions where neither NaN nor the sign of zero may get
lost; that of two ranks is one. An element costs three to rank, so that a reduction of many saves a
third. Ranks of maxima rise with the float, those of minima fall, and NaN has the highest:

    bits of x             -NaN         -inf … -0 | +0 … +inf    +NaN
    rank for maxima       wraps to     lowest  …  rising         highest
                          the top
"""

from __future__ import annotations

from tracejit.backends.tvm.cpu.llvm.builder import Value
from tracejit.backends.tvm.cpu.llvm.kinds import Kind
from tracejit.backends.tvm.cpu.mathematics.vocabulary import reinterpret, select, to_bits


def rank_for_maximum(x: Value) -> Value:
    """The rank of ``x``, as the bits of a float: lowest that of -inf, highest those of NaN."""
    return reinterpret(_ordered(to_bits(x)) - _below_infinity(x.kind), x.kind)


def rank_for_minimum(x: Value) -> Value:
    """The same with +inf as the lowest."""
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
    """The bits of a float as an integer that rises with it, or such an integer's bits again."""
    greatest = (1 << (bits.kind.bits - 1)) - 1
    return bits ^ ((bits >> (bits.kind.bits - 1)) & greatest)


def _below_infinity(kind: Kind) -> int:
    """How many NaN of negative sign there are: taken away, they wrap around to the top."""
    return (1 << kind.fraction) - 1


def _mirror(kind: Kind) -> int:
    return -1 - _below_infinity(kind)
