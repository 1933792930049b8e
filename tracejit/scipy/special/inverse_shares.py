"""Inverses of the incomplete gamma and beta functions, and the quantiles that they make.

Both functions and their complements are concave in log(x), or log(x / (1 - x)), once their
logarithm is taken (their densities are, and A. Prekopa, On logarithmic concave measures, 1973), so
Newton's method on the logarithm converges from anywhere; the smaller of share and complement is the
one inverted.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.special as scipy_special

from tracejit.scipy.special import incomplete_beta, incomplete_gamma
from tracejit.scipy.special.betas import betaln_of
from tracejit.scipy.special.errors import ndtri_of
from tracejit.scipy.special.functions import special
from tracejit.scipy.special.gammas import gammaln_of
from tracejit.scipy.special.incomplete_beta import beta_density, beta_slope, betainc_of
from tracejit.scipy.special.incomplete_gamma import gamma_density, gamma_slope
from tracejit.scipy.special.terms import (
    Term,
    constant_like,
    exp,
    floor,
    is_nan,
    known_derivative,
    larger,
    log,
    log1p,
    logistic,
    magnitude,
    repeat,
    smaller,
    sqrt,
    where,
)

_MOST = 60.0
_FARTHEST = 3.0
_END = 750.0
"""The longest step in log(x), which keeps a first guess far off from leaving the range."""


def _newton(
    first: Term, target: Term, upper: Term, at: list[Term], shares: Callable[..., list[Term]]
) -> Term:
    """y where the logarithm of a share is ``target``.

    ``shares`` gives the lower and the upper share at y, and the slope of the lower one in y.
    """
    eps = 1e-6 if first.is_single else 4e-15
    rounding = 1e-7 if first.is_single else 2e-16

    def step(
        k: Term, y: Term, change: Term, low: Term, high: Term, target: Term, upper: Term, *at: Term
    ) -> list[Term]:
        running = _moves(y, change, eps)
        lower, rest, slope = shares(y, *at)
        is_upper = upper > 0.5
        share = where(is_upper, rest, lower)
        is_none, flat = share <= 0, slope <= 0
        excess = where(is_none, -np.inf, log(where(is_none, 1.0, share)) - target)
        right = (excess > 0) != is_upper
        low, high = where(right, low, y), where(right, y, high)
        gap = excess * where(is_none, 1.0, share) / where(flat, 1.0, slope)
        gap = where(is_upper, -gap, where(flat, where(right, gap * 0 + np.inf, -np.inf), gap))
        following = y - larger(smaller(gap, _FARTHEST), -_FARTHEST)
        allowed = eps * larger(magnitude(y), 1.0)
        outside = (following < low - allowed) | (following > high + allowed)
        outside = outside | (is_none & (low > -_END) & (high < _END))
        following = where(outside, 0.5 * (low + high), following)
        is_found = magnitude(excess) <= rounding * (1 + magnitude(target))
        following = where(is_found | ~running, y, following)
        change = where(running, following - y, change)
        return [k + 1, following, change, low, high, target, upper, *at]

    def go_on(k: Term, y: Term, change: Term, *at: Term) -> Term:
        return _moves(y, change, eps) & (k < _MOST)

    zero = constant_like(first, 0.0)
    ends = [constant_like(first, -_END), constant_like(first, _END)]
    return repeat(step, go_on, [zero, first, zero + 1, *ends, target, upper, *at])[1]


def _moves(y: Term, change: Term, eps: float) -> Term:
    return magnitude(change) > eps * larger(magnitude(y) * 0.1, 1.0)


def _gamma_shares(y: Term, a: Term) -> list[Term]:
    x = exp(y)
    return [
        incomplete_gamma.gammainc_of(a, x),
        incomplete_gamma.gammaincc_of(a, x),
        gamma_density(a, x) * x,
    ]


def _gamma_quantile(a: Term, p: Term, q: Term) -> Term:
    """x where the lower share is p = 1 - q; the smaller one is exact."""
    usual = (a > 0) & (a < np.inf) & (p > 0) & (q > 0)
    shape = where(usual, a, 1.0)
    low, high = where(usual, p, 0.5), where(usual, q, 0.5)
    upper = low > high
    # Wilson and Hilferty's guess, and for a small share x**a / gamma(a + 1).
    deviate = where(upper, -ndtri_of(high), ndtri_of(low))
    root = 1 - 1 / (9 * shape) + deviate / (3 * sqrt(shape))
    wide = shape * root * root * root
    start = (log(low) + gammaln_of(shape + 1)) / shape
    by_root = (root > 0.2) & (shape > 0.3)
    guess = where(by_root, log(where(by_root, wide, 1.0)), smaller(start, 3.0 + log(shape + 1)))
    # There the share is the first term of its series.
    tiny = start < (-80.0 if a.is_single else -600.0)
    target = log(where(upper, high, low))
    flag = where(upper, constant_like(a, 1.0), 0.0)
    found = _newton(
        where(tiny, 0.0, guess),
        where(tiny, -0.5, target),
        where(tiny, 0.0, flag),
        [where(tiny, 1.0, shape)],
        _gamma_shares,
    )
    made = exp(where(tiny, start, found))
    made = where(usual, made, where(p <= 0, 0.0, constant_like(a, np.inf)))
    right = (a > 0) & (p >= 0) & (q >= 0) & (a < np.inf)
    return where(right & ~is_nan(p), made, np.nan)


def _gamma_in_a(a: Term, x: Term) -> Term:
    inside = (x > 0) & (x < np.inf)
    at = where(inside, x, 1.0)
    return where(inside, -gamma_slope(a, at) / gamma_density(a, at), 0.0)


def gammaincinv_of(a: Term, p: Term) -> Term:
    """x with gammainc(a, x) = p."""
    return known_derivative(
        "gammaincinv",
        lambda a, p: _gamma_quantile(a, p, 1 - p),
        [
            lambda a, p: _gamma_in_a(a, gammaincinv_of(a, p)),
            lambda a, p: 1 / gamma_density(a, gammaincinv_of(a, p)),
        ],
        [a, p],
    )


def gammainccinv_of(a: Term, q: Term) -> Term:
    """x with gammaincc(a, x) = q."""
    return known_derivative(
        "gammainccinv",
        lambda a, q: _gamma_quantile(a, 1 - q, q),
        [
            lambda a, q: _gamma_in_a(a, gammainccinv_of(a, q)),
            lambda a, q: -1 / gamma_density(a, gammainccinv_of(a, q)),
        ],
        [a, q],
    )


def _beta_shares(y: Term, a: Term, b: Term) -> list[Term]:
    x, rest = logistic(y), logistic(-y)
    below = y < 0
    first, second, at = where(below, a, b), where(below, b, a), where(below, x, rest)
    share = betainc_of(first, second, at)
    # The complement by itself where it is small, unless 1 - x has lost the digits of x.
    apart = (share > 0.999) & (at > 1e-10)
    m, n, above = (
        where(apart, one, other) for one, other in ((second, 1.0), (first, 1.0), (1 - at, 0.5))
    )
    complement = where(apart, betainc_of(m, n, above), 1 - share)
    slope = incomplete_beta.front(a, b, x, rest)
    return [where(below, share, complement), where(below, complement, share), slope]


def _beta_logit(a: Term, b: Term, p: Term, q: Term) -> Term:
    """log(x / (1 - x)) where the lower share is p = 1 - q."""
    usual = (a > 0) & (b > 0) & (a < np.inf) & (b < np.inf) & (p > 0) & (q > 0)
    m, n = where(usual, a, 1.0), where(usual, b, 1.0)
    low, high = where(usual, p, 0.5), where(usual, q, 0.5)
    upper = low > high
    # By the first terms of the series at both ends, as long as these are small, else the mean.
    whole = betaln_of(m, n)
    left = (log(low) + log(m) + whole) / m
    right = (log(high) + log(n) + whole) / n
    mean = log(m / n)
    guess = where(
        left < smaller(mean, -1.0), left, where(right < smaller(-mean, -1.0), -right, mean)
    )
    limit = 80.0 if a.is_single else 600.0
    far_left, far_right = left < -limit, right < -limit
    far = far_left | far_right
    target = log(where(upper, high, low))
    flag = where(upper, constant_like(a, 1.0), 0.0)
    found = _newton(
        where(far, 0.0, larger(smaller(guess, limit), -limit)),
        where(far, -0.5, target),
        where(far, 0.0, flag),
        [where(far, 1.0, m), where(far, 1.0, n)],
        _beta_shares,
    )
    y = where(far_left, left, where(far_right, -right, found))
    ends = where(p <= 0, -np.inf, constant_like(a, np.inf))
    y = where(usual, y, ends)
    right_ones = (a > 0) & (b > 0) & (p >= 0) & (q >= 0) & (a < np.inf) & (b < np.inf)
    return where(right_ones & ~is_nan(p), y, np.nan)


def _beta_in(parameter: bool) -> Callable[[Term, Term, Term], Term]:
    def slope(a: Term, b: Term, x: Term) -> Term:
        inside = (x > 0) & (x < 1)
        at = where(inside, x, 0.5)
        return where(inside, -beta_slope(a, b, at, parameter) / beta_density(a, b, at), 0.0)

    return slope


def betaincinv_of(a: Term, b: Term, p: Term) -> Term:
    """x with betainc(a, b, x) = p."""
    return known_derivative(
        "betaincinv",
        lambda a, b, p: logistic(_beta_logit(a, b, p, 1 - p)),
        [
            lambda a, b, p: _beta_in(False)(a, b, betaincinv_of(a, b, p)),
            lambda a, b, p: _beta_in(True)(a, b, betaincinv_of(a, b, p)),
            lambda a, b, p: 1 / beta_density(a, b, betaincinv_of(a, b, p)),
        ],
        [a, b, p],
    )


def betainccinv_of(a: Term, b: Term, q: Term) -> Term:
    """x with betaincc(a, b, x) = q."""
    return known_derivative(
        "betainccinv",
        lambda a, b, q: logistic(_beta_logit(a, b, 1 - q, q)),
        [
            lambda a, b, q: _beta_in(False)(a, b, betainccinv_of(a, b, q)),
            lambda a, b, q: _beta_in(True)(a, b, betainccinv_of(a, b, q)),
            lambda a, b, q: -1 / beta_density(a, b, betainccinv_of(a, b, q)),
        ],
        [a, b, q],
    )


def _stdtrit(df: Term, p: Term) -> Term:
    usual = (df > 0) & (df < np.inf) & (p > 0) & (p < 1)
    freedom, chance = where(usual, df, 1.0), where(usual, p, 0.5)
    below = chance < 0.5
    tail = 2 * where(below, chance, 1 - chance)
    half = constant_like(df, 0.5)
    # df / (df + t**2) has the logit y, so t is sqrt(df) exp(-y / 2).
    y = _beta_logit(0.5 * freedom, half, tail, 1 - tail)
    size = where(tail == 1, 0.0, sqrt(freedom) * exp(-0.5 * y))
    made = where(below, -size, size)
    is_normal = (df == np.inf) & (p > 0) & (p < 1)
    made = where(is_normal, ndtri_of(where(is_normal, p, 0.5)), made)
    ends = where(p == 0, -np.inf, where(p == 1, constant_like(p, np.inf), np.nan))
    return where(df > 0, where(usual | is_normal, made, ends), np.nan)


def _t_density(df: Term, t: Term) -> Term:
    square = t * t
    exponent = -0.5 * (df + 1) * log1p(square / df)
    return exp(exponent - betaln_of(0.5 * df, constant_like(df, 0.5))) / sqrt(df)


def _t_in_freedom(df: Term, p: Term) -> Term:
    t = stdtrit_of(df, p)
    x = df / (df + t * t)
    half = constant_like(df, 0.5)
    inside = (x > 0) & (x < 1)
    at = where(inside, x, 0.5)
    # The tail on both sides is I_x(df / 2, 1 / 2).
    change = 0.5 * beta_slope(0.5 * df, half, at, False)
    change = change + beta_density(0.5 * df, half, at) * (1 - at) * at / df
    made = 0.5 * where(t < 0, -change, change) / _t_density(df, t)
    return where(inside, made, 0.0)


def stdtrit_of(df: Term, p: Term) -> Term:
    """t with stdtr(df, t) = p."""
    slopes = [_t_in_freedom, lambda df, p: 1 / _t_density(df, stdtrit_of(df, p))]
    return known_derivative("stdtrit", _stdtrit, slopes, [df, p])


def _fdtri(dfn: Term, dfd: Term, p: Term) -> Term:
    y = betaincinv_of(0.5 * dfd, 0.5 * dfn, 1 - p)
    right = (dfn > 0) & (dfd > 0) & (p > 0) & (p <= 1)
    inside = where(right & (y > 0), y, 0.5)
    x = betaincinv_of(0.5 * dfn, 0.5 * dfd, where(right, p, 0.5))
    by_x = x < 0.5
    at = where(by_x, x, 0.5)
    made = where(by_x, dfd * at / (dfn * (1 - at)), dfd * (1 - inside) / (dfn * inside))
    return where(right, where(y == 0, np.inf, made), np.nan)


def _counts(k: Term, n: Term, p: Term) -> tuple[Term, Term, Term]:
    right = (k >= 0) & (n >= 0) & (p >= 0) & (p <= 1)
    return where(right, floor(k), 0.0), where(right, n, 1.0), where(right, p, 0.5)


def _bdtr(k: Term, n: Term, p: Term) -> Term:
    count, of, chance = _counts(k, n, p)
    whole = floor(of)
    usual = count < whole
    few, many = where(usual, count, 0.0), where(usual, whole, 1.0)
    made = where(usual, betainc_of(many - few, few + 1, 1 - chance), 1.0)
    wrong = (floor(k) > floor(n)) | ~((p >= 0) & (p <= 1)) | (k < 0) | ~(magnitude(n) < np.inf)
    return where(wrong | is_nan(k), np.nan, made)


def _bdtrc(k: Term, n: Term, p: Term) -> Term:
    count, of, chance = _counts(k, n, p)
    whole = floor(of)
    usual = count < whole
    few, many = where(usual, count, 0.0), where(usual, whole, 1.0)
    made = where(usual, betainc_of(few + 1, many - few, chance), 0.0)
    wrong = (floor(k) > floor(n)) | ~((p >= 0) & (p <= 1)) | ~(magnitude(n) < np.inf)
    return where(wrong | is_nan(k), np.nan, where(k < 0, 1.0, made))


def _nbdtr(k: Term, n: Term, p: Term) -> Term:
    right = (k >= 0) & (n > 0)
    count, of = where(right, floor(k), 0.0), where(right, floor(n), 1.0)
    return where(right, betainc_of(of, count + 1, p), np.nan)


def _nbdtrc(k: Term, n: Term, p: Term) -> Term:
    right = (k >= 0) & (n > 0)
    count, of = where(right, floor(k), 0.0), where(right, floor(n), 1.0)
    return where(right, betainc_of(count + 1, of, 1 - p), np.nan)


def _nrdtrisd(mean: Term, p: Term, x: Term) -> Term:
    return (x - mean) / ndtri_of(p)


gammaincinv = special(scipy_special.gammaincinv, gammaincinv_of)
gammainccinv = special(scipy_special.gammainccinv, gammainccinv_of)
betaincinv = special(scipy_special.betaincinv, betaincinv_of)
betainccinv = special(scipy_special.betainccinv, betainccinv_of)
stdtrit = special(scipy_special.stdtrit, stdtrit_of)
chdtri = special(scipy_special.chdtri, lambda v, q: 2 * gammainccinv_of(0.5 * v, q))
fdtri = special(scipy_special.fdtri, _fdtri)
pdtri = special(scipy_special.pdtri, lambda k, p: gammainccinv_of(floor(k) + 1, p))
gdtrix = special(scipy_special.gdtrix, lambda a, b, p: gammaincinv_of(b, p) / a)
bdtr = special(scipy_special.bdtr, _bdtr)
bdtrc = special(scipy_special.bdtrc, _bdtrc)
nbdtr = special(scipy_special.nbdtr, _nbdtr)
nbdtrc = special(scipy_special.nbdtrc, _nbdtrc)
nrdtrimn = special(scipy_special.nrdtrimn, lambda p, std, x: x - std * ndtri_of(p))
nrdtrisd = special(scipy_special.nrdtrisd, _nrdtrisd)
