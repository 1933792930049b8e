"""Exponential integrals: series near zero, beyond it continued fractions; E1 by polynomials.

Reference: DLMF 6.6, 6.12 and 8.19.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.special as scipy_special

from tracejit.numpy.bessel import chebyshev
from tracejit.scipy.special.convergence import MOST, least, moved, precision
from tracejit.scipy.special.functions import special
from tracejit.scipy.special.gammas import digamma_of
from tracejit.scipy.special.terms import (
    Term,
    constant_like,
    exp,
    floor,
    is_nan,
    known_derivative,
    log,
    magnitude,
    polynomial,
    repeat,
    sign,
    where,
)

_EULER = float(np.euler_gamma)
# (E1(x) + log(x) + Euler's constant) / x, by powers of x.
_NEAR = [(-1) ** k / ((k + 1) * math.factorial(k + 1)) for k in range(20)]
# Chebyshev coefficients of (x + 1) exp(x) E1(x) in (4 - x) / (2 + x) for x from 1 on, by
# interpolation with forty digits.
_SCALED = (
    1.062421314003848,
    0.08944777529480638,
    0.03222061478411663,
    0.006518167587486157,
    0.001611314851549377,
    0.0003594868087875015,
    8.862874184420737e-05,
    2.0625566630531385e-05,
    5.1576212554409544e-06,
    1.22711726684983e-06,
    3.11648295271518e-07,
    7.496825491634816e-08,
    1.9357534171666858e-08,
    4.666217911489796e-09,
    1.229393484958032e-09,
    2.93907622725768e-10,
    7.968684924923627e-11,
    1.8593177613431917e-11,
    5.281854779201032e-12,
    1.167816170637905e-12,
    3.6075565391325085e-13,
    7.11168548180311e-14,
    2.5830223544952705e-14,
    3.9420092837314214e-15,
    2.0008610101956586e-15,
    1.5334672626287945e-16,
    1.754471133339312e-16,
    -6.011706820396549e-18,
    1.8150784726912067e-17,
)
# The number of terms that is enough for 24 bits.
_SINGLE = 15


def _integral_series(n: Term, x: Term) -> Term:
    """E_n for whole n from 1 on and x up to 1."""
    eps = precision(x)

    def step(
        k: Term, power: Term, total: Term, change: Term, n: Term, x: Term, special: Term
    ) -> list[Term]:
        power = -power * x / k
        part = where(k == n - 1, power * special, -power / (k + 1 - n))
        return [k + 1, power, total + part, part, n, x, special]

    def go_on(
        k: Term, power: Term, total: Term, change: Term, n: Term, x: Term, special: Term
    ) -> Term:
        return ((magnitude(change) > magnitude(total) * eps) | (k <= n)) & (k < 200.0)

    one = constant_like(x, 1.0)
    is_first = n == 1
    start = where(is_first, -log(x) - _EULER, 1 / where(is_first, 1.0, n - 1))
    special = digamma_of(n) - log(x)
    return repeat(step, go_on, [one, one, start, one, n, x, special])[2]


def _integral_fraction(n: Term, x: Term) -> Term:
    """E_n for x from 1 on, by the continued fraction (Lentz's method)."""
    eps, tiny = precision(x), least(x)

    def step(k: Term, b: Term, c: Term, d: Term, h: Term, change: Term, n: Term) -> list[Term]:
        numerator = -k * (n - 1 + k)
        following = b + 2
        inverse = 1 / (numerator * d + following)
        ahead = following + numerator / c
        factor = ahead * inverse
        return [k + 1, following, ahead, inverse, moved(h, factor, change, eps), factor, n]

    def go_on(k: Term, b: Term, c: Term, d: Term, h: Term, change: Term, n: Term) -> Term:
        return (magnitude(change - 1) > eps) & (k < MOST)

    b = x + n
    d = 1 / b
    one = constant_like(x, 1.0)
    return repeat(step, go_on, [one, b, one / tiny, d, d, one * 2, n])[4] * exp(-x)


def _expn(n: Term, x: Term) -> Term:
    whole = (n >= 1) & (x > 0) & (x < np.inf)
    order, at = where(whole, n, 1.0), where(whole, x, 1.0)
    near = at <= 1
    series = _integral_series(where(near & (order < 60), order, 1.0), where(near, at, 0.5))
    tail = exp(-at) / (at + order)
    # Beyond that order the series would cancel, and the fraction is short.
    fraction = _integral_fraction(order, where(near & (order < 60), 1.0, at))
    made = where(near & (order < 60), series, where(tail == 0, 0.0, fraction))
    zeroth = exp(-x) / x
    made = where(n == 0, zeroth, made)
    made = where(n == -1, zeroth * (1 + 1 / x), made)
    made = where(n == -2, zeroth * (1 + 2 / x * (1 + 1 / x)), made)
    made = where((x == 0) & (n > 1), 1 / where(n > 1, n - 1, 1.0), made)
    made = where((x == 0) & (n <= 1), np.inf, made)
    made = where(x == np.inf, 0.0, made)
    return where((x < 0) | (n < -2) | is_nan(x), np.nan, made)


def expn_of(n: Term, x: Term) -> Term:
    """The exponential integral of whole order n; like SciPy's, it cuts off what n has more."""

    def value(n: Term, x: Term) -> Term:
        return _expn(sign(n) * floor(magnitude(n)), x)

    return known_derivative("expn", value, [None, lambda n, x: -expn_of(n - 1, x)], [n, x])


def _exp1(x: Term) -> Term:
    inside = (x > 0) & (x < np.inf)
    at = where(inside, x, 1.0)
    near, far = where(at <= 1, at, 1.0), where(at > 1, at, 1.0)
    series = near * polynomial(near, _NEAR) - log(near) - _EULER
    coefficients = _SCALED[:_SINGLE] if x.is_single else _SCALED
    scaled = Term(chebyshev(((4 - far) / (2 + far)).value, coefficients))
    made = where(at <= 1, series, scaled * exp(-far) / (far + 1))
    made = where(x == 0, np.inf, where(inside, made, 0.0))
    return where((x < 0) | is_nan(x), np.nan, made)


def _expi(x: Term) -> Term:
    eps = precision(x)

    def step(k: Term, power: Term, total: Term, x: Term) -> list[Term]:
        power = power * x / k
        return [k + 1, power, total + power / k, x]

    def go_on(k: Term, power: Term, total: Term, x: Term) -> Term:
        return (power > total * eps) & (k < MOST)

    one = constant_like(x, 1.0)
    positive = (x > 0) & (x < 40)
    near = where(positive, x, 1.0)
    series = repeat(step, go_on, [one, one, 0 * one, near])[2] + log(near) + _EULER
    far = where(x >= 40, x, 40.0)
    # The asymptotic series, cut before its least term; the power overflows before the quotient.
    half = exp(far * 0.5)
    tail = half * (half / far) * polynomial(1 / far, [float(math.factorial(k)) for k in range(22)])
    negative = where(x < 0, -x, 1.0)
    below = -_exp1(negative)
    made = where(x < 0, below, where(positive, series, tail))
    made = where(x == 0, -np.inf, where(x == np.inf, np.inf, made))
    return where(is_nan(x), x, made)


def expi_of(x: Term) -> Term:
    """The exponential integral Ei."""
    return known_derivative("expi", _expi, [lambda x: exp(x) / x], [x])


def exp1_of(x: Term) -> Term:
    """The exponential integral E1."""
    return known_derivative("exp1", _exp1, [lambda x: -exp(-x) / x], [x])


expn = special(scipy_special.expn, expn_of)
expi = special(scipy_special.expi, expi_of)
exp1 = special(scipy_special.exp1, exp1_of)
