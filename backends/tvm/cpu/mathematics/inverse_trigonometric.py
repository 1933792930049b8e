"""Vector formulas of asin, acos, atan and atan2."""

from __future__ import annotations

import math

from tracejit.backends.tvm.cpu.llvm.builder import Value
from tracejit.backends.tvm.cpu.mathematics.vocabulary import (
    absolute,
    copy_sign,
    fma,
    polynomial,
    select,
    sqrt,
    to_bits,
)

# Angles as sums of two floats.
HALF_PI = {
    "float32": (1.5707964, -4.371139e-08),
    "float64": (1.5707963267948966, 6.123233995736766e-17),
}
QUARTER_PI = {
    "float32": (0.7853982, -2.1855694e-08),
    "float64": (0.7853981633974483, 3.061616997868383e-17),
}

# (asin(y) / y - 1) / y**2 in powers of y**2, |y| <= 1/2; the error relative to asin(y) is below
# 2**-27 and 2**-55.
ASIN_TAIL = {
    "float32": (0.16666754, 0.07495277, 0.045471452, 0.024178796, 0.0421625),
    "float64": (
        0.16666666666665383,
        0.07500000000339009,
        0.04464285682845282,
        0.030381959087871727,
        0.022371759908364295,
        0.01735966982449209,
        0.013885627905091456,
        0.01216641639983744,
        0.006540733643033886,
        0.019492056167347584,
        -0.016166016595611923,
        0.03187169189197851,
    ),
}
# (atan(t) / t - 1) / t**2 in powers of t**2, |t| <= tan(pi/8); below 2**-30 and 2**-59.
ATAN_TAIL = {
    "float32": (-0.33333316, 0.1999853, -0.14244427, 0.10599444, -0.0609074),
    "float64": (
        -0.333333333333332,
        0.19999999999953605,
        -0.14285714280189102,
        0.11111110782864712,
        -0.09090897737589952,
        0.07692059834885814,
        -0.06663099681410345,
        0.05847857994322988,
        -0.050391679470498246,
        0.038061230944003106,
        -0.017903745063261218,
    ),
}

_TAN_EIGHTH = math.tan(math.pi / 8)


def _asin_parts(x: Value) -> tuple[Value, Value, Value]:
    """Whether |x| > 1/2, y, and asin(y) - y: y is x itself or sqrt((1 - |x|) / 2)."""
    size = absolute(x)
    is_large = size > 0.5
    square = select(is_large, fma(size, -0.5, 0.5), x * x)
    y = select(is_large, sqrt(square), x)
    return is_large, y, y * (square * polynomial(square, ASIN_TAIL[x.kind.name]))


def _minus_twice(high: float, low: float, y: Value, rest: Value) -> Value:
    """``high + low - 2 (y + rest)``, where ``high`` is not below 2 y."""
    first = fma(y, -2.0, high)
    return first + fma(rest, -2.0, fma(y, -2.0, high - first) + low)


def asin(x: Value) -> Value:
    """The arc sine, within 1.5 ulp; NaN outside [-1, 1]."""
    high, low = HALF_PI[x.kind.name]
    is_large, y, rest = _asin_parts(x)
    small = y + rest
    # pi/2 - 2 asin(y)
    large = _minus_twice(high, low, y, rest)
    return copy_sign(select(is_large, large, small), x)


def acos(x: Value) -> Value:
    """The arc cosine, within 1.5 ulp; NaN outside [-1, 1]."""
    high, low = HALF_PI[x.kind.name]
    is_large, y, rest = _asin_parts(x)
    near_one = (y + rest) * 2.0
    # pi - 2 asin(y), and pi/2 - asin(x)
    near_minus_one = _minus_twice(2.0 * high, 2.0 * low, y, rest)
    small = high - (y - (low - rest))
    return select(is_large, select(x < 0.0, near_minus_one, near_one), small)


def _atan_of_quotient(over: Value, under: Value) -> Value:
    """atan(over / under) for non-negative numbers, not both 0 and far from overflow."""
    name = over.kind.name
    is_steep = over > under
    large, small = select(is_steep, over, under), select(is_steep, under, over)
    # atan(q) = pi/4 + atan((q - 1) / (q + 1)) = pi/2 - atan(1 / q)
    is_middle = small > large * _TAN_EIGHTH
    difference, total = small - large, small + large
    numerator = select(is_middle, difference, small)
    denominator = select(is_middle, total, large)
    numerator_low = select(is_middle, small - (difference + large), 0.0)
    denominator_low = select(is_middle, small - (total - large), 0.0)
    reciprocal = 1.0 / denominator
    t = numerator * reciprocal
    lacking = fma(-t, denominator, numerator) + fma(-t, denominator_low, numerator_low)
    square = t * t
    rest = fma(t * square, polynomial(square, ATAN_TAIL[name]), lacking * reciprocal)
    (half, half_low), (quarter, quarter_low) = HALF_PI[name], QUARTER_PI[name]
    base = select(is_middle, t.like(quarter), select(is_steep, t.like(half), 0.0))
    base_low = select(is_middle, t.like(quarter_low), select(is_steep, t.like(half_low), 0.0))
    t, rest = select(is_steep, -t, t), select(is_steep, -rest, rest)
    angle = base + t
    return angle + (((base - angle) + t) + (rest + base_low))


def atan(x: Value) -> Value:
    """The arc tangent, within 1 ulp."""
    size = absolute(x)
    limit = 2.0**100  # pi/2 from far below here; lets NaN through
    return copy_sign(_atan_of_quotient(select(size > limit, limit, size), x.like(1.0)), x)


def atan2(y: Value, x: Value) -> Value:
    """The angle of the point (x, y), within 1.5 ulp; C's results at zeros and infinities."""
    kind = x.kind
    over, under = absolute(y), absolute(x)
    # Infinity over or under a number is 1/0 or 0/1 (a NaN stays one), infinity over itself 1/1.
    over_infinite, under_infinite = over.equals(math.inf), under.equals(math.inf)
    over, under = (
        select(over_infinite, 1.0, select(under_infinite, over * 0.0, over)),
        select(under_infinite, 1.0, select(over_infinite, under * 0.0, under)),
    )
    # Into a range where the reciprocal of the larger one is a normal number; 0/1 for 0/0.
    far = 2.0 ** (kind.bias - 27)
    larger = select(over > under, over, under)
    factor = select(larger > far, x.like(1.0 / far), select(larger < 1.0 / far, x.like(far), 1.0))
    under = select(larger.equals(0.0), 1.0, under * factor)
    angle = _atan_of_quotient(over * factor, under)
    high, low = (2.0 * part for part in HALF_PI[kind.name])
    opposite = high - angle
    opposite = opposite + (((high - opposite) - angle) + low)
    return copy_sign(select(to_bits(x) < 0, opposite, angle), y)
