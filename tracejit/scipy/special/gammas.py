"""The gamma function and what is made of it: logarithms, derivatives, beta, zeta, binomials.

Stirling's series after a shift to arguments of ten and more; the reflection formula below one
half. Reference: DLMF 5.11, 5.5.3, 25.11.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.special as scipy_special

from tracejit.scipy.special.functions import special
from tracejit.scipy.special.terms import (
    Term,
    constant_like,
    cos,
    exp,
    floor,
    is_nan,
    known_derivative,
    larger,
    log,
    log1p,
    magnitude,
    nearest,
    polynomial,
    sin,
    smaller,
    where,
)

_EULER = float(np.euler_gamma)
_SHIFT = 10
_BERNOULLI = [float(b) for b in scipy_special.bernoulli(24)[2::2]]
# Stirling: log gamma(s) = (s - 1/2) log s - s + log(2 pi) / 2 + sum of these / s ** (2 k - 1).
_STIRLING = [b / (2 * k * (2 * k - 1)) for k, b in enumerate(_BERNOULLI, 1)]
_PSI = [-b / (2 * k) for k, b in enumerate(_BERNOULLI, 1)]
# log gamma(2 + z) = z times the polynomial with these coefficients.
_NEAR_TWO = [1 - _EULER] + [(-1) ** k * float(scipy_special.zeta(k, 2)) / k for k in range(2, 30)]
_HURWITZ = [b / math.factorial(2 * k) for k, b in enumerate(_BERNOULLI[:10], 1)]
_TERMS = 8


def _sine_of_pi(x: Term) -> Term:
    """sin(pi x), with its sign."""
    whole = nearest(x)
    odd = whole - floor(whole * 0.5) * 2
    return sin((x - whole) * math.pi) * (1 - odd * 2)


def _shifted(y: Term) -> tuple[Term, Term]:
    """(s, product): gamma(y) = gamma(s) / product, with s at least the shift."""
    few = y < _SHIFT
    base = where(few, y, 1.0)
    product = base
    for k in range(1, _SHIFT):
        product = product * (base + k)
    return where(few, y + _SHIFT, y), where(few, product, 1.0)


def _log_gamma_from_half(y: Term) -> Term:
    """For arguments of one half and more."""
    near = larger(smaller(y, 2.5), 0.5)
    upper = near > 1.5
    z = where(upper, near - 2, near - 1)
    series = z * polynomial(z, _NEAR_TWO)
    close = where(upper, series, series - log1p(z))
    s, product = _shifted(larger(y, 2.5))
    inverse = 1 / s
    tail = inverse * polynomial(inverse * inverse, _STIRLING[:_TERMS])
    far = (s - 0.5) * (log(s) - 1) - 0.5 + (0.5 * math.log(2 * math.pi)) + tail - log(product)
    return where(y <= 2.5, close, where(y == np.inf, y, far))


def _log_gamma(x: Term) -> Term:
    low = x < 0.5
    straight = _log_gamma_from_half(where(low, 1 - x, x))
    sine = magnitude(_sine_of_pi(where(low, x, 0.5)))
    mirrored = math.log(math.pi) - log(sine) - straight
    made = where(low, mirrored, straight)
    return where(magnitude(x) == np.inf, magnitude(x), made)


def gammaln_of(x: Term) -> Term:
    """log(abs(gamma(x)))."""
    return known_derivative("gammaln", _log_gamma, [digamma_of], [x])


def _gamma_from_half(y: Term) -> Term:
    # From there on it is infinite.
    s, product = _shifted(smaller(y, 36.0 if y.is_single else 172.0))
    inverse = 1 / s
    tail = inverse * polynomial(inverse * inverse, _STIRLING[:_TERMS])
    # Half the power twice: the whole one overflows before gamma does.
    half = s ** (s * 0.5 - 0.25)
    return math.sqrt(2 * math.pi) * (half * exp(tail - s)) * half / product


def _gamma(x: Term) -> Term:
    low = x < 0.5
    straight = _gamma_from_half(where(low, 1 - x, x))
    sine = _sine_of_pi(where(low, x, 0.5))
    made = where(low, math.pi / (sine * straight), straight)
    pole = (x < 0) & (floor(x) == x)
    made = where(pole, np.nan, where(x == 0, 1 / x, made))
    return where(x == np.inf, x, made)


def gamma_of(x: Term) -> Term:
    """The gamma function; NaN at negative whole numbers."""
    return known_derivative("gamma", _gamma, [lambda x: gamma_of(x) * digamma_of(x)], [x])


def digamma_of(x: Term) -> Term:
    """The derivative of log gamma."""
    low = x < 0.5
    y = where(low, 1 - x, x)
    few = y < _SHIFT
    base = where(few, y, 1.0)
    harmonic = 1 / base
    for k in range(1, _SHIFT):
        harmonic = harmonic + 1 / (base + k)
    s = where(few, y + _SHIFT, y)
    inverse = 1 / s
    tail = polynomial(inverse * inverse, [0.0, *_PSI[:_TERMS]])
    straight = log(s) - 0.5 * inverse + tail - where(few, harmonic, 0.0)
    inside = where(low, x, 0.25)
    turn = (inside - nearest(inside)) * math.pi
    made = where(low, straight - math.pi * cos(turn) / sin(turn), straight)
    pole = (x < 0) & (floor(x) == x)
    return where(pole, np.nan, where(x == 0, -1 / x, made))


def gammasgn_of(x: Term) -> Term:
    """The sign of gamma."""
    below = floor(x)
    odd = below - floor(below * 0.5) * 2
    signed = where((x < 0) & (odd == 1), -1.0, constant_like(x, 1.0))
    return where((x < 0) & (below == x), np.nan, where(is_nan(x), x, signed))


def hurwitz(s: Term, q: Term) -> Term:
    """The zeta function of Hurwitz: the sum of (q + k) ** -s, for s > 1 and q > 0.

    Infinite for s = 1 and q = 0, NaN for less. Euler and Maclaurin's formula after ten terms.
    """
    total = q**-s
    for k in range(1, _SHIFT):
        total = total + (q + k) ** -s
    w = q + _SHIFT
    power = w**-s
    made = total + power * w / (s - 1) + power * 0.5
    factor = s * power / w
    for k, coefficient in enumerate(_HURWITZ, 1):
        made = made + coefficient * factor
        factor = factor * (s + (2 * k - 1)) * (s + 2 * k) / (w * w)
    made = where((s == 1) | (q == 0), np.inf, made)
    return where((s < 1) | (q < 0), np.nan, made)


def riemann(s: Term) -> Term:
    """The zeta function of Riemann on the real line."""
    low = s < 0
    y = where(low, 1 - s, s)
    apart = where(y == 1, y + 1, y)
    one = constant_like(s, 1.0)
    total = one
    for k in range(2, _SHIFT + 1):
        total = total + (one * k) ** -apart
    w = float(_SHIFT + 1)
    power = (one * w) ** -apart
    made = total + power * w / (apart - 1) + power * 0.5
    factor = apart * power / w
    for k, coefficient in enumerate(_HURWITZ, 1):
        made = made + coefficient * factor
        factor = factor * (apart + (2 * k - 1)) * (apart + 2 * k) / (w * w)
    made = where(y == 1, np.inf, made)
    mirrored = (
        (2 * one) ** s
        * (math.pi * one) ** (s - 1)
        * _sine_of_pi(s * 0.5)
        * gamma_of(where(low, 1 - s, 1.0))
        * made
    )
    return where(low, mirrored, made)


def polygamma_of(order: Term, x: Term) -> Term:
    """The derivative of digamma of a whole, positive order, for x > 0."""
    odd = order - floor(order * 0.5) * 2
    return (odd * 2 - 1) * gamma_of(order + 1) * hurwitz(order + 1, x)


def _beta_parts(a: Term, b: Term) -> tuple[Term, Term]:
    sign = gammasgn_of(a) * gammasgn_of(b) * gammasgn_of(a + b)
    return gammaln_of(a) + gammaln_of(b) - gammaln_of(a + b), sign


def betaln_of(a: Term, b: Term) -> Term:
    """log(abs(beta(a, b)))."""
    return _beta_parts(a, b)[0]


def beta_of(a: Term, b: Term) -> Term:
    """gamma(a) gamma(b) / gamma(a + b)."""
    logarithm, sign = _beta_parts(a, b)
    limit = 15.0 if a.is_single else 80.0
    small = (magnitude(a) < limit) & (magnitude(b) < limit)
    x, y = where(small, a, 1.0), where(small, b, 1.0)
    direct = gamma_of(x) * (gamma_of(y) / gamma_of(x + y))
    return where(small, direct, sign * exp(logarithm))


def poch_of(z: Term, m: Term) -> Term:
    """The rising factorial gamma(z + m) / gamma(z)."""
    limit = 15.0 if z.is_single else 80.0
    small = (magnitude(z) < limit) & (magnitude(m) < limit)
    x, y = where(small, z, 1.0), where(small, m, 0.0)
    sign = gammasgn_of(z + m) * gammasgn_of(z)
    ratio = sign * exp(gammaln_of(z + m) - gammaln_of(z))
    return where(m == 0, 1.0, where(small, gamma_of(x + y) / gamma_of(x), ratio))


gamma = special(scipy_special.gamma, gamma_of)
gammaln = special(scipy_special.gammaln, gammaln_of)
gammasgn = special(scipy_special.gammasgn, gammasgn_of)
rgamma = special(
    scipy_special.rgamma,
    lambda x: where((x <= 0) & (floor(x) == x), 0.0, 1 / gamma_of(where(x == 0, 1.0, x))),
)
digamma = psi = special(scipy_special.digamma, digamma_of)
beta = special(scipy_special.beta, beta_of)
betaln = special(scipy_special.betaln, betaln_of)
poch = special(scipy_special.poch, poch_of)
