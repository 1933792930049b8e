"""The error function, its complement and inverse, and the normal distribution.

Beyond one half the complement is exp(-x**2) times a scaled function, which is a polynomial in
(x - 3.75) / (x + 3.75); reference: M. Shepherd and J. Laframboise, Chebyshev approximation of
(1 + 2x) exp(x**2) erfc(x), 1981. Inverses start from M. Giles, Approximating the erfinv function,
2010, and are improved by Newton's and Halley's steps.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.special as scipy_special

from tracejit.numpy.bessel import chebyshev
from tracejit.scipy.special import faddeeva, terms
from tracejit.scipy.special.functions import special
from tracejit.scipy.special.terms import (
    Term,
    exp,
    expm1,
    floor,
    known_derivative,
    larger,
    log,
    log1p,
    magnitude,
    polynomial,
    sign,
    smaller,
    sqrt,
    where,
)

_ROOT_PI = math.sqrt(math.pi)
_ROOT_2 = math.sqrt(2)

# Chebyshev coefficients of (1 + 2x) exp(x**2) erfc(x), by interpolation with forty digits.
_SCALED = (
    1.1775789345674017,
    -0.004590054580646478,
    -0.08424913336651792,
    0.05920993999819189,
    -0.026658668435305753,
    0.009074997670705265,
    -0.002413163540417608,
    0.0004907758365258086,
    -6.916973302501207e-05,
    4.13902798607301e-06,
    7.74038306619849e-07,
    -2.1886401049234397e-07,
    1.076499946567091e-08,
    4.521959811218287e-09,
    -7.754400208831351e-10,
    -6.318088340886684e-11,
    2.86879501093067e-11,
    1.9455868545777938e-13,
    -9.654696748433504e-13,
    3.2525481481363487e-14,
    3.3478119482752794e-14,
    -1.8645628782428707e-15,
    -1.250795046938718e-15,
    7.418231959528878e-17,
    5.068131210430141e-17,
    -2.2366432315010394e-18,
    -2.1830526575951165e-18,
    2.3444843308748632e-20,
)


def _scaled(x: Term) -> Term:
    """exp(x**2) erfc(x) for x from 0 on."""
    t = (x - 3.75) / (x + 3.75)
    made = Term(chebyshev(t.value, _SCALED)) / (1 + 2 * x)
    return where(x == np.inf, 0.0, made)


def _gauss(x: Term) -> Term:
    """exp(-x**2), the square split so that its rounding does not count."""
    bounded = smaller(magnitude(x), 1e4)
    coarse = floor(bounded * 16) * 0.0625
    return exp(-coarse * coarse) * exp(-(bounded - coarse) * (bounded + coarse))


def gauss_of(x: Term) -> Term:
    """exp(-x**2) with its derivative."""
    return known_derivative("gauss", _gauss, [lambda x: -2 * x * gauss_of(x)], [x])


def _erfc(x: Term) -> Term:
    small = magnitude(x) < 0.5
    near = 1 - terms.erf(where(small, x, 0.0))
    far = magnitude(where(small, 0.5, x))
    tail = _gauss(far) * _scaled(far)
    return where(small, near, where(x < 0, 2 - tail, tail))


def erfc_of(x: Term) -> Term:
    """1 - erf(x), accurate where that is small."""
    return known_derivative("erfc", _erfc, [lambda x: (-2 / _ROOT_PI) * gauss_of(x)], [x])


def _erfcx(x: Term) -> Term:
    positive = _scaled(magnitude(x))
    low = larger(smaller(x, 0.0), -30.0)
    return where(x < 0, 2 / _gauss(low) - positive, positive)


def erfcx_of(x: Term) -> Term:
    """exp(x**2) erfc(x)."""
    return known_derivative("erfcx", _erfcx, [lambda x: 2 * x * erfcx_of(x) - 2 / _ROOT_PI], [x])


_CENTRE = (
    1.50140941, 0.246640727, -0.00417768164, -0.00125372503, 0.00021858087,
    -4.39150654e-06, -3.5233877e-06, 3.43273939e-07, 2.81022636e-08,
)  # fmt: skip
_TAIL = (
    2.83297682, 1.00167406, 0.00943887047, -0.0076224613, 0.00573950773,
    -0.00367342844, 0.00134934322, 0.000100950558, -0.000200214257,
)  # fmt: skip


def _first_guess(w: Term) -> Term:
    """erfinv(x) / x for w = -log(1 - x**2), to seven digits."""
    centre = polynomial(smaller(w, 5.0) - 2.5, _CENTRE)
    tail = polynomial(sqrt(smaller(larger(w, 5.0), 16.0)) - 3, _TAIL)
    return where(w < 5, centre, tail)


def _erfcinv(q: Term) -> Term:
    mirrored = q > 1
    p = where(mirrored, 2 - q, q)
    inside = where((p > 0) & (p <= 1), p, 0.5)
    w = -log(inside) - log1p(1 - inside)
    root = sqrt(larger(w, 1.0))
    # Far out erfc(y) is about exp(-y**2) / (y sqrt(pi)).
    distant = sqrt(larger(w + math.log(2 / _ROOT_PI) - log(root), 1.0))
    guess = where(w > 15, distant, _first_guess(w) * (1 - inside))
    central = where(inside > 0.25, guess, 0.5)
    for _ in range(2):
        slope = (2 / _ROOT_PI) * _gauss(central)
        step = (terms.erf(central) - (1 - inside)) / slope
        central = central - step / (1 + central * step)
    outer = where(inside > 0.25, 1.0, guess)
    wanted = log(inside)
    for _ in range(4):
        scaled = _scaled(outer)
        gap = log(scaled) - outer * outer - wanted
        outer = outer + gap * scaled * (_ROOT_PI / 2)
    made = where(inside > 0.25, central, outer)
    made = where(mirrored, -made, made)
    made = where(q == 0, np.inf, where(q == 2, -np.inf, made))
    return where((q >= 0) & (q <= 2), made, np.nan)


def erfcinv_of(q: Term) -> Term:
    """The inverse of erfc on (0, 2)."""

    def slope(q: Term) -> Term:
        return (-_ROOT_PI / 2) / gauss_of(erfcinv_of(q))

    return known_derivative("erfcinv", _erfcinv, [slope], [q])


def _erfinv(x: Term) -> Term:
    size = magnitude(x)
    small = size <= 0.75
    inside = where(small, x, 0.0)
    central = _first_guess(-log1p(-inside * inside)) * inside
    for _ in range(2):
        step = (terms.erf(central) - inside) / ((2 / _ROOT_PI) * _gauss(central))
        central = central - step / (1 + central * step)
    outer = sign(x) * _erfcinv(1 - where(small, 0.75, size))
    return where(small, where(x == 0, x, central), outer)


def erfinv_of(x: Term) -> Term:
    """The inverse of erf on (-1, 1)."""

    def slope(x: Term) -> Term:
        return (_ROOT_PI / 2) / gauss_of(erfinv_of(x))

    return known_derivative("erfinv", _erfinv, [slope], [x])


def ndtr_of(x: Term) -> Term:
    """The normal distribution's share below ``x``."""
    return 0.5 * erfc_of(x * (-1 / _ROOT_2))


def log_ndtr_of(x: Term) -> Term:
    """The logarithm of `ndtr_of`, accurate in the lower tail."""
    low = x < -1
    tail = where(low, x, -1.0)
    lower = log(0.5 * erfcx_of(tail * (-1 / _ROOT_2))) - 0.5 * tail * tail
    upper = log1p(-0.5 * erfc_of(where(low, 0.0, x) * (1 / _ROOT_2)))
    return where(low, lower, upper)


def ndtri_of(p: Term) -> Term:
    """The inverse of `ndtr_of`."""
    return -_ROOT_2 * erfcinv_of(2 * p)


def _ndtri_exp(y: Term) -> Term:
    """By Newton's method on log_ndtr; from far out, where the tail is about exp(-x**2 / 2)."""
    share = exp(y)
    far = y < -20
    above = y > -1e-2
    rest = where(above, -expm1(where(above, y, -1e-2)), 0.5)
    inside = where(far | above, 0.5, share)
    x = where(above, -ndtri_of(rest), ndtri_of(inside))
    distance = where(far, -y, 20.0)
    guess = -sqrt(2 * distance - log(4 * math.pi * distance))
    for _ in range(4):
        mills = erfcx_of(guess * (-1 / _ROOT_2))
        value = log(0.5 * mills) - 0.5 * guess * guess
        guess = guess - (value + distance) * mills * math.sqrt(math.pi / 2)
    made = where(far, where(y == -np.inf, y, guess), x)
    return where(y > 0, np.nan, where(y == 0, np.inf, made))


def ndtri_exp_of(y: Term) -> Term:
    """x with log_ndtr(x) = y."""

    def slope(y: Term) -> Term:
        return erfcx_of(ndtri_exp_of(y) * (-1 / _ROOT_2)) * math.sqrt(math.pi / 2)

    return known_derivative("ndtri_exp", _ndtri_exp, [slope], [y])


erf = special(scipy_special.erf, terms.erf, faddeeva.erf_of)
erfc = special(scipy_special.erfc, erfc_of, faddeeva.erfc_of)
erfcx = special(scipy_special.erfcx, erfcx_of, faddeeva.erfcx_of)
erfinv = special(scipy_special.erfinv, erfinv_of)
erfcinv = special(scipy_special.erfcinv, erfcinv_of)
ndtr = special(scipy_special.ndtr, ndtr_of)
log_ndtr = special(scipy_special.log_ndtr, log_ndtr_of)
ndtri = special(scipy_special.ndtri, ndtri_of)
ndtri_exp = special(scipy_special.ndtri_exp, ndtri_exp_of)
