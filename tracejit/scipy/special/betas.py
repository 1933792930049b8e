"""The beta function, binomials and rising factorials: quotients of gamma functions.

Where arguments are large, Stirling's formula is divided by itself before anything is computed.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.special as scipy_special

from tracejit.scipy.special.functions import special
from tracejit.scipy.special.gammas import gamma_of, gammaln_of, gammasgn_of
from tracejit.scipy.special.stirling import LARGE, gap, log_factor
from tracejit.scipy.special.terms import (
    Term,
    exp,
    larger,
    log,
    log1p,
    magnitude,
    smaller,
    where,
)


def _quotient(z: Term, m: Term) -> Term:
    """log(gamma(z + m) / gamma(z)) - m log(z + m), for z and z + m from `LARGE` on."""
    total = z + m
    ratio = total / z
    return z * gap(m / z, ratio) - 0.5 * log(ratio) + (log_factor(total) - log_factor(z))


def _log_of_large(a: Term, b: Term) -> Term:
    """log(beta(a, b)) for a and b from `LARGE` on."""
    total = a + b
    factors = log_factor(a) + log_factor(b) - log_factor(total)
    root = 0.5 * (log(a * (b / total)) - math.log(2 * math.pi))
    return factors - root - a * log1p(b / a) - b * log1p(a / b)


def betaln_of(a: Term, b: Term) -> Term:
    """log(abs(beta(a, b)))."""
    high, low = larger(a, b), smaller(a, b)
    both = low >= LARGE
    one = ~both & (high >= LARGE) & (high + low >= LARGE) & (high < np.inf)
    of_both = _log_of_large(where(both, high, LARGE), where(both, low, LARGE))
    factor = where(one, low, 1.0)
    total = where(one, high, LARGE) + factor
    of_one = gammaln_of(factor) - factor * log(total) - _quotient(where(one, high, LARGE), factor)
    neither = both | one
    x, y = where(neither, 1.0, a), where(neither, 1.0, b)
    rest = gammaln_of(x) + gammaln_of(y) - gammaln_of(x + y)
    return where(both, of_both, where(one, of_one, rest))


def beta_of(a: Term, b: Term) -> Term:
    """gamma(a) gamma(b) / gamma(a + b)."""
    sign = gammasgn_of(a) * gammasgn_of(b) * gammasgn_of(a + b)
    limit = 15.0 if a.is_single else 80.0
    small = (magnitude(a) < limit) & (magnitude(b) < limit)
    x, y = where(small, a, 1.0), where(small, b, 1.0)
    direct = gamma_of(x) * (gamma_of(y) / gamma_of(x + y))
    return where(small, direct, sign * exp(betaln_of(a, b)))


def poch_of(z: Term, m: Term) -> Term:
    """The rising factorial gamma(z + m) / gamma(z)."""
    limit = 15.0 if z.is_single else 80.0
    small = (magnitude(z) < limit) & (magnitude(m) < limit)
    x, y = where(small, z, 1.0), where(small, m, 0.0)
    large = ~small & (z >= LARGE) & (z + m >= LARGE)
    base, more = where(large, z, LARGE), where(large, m, 0.0)
    # Half the power twice: the whole one overflows before the product does.
    half = (base + more) ** (more * 0.5)
    of_large = half * exp(_quotient(base, more)) * half
    sign = gammasgn_of(z + m) * gammasgn_of(z)
    ratio = where(large, of_large, sign * exp(gammaln_of(z + m) - gammaln_of(z)))
    return where(m == 0, 1.0, where(small, gamma_of(x + y) / gamma_of(x), ratio))


beta = special(scipy_special.beta, beta_of)
betaln = special(scipy_special.betaln, betaln_of)
poch = special(scipy_special.poch, poch_of)
