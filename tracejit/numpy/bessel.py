"""The modified Bessel functions I0 and I1, also scaled by exp(-abs(x)).

Up to 8 their power series, whose terms are all positive, so that every derivative is as precise as
the value; beyond 8, sqrt(x) exp(-x) I(x) is a polynomial in 8 / x. Reference: Abramowitz and
Stegun, Handbook of Mathematical Functions, 9.6.10 and 9.7.1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tracejit.graph import Instruction
from tracejit.numpy.building import fill, scaled, shifted, where
from tracejit.ops import comparison, elementwise, elementwise_unary

_NEAR = 8.0
_TERMS = 27
_NEAR_I0 = [1 / math.factorial(k) ** 2 for k in range(_TERMS)]
_NEAR_I1 = [1 / (math.factorial(k) * math.factorial(k + 1)) for k in range(_TERMS)]

# Chebyshev coefficients in 16 / x - 1, by interpolation with forty digits.
_FAR_I0 = (
    0.4022452055070544,
    0.0033691164782556943,
    6.889758346916825e-05,
    2.8913705208347567e-06,
    2.0489185894690636e-07,
    2.2666689904981794e-08,
    3.3962320257084473e-09,
    4.940602388223704e-10,
    1.1889147107696227e-11,
    -3.149916527887743e-11,
    -1.3215811840460396e-11,
    -1.794178535193738e-12,
    7.180124484091814e-13,
    3.852778542937633e-13,
    1.540083331469819e-14,
    -4.150575791943921e-14,
    -9.554652856182897e-15,
    3.8119295403363455e-15,
    1.7713664821656785e-15,
    -3.4354070950894047e-16,
    -2.7552921756378247e-16,
    3.944273316291844e-17,
)
_FAR_I1 = (
    0.38928811750914005,
    -0.009761097491361469,
    -0.00011058893876262371,
    -3.882564808877691e-06,
    -2.512236237870209e-07,
    -2.631468846889521e-08,
    -3.835380385964298e-09,
    -5.589743462195265e-10,
    -1.8974958123360136e-11,
    3.2526035829378886e-11,
    1.4125807436671652e-11,
    2.035628547899107e-12,
    -7.198551811855046e-13,
    -4.083551272376382e-13,
    -2.1015387929602175e-14,
    4.272446410979141e-14,
    1.0420074289690404e-14,
    -3.814644500108961e-15,
    -1.879112582235586e-15,
    3.3175164897882677e-16,
    2.887456034537518e-16,
    -3.6509607543005606e-17,
)


def horner(x: Instruction, coefficients: Sequence[float]) -> Instruction:
    """The polynomial in ``x`` with these coefficients, the constant one first."""
    made = fill(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        made = shifted(elementwise.mul(made, x), coefficient)
    return made


def chebyshev(t: Instruction, coefficients: Sequence[float]) -> Instruction:
    """The sum of Chebyshev polynomials in ``t`` by Clenshaw's recurrence."""
    double = scaled(t, 2.0)
    last, before = fill(t, coefficients[-1]), fill(t, 0.0)
    for coefficient in reversed(coefficients[1:-1]):
        step = elementwise.sub(elementwise.mul(double, last), before)
        last, before = shifted(step, coefficient), last
    return shifted(elementwise.sub(elementwise.mul(t, last), before), coefficients[0])


def _parts(x: Instruction, near: Sequence[float], far: Sequence[float]) -> list[Instruction]:
    """Whether x is small, its magnitude, the power series, and the scaled function beyond."""
    magnitude = elementwise_unary.abs(x)
    is_near = comparison.le(magnitude, fill(magnitude, _NEAR))
    # Either branch gets arguments of its own domain, so that no derivative becomes NaN.
    small = where(is_near, x, _NEAR)
    large = where(is_near, fill(magnitude, _NEAR), magnitude)
    series = horner(scaled(elementwise.mul(small, small), 0.25), near)
    inverse = elementwise.div(fill(large, 16.0), large)
    tail = elementwise.mul(chebyshev(shifted(inverse, -1.0), far), elementwise_unary.rsqrt(large))
    return [is_near, magnitude, series, tail, small, large]


def i0(x: Instruction) -> Instruction:
    """The modified Bessel function of order 0, of floating numbers."""
    is_near, _, series, tail, _, large = _parts(x, _NEAR_I0, _FAR_I0)
    return where(is_near, series, _grown(tail, large))


def i0e(x: Instruction) -> Instruction:
    """``exp(-abs(x)) * i0(x)``."""
    is_near, magnitude, series, tail, _, _ = _parts(x, _NEAR_I0, _FAR_I0)
    return where(is_near, elementwise.mul(series, _decay(is_near, magnitude)), tail)


def i1(x: Instruction) -> Instruction:
    """The modified Bessel function of order 1, of floating numbers; odd."""
    is_near, _, series, tail, small, large = _parts(x, _NEAR_I1, _FAR_I1)
    far = elementwise.mul(elementwise_unary.sign(x), _grown(tail, large))
    return where(is_near, elementwise.mul(scaled(small, 0.5), series), far)


def i1e(x: Instruction) -> Instruction:
    """``exp(-abs(x)) * i1(x)``."""
    is_near, magnitude, series, tail, small, _ = _parts(x, _NEAR_I1, _FAR_I1)
    near = elementwise.mul(elementwise.mul(scaled(small, 0.5), series), _decay(is_near, magnitude))
    return where(is_near, near, elementwise.mul(elementwise_unary.sign(x), tail))


def _decay(is_near: Instruction, magnitude: Instruction) -> Instruction:
    return elementwise_unary.exp(elementwise_unary.neg(where(is_near, magnitude, 0.0)))


def _grown(tail: Instruction, large: Instruction) -> Instruction:
    """``exp(large) * tail`` in two steps, since the exponential overflows before the product."""
    half = elementwise_unary.exp(scaled(large, 0.5))
    return elementwise.mul(elementwise.mul(tail, half), half)
