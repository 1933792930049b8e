"""Inverse trigonometric and hyperbolic functions of complex numbers.

After Hull, Fairgrieve and Tang, "Implementing the complex arcsine and arccosine functions using
exception handling" (1997): with x = |re z|, y = |im z|, r = |z + 1|, s = |z - 1| and
a = (r + s) / 2, the real part of asin z is the angle of (x, sqrt(a**2 - x**2)), that of acos z of
the same point mirrored, and their imaginary part is log(a + sqrt(a**2 - 1)).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from tracejit.backends.tvm.cpu.llvm.builder import Value
from tracejit.backends.tvm.cpu.mathematics.complex_arithmetic import Pair, larger, magnitude
from tracejit.backends.tvm.cpu.mathematics.complex_elementary import in_double, log_magnitude
from tracejit.backends.tvm.cpu.mathematics.inverse_trigonometric import atan2
from tracejit.backends.tvm.cpu.mathematics.logarithm import log1p
from tracejit.backends.tvm.cpu.mathematics.vocabulary import absolute, copy_sign, fma, select, sqrt


class _Ellipse(NamedTuple):
    """x, sqrt(a**2 - x**2) and log(a + sqrt(a**2 - 1)) for a number in the first quadrant."""

    x: Value
    rest: Value
    height: Value


def _ellipse(z: Pair) -> _Ellipse:
    x, y = absolute(z.re), absolute(z.im)
    one = x.like(1.0)
    is_far = ~(larger(z) < 2.0 ** (x.kind.bias - 4))
    x_in, y_in = select(is_far, one, x), select(is_far, one, y)
    above, beside = x_in + 1.0, x_in - 1.0
    r, s = magnitude(Pair(above, y_in)), magnitude(Pair(beside, y_in))
    a = (r + s) * 0.5
    is_inside = x_in < 1.0
    gap = absolute(beside)
    # y**2 / (r + above) and y**2 / (s + gap) are r - above and s - gap without cancellation.
    upper = y_in / (r + above)
    lower = select(y_in > 0.0, y_in / (s + gap), 0.0)
    # a**2 - x**2 = (a + x) (a - x)
    inside_rest = sqrt(fma(y_in, upper, s + gap))
    outside_rest = sqrt(y_in) * sqrt(upper + lower)
    rest = select(is_inside | beside.equals(0.0), inside_rest, outside_rest)
    rest = rest * sqrt((a + x_in) * 0.5)
    # a - 1, and sqrt(a**2 - 1)
    inside_over = y_in * (upper + lower) * 0.5
    outside_over = fma(y_in, upper, s + gap) * 0.5
    over = select(is_inside, inside_over, outside_over)
    inside_root = sqrt(y_in) * sqrt((upper + lower) * 0.5)
    root = select(is_inside, inside_root, sqrt(outside_over)) * sqrt(a + 1.0)
    height = select(is_far, log_magnitude(z) + math.log(2.0), log1p(over + root))
    return _Ellipse(x, select(is_far, y, rest), height)


def _asin(z: Pair) -> Pair:
    """The arc sine."""
    x, rest, height = _ellipse(z)
    re = copy_sign(atan2(x, rest), z.re)
    # On the imaginary axis the real part is 0, whatever the imaginary one.
    return Pair(select(z.re.equals(0.0), z.re, re), copy_sign(height, z.im))


def _acos(z: Pair) -> Pair:
    """The arc cosine, with the real part in [0, pi]."""
    x, rest, height = _ellipse(z)
    re = atan2(rest, copy_sign(x, z.re))
    # On the imaginary axis the real part is a right angle, whatever the imaginary one.
    return Pair(select(z.re.equals(0.0), math.pi / 2, re), copy_sign(height, -z.im))


def _asinh(z: Pair) -> Pair:
    """The inverse hyperbolic sine: i asinh(z) = asin(i z)."""
    value = _asin(Pair(z.im, z.re))
    return Pair(value.im, value.re)


def _acosh(z: Pair) -> Pair:
    """The inverse hyperbolic cosine with a positive real part."""
    value = _acos(z)
    return Pair(absolute(value.im), copy_sign(value.re, z.im))


def _atanh(z: Pair) -> Pair:
    """The inverse hyperbolic tangent.

    log1p(4 x / |1 - z|**2) / 4 + i atan2(2 y, (1 - x) (1 + x) - y**2) / 2
    """
    x, y = absolute(z.re), absolute(z.im)
    beside = Pair(1.0 - x, y)
    distance = magnitude(beside)
    re = log1p(x / distance * 4.0 / distance) * 0.25
    re = select(distance < 2.0**-100, (math.log(2.0) - log_magnitude(beside)) * 0.5, re)
    im = atan2(y + y, fma(beside.re, x + 1.0, -(y * y))) * 0.5
    is_far = larger(z) > 2.0 ** (x.kind.bias // 2)
    im = select((is_far & ~z.is_nan) | y.equals(math.inf), math.pi / 2, im)
    # Zero at infinity and on the imaginary axis, whatever the imaginary part.
    re = select(z.is_infinite | x.equals(0.0), 0.0, re)
    return Pair(copy_sign(re, z.re), copy_sign(im, z.im))


asin = in_double(_asin)
acos = in_double(_acos)
asinh = in_double(_asinh)
acosh = in_double(_acosh)
atanh = in_double(_atanh)
