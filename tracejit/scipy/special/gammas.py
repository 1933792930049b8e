"""The gamma function and functions derived from it: logarithms, derivatives, zeta.

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
    sine_of_pi,
    smaller,
    sqrt,
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


def _shifted(y: Term) -> tuple[Term, Term]:
    """(s, product): gamma(y) = gamma(s) / product, with s at least the shift."""
    few = y < _SHIFT
    base = where(few, y, 1.0)
    product = base
    for k in range(1, _SHIFT):
        product = product * (base + k)
    return where(few, y + _SHIFT, y), where(few, product, 1.0)


def stirling_tail(s: Term) -> Term:
    """Stirling's series: what log(gamma(s)) is beyond his formula, for s of ten and more."""
    inverse = 1 / s
    return inverse * polynomial(inverse * inverse, _STIRLING[:_TERMS])


def _log_gamma_from_half(y: Term) -> Term:
    """For arguments of one half and more."""
    near = larger(smaller(y, 2.5), 0.5)
    upper = near > 1.5
    z = where(upper, near - 2, near - 1)
    series = z * polynomial(z, _NEAR_TWO)
    close = where(upper, series, series - log1p(z))
    s, product = _shifted(larger(y, 2.5))
    far = (s - 0.5) * (log(s) - 1) - 0.5 + (0.5 * math.log(2 * math.pi))
    far = far + stirling_tail(s) - log(product)
    return where(y <= 2.5, close, where(y == np.inf, y, far))


def log_gamma_beside_one(x: Term) -> Term:
    """log(gamma(1 + x)) for x from 0 on, to the last digits of a small x."""
    small = x <= 0.5
    near = where(small, x, 0.0)
    close = near * polynomial(near, _NEAR_TWO) - log1p(near)
    return where(small, close, _log_gamma(where(small, 1.0, x) + 1))


def _log_gamma(x: Term) -> Term:
    low = x < 0.5
    straight = _log_gamma_from_half(where(low, 1 - x, x))
    sine = magnitude(sine_of_pi(where(low, x, 0.5)))
    mirrored = math.log(math.pi) - log(sine) - straight
    made = where(low, mirrored, straight)
    return where(magnitude(x) == np.inf, magnitude(x), made)


def gammaln_of(x: Term) -> Term:
    """log(abs(gamma(x)))."""
    return known_derivative("gammaln", _log_gamma, [digamma_of], [x])


def _gamma_from_half(y: Term) -> Term:
    # From there on it is infinite.
    s, product = _shifted(smaller(y, 36.0 if y.is_single else 172.0))
    tail = stirling_tail(s)
    # Half the power twice: the whole one overflows before gamma does.
    half = s ** (s * 0.5 - 0.25)
    return math.sqrt(2 * math.pi) * (half * exp(tail - s)) * half / product


def _gamma(x: Term) -> Term:
    low = x < 0.5
    straight = _gamma_from_half(where(low, 1 - x, x))
    sine = sine_of_pi(where(low, x, 0.5))
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


def _relative_hurwitz(s: Term, q: Term) -> Term:
    """The zeta function of Hurwitz times q**s, for s > 1 and q > 0.

    Euler and Maclaurin's formula after ten terms.
    """
    total = constant_like(q, 1.0)
    for k in range(1, _SHIFT):
        total = total + (q / (q + k)) ** s
    w = q + _SHIFT
    power = (q / w) ** s
    made = total + power * w / (s - 1) + power * 0.5
    factor = s * power / w
    for k, coefficient in enumerate(_HURWITZ, 1):
        made = made + coefficient * factor
        factor = factor * (s + (2 * k - 1)) / w * (s + 2 * k) / w
    return made


def hurwitz(s: Term, q: Term) -> Term:
    """The zeta function of Hurwitz: the sum of (q + k) ** -s, for s > 1 and q > 0.

    Infinite for s = 1 and q = 0, NaN for less.
    """
    usual = (s > 1) & (q > 0)
    power, at = where(usual, s, 2.0), where(usual, q, 1.0)
    made = at**-power * _relative_hurwitz(power, at)
    made = where((s == 1) | (q == 0), np.inf, made)
    return where((s < 1) | (q < 0), np.nan, where(is_nan(s) | is_nan(q), np.nan, made))


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
    # gamma(y) / (2 pi) ** y by Stirling's formula where gamma may overflow.
    large = y >= _SHIFT
    far = where(large, y, float(_SHIFT))
    half = (far * (0.5 / (math.pi * math.e))) ** (far * 0.5)
    of_large = half * (exp(stirling_tail(far)) * sqrt(2 * math.pi / far)) * half
    near = where(large | ~low, 1.0, y)
    quotient = where(large, of_large, gamma_of(near) * (2 * math.pi * one) ** -near)
    return where(low, 2 * quotient * sine_of_pi(s * 0.5) * made, made)


def polygamma_of(order: Term, x: Term) -> Term:
    """The derivative of digamma of a whole, positive order, for x > 0."""
    odd = order - floor(order * 0.5) * 2
    s = order + 1
    usual = (x > 0) & (order > 0)
    at, power = where(usual, x, 1.0), where(usual, s, 2.0)
    factorial, fraction = gamma_of(power), at**-power
    # The one may overflow and the other vanish where their product does neither.
    ordinary = (factorial < np.inf) & (fraction > (1e-37 if x.is_single else 1e-307))
    apart = exp(gammaln_of(power) - power * log(at))
    product = where(ordinary, factorial * where(ordinary, fraction, 1.0), apart)
    made = product * _relative_hurwitz(power, at)
    made = where(usual, made, where(x == 0, x + np.inf, np.nan))
    return (odd * 2 - 1) * made


gamma = special(scipy_special.gamma, gamma_of)
gammaln = special(scipy_special.gammaln, gammaln_of)
gammasgn = special(scipy_special.gammasgn, gammasgn_of)
rgamma = special(
    scipy_special.rgamma,
    lambda x: where((x <= 0) & (floor(x) == x), 0.0, 1 / gamma_of(where(x == 0, 1.0, x))),
)
digamma = psi = special(scipy_special.digamma, digamma_of)
