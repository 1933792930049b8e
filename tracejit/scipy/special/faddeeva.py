"""Error functions of complex numbers, and wofz, which is one of them.

w(z) = exp(-z**2) erfc(-i z) is, in the upper half plane, a polynomial in (L + i z) / (L - i z);
reference: J. Weideman, Computation of the complex error function, 1994. Near zero erf is its power
series.
"""

from __future__ import annotations

import functools
import math

import numpy as np
import scipy.special as scipy_special

from tracejit.ops import elementwise, elementwise_unary
from tracejit.scipy.special import terms
from tracejit.scipy.special.functions import special
from tracejit.scipy.special.terms import Term, known_derivative, polynomial, where

_TERMS = 40
_WIDTH = math.sqrt(_TERMS / math.sqrt(2))
_ROOT_PI = math.sqrt(math.pi)
_SERIES = [(-1) ** k / (math.factorial(k) * (2 * k + 1)) * 2 / _ROOT_PI for k in range(22)]


@functools.cache
def _coefficients() -> list[float]:
    """Coefficients of the polynomial, the constant one first: Fourier coefficients of (L**2 +
    t**2) e**-t**2.
    """
    count = 4 * _TERMS
    angles = np.arange(1 - count // 2, count // 2) * (2 * math.pi / count)
    t = _WIDTH * np.tan(angles / 2)
    values = np.concatenate([[0.0], np.exp(-t * t) * (_WIDTH**2 + t * t)])
    found = np.fft.fft(np.fft.fftshift(values)).real / count
    return [float(one) for one in found[1 : _TERMS + 1]]


def upper(z: Term) -> Term:
    """w(z) where the imaginary part is not negative."""
    turned = z * 1j
    below = _WIDTH - turned
    total = polynomial((_WIDTH + turned) / below, _coefficients())
    return 2 * total / (below * below) + (1 / _ROOT_PI) / below


def _real(z: Term) -> Term:
    return Term(elementwise_unary.real(z.value))


def _imaginary(z: Term) -> Term:
    return Term(elementwise_unary.imag(z.value))


def gauss_of(z: Term) -> Term:
    """exp(-z**2), where the square's real part does not cancel."""
    x, y = _real(z), _imaginary(z)
    square = Term(elementwise.complex(((y - x) * (y + x)).value, (-2 * x * y).value))
    return terms.exp(square)


def _to_the_right(z: Term) -> tuple[Term, Term]:
    """Whether z lies to the left of the imaginary axis, and whichever of z and -z does not."""
    left = _real(z) < 0
    return left, where(left, -z, z)


def _erf(z: Term) -> Term:
    left, right = _to_the_right(z)
    size = Term(elementwise_unary.abs(z.value))
    small = size < 1
    near = where(small, right, 0.0)
    series = near * polynomial(near * near, _SERIES)
    far = where(small, 1.0, right)
    made = where(small, series, 1 - gauss_of(far) * upper(far * 1j))
    return where(left, -made, made)


def _erfc(z: Term) -> Term:
    left, right = _to_the_right(z)
    tail = gauss_of(right) * upper(right * 1j)
    return where(left, 2 - tail, tail)


def _wofz(z: Term) -> Term:
    lower = _imaginary(z) < 0
    above = upper(where(lower, -z, z))
    return where(lower, 2 * gauss_of(where(lower, z, 0.0)) - above, above)


def erf_of(z: Term) -> Term:
    """The error function of complex numbers."""
    return known_derivative("erf", _erf, [lambda z: (2 / _ROOT_PI) * gauss_of(z)], [z])


def erfc_of(z: Term) -> Term:
    """1 - erf(z), accurate where that is small."""
    return known_derivative("erfc", _erfc, [lambda z: (-2 / _ROOT_PI) * gauss_of(z)], [z])


def wofz_of(z: Term) -> Term:
    """exp(-z**2) erfc(-i z)."""

    def slope(z: Term) -> Term:
        return (2j / _ROOT_PI) - 2 * z * wofz_of(z)

    return known_derivative("wofz", _wofz, [slope], [z])


def erfcx_of(z: Term) -> Term:
    """exp(z**2) erfc(z)."""
    return wofz_of(z * 1j)


wofz = special(scipy_special.wofz, None, wofz_of)
