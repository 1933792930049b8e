"""Incomplete gamma and beta functions and exponential integrals: series and continued fractions.

Each runs until all elements have converged. Reference: DLMF 8.7, 8.9, 8.17.22, 6.6, 8.19.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import scipy.special as scipy_special

from tracejit.scipy.special.functions import special
from tracejit.scipy.special.gammas import betaln_of, digamma_of, gammaln_of
from tracejit.scipy.special.terms import (
    Term,
    constant_like,
    exp,
    floor,
    is_nan,
    known_derivative,
    log,
    log1p,
    magnitude,
    polynomial,
    repeat,
    sign,
    where,
)

_EULER = float(np.euler_gamma)
_MOST = 20000.0
"""So many steps are taken at most."""


def _eps(x: Term) -> float:
    return 2e-7 if x.is_single else 4e-16


def _tiny(x: Term) -> float:
    return 1e-30 if x.is_single else 1e-290


def _prefactor(a: Term, x: Term) -> Term:
    """x ** a exp(-x) / gamma(a + 1)."""
    return exp(a * log(x) - x - gammaln_of(a + 1))


def _gamma_series(a: Term, x: Term) -> Term:
    """The lower function by its power series, for x up to about a."""
    eps = _eps(x)

    def step(n: Term, term: Term, total: Term, a: Term, x: Term) -> list[Term]:
        following = term * x / (a + n)
        return [n + 1, following, total + following, a, x]

    def go_on(n: Term, term: Term, total: Term, a: Term, x: Term) -> Term:
        return (term > total * eps) & (n < _MOST)

    one = constant_like(x, 1.0)
    return repeat(step, go_on, [one, one, one, a, x])[2] * _prefactor(a, x)


def _gamma_fraction(a: Term, x: Term) -> Term:
    """The upper function by its continued fraction, for x from about a on (Lentz's method)."""
    eps, tiny = _eps(x), _tiny(x)

    def step(n: Term, b: Term, c: Term, d: Term, h: Term, change: Term, a: Term) -> list[Term]:
        numerator = -n * (n - a)
        following = b + 2
        inverse = _apart(numerator * d + following, tiny)
        ahead = _apart(following + numerator / c, tiny)
        factor = ahead / inverse
        return [n + 1, following, ahead, 1 / inverse, _moved(h, factor, change, eps), factor, a]

    def go_on(n: Term, b: Term, c: Term, d: Term, h: Term, change: Term, a: Term) -> Term:
        return (magnitude(change - 1) > eps) & (n < _MOST)

    b = x + 1 - a
    d = 1 / _apart(b, tiny)
    one = constant_like(x, 1.0)
    state = [one, b, constant_like(x, 1 / tiny), d, d, one * 2, a]
    return repeat(step, go_on, state)[4] * _prefactor(a, x) * a


def _moved(h: Term, factor: Term, change: Term, eps: float) -> Term:
    """The value after one more step, if the step before changed it: others wait."""
    return where(magnitude(change - 1) > eps, h * factor, h)


def _apart(x: Term, tiny: float) -> Term:
    """``x``, or a tiny number in place of zero."""
    return where(x == 0, tiny, x)


def _lower_and_upper(a: Term, x: Term) -> tuple[Term, Term]:
    usual = (a > 0) & (x > 0) & (x < np.inf) & (a < np.inf)
    a_in, x_in = where(usual, a, 1.0), where(usual, x, 1.0)
    by_series = x_in < a_in + 1
    series = _gamma_series(where(by_series, a_in, 2.0), where(by_series, x_in, 1.0))
    fraction = _gamma_fraction(where(by_series, 1.0, a_in), where(by_series, 3.0, x_in))
    lower = where(by_series, series, 1 - fraction)
    upper = where(by_series, 1 - series, fraction)
    nothing = ((x == 0) & (a > 0)) | ((a == np.inf) & (x >= 0) & (x < np.inf))
    everything = ((a == 0) & (x > 0)) | ((x == np.inf) & (a >= 0) & (a < np.inf))
    wrong = ~(usual | nothing | everything)
    made = []
    for value, none, whole in ((lower, 0.0, 1.0), (upper, 1.0, 0.0)):
        value = where(nothing, none, where(everything, whole, value))
        made.append(where(wrong, np.nan, value))
    return made[0], made[1]


def _slope_in_a(a: Term, x: Term) -> Term:
    """The derivative of the lower function in a, by the series term by term."""
    eps = _eps(x)

    def step(
        n: Term, weight: Term, psi: Term, total: Term, slope: Term, a: Term, x: Term
    ) -> list[Term]:
        following = weight * x / (a + n)
        after = psi + 1 / (a + n)
        part = following * (log(x) - after)
        return [n + 1, following, after, total + following, slope + part, a, x]

    def go_on(n: Term, weight: Term, psi: Term, total: Term, slope: Term, a: Term, x: Term) -> Term:
        # The weights rise up to n = x - a.
        return ((weight > total * eps) | (a + n < x)) & (n < _MOST) & (x < _MOST)

    usual = (a > 0) & (x > 0) & (x < _MOST)
    a_in, x_in = where(usual, a, 1.0), where(usual, x, 1.0)
    first, psi = _prefactor(a_in, x_in), digamma_of(a_in + 1)
    state = [constant_like(x, 1.0), first, psi, first, first * (log(x_in) - psi), a_in, x_in]
    made = repeat(step, go_on, state)[4]
    return where(usual, made, where(is_nan(x), x, 0.0))


def _density(a: Term, x: Term) -> Term:
    """The derivative of the lower function in x."""
    return exp((a - 1) * log(x) - x - gammaln_of(a))


def gammainc_of(a: Term, x: Term) -> Term:
    """The share of gamma(a)'s integral up to x."""
    return known_derivative(
        "gammainc", lambda a, x: _lower_and_upper(a, x)[0], [_slope_in_a, _density], [a, x]
    )


def gammaincc_of(a: Term, x: Term) -> Term:
    """The share of gamma(a)'s integral beyond x."""
    return known_derivative(
        "gammaincc",
        lambda a, x: _lower_and_upper(a, x)[1],
        [lambda a, x: -_slope_in_a(a, x), lambda a, x: -_density(a, x)],
        [a, x],
    )


def _beta_fraction(a: Term, b: Term, x: Term) -> Term:
    eps, tiny = _eps(x), _tiny(x)

    def step(
        m: Term, c: Term, d: Term, h: Term, change: Term, a: Term, b: Term, x: Term
    ) -> list[Term]:
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1 / _apart(even * d + 1, tiny)
        c = _apart(even / c + 1, tiny)
        before = d * c
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1 / _apart(odd * d + 1, tiny)
        c = _apart(odd / c + 1, tiny)
        factor = before * (d * c)
        return [m + 1, c, d, _moved(h, factor, change, eps), factor, a, b, x]

    def go_on(m: Term, c: Term, d: Term, h: Term, change: Term, a: Term, b: Term, x: Term) -> Term:
        return (magnitude(change - 1) > eps) & (m < _MOST)

    one = constant_like(x, 1.0)
    d = 1 / _apart(1 - (a + b) * x / (a + 1), tiny)
    return repeat(step, go_on, [one, one, d, d, one * 2, a, b, x])[3]


def _betainc(a: Term, b: Term, x: Term) -> Term:
    usual = (a > 0) & (b > 0) & (x > 0) & (x < 1)
    p, q, y = where(usual, a, 1.0), where(usual, b, 1.0), where(usual, x, 0.5)
    # The fraction converges fast below the mean, so the tail that is meant may be the other one.
    turned = y > (p + 1) / (p + q + 2)
    first, second = where(turned, q, p), where(turned, p, q)
    at = where(turned, 1 - y, y)
    front = exp(p * log(y) + q * log1p(-y) - betaln_of(p, q)) / first
    made = front * _beta_fraction(first, second, at)
    made = where(turned, 1 - made, made)
    edge = (a > 0) & (b > 0) & ((x == 0) | (x == 1))
    return where(edge, x, where(usual, made, np.nan))


def _beta_slopes(a: Term, b: Term, x: Term) -> tuple[Term, Term]:
    """The derivatives in a and b for x below the mean, by the series term by term.

    I = f sum_n t_n  with  f = x^a (1 - x)^b / (a B(a, b)),
    t_n = prod_k<n x (a + b + k) / (a + 1 + k).  All terms are positive, and the logarithm of one
    has the derivatives
    sum_k<n 1 / (a + b + k) - 1 / (a + 1 + k)  and  sum_k<n 1 / (a + b + k).
    """
    eps = _eps(x)

    def step(
        n: Term,
        term: Term,
        by_a: Term,
        by_b: Term,
        sums: Term,
        in_a: Term,
        in_b: Term,
        *at: Term,
    ) -> list[Term]:
        a, b, x = at
        above, below = a + b + n, a + 1 + n
        term = term * x * above / below
        by_a, by_b = by_a + 1 / above - 1 / below, by_b + 1 / above
        return [
            *(n + 1, term, by_a, by_b),
            *(sums + term, in_a + term * by_a, in_b + term * by_b, *at),
        ]

    def go_on(
        n: Term,
        term: Term,
        by_a: Term,
        by_b: Term,
        sums: Term,
        in_a: Term,
        in_b: Term,
        *at: Term,
    ) -> Term:
        a, b, x = at
        rising = x * (a + b + n) > a + 1 + n
        return (rising | (term * (1 + magnitude(by_a) + by_b) > sums * eps)) & (n < _MOST)

    zero, one = constant_like(x, 0.0), constant_like(x, 1.0)
    state = [zero, one, zero, zero, one, zero, zero, a, b, x]
    _, _, _, _, sums, in_a, in_b, *_ = repeat(step, go_on, state)
    front = exp(a * log(x) + b * log1p(-x) - betaln_of(a, b)) / a
    both = digamma_of(a + b)
    of_front = log(x) - digamma_of(a) + both - 1 / a, log1p(-x) - digamma_of(b) + both
    return front * (sums * of_front[0] + in_a), front * (sums * of_front[1] + in_b)


def _beta_slope(a: Term, b: Term, x: Term, of_b: bool) -> Term:
    """The derivative in a, or in b: 1 - I_(1-x)(b, a) where the series would be slow."""
    usual = (a > 0) & (b > 0) & (x > 0) & (x < 1)
    p, q, y = where(usual, a, 1.0), where(usual, b, 1.0), where(usual, x, 0.5)
    turned = y > (p + 1) / (p + q + 2)
    first, second = where(turned, q, p), where(turned, p, q)
    slopes = _beta_slopes(first, second, where(turned, 1 - y, y))
    made = where(turned, -slopes[0], slopes[1]) if of_b else where(turned, -slopes[1], slopes[0])
    edge = (a > 0) & (b > 0) & ((x == 0) | (x == 1))
    return where(usual, made, where(edge, constant_like(x, 0.0), np.nan))


def betainc_of(a: Term, b: Term, x: Term) -> Term:
    """The share of beta(a, b)'s integral up to x."""

    def density(a: Term, b: Term, x: Term) -> Term:
        return exp((a - 1) * log(x) + (b - 1) * log1p(-x) - betaln_of(a, b))

    slopes = [partial(_beta_slope, of_b=of_b) for of_b in (False, True)]
    return known_derivative("betainc", _betainc, [*slopes, density], [a, b, x])


def _integral_series(n: Term, x: Term) -> Term:
    """E_n for whole n from 1 on and x up to 1."""
    eps = _eps(x)

    def step(k: Term, power: Term, total: Term, change: Term, n: Term, x: Term) -> list[Term]:
        power = -power * x / k
        special_one = k == n - 1
        part = where(special_one, power * (digamma_of(n) - log(x)), -power / (k + 1 - n))
        return [k + 1, power, total + part, part, n, x]

    def go_on(k: Term, power: Term, total: Term, change: Term, n: Term, x: Term) -> Term:
        return ((magnitude(change) > magnitude(total) * eps) | (k <= n)) & (k < 200.0)

    one = constant_like(x, 1.0)
    is_first = n == 1
    start = where(is_first, -log(x) - _EULER, 1 / where(is_first, 1.0, n - 1))
    return repeat(step, go_on, [one, one, start, one, n, x])[2]


def _integral_fraction(n: Term, x: Term) -> Term:
    """E_n for x from 1 on, by the continued fraction (Lentz's method)."""
    eps, tiny = _eps(x), _tiny(x)

    def step(k: Term, b: Term, c: Term, d: Term, h: Term, change: Term, n: Term) -> list[Term]:
        numerator = -k * (n - 1 + k)
        following = b + 2
        inverse = 1 / (numerator * d + following)
        ahead = following + numerator / c
        factor = ahead * inverse
        return [k + 1, following, ahead, inverse, _moved(h, factor, change, eps), factor, n]

    def go_on(k: Term, b: Term, c: Term, d: Term, h: Term, change: Term, n: Term) -> Term:
        return (magnitude(change - 1) > eps) & (k < _MOST)

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


def _expi(x: Term) -> Term:
    eps = _eps(x)

    def step(k: Term, power: Term, total: Term, x: Term) -> list[Term]:
        power = power * x / k
        return [k + 1, power, total + power / k, x]

    def go_on(k: Term, power: Term, total: Term, x: Term) -> Term:
        return (power > total * eps) & (k < _MOST)

    one = constant_like(x, 1.0)
    positive = (x > 0) & (x < 40)
    near = where(positive, x, 1.0)
    series = repeat(step, go_on, [one, one, 0 * one, near])[2] + log(near) + _EULER
    far = where(x >= 40, x, 40.0)
    # The asymptotic series, cut before its least term.
    tail = exp(far) / far * polynomial(1 / far, [float(math.factorial(k)) for k in range(22)])
    negative = where(x < 0, -x, 1.0)
    below = -_expn(constant_like(x, 1.0), negative)
    made = where(x < 0, below, where(positive, series, tail))
    made = where(x == 0, -np.inf, where(x == np.inf, np.inf, made))
    return where(is_nan(x), x, made)


def expi_of(x: Term) -> Term:
    """The exponential integral Ei."""
    return known_derivative("expi", _expi, [lambda x: exp(x) / x], [x])


def exp1_of(x: Term) -> Term:
    """The exponential integral E1."""

    def value(x: Term) -> Term:
        return _expn(constant_like(x, 1.0), x)

    return known_derivative("exp1", value, [lambda x: -exp(-x) / x], [x])


gammainc = special(scipy_special.gammainc, gammainc_of)
gammaincc = special(scipy_special.gammaincc, gammaincc_of)
betainc = special(scipy_special.betainc, betainc_of)
expn = special(scipy_special.expn, expn_of)
expi = special(scipy_special.expi, expi_of)
exp1 = special(scipy_special.exp1, exp1_of)
