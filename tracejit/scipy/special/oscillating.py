"""Sine, cosine and Fresnel integrals, Dawson's integral, erfi, and the Voigt profile.

Power series near zero; beyond it the auxiliary functions f and g, which do not oscillate, as
polynomials. Reference: DLMF 6.5, 6.6, 7.5 and 7.6.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy.special as scipy_special

from tracejit.numpy.bessel import chebyshev
from tracejit.ops import elementwise
from tracejit.ops import elementwise_unary as unary
from tracejit.scipy.special import faddeeva
from tracejit.scipy.special import integral_tables as tables
from tracejit.scipy.special.functions import special
from tracejit.scipy.special.integrals import exp1_of, expi_of
from tracejit.scipy.special.terms import (
    Term,
    constant_like,
    cos,
    cosine_of_pi,
    exp,
    floor,
    is_nan,
    known_derivative,
    larger,
    log,
    magnitude,
    polynomial,
    sin,
    sine_of_pi,
    smaller,
    where,
)

_EULER = float(np.euler_gamma)
_HALF_PI = math.pi / 2
_ROOT_PI = math.sqrt(math.pi)
# Si(x) / x and (Ci(x) - log(x) - Euler's constant) / x**2, by powers of x**2; with equal signs Shi
# and Chi.
_SI = [(-1) ** k / ((2 * k + 1) * math.factorial(2 * k + 1)) for k in range(18)]
_CI = [(-1) ** k / (2 * k * math.factorial(2 * k)) for k in range(1, 19)]
_SHI = [abs(c) for c in _SI]
_CHI = [abs(c) for c in _CI]
# S(x) / x**3 and C(x) / x by powers of x**4.
_FRESNEL_S = [
    (-1) ** k * _HALF_PI ** (2 * k + 1) / (math.factorial(2 * k + 1) * (4 * k + 3))
    for k in range(14)
]
_FRESNEL_C = [
    (-1) ** k * _HALF_PI ** (2 * k) / (math.factorial(2 * k) * (4 * k + 1)) for k in range(14)
]


def _chebyshev(t: Term, coefficients: Sequence[float]) -> Term:
    return Term(chebyshev(t.value, coefficients))


def _auxiliary(x: Term) -> tuple[Term, Term]:
    """f and g of the sine and cosine integrals, for x from 4 on."""
    t = (10 - x) / (x + 2)
    t = where(x == np.inf, -1.0, t)
    return _chebyshev(t, tables.SINE_F) / x, _chebyshev(t, tables.SINE_G) / x / x


def _waves(x: Term) -> tuple[Term, Term]:
    """sin(x) and cos(x), 0 at infinity, where what they are multiplied with is."""
    endless = x == np.inf
    inside = where(endless, 0.0, x)
    return sin(inside), where(endless, 0.0, cos(inside))


def _si(x: Term) -> Term:
    size = magnitude(x)
    near = size <= 4
    low, high = where(near, x, 0.0), where(near, 4.0, size)
    f, g = _auxiliary(high)
    s, c = _waves(high)
    far = _HALF_PI - f * c - g * s
    return where(near, low * polynomial(low * low, _SI), where(x < 0, -far, far))


def _ci(x: Term) -> Term:
    size = magnitude(x)
    near = size <= 4
    low, high = where(near & (size > 0), size, 1.0), where(near, 4.0, size)
    f, g = _auxiliary(high)
    s, c = _waves(high)
    square = low * low
    made = where(near, _EULER + log(low) + square * polynomial(square, _CI), f * s - g * c)
    made = where(x == 0, -np.inf, made)
    return where(x == -np.inf, np.nan, made)


def si_of(x: Term) -> Term:
    """The sine integral."""

    def slope(x: Term) -> Term:
        is_zero = x == 0
        inside = where(is_zero, 1.0, x)
        return where(is_zero, 1.0, sin(inside) / inside)

    return known_derivative("si", _si, [slope], [x])


def ci_of(x: Term) -> Term:
    """The cosine integral."""
    return known_derivative("ci", _ci, [lambda x: cos(x) / x], [x])


def _shi(x: Term) -> Term:
    size = magnitude(x)
    near = size <= 4
    low, high = where(near, x, 0.0), where(near, 4.0, size)
    far = 0.5 * (expi_of(high) + exp1_of(high))
    return where(near, low * polynomial(low * low, _SHI), where(x < 0, -far, far))


def _chi(x: Term) -> Term:
    size = magnitude(x)
    near = size <= 4
    low, high = where(near & (size > 0), size, 1.0), where(near, 4.0, size)
    square = low * low
    series = _EULER + log(low) + square * polynomial(square, _CHI)
    made = where(near, series, 0.5 * (expi_of(high) - exp1_of(high)))
    made = where(x == 0, -np.inf, made)
    return made


def shi_of(x: Term) -> Term:
    """The hyperbolic sine integral."""

    def slope(x: Term) -> Term:
        is_zero = x == 0
        inside = where(is_zero, 1.0, x)
        return where(is_zero, 1.0, (0.5 * exp(inside) - 0.5 * exp(-inside)) / inside)

    return known_derivative("shi", _shi, [slope], [x])


def chi_of(x: Term) -> Term:
    """The hyperbolic cosine integral."""
    return known_derivative("chi", _chi, [lambda x: (0.5 * exp(x) + 0.5 * exp(-x)) / x], [x])


def _quarter_turns(x: Term) -> tuple[Term, Term]:
    """sin(pi x**2 / 2) and cos(pi x**2 / 2)."""
    square = x * x
    turn = square - 4 * floor(square * 0.25)
    return sine_of_pi(0.5 * turn), cosine_of_pi(0.5 * turn)


def _fresnel(x: Term) -> tuple[Term, Term]:
    size = magnitude(x)
    near = size <= 1.5
    low = where(near, size, 0.0)
    high = where(near, 1.5, smaller(size, 1e18))
    square = high * high
    t = (5.5 - square) / (square + 1)
    f = _chebyshev(t, tables.FRESNEL_F) / (math.pi * high)
    g = _chebyshev(t, tables.FRESNEL_G) / (math.pi**2 * high) / square
    s, c = _quarter_turns(high)
    fourth = low * low * low * low
    s_near = low * low * low * polynomial(fourth, _FRESNEL_S)
    made_s = where(near, s_near, 0.5 - f * c - g * s)
    made_c = where(near, low * polynomial(fourth, _FRESNEL_C), 0.5 + f * s - g * c)
    direction = where(x < 0, -1.0, where(is_nan(x), x, 1.0))
    return made_s * direction, made_c * direction


def fresnel_of(x: Term) -> tuple[Term, Term]:
    """Fresnel's integrals S and C."""

    def part(index: int) -> Term:
        slope = [lambda x: _quarter_turns(x)[index]]
        return known_derivative("fresnel", lambda x: _fresnel(x)[index], slope, [x])

    return part(0), part(1)


def _dawson(x: Term) -> Term:
    square = smaller(x * x, 1e30)
    t = 1 - 8 / (square + 4)
    near = magnitude(x) <= 1
    inside = where(near, 1.0, x)
    made = _chebyshev(t, tables.DAWSON)
    return where(near, made * x / (1 + 2 * square), made / (1 / inside + 2 * inside))


def dawsn_of(x: Term) -> Term:
    """Dawson's integral exp(-x**2) times that of exp(t**2) up to x."""
    return known_derivative("dawsn", _dawson, [lambda x: 1 - 2 * x * dawsn_of(x)], [x])


def _erfi(x: Term) -> Term:
    # In two steps: the power overflows before the product.
    bounded = larger(smaller(x, 1e3), -1e3)
    coarse = floor(bounded * 16) * 0.0625
    rest = (bounded - coarse) * (bounded + coarse)
    half = exp(0.5 * coarse * coarse)
    return where(is_nan(x), x, (2 / _ROOT_PI) * _dawson(bounded) * half * exp(rest) * half)


def erfi_of(x: Term) -> Term:
    """-i erf(i x)."""
    return known_derivative("erfi", _erfi, [lambda x: (2 / _ROOT_PI) * exp(x * x)], [x])


def _dawson_of_complex(z: Term) -> Term:
    near = magnitude(z) < 1
    inside = where(near, z, 0.0)
    close = (0.5 * _ROOT_PI) * faddeeva.gauss_of(inside) * _erfi_of_complex(inside)
    far = where(near, 1.0, z)
    return where(near, close, (0.5j * _ROOT_PI) * (faddeeva.gauss_of(far) - faddeeva.wofz_of(far)))


def _erfi_of_complex(z: Term) -> Term:
    return -1j * faddeeva.erf_of(1j * z)


def _wofz_of_parts(x: Term, y: Term) -> tuple[Term, Term]:
    """The parts of w(x + i y) for y from 0 on."""
    made = faddeeva.upper(Term(elementwise.complex(x.value, y.value)))
    return Term(unary.real(made.value)), Term(unary.imag(made.value))


def voigt_of(x: Term, sigma: Term, gamma: Term) -> Term:
    """A normal density of deviation sigma, convolved with Cauchy's of half-width gamma."""
    size, width = sigma, gamma
    is_cauchy, is_normal = size == 0, width == 0
    scale = 1 / (where(is_cauchy, 1.0, size) * math.sqrt(2))
    at = smaller(magnitude(x) * scale, 1e150 if not x.is_single else 1e18)
    both = _wofz_of_parts(at, where(is_normal, 1.0, width) * scale)[0]
    of_both = both * scale * (1 / _ROOT_PI)
    normal = exp(-at * at) * scale * (1 / _ROOT_PI)
    base = where(is_cauchy & ~is_normal, width, 1.0)
    cauchy = 1 / (math.pi * base * (1 + (x / base) * (x / base)))
    nothing = where(x == 0, constant_like(x, np.inf), 0.0)
    made = where(is_cauchy, where(is_normal, nothing, cauchy), where(is_normal, normal, of_both))
    wrong = is_nan(x) | ~((sigma >= 0) & (gamma >= 0))
    return where(wrong, np.nan, made)


sici = special(scipy_special.sici, lambda x: (si_of(x), ci_of(x)))
shichi = special(scipy_special.shichi, lambda x: (shi_of(x), chi_of(x)))
fresnel = special(scipy_special.fresnel, fresnel_of)
dawsn = special(scipy_special.dawsn, dawsn_of, _dawson_of_complex)
erfi = special(scipy_special.erfi, erfi_of, _erfi_of_complex)
voigt_profile = special(scipy_special.voigt_profile, voigt_of)
