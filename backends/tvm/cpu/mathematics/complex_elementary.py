"""Exponentials, logarithms, powers and trigonometric functions of complex numbers.

Infinities and NaN follow C's annex G where it defines them.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tracejit.backends.tvm.cpu.llvm.builder import Value
from tracejit.backends.tvm.cpu.llvm.kinds import FLOAT32, FLOAT64
from tracejit.backends.tvm.cpu.mathematics import exponential, logarithm, trigonometric
from tracejit.backends.tvm.cpu.mathematics.complex_arithmetic import (
    Pair,
    choose,
    div,
    exponent_step,
    larger,
    mul,
    normaliser,
    sqrt_,
    square_magnitude,
    sum_of_products,
)
from tracejit.backends.tvm.cpu.mathematics.inverse_trigonometric import atan2
from tracejit.backends.tvm.cpu.mathematics.vocabulary import (
    absolute,
    convert,
    copy_sign,
    exact_sum,
    fma,
    select,
)


def exp(z: Pair) -> Pair:
    """e**z."""
    x, y = z
    near, far = exponential.reduced(x).factors(x)
    re = near * trigonometric.cos(y) * far
    im = near * trigonometric.sin(y) * far
    im = select(y.equals(0.0), y, im)
    # The angle of an infinite exponential is arbitrary: the result is 0 at -inf, an infinity at
    # inf.
    is_angle = absolute(y) < math.inf
    re = select(x.equals(math.inf) & ~is_angle, math.inf, re)
    vanishes = x.equals(-math.inf) & ~is_angle
    flat = select(y.is_nan, 0.0, copy_sign(x.like(0.0), y))
    return Pair(select(vanishes, 0.0, re), select(vanishes, flat, im))


def expm1(z: Pair) -> Pair:
    """e**z - 1, with the real part as expm1(x) cos(y) - 2 sin(y/2)**2."""
    x, y = z
    half = trigonometric.sin(y * 0.5)
    power = exp(z)
    small = fma(exponential.expm1(x), trigonometric.cos(y), half * half * -2.0)
    re = select(x < 1.0, small, power.re - 1.0)
    re = select(y.equals(0.0), exponential.expm1(x), re)
    return Pair(select(x.equals(-math.inf), -1.0, re), power.im)


def logistic(z: Pair) -> Pair:
    """1 / (1 + e**-z), or e**h / (2 cosh h) with h = z / 2 near the poles on the imaginary axis."""
    half = z.scaled(0.5)
    over, under = exp(half), cosh(half)
    size = 2.0 * sum_of_products(under.re, under.re, under.im, under.im)
    near = Pair(
        sum_of_products(over.re, under.re, over.im, under.im) / size,
        sum_of_products(over.im, under.re, -over.re, under.im) / size,
    )
    near = Pair(near.re, select(near.im.equals(0.0), copy_sign(near.im, z.im), near.im))
    # By whichever of t = e**z and e**-z is small: t / (1 + t), 1 / (1 + t)
    is_left = z.re < 0.0
    t = exp(choose(is_left, z, Pair(-z.re, -z.im)))
    beside = t.re + 1.0
    size = fma(beside, beside, t.im * t.im)
    left = Pair((t.re + fma(t.re, t.re, t.im * t.im)) / size, t.im / size)
    far = choose(is_left, left, Pair(beside / size, -t.im / size))
    return choose(absolute(z.re) > 1.0, far, near)


def log_magnitude(z: Pair) -> Value:
    """log|z|, to the precision of the result also where |z| is close to 1."""
    kind = z.re.kind
    factor, _ = normaliser(z)
    square, low = square_magnitude(z.scaled(factor))
    step = 2.0 * exponent_step(kind)
    up = select(factor > 1.0, square.like(-step), 0.0)
    value = logarithm.log_of(square, low, select(factor < 1.0, step, up)) * 0.5
    value = select(larger(z).equals(0.0) & ~z.is_nan, -math.inf, value)
    return select(z.is_infinite, math.inf, value)


def log(z: Pair) -> Pair:
    """The logarithm with the angle in [-pi, pi]."""
    return Pair(log_magnitude(z), atan2(z.im, z.re))


def log1p(z: Pair) -> Pair:
    """log(1 + z), also where z is close to 0."""
    x, y = z
    near = logarithm.log1p(fma(x, x + 2.0, y * y)) * 0.5
    above, above_low = exact_sum(x, x.like(1.0))
    square, low = square_magnitude(Pair(above, y))
    middle = logarithm.log_of(square, fma(above + above, above_low, low)) * 0.5
    is_middle = (square > 2.0**-50) & (square < 2.0**50)
    re = select(is_middle, middle, log_magnitude(Pair(above, y)))
    re = select(larger(z) < 0.5, near, re)
    return Pair(re, atan2(y, above))


def in_double(function: Callable[..., Pair]) -> Callable[..., Pair]:
    """``function`` computed in f64 for complex numbers of f32, whose squares then fit."""

    def computed(*numbers: Pair) -> Pair:
        if numbers[0].re.kind is not FLOAT32:
            return function(*numbers)
        wide = (Pair(convert(z.re, FLOAT64), convert(z.im, FLOAT64)) for z in numbers)
        value = function(*wide)
        return Pair(convert(value.re, FLOAT32), convert(value.im, FLOAT32))

    computed.__doc__ = function.__doc__
    return computed


def _pow(z: Pair, w: Pair) -> Pair:
    """e**(w log(z)); 0**w is 1 for 0, 0 for a positive real part and NaN elsewhere."""
    value = exp(mul(w, log(z)))
    zero, one = z.re.like(0.0), z.re.like(1.0)
    nan = Pair(z.re.like(math.nan), z.re.like(math.nan))
    of_zero = choose(w.re > 0.0, Pair(zero, zero), nan)
    is_zero = z.re.equals(0.0) & z.im.equals(0.0)
    value = choose(is_zero, of_zero, value)
    return choose(w.re.equals(0.0) & w.im.equals(0.0), Pair(one, zero), value)


def _atan2(y: Pair, x: Pair) -> Pair:
    """-i log((x + i y) / sqrt(x**2 + y**2)); a quotient on the cut counts as above it."""
    along = Pair(x.re - y.im, x.im + y.re)
    xx, yy = mul(x, x), mul(y, y)
    quotient = div(along, sqrt_(Pair(xx.re + yy.re, xx.im + yy.im)))
    above = select(quotient.im.equals(0.0), 0.0, quotient.im)
    value = log(Pair(quotient.re, above))
    return Pair(value.im, -value.re)


pow_ = in_double(_pow)
atan2_ = in_double(_atan2)


def sinh(z: Pair) -> Pair:
    """sinh x cos y + i cosh x sin y."""
    x, y = z
    sine, cosine, factor = _hyperbolic(x)
    re = sine * trigonometric.cos(y) * factor
    im = cosine * trigonometric.sin(y) * factor
    # Zero times infinity or times an infinite angle.
    re = select(x.equals(0.0) & re.is_nan, x, re)
    im = select(y.equals(0.0) & im.is_nan, y, im)
    is_angle = absolute(y) < math.inf
    return Pair(select(absolute(x).equals(math.inf) & ~is_angle, math.inf, re), im)


def cosh(z: Pair) -> Pair:
    """cosh x cos y + i sinh x sin y."""
    x, y = z
    sine, cosine, factor = _hyperbolic(x)
    re = cosine * trigonometric.cos(y) * factor
    im = sine * trigonometric.sin(y) * factor
    # Zero times infinity or times an infinite angle.
    is_flat = (x.equals(0.0) | y.equals(0.0)) & im.is_nan
    zero = select(x.is_nan, 0.0, copy_sign(x.like(0.0), x))
    im = select(is_flat, zero * select(y.is_nan, 1.0, copy_sign(y.like(1.0), y)), im)
    is_angle = absolute(y) < math.inf
    return Pair(select(absolute(x).equals(math.inf) & ~is_angle, math.inf, re), im)


def _hyperbolic(x: Value) -> tuple[Value, Value, Value]:
    """sinh x and cosh x, both to be multiplied by a third number; no product before overflows."""
    size = absolute(x)
    near, far = exponential.reduced(size).factors(size)
    is_large = size > 40.0
    large = near * 0.5
    sine = select(is_large, copy_sign(large, x), exponential.sinh(x))
    return sine, select(is_large, large, exponential.cosh(x)), select(is_large, far, 1.0)


def sin(z: Pair) -> Pair:
    """-i sinh(i z): sinh with the parts of its argument and of its result exchanged."""
    value = sinh(Pair(z.im, z.re))
    return Pair(value.im, value.re)


def cos(z: Pair) -> Pair:
    """cosh(i z)."""
    return cosh(Pair(-z.im, z.re))


def tanh(z: Pair) -> Pair:
    """The hyperbolic tangent by t = tan y, s = sinh x and b = 1 + t**2 (Kahan).

    (b s sqrt(1 + s**2) + i t) / (1 + b s**2)
    """
    x, y = z
    size = absolute(x)
    limit = 11.0 if x.kind is FLOAT32 else 22.0
    inside = select(size > limit, limit, size)
    t = trigonometric.tan(y)
    s = copy_sign(exponential.sinh(inside), x)
    b = fma(t, t, 1.0)
    divisor = fma(b * s, s, 1.0)
    near = Pair(b * exponential.cosh(inside) * s / divisor, t / divisor)
    # Further out the real part is 1, and the imaginary part 4 sin y cos y e**-2|x|.
    twist = trigonometric.sin(y) * trigonometric.cos(y) * 4.0 * exponential.exp(size * -2.0)
    is_angle = absolute(y) < math.inf
    is_infinite = size.equals(math.inf)
    flat = select(y.is_nan, 0.0, copy_sign(x.like(0.0), y))
    twist = select(is_infinite & ~is_angle, flat, twist)
    one = copy_sign(x.like(1.0), x)
    far = Pair(select(is_angle | is_infinite, one, math.nan), twist)
    value = choose(size > limit, far, near)
    flat = select(x.equals(0.0) & ~is_angle, x, value.re)
    return Pair(flat, select(y.equals(0.0), y, value.im))


def tan(z: Pair) -> Pair:
    """-i tanh(i z): tanh with the parts of its argument and of its result exchanged."""
    value = tanh(Pair(z.im, z.re))
    return Pair(value.im, value.re)
