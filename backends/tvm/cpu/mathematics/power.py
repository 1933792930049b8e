"""pow: of floats by a logarithm in double-float precision, of integers by squaring."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tracejit.backends.tvm.cpu.llvm.builder import Value
from tracejit.backends.tvm.cpu.llvm.kinds import FLOAT32, FLOAT64, KINDS
from tracejit.backends.tvm.cpu.mathematics.exponential import NORMAL, Exponent, exp
from tracejit.backends.tvm.cpu.mathematics.exponential import reduced as exponent_of
from tracejit.backends.tvm.cpu.mathematics.logarithm import (
    exponent_as_float,
    is_unusual,
    log,
    split,
)
from tracejit.backends.tvm.cpu.mathematics.vocabulary import (
    absolute,
    clamp,
    convert,
    exact_product,
    fma,
    polynomial,
    reinterpret,
    repeat,
    select,
    to_bits,
    truncate,
    unlikely,
)

# log2(m) / s in powers of s**2, where s = (m - 1) / (m + 1); relative error below 2**-45.
LOG2_SERIES = (
    2.88539008177785,
    0.9617966941133053,
    0.5770779423770301,
    0.41220925104196576,
    0.31990575525048204,
    0.2828992827037053,
)
# 2**r in powers of r, |r| <= 1/2; relative error below 2**-34.
EXP2_SERIES = (
    0.9999999999616866,
    0.6931471807284258,
    0.24022651198188397,
    0.0555041035345891,
    0.009618027249855008,
    0.0013333922566706262,
    0.00015469292185443676,
    1.5201920209074763e-05,
)

# (log(m) - 2 s - 2/3 s**3) / s**5 in powers of s**2; the error relative to log(m) is below 2**-73.
LOG_TAIL = (
    0.3999999999999998,
    0.2857142857144379,
    0.22222222217807455,
    0.18181818841504027,
    0.15384558607344814,
    0.1333625752566389,
    0.11675921405859936,
    0.11980601423683872,
)
TWO_THIRDS = (0.6666666666666666, 3.700743415417188e-17)
# ln 2 as a float whose product with an exponent is exact, and the rest.
LN2 = (0.6931471803691238, 1.9082149292705877e-10)


def pow_(x: Value, y: Value) -> Value:
    """x**y, C's results at zeros, infinities, NaN and for negative x.

    Within 1 ulp in f32 and 1.5 ulp in f64. For integers as XLA: wrapping, and with a negative
    exponent 0 unless x is 1 or -1.
    """
    if not x.kind.is_float:
        return _integer_pow(x, y)
    return _pow_f32(x, y) if x.kind is FLOAT32 else _pow_f64(x, y)


def fast_pow(x: Value, y: Value) -> Value:
    """``exp(y log(x))`` with one rounding of the product: within 2 + 3 |y log(x)| ulp.

    Zeros, infinities, NaN and negative x still give C's results.
    """
    if not x.kind.is_float:
        return pow_(x, y)
    t = y * log(x)
    value = exp(t)
    rare = ~((x > 0.0) & (x < math.inf) & (absolute(t) < math.inf))
    return unlikely(rare, lambda: [pow_(x, y)], [value])[0]


def _pow_f32(x: Value, y: Value) -> Value:
    size = convert(absolute(x), FLOAT64)
    exponent, m = split(size)
    f = m - 1.0
    s = f / (f + 2.0)
    log2 = fma(s, polynomial(s * s, LOG2_SERIES), exponent_as_float(exponent, m))
    t = convert(y, FLOAT64) * log2
    inside = clamp(t, -200.0, 200.0)
    magic = 1.5 * 2.0**52  # the sum's low bits are the nearest integer
    shifted = inside + magic
    r = inside - (shifted - magic)
    scale = reinterpret((to_bits(shifted) << 52) + (FLOAT64.bias << 52), FLOAT64)
    value = convert(polynomial(r, EXP2_SERIES) * scale, FLOAT32)
    rare = ~((x > 0.0) & (x < math.inf) & (absolute(t) < math.inf))
    return unlikely(rare, lambda: [_special(x, y, value)], [value])[0]


def _pow_f64(x: Value, y: Value) -> Value:
    usual, t = _exp_of_product(x, y, x.like(0.0))
    value = usual.exp()
    rare = is_unusual(x) | ~(absolute(t) < NORMAL["float64"])

    def special() -> list[Value]:
        size = absolute(x)
        is_subnormal = size < FLOAT64.smallest_normal
        scaled = select(is_subnormal, size * 2.0**54, size)
        doublings = select(is_subnormal, x.like(-54.0), 0.0)
        anywhere, exponent = _exp_of_product(scaled, y, doublings)
        return [_special(x, y, anywhere.exp_anywhere(exponent))]

    return unlikely(rare, special, [value])[0]


def _exp_of_product(x: Value, y: Value, doublings: Value) -> tuple[Exponent, Value]:
    """e**t and t, where t is y times the logarithm of ``x 2**doublings``; x normal and positive."""
    high, low = _long_log(x, doublings)
    t, t_low = exact_product(y, high)
    return exponent_of(t, fma(y, low, t_low)), t


def _long_log(x: Value, doublings: Value) -> tuple[Value, Value]:
    """The logarithm of ``x 2**doublings`` as the sum of two f64."""
    exponent, m = split(x)
    e = exponent_as_float(exponent, m) + doublings
    f = m - 1.0
    divisor = f + 2.0
    divisor_low = f - (divisor - 2.0)
    reciprocal = 1.0 / divisor
    s = f * reciprocal
    s_low = fma(-s, divisor_low, fma(-s, divisor, f)) * reciprocal
    square, square_low = exact_product(s, s)
    square_low = fma(s + s, s_low, square_low)
    cube, cube_low = exact_product(s, square)
    cube_low = fma(s_low, square, fma(s, square_low, cube_low))
    third, third_low = exact_product(cube, TWO_THIRDS[0])
    third_low = fma(cube_low, TWO_THIRDS[0], fma(cube, TWO_THIRDS[1], third_low))
    tail = fma(cube * square, polynomial(square, LOG_TAIL), third_low)
    # e ln 2 + 2 s + 2/3 s**3 from the largest to the smallest, each sum with what it loses.
    whole = e * LN2[0]
    first = whole + (s + s)
    lost = (whole - first) + (s + s)
    second = first + third
    lost = ((first - second) + third) + lost
    rest = lost + fma(e, LN2[1], fma(s_low, 2.0, tail))
    total = second + rest
    return total, (second - total) + rest


def _special(x: Value, y: Value, value: Value) -> Value:
    """x**y for every x and y, given |x|**y where x is finite and not 0."""
    size = absolute(x)
    y_infinite = absolute(y).equals(math.inf)
    x_infinite = size.equals(math.inf)
    extreme = y_infinite | x_infinite | size.equals(0.0)
    vanishes = (size > 1.0) ^ (y > 0.0)
    value = select(extreme, select(vanishes, x.like(0.0), math.inf), value)
    is_integer = truncate(y).equals(y)
    half = y * 0.5
    is_odd = is_integer & truncate(half).differs(half)
    value = select((x < 0.0) & ~x_infinite & ~is_integer, math.nan, value)
    value = select((to_bits(x) < 0) & is_odd, -value, value)
    value = select(x.is_nan | y.is_nan, math.nan, value)
    is_one = x.equals(1.0) | y.equals(0.0) | (x.equals(-1.0) & y_infinite)
    return select(is_one, 1.0, value)


def _integer_pow(x: Value, y: Value) -> Value:
    unsigned = KINDS[f"uint{x.kind.bits}"] if x.kind.bits > 1 else x.kind

    def step(state: Sequence[Value]) -> tuple[Value, Sequence[Value]]:
        product, factor, exponent = state
        product = select((exponent & 1).differs(0), product * factor, product)
        exponent = exponent >> 1
        return exponent.differs(0), (product, factor * factor, exponent)

    product = repeat(step, [x.like(1), x, reinterpret(y, unsigned)])[0]
    if not x.kind.is_signed:
        return product
    is_odd = (y & 1).differs(0)
    alternating = select(is_odd, x, 1)
    inverse = select(x.equals(1), 1, select(x.equals(-1), alternating, 0))
    return select(y < 0, inverse, product)
