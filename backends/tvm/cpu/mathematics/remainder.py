"""Division and remainder of floats and integers, as XLA defines them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tracejit.backends.tvm.cpu.llvm.builder import Value
from tracejit.backends.tvm.cpu.llvm.kinds import FLOAT32, FLOAT64, KINDS, Kind
from tracejit.backends.tvm.cpu.mathematics.vocabulary import (
    absolute,
    convert,
    copy_sign,
    fma,
    reinterpret,
    repeat,
    select,
    truncate,
    unlikely,
)


def div(x: Value, y: Value) -> Value:
    """The quotient; of integers as XLA: truncated, -1 (all bits set) where y is 0, wrapping."""
    if x.kind.is_float:
        return x / y
    quotient = _quotient(x, _harmless(x, y))
    if x.kind.is_signed:
        quotient = select(y.equals(-1), 0 - x, quotient)
    return select(y.equals(0), -1, quotient)


def rem(x: Value, y: Value) -> Value:
    """``x - y trunc(x / y)``, exact, with the sign of x.

    Floats as C's fmod: NaN for an infinite x or a zero y. Integers as XLA: x where y is 0.
    """
    if x.kind.is_float:
        return _float_rem(x, y)
    divisor = _harmless(x, y)
    remainder = x - _quotient(x, divisor) * divisor
    return select(y.equals(0), x, remainder)


def _harmless(x: Value, y: Value) -> Value:
    """``y``, or 1 where dividing by it would trap."""
    traps = y.equals(0)
    if x.kind.is_signed:
        traps = traps | y.equals(-1)
    return select(traps, 1, y)


def _quotient(x: Value, y: Value) -> Value:
    """The truncated quotient of integers.

    Processors divide vectors of floats only, and a float of twice the bits decides correctly: the
    nearest float to an inexact quotient never reaches the next integer.
    """
    wide = {8: FLOAT32, 16: FLOAT32, 32: FLOAT64}.get(x.kind.bits)
    if wide is None:
        return x / y
    return convert(convert(x, wide) / convert(y, wide), x.kind)


def known_quotient(x: Value, multiplier: Value, shift: Value) -> Value:
    """The quotient of signed integers of n bits by d from 2 on, by a product.

    With ``shift`` = ceil(log2(d)) - 1 and ``multiplier`` = ceil(2**(n + shift) / d), the product of
    the multiplier and a number up to 2**(n - 1), without its last n + shift bits, is the quotient.
    """
    bits = x.kind.bits
    unsigned, wide = KINDS[f"uint{bits}"], KINDS[f"uint{2 * bits}"]
    sign = x >> (bits - 1)
    size = convert(reinterpret((x ^ sign) - sign, unsigned), wide)
    product = size * convert(reinterpret(multiplier, unsigned), wide)
    high = convert(product >> bits, unsigned) >> reinterpret(shift, unsigned)
    return (reinterpret(high, x.kind) ^ sign) - sign


def _float_rem(x: Value, y: Value) -> Value:
    a, b = absolute(x), absolute(y)
    quotient = a / b
    remainder = _subtract(a, truncate(quotient), b)
    remainder = select(a < b, a, remainder)  # also where b is infinite
    rare = ~(quotient < 2.0**x.kind.fraction)
    return copy_sign(unlikely(rare, lambda: [_long_rem(a, b)], [remainder])[0], x)


def _subtract(a: Value, q: Value, b: Value) -> Value:
    """``a - q b`` for q at most one above the truncated quotient of a and b; exact."""
    difference = fma(-q, b, a)
    return select(difference < 0.0, difference + b, difference)


def _long_rem(x: Value, y: Value) -> Value:
    """The remainder of non-negative numbers by long division, 50 bits of the quotient at a time."""
    is_valid = (x < math.inf) & (y > 0.0)
    a = _widened(select(is_valid, x, 0.0))
    b = _widened(select(is_valid, y, 1.0))

    def step(state: Sequence[Value]) -> tuple[Value, Sequence[Value]]:
        (rest,) = state
        shift = _exponent(rest) - _exponent(b) - 50
        shift = select(shift > 0, select(shift < 2000, shift, 2000), 0)
        half = shift >> 1
        divisor = b * _power_of_two(half) * _power_of_two(shift - half)
        rest = _subtract(rest, truncate(rest / divisor), divisor)
        return rest >= b, (rest,)

    remainder = repeat(step, [a])[0]
    return select(is_valid, _narrowed(remainder, x.kind), math.nan)


def _widened(x: Value) -> Value:
    return convert(x, FLOAT64) if x.kind is FLOAT32 else x


def _narrowed(x: Value, kind: Kind) -> Value:
    return convert(x, FLOAT32) if kind is FLOAT32 else x


def _exponent(x: Value) -> Value:
    """The exponent of a non-negative f64 as an integer, of subnormal numbers too."""
    is_subnormal = x < FLOAT64.smallest_normal
    normal = select(is_subnormal, x * 2.0**54, x)
    field = reinterpret(normal, KINDS["uint64"]) >> FLOAT64.fraction
    return reinterpret(field, FLOAT64.integer) - select(is_subnormal, field.like(54), 0)


def _power_of_two(n: Value) -> Value:
    return reinterpret((n + FLOAT64.bias) << FLOAT64.fraction, FLOAT64)
