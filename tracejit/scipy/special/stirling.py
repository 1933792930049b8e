"""What Stirling's formula leaves over, without the cancellation of large logarithms.

gamma(s) = sqrt(2 pi / s) (s / e)**s times a factor that is 1 for large s. Reference: DLMF 5.11.
"""

from __future__ import annotations

import math

from tracejit.scipy.special.gammas import gammaln_of, stirling_tail
from tracejit.scipy.special.terms import Term, larger, log, polynomial, smaller, where

_ODD = [1 / (2 * k + 3) for k in range(14)]
LARGE = 10.0
"""From there on Stirling's series is used."""


def gap_ratio(u: Term) -> Term:
    """(u - log1p(u)) / u**2, about one half, for abs(u) up to one half.

    With s = u / (2 + u), log1p(u) is 2 s + 2 s**3 (1/3 + s**2 / 5 + ...).
    """
    below = 2 + u
    s = u / below
    return (1 - 2 * s * polynomial(s * s, _ODD) / below) / below


def gap(u: Term, ratio: Term) -> Term:
    """log(ratio) - u, where ``ratio`` is 1 + u, both exact to rounding."""
    near = (u > -0.4) & (u < 0.5)
    close = where(near, u, 0.0)
    far = log(where(near, 1.0, ratio)) - where(near, 0.0, u)
    return where(near, -close * close * gap_ratio(close), far)


def log_factor(s: Term) -> Term:
    """log(gamma(s)) - (s - 1/2) log(s) + s - log(2 pi) / 2, for s > 0."""
    large = larger(s, LARGE)
    small = smaller(s, LARGE)
    rest = gammaln_of(small) - (small - 0.5) * log(small) + small - 0.5 * math.log(2 * math.pi)
    return where(s >= LARGE, stirling_tail(large), rest)
