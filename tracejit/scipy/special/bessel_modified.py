"""The modified Bessel functions iv and ive of any real order.

Far out Hankel's form, for great orders Debye's, elsewhere the power series, whose terms are all
positive. Reference: Abramowitz and Stegun, Handbook of Mathematical Functions, 9.6.10, 9.7.1,
9.7.7 and 9.3.9.
"""

from __future__ import annotations

import functools
import math
from fractions import Fraction

import numpy as np
import scipy.special as scipy_special

from tracejit.scipy.special.functions import special
from tracejit.scipy.special.gammas import gamma_of
from tracejit.scipy.special.terms import (
    Term,
    exp,
    floor,
    is_nan,
    known_derivative,
    log1p,
    magnitude,
    polynomial,
    repeat,
    smaller,
    sqrt,
    where,
)

_DEBYE_TERMS = 12
_HANKEL_TERMS = 30


@functools.cache
def _debye() -> list[list[float]]:
    """The polynomials U_k, which have only every second power, from p**k on."""
    u = [Fraction(1)]
    found = []
    for k in range(1, _DEBYE_TERMS):
        following = [Fraction(0)] * (len(u) + 3)
        # p**2 (1 - p**2) U' / 2 and the integral of (1 - 5 t**2) U / 8.
        for n, c in enumerate(u):
            following[n + 1] += c * n / 2 + c / (8 * (n + 1))
            following[n + 3] -= c * n / 2 + 5 * c / (8 * (n + 3))
        u = following
        found.append([float(c) for c in u[k::2]])
    return found


def _by_debye(v: Term, x: Term, growth: Term) -> Term:
    """exp(growth - x) I_v(x)."""
    z = x / v
    root = sqrt(1 + z * z)
    beyond = 1 / (root + z)
    # sqrt(1 + z**2) - z + log(z / (1 + sqrt(1 + z**2)))
    exponent = beyond - log1p((1 + beyond) / z)
    p = 1 / root
    total = p * 0 + 1
    power = p / v
    factor = power
    for coefficients in _debye():
        total = total + factor * polynomial(p * p, coefficients)
        factor = factor * power
    # In two steps: the exponential overflows before the product.
    half = exp((v * exponent + growth) * 0.5)
    return half / sqrt(2 * math.pi * v * root) * total * half


def _by_hankel(v: Term, x: Term) -> Term:
    square = 4 * v * v
    term = x * 0 + 1
    total = term
    for k in range(1, _HANKEL_TERMS):
        term = term * ((2 * k - 1) ** 2 - square) / (8 * k * x)
        total = total + term
    return total / sqrt(2 * math.pi * x)


def _by_series(v: Term, x: Term, shift: float) -> Term:
    """From a first term of e**-x, or as much of it as ``shift`` says, and the rest at the end."""
    small = smaller(x, shift)

    def step(k: Term, term: Term, total: Term, v: Term, quarter: Term) -> list[Term]:
        following = term * quarter / (k * (v + k))
        return [k + 1, following, total + following, v, quarter]

    def go_on(k: Term, term: Term, total: Term, v: Term, quarter: Term) -> Term:
        return (magnitude(term) > 1e-18 * magnitude(total)) | ((k < -v) & (term != 0))

    first = exp(-small)
    half = x * 0.5
    total = repeat(step, go_on, [x * 0 + 1, first, first, v, half * half])[2]
    return half**v / gamma_of(v + 1) * total * exp(small - x)


def _scaled(v: Term, x: Term, growth: Term) -> Term:
    """exp(growth - x) I_v(x) for x above 0 and ``growth`` 0 or x."""
    great = 12.0 if x.is_single else 40.0
    is_great = v >= great
    is_far = ~is_great & (x > 30) & (x > 0.5 * v * v)
    is_middle = ~(is_great | is_far)
    debye = _by_debye(where(is_great, v, great), where(is_great, x, 1.0), growth)
    hankel = _by_hankel(where(is_far, v, 0.0), where(is_far, x, 40.0))
    shift = 60.0 if x.is_single else 600.0
    series = _by_series(where(is_middle, v, 0.0), where(is_middle, x, 0.1), shift)
    half = exp(smaller(growth, 2000.0) * 0.5)
    rest = where(is_far, hankel, series)
    return where(is_great, debye, where(rest == 0, rest, rest * half * half))


def _ive(v: Term, x: Term) -> Term:
    return _of_any(v, x, x * 0)


def _of_any(v: Term, x: Term, growth: Term) -> Term:
    is_whole = v == floor(v)
    order = where(is_whole, magnitude(v), v)
    size = magnitude(x)
    usual = (size > 0) & (size < np.inf)
    made = _scaled(order, where(usual, size, 1.0), where(usual, growth, 0.0))
    at_zero = where(order == 0, 1.0, where(order > 0, order * 0, np.inf))
    made = where(usual, made, where(size == 0, at_zero, 0.0))
    return where(is_nan(x) | is_nan(v), np.nan, _sign_below_zero(v, x, made))


def _sign_below_zero(v: Term, x: Term, value: Term) -> Term:
    """The function of x from that of its magnitude: (-1)**v times it below zero."""
    half = v * 0.5
    is_even, is_whole = half == floor(half), v == floor(v)
    return where(x < 0, where(is_even, value, where(is_whole, -value, np.nan)), value)


def _iv(v: Term, x: Term) -> Term:
    size = magnitude(x)
    made = _of_any(v, x, size)
    return where(size == np.inf, _sign_below_zero(v, x, x * x), made)


def _rising(v: Term, x: Term) -> Term:
    """v / x; 0 at 0, where `_slope_at_zero` stands in for it."""
    is_zero = x == 0
    return where(is_zero, 0.0, v / where(is_zero, 1.0, x))


def _slope_at_zero(v: Term, x: Term) -> Term:
    """What v / x times the function is at 0; 0 elsewhere."""
    below = where((v > 0) & (v < 1), v * 0 + np.inf, 0.0)
    return where(x == 0, where(v == 1, 0.5, below), 0.0)


def _no_slope(v: Term, x: Term) -> Term:
    """The derivative in the order, which is not known here."""
    return smaller(v + x, np.nan)


def iv_of(v: Term, x: Term) -> Term:
    """The modified Bessel function of the first kind."""

    def slope(v: Term, x: Term) -> Term:
        at_zero = _slope_at_zero(v, x)
        return iv_of(v + 1, x) + _rising(v, x) * iv_of(v, x) + at_zero

    return known_derivative("iv", _iv, [_no_slope, slope], [v, x])


def ive_of(v: Term, x: Term) -> Term:
    """``exp(-abs(x)) * iv(v, x)``."""

    def slope(v: Term, x: Term) -> Term:
        at_zero = _slope_at_zero(v, x)
        direction = where(x < 0, -1.0, where(x > 0, v * 0 + 1, 0.0))
        return ive_of(v + 1, x) + (_rising(v, x) - direction) * ive_of(v, x) + at_zero

    return known_derivative("ive", _ive, [_no_slope, slope], [v, x])


iv = special(scipy_special.iv, iv_of)
ive = special(scipy_special.ive, ive_of)
