"""The incomplete beta function: a continued fraction, and an expansion for large parameters.

Reference: DLMF 8.17.22.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import scipy.special as scipy_special

from tracejit.scipy.special.convergence import MOST, apart, least, moved, precision
from tracejit.scipy.special.functions import special
from tracejit.scipy.special.gammas import digamma_of
from tracejit.scipy.special.stirling import gap, log_factor
from tracejit.scipy.special.terms import (
    Term,
    constant_like,
    exp,
    known_derivative,
    larger,
    log,
    log1p,
    magnitude,
    repeat,
    smaller,
    sqrt,
    where,
)
from tracejit.scipy.special.uniform import beta_shares, near_beta


def _fraction(a: Term, b: Term, x: Term, y: Term) -> Term:
    """x**a y**b / beta(a, b) over the function of x = 1 - y, up to the mean (Lentz's method).

    The even part of DLMF 8.17.22, in which nothing cancels, as A. Didonato and A. Morris have it
    in Significant digit computation of the incomplete beta function ratios, 1992.
    """
    # Some units in the last place: the factors' rounding may never settle within one.
    eps, tiny = 2.5 * precision(x), least(x)
    beyond = a * y - b * x + 1

    def step(m: Term, c: Term, d: Term, h: Term, change: Term, *at: Term) -> list[Term]:
        a, b, x, y, beyond = at
        odd, even = a + 2 * m - 1, a + 2 * m + 1
        share = m * ((b - m) * x) / odd
        above = share * ((a + m - 1) / odd) * ((a + b + m - 1) * x)
        below = m + share + (a + m) / even * (beyond + m * (1 + y))
        d = 1 / apart(below + above * d, tiny)
        c = apart(below + above / c, tiny)
        return [m + 1, c, d, moved(h, c * d, change, eps), c * d, *at]

    def go_on(m: Term, c: Term, d: Term, h: Term, change: Term, *at: Term) -> Term:
        return (magnitude(change - 1) > eps) & (m < MOST)

    one = constant_like(x, 1.0)
    first = a / (a + 1) * beyond
    state = [one, first, one * 0, first, one * 2, a, b, x, y, beyond]
    return repeat(step, go_on, state)[3]


def front(a: Term, b: Term, x: Term, y: Term) -> Term:
    """x**a y**b / beta(a, b) with y = 1 - x, all three relative to what they are at the mean."""
    total = a + b
    distance = b * x - a * y
    deviation = a * gap(distance / a, x * (total / a))
    deviation = deviation + b * gap(-distance / b, y * (total / b))
    factors = log_factor(total) - log_factor(a) - log_factor(b)
    return exp(deviation + factors) * sqrt(a * (b / total) * (0.5 / math.pi))


def _betainc(a: Term, b: Term, x: Term) -> Term:
    usual = (a > 0) & (b > 0) & (x > 0) & (x < 1)
    p, q, y = where(usual, a, 1.0), where(usual, b, 1.0), where(usual, x, 0.5)
    # The fraction converges fast below the mean, so the tail that is meant may be the other one.
    turned = q * y > p * (1 - y)
    first, second = where(turned, q, p), where(turned, p, q)
    at, rest = where(turned, 1 - y, y), where(turned, y, 1 - y)
    share = front(first, second, at, rest) / _fraction(first, second, at, rest)
    made = larger(smaller(share, 1.0), 0.0)
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
    eps = precision(x)

    def step(n: Term, term: Term, by_a: Term, by_b: Term, *others: Term) -> list[Term]:
        sums, in_a, in_b, *at = others
        a, b, x = at
        above, below = a + b + n, a + 1 + n
        term = term * x * above / below
        by_a, by_b = by_a + 1 / above - 1 / below, by_b + 1 / above
        sums, in_a, in_b = sums + term, in_a + term * by_a, in_b + term * by_b
        return [n + 1, term, by_a, by_b, sums, in_a, in_b, *at]

    def go_on(n: Term, term: Term, by_a: Term, by_b: Term, sums: Term, *others: Term) -> Term:
        _, _, a, b, x = others
        rising = x * (a + b + n) > a + 1 + n
        return (rising | (term * (1 + magnitude(by_a) + by_b) > sums * eps)) & (n < MOST)

    zero, one = constant_like(x, 0.0), constant_like(x, 1.0)
    state = [zero, one, zero, zero, one, zero, zero, a, b, x]
    _, _, _, _, sums, in_a, in_b, *_ = repeat(step, go_on, state)
    share = front(a, b, x, 1 - x) / a
    both = digamma_of(a + b)
    of_front = log(x) - digamma_of(a) + both - 1 / a, log1p(-x) - digamma_of(b) + both
    return share * (sums * of_front[0] + in_a), share * (sums * of_front[1] + in_b)


def beta_slope(a: Term, b: Term, x: Term, of_b: bool) -> Term:
    """The derivative in a, or in b: 1 - I_(1-x)(b, a) where the series would be slow."""
    usual = (a > 0) & (b > 0) & (x > 0) & (x < 1)
    p, q, y = where(usual, a, 1.0), where(usual, b, 1.0), where(usual, x, 0.5)
    turned = y > (p + 1) / (p + q + 2)
    first, second = where(turned, q, p), where(turned, p, q)
    slopes = _beta_slopes(first, second, where(turned, 1 - y, y))
    made = where(turned, -slopes[0], slopes[1]) if of_b else where(turned, -slopes[1], slopes[0])
    edge = (a > 0) & (b > 0) & ((x == 0) | (x == 1))
    return where(usual, made, where(edge, constant_like(x, 0.0), np.nan))


def beta_density(a: Term, b: Term, x: Term) -> Term:
    """The derivative in x."""
    inside = (x > 0) & (x < 1)
    y = where(inside, x, 0.5)
    made = front(a, b, y, 1 - y) / y / (1 - y)
    # At an end only the exponent of the factor that vanishes there counts.
    exponent, other = where(x == 0, a, b), where(x == 0, b, a)
    at_end = where(exponent == 1, other, where(exponent < 1, x * 0 + np.inf, 0.0))
    return where(inside, made, where((x == 0) | (x == 1), at_end, np.nan))


def betainc_of(a: Term, b: Term, x: Term) -> Term:
    """The share of beta(a, b)'s integral up to x."""
    central = near_beta(a, b, x)
    inside = [where(central, one, other) for one, other in ((a, 1e3), (b, 1e3), (x, 0.5))]
    near = beta_shares(*inside)[0]
    slopes = [partial(beta_slope, of_b=of_b) for of_b in (False, True)]
    outside = [where(central, other, one) for one, other in ((a, 1.0), (b, 1.0), (x, 0.5))]
    rest = known_derivative("betainc", _betainc, [*slopes, beta_density], outside)
    return where(central, near, rest)


betainc = special(scipy_special.betainc, betainc_of)
