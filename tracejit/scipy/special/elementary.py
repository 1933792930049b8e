"""Short formulas: logistic functions, entropies, x log y, Box-Cox, Bessel I0 and I1, spence."""

from __future__ import annotations

import math

import numpy as np
import scipy.special as scipy_special

from tracejit.numpy import bessel
from tracejit.ops import elementwise_unary
from tracejit.scipy.special import terms
from tracejit.scipy.special.betas import beta_of
from tracejit.scipy.special.functions import special
from tracejit.scipy.special.terms import (
    Term,
    constant_like,
    exp,
    floor,
    is_nan,
    known_derivative,
    log,
    logistic,
    magnitude,
    polynomial,
    sin,
    smaller,
    sqrt,
    where,
)


def _logit(x: Term) -> Term:
    middle = (x > 0.3) & (x < 0.65)
    twice = 2 * where(middle, x, 0.5) - 1
    outer = where(middle, 0.5, x)
    return where(middle, terms.log1p(twice) - terms.log1p(-twice), log(outer / (1 - outer)))


def _log_expit(x: Term) -> Term:
    return smaller(x, 0.0) - terms.log1p(exp(-magnitude(x)))


def _xlogy(x: Term, y: Term) -> Term:
    # Where the logarithm is finite 0 times it is 0 as it stands, with the right derivative.
    nothing = (x == 0) & ~is_nan(y) & ~((y > 0) & (y < np.inf))
    return where(nothing, 0.0, x * log(where(nothing, 1.0, y)))


def _xlog1py(x: Term, y: Term) -> Term:
    nothing = (x == 0) & ~is_nan(y) & ~((y > -1) & (y < np.inf))
    return where(nothing, 0.0, x * terms.log1p(where(nothing, 0.0, y)))


def _entr(x: Term) -> Term:
    positive = x > 0
    inside = where(positive, x, 1.0)
    made = where(positive, -inside * log(inside), where(x == 0, 0.0, constant_like(x, -np.inf)))
    return where(is_nan(x), x, made)


def _rel_entr(x: Term, y: Term) -> Term:
    usual = (x > 0) & (y > 0)
    p, q = where(usual, x, 1.0), where(usual, y, 1.0)
    made = where(
        usual, p * (log(p) - log(q)), where((x == 0) & (y >= 0), 0.0, constant_like(x, np.inf))
    )
    return where(is_nan(x) | is_nan(y), np.nan, made)


def _kl_div(x: Term, y: Term) -> Term:
    made = _rel_entr(x, y)
    usual = made < np.inf
    return where(usual, made - where(usual, x, 0.0) + where(usual, y, 0.0), made)


_EXPREL = [1 / math.factorial(k + 1) for k in range(12)]


def _exprel(x: Term) -> Term:
    small = magnitude(x) < 0.25
    near, far = where(small, x, 0.0), where(small, 1.0, x)
    large = far > 50
    # The power overflows before the quotient.
    half = exp(where(large, far, 0.0) * 0.5)
    beyond = where(large, half * (half / far), terms.expm1(far) / far)
    return where(small, polynomial(near, _EXPREL), where(x == np.inf, x, beyond))


def _huber(delta: Term, r: Term) -> Term:
    size = magnitude(r)
    made = where(size <= delta, 0.5 * r * r, delta * (size - 0.5 * delta))
    return where(delta < 0, np.inf, made)


def _pseudo_huber(delta: Term, r: Term) -> Term:
    usual = delta > 0
    scale = where(usual, delta, 1.0)
    ratio = r / scale
    made = scale * scale * (ratio * ratio / (sqrt(1 + ratio * ratio) + 1))
    return where(usual, made, where(delta == 0, 0.0, constant_like(r, np.inf)))


def _boxcox(x: Term, power: Term) -> Term:
    none = power == 0
    exponent = where(none, 1.0, power)
    return where(none, log(x), terms.expm1(exponent * log(x)) / exponent)


def _boxcox1p(x: Term, power: Term) -> Term:
    none = power == 0
    exponent = where(none, 1.0, power)
    return where(none, terms.log1p(x), terms.expm1(exponent * terms.log1p(x)) / exponent)


def _inv_boxcox(y: Term, power: Term) -> Term:
    none = power == 0
    exponent = where(none, 1.0, power)
    return where(none, exp(y), exp(terms.log1p(exponent * y) / exponent))


# Li2(1 - exp(-u)) = u - u**2 / 4 + sum of B_2k u ** (2 k + 1) / (2 k + 1)!, DLMF 25.12.
_DEBYE = [1.0] + [
    float(b) / math.factorial(2 * k + 1) for k, b in enumerate(scipy_special.bernoulli(24)[2::2], 1)
]
_SLOPE = [-((-1.0) ** k) / (k + 1) for k in range(16)]


def _spence(x: Term) -> Term:
    large = x > 2
    y = where(large, 1 / where(large, x, 1.0), x)
    small = y < 0.5
    u = -log(where(small, 1 - y, y))
    series = u * polynomial(u * u, _DEBYE) - u * u * 0.25
    inside = where(small & (y > 0), y, 0.25)
    mirrored = math.pi**2 / 6 - log(inside) * terms.log1p(-inside) - series
    made = where(small, where(y == 0, math.pi**2 / 6, mirrored), series)
    logarithm = log(where(large, x, 1.0))
    made = where(large, -0.5 * logarithm * logarithm - made, made)
    return where(x < 0, np.nan, made)


def _spence_slope(x: Term) -> Term:
    """log(x) / (1 - x), which is -1 at 1."""
    away = x - 1
    near = magnitude(away) < 0.1
    close, far = where(near, away, 0.0), where(near, 2.0, x)
    return where(near, polynomial(close, _SLOPE), log(far) / (1 - far))


def _cosm1(x: Term) -> Term:
    half = sin(x * 0.5)
    return -2 * half * half


def _exp2(x: Term) -> Term:
    return constant_like(x, 2.0) ** x


def _i0(x: Term) -> Term:
    return known_derivative("i0", lambda x: Term(bessel.i0(x.value)), [_i1], [x])


def _i1(x: Term) -> Term:
    def slope(x: Term) -> Term:
        at_zero = x == 0
        inside = where(at_zero, 1.0, x)
        return where(at_zero, 0.5, _i0(x) - _i1(inside) / inside)

    return known_derivative("i1", lambda x: Term(bessel.i1(x.value)), [slope], [x])


def _binom(n: Term, k: Term) -> Term:
    below = n - k + 1
    nothing = (below <= 0) & (floor(below) == below) & (n >= 0)
    nothing = nothing | ((k < 0) & (floor(k) == k))
    first, second = where(nothing, 1.0, below), where(nothing, 1.0, k + 1)
    return where(nothing, 0.0, 1 / ((n + 1) * beta_of(first, second)))


expit = special(scipy_special.expit, logistic)
logit = special(scipy_special.logit, _logit)
log_expit = special(scipy_special.log_expit, _log_expit)
xlogy = special(scipy_special.xlogy, _xlogy)
xlog1py = special(scipy_special.xlog1py, _xlog1py)
entr = special(scipy_special.entr, _entr)
rel_entr = special(scipy_special.rel_entr, _rel_entr)
kl_div = special(scipy_special.kl_div, _kl_div)
exprel = special(scipy_special.exprel, _exprel)
huber = special(scipy_special.huber, _huber)
pseudo_huber = special(scipy_special.pseudo_huber, _pseudo_huber)
boxcox = special(scipy_special.boxcox, _boxcox)
boxcox1p = special(scipy_special.boxcox1p, _boxcox1p)
inv_boxcox = special(scipy_special.inv_boxcox, _inv_boxcox)
cosm1 = special(scipy_special.cosm1, _cosm1)
exp2 = special(scipy_special.exp2, _exp2)
exp10 = special(scipy_special.exp10, lambda x: constant_like(x, 10.0) ** x)
expm1 = special(scipy_special.expm1, terms.expm1)
log1p = special(scipy_special.log1p, terms.log1p)
cbrt = special(scipy_special.cbrt, lambda x: Term(elementwise_unary.cbrt(x.value)))
binom = special(scipy_special.binom, _binom)
i0 = special(scipy_special.i0, _i0)
i0e = special(scipy_special.i0e, lambda x: Term(bessel.i0e(x.value)))
i1 = special(scipy_special.i1, _i1)
i1e = special(scipy_special.i1e, lambda x: Term(bessel.i1e(x.value)))
spence = special(
    scipy_special.spence, lambda x: known_derivative("spence", _spence, [_spence_slope], [x])
)
