"""The incomplete gamma functions: power series, a continued fraction, and an expansion for large a.

Reference: DLMF 8.7 and 8.9.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.special as scipy_special

from tracejit.scipy.special.convergence import MOST, apart, least, moved, precision
from tracejit.scipy.special.functions import special
from tracejit.scipy.special.gammas import digamma_of, gammaln_of, log_gamma_beside_one
from tracejit.scipy.special.stirling import LARGE, gap, log_factor
from tracejit.scipy.special.terms import (
    Term,
    constant_like,
    exp,
    expm1,
    is_nan,
    known_derivative,
    log,
    magnitude,
    repeat,
    smaller,
    sqrt,
    where,
)
from tracejit.scipy.special.uniform import gamma_shares, near_gamma

_SMALL = 1.5
_SMALL_TERMS = 22


def _prefactor(a: Term, x: Term) -> Term:
    """x ** a exp(-x) / gamma(a + 1)."""
    large = a >= LARGE
    base, at = where(large, a, LARGE), where(large, x, LARGE)
    deviation = base * gap((at - base) / base, at / base)
    of_large = exp(deviation - log_factor(base)) / sqrt(2 * math.pi * base)
    b, y = where(large, 1.0, a), where(large, 1.0, x)
    return where(large, of_large, exp(b * log(y) - y - gammaln_of(b + 1)))


def _gamma_series(a: Term, x: Term) -> Term:
    """The lower function by its power series, for x up to about a."""
    eps = precision(x)

    def step(n: Term, term: Term, total: Term, a: Term, x: Term) -> list[Term]:
        following = term * x / (a + n)
        return [n + 1, following, total + following, a, x]

    def go_on(n: Term, term: Term, total: Term, a: Term, x: Term) -> Term:
        return (term > total * eps) & (n < MOST)

    one = constant_like(x, 1.0)
    return repeat(step, go_on, [one, one, one, a, x])[2] * _prefactor(a, x)


def _gamma_fraction(a: Term, x: Term) -> Term:
    """The upper function by its continued fraction, for x from about a on (Lentz's method)."""
    eps, tiny = precision(x), least(x)

    def step(n: Term, b: Term, c: Term, d: Term, h: Term, change: Term, a: Term) -> list[Term]:
        numerator = -n * (n - a)
        following = b + 2
        inverse = apart(numerator * d + following, tiny)
        ahead = apart(following + numerator / c, tiny)
        factor = ahead / inverse
        return [n + 1, following, ahead, 1 / inverse, moved(h, factor, change, eps), factor, a]

    def go_on(n: Term, b: Term, c: Term, d: Term, h: Term, change: Term, a: Term) -> Term:
        return (magnitude(change - 1) > eps) & (n < MOST)

    b = x + 1 - a
    d = 1 / apart(b, tiny)
    one = constant_like(x, 1.0)
    state = [one, b, constant_like(x, 1 / tiny), d, d, one * 2, a]
    return repeat(step, go_on, state)[4] * _prefactor(a, x) * a


def _upper_of_small(a: Term, x: Term) -> Term:
    """The upper function for x up to `_SMALL`, where the lower one may be close to 1.

    1 - x**a / gamma(a + 1) (1 + a sum of (-x)**n / (n! (a + n))), the power less one taken whole.
    """
    logarithm = a * log(x) - log_gamma_beside_one(a)
    power, total = constant_like(x, 1.0), constant_like(x, 0.0)
    for n in range(1, _SMALL_TERMS):
        power = power * x * (-1 / n)
        total = total + power / (a + n)
    return -expm1(logarithm) - exp(logarithm) * a * total


def _lower_and_upper(a: Term, x: Term) -> tuple[Term, Term]:
    usual = (a > 0) & (x > 0) & (x < np.inf) & (a < np.inf)
    a_in, x_in = where(usual, a, 1.0), where(usual, x, 1.0)
    by_series = x_in < a_in + 1
    series = _gamma_series(where(by_series, a_in, 2.0), where(by_series, x_in, 1.0))
    fraction = _gamma_fraction(where(by_series, 1.0, a_in), where(by_series, 3.0, x_in))
    small = x_in <= _SMALL
    beside = _upper_of_small(where(small, a_in, 1.0), where(small, x_in, 1.0))
    lower = smaller(where(by_series, series, 1 - fraction), 1.0)
    upper = smaller(where(by_series, where(small, beside, 1 - series), fraction), 1.0)
    nothing = ((x == 0) & (a > 0)) | ((a == np.inf) & (x >= 0) & (x < np.inf))
    everything = ((a == 0) & (x > 0)) | ((x == np.inf) & (a >= 0) & (a < np.inf))
    wrong = ~(usual | nothing | everything)
    made = []
    for value, none, whole in ((lower, 0.0, 1.0), (upper, 1.0, 0.0)):
        value = where(nothing, none, where(everything, whole, value))
        made.append(where(wrong, np.nan, value))
    return made[0], made[1]


def gamma_slope(a: Term, x: Term) -> Term:
    """The derivative of the lower function in a, by the series term by term."""
    eps = precision(x)

    def step(
        n: Term, weight: Term, psi: Term, total: Term, slope: Term, a: Term, x: Term
    ) -> list[Term]:
        following = weight * x / (a + n)
        after = psi + 1 / (a + n)
        part = following * (log(x) - after)
        return [n + 1, following, after, total + following, slope + part, a, x]

    def go_on(n: Term, weight: Term, psi: Term, total: Term, slope: Term, a: Term, x: Term) -> Term:
        # The weights rise up to n = x - a.
        return ((weight > total * eps) | (a + n < x)) & (n < MOST) & (x < MOST)

    usual = (a > 0) & (x > 0) & (x < MOST)
    a_in, x_in = where(usual, a, 1.0), where(usual, x, 1.0)
    first, psi = _prefactor(a_in, x_in), digamma_of(a_in + 1)
    state = [constant_like(x, 1.0), first, psi, first, first * (log(x_in) - psi), a_in, x_in]
    made = repeat(step, go_on, state)[4]
    return where(usual, made, where(is_nan(x), x, 0.0))


def gamma_density(a: Term, x: Term) -> Term:
    """The derivative of the lower function in x."""
    inside = (x > 0) & (x < np.inf)
    made = _prefactor(a, where(inside, x, 1.0)) / where(inside, x, 1.0) * a
    at_zero = where(a == 1, 1.0, where(a < 1, a * 0 + np.inf, 0.0))
    return where(inside, made, where(is_nan(x), x, where(x == 0, at_zero, 0.0)))


def _share(name: str, a: Term, x: Term, upper: bool) -> Term:
    central = near_gamma(a, x)
    near = gamma_shares(where(central, a, 30.0), where(central, x, 30.0))[upper]
    sign = -1 if upper else 1
    rest = known_derivative(
        name,
        lambda a, x: _lower_and_upper(a, x)[upper],
        [lambda a, x: sign * gamma_slope(a, x), lambda a, x: sign * gamma_density(a, x)],
        [where(central, 1.0, a), where(central, 1.0, x)],
    )
    return where(central, near, rest)


def gammainc_of(a: Term, x: Term) -> Term:
    """The share of gamma(a)'s integral up to x."""
    return _share("gammainc", a, x, False)


def gammaincc_of(a: Term, x: Term) -> Term:
    """The share of gamma(a)'s integral beyond x."""
    return _share("gammaincc", a, x, True)


gammainc = special(scipy_special.gammainc, gammainc_of)
gammaincc = special(scipy_special.gammaincc, gammaincc_of)
