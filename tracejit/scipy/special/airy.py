"""Airy's functions and the spherical Bessel functions, by those of real orders.

Within 1 of zero Airy's functions are power series. Reference: DLMF 9.2, 9.4, 9.6 and 10.47.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special as scipy_special

from tracejit.errors import AttributeValueError
from tracejit.scipy.special import functions
from tracejit.scipy.special.bessel_modified import iv_of
from tracejit.scipy.special.bessel_real import jv_of, yv_of
from tracejit.scipy.special.bessel_second_modified import kv_of
from tracejit.scipy.special.functions import special
from tracejit.scipy.special.terms import (
    Term,
    constant_like,
    floor,
    is_nan,
    known_derivative,
    magnitude,
    polynomial,
    sqrt,
    where,
)
from tracejit.trace.public import implements
from tracejit.trace.tracer import lift

_ROOT_3 = math.sqrt(3)
_AI, _AI_SLOPE = 0.3550280538878172, -0.2588194037928068


def _series() -> tuple[list[float], list[float]]:
    """The two solutions of y'' = x y: f = 1 + x**3 / 6 ..., g / x = 1 + x**3 / 12 ..."""
    f, g = [1.0], [1.0]
    for k in range(1, 9):
        f.append(f[-1] / ((3 * k - 1) * 3 * k))
        g.append(g[-1] / (3 * k * (3 * k + 1)))
    return f, g


_F, _G = _series()
_F_SLOPE = [3 * k * c for k, c in enumerate(_F)][1:]
_G_SLOPE = [(3 * k + 1) * c for k, c in enumerate(_G)]


def _near(x: Term, index: int) -> Term:
    cube = x * x * x
    if index % 2:
        f, g = x * x * polynomial(cube, _F_SLOPE), polynomial(cube, _G_SLOPE)
    else:
        f, g = polynomial(cube, _F), x * polynomial(cube, _G)
    sign, scale = (1, 1.0) if index < 2 else (-1, _ROOT_3)
    return scale * (_AI * f + sign * _AI_SLOPE * g)


def _airy(x: Term, index: int) -> Term:
    """Ai, Ai', Bi or Bi'."""
    is_near = magnitude(x) < 1
    usual = ~is_near & (magnitude(x) < np.inf)
    near = _near(where(is_near, x, 0.0), index)
    positive, negative = usual & (x > 0), usual & (x < 0)
    order = constant_like(x, (2 if index % 2 else 1) / 3)
    p = where(positive, x, 1.0)
    root, z = sqrt(p), (2 / 3) * p * sqrt(p)
    front = p * (1 / _ROOT_3) if index % 2 else root * (1 / _ROOT_3)
    if index < 2:
        right = front * (-1 / math.pi if index else 1 / math.pi) * kv_of(order, z)
    else:
        right = front * (iv_of(-order, z) + iv_of(order, z))
    m = where(negative, -x, 1.0)
    zm = (2 / 3) * m * sqrt(m)
    j, y = jv_of(order, zm), yv_of(order, zm)
    half = 0.5 * m if index % 2 else 0.5 * sqrt(m)
    if index < 2:
        left = half * (j + y * ((1 if index else -1) / _ROOT_3))
    else:
        left = half * (j * (1 / _ROOT_3) - y if index == 3 else -j * (1 / _ROOT_3) - y)
    made = where(is_near, near, where(positive, right, left))
    at_end = constant_like(x, np.inf) if index > 1 else constant_like(x, 0.0)
    made = where(x == np.inf, at_end, where(x == -np.inf, 0.0 if index in (0, 2) else np.nan, made))
    return where(is_nan(x), x, made)


def airy_of(x: Term, index: int) -> Term:
    """Ai, Ai', Bi or Bi'."""

    def slope(x: Term) -> Term:
        return x * airy_of(x, index - 1) if index % 2 else airy_of(x, index + 1)

    return known_derivative(f"airy_{index}", lambda x: _airy(x, index), [slope], [x])


airy = special(scipy_special.airy, lambda x: tuple(airy_of(x, index) for index in range(4)))


def _spherical(kind: Callable[[Term, Term], Term], n: Term, z: Term, at_zero: float) -> Term:
    """sqrt(pi / 2 z) times the function of order n + 1/2, for z above 0."""
    usual = z > 0
    at = where(usual, z, 1.0)
    made = sqrt((math.pi / 2) / at) * kind(n + 0.5, at)
    first = where(n == 0, 1.0, 0 * z) if at_zero == 1 else constant_like(z, at_zero)
    return where(usual, made, where(z == 0, first, np.nan))


def _signed(kind: Callable[[Term, Term], Term], n: Term, z: Term, at_zero: float) -> Term:
    """Also for z below 0, by parity."""
    made = _spherical(kind, n, magnitude(z), at_zero)
    odd = n - 2 * floor(0.5 * n) == 1
    return where((z < 0) & odd, -made, made)


def _spherical_function(
    name: str, kind: Callable[[Term, Term], Term], at_zero: float, signs: tuple[int, int]
) -> Any:
    """f_n' is signs[0] f_(n - 1) - (n + 1) / z f_n, which is signs[1] f_1 for n = 0."""

    def value(n: Term, z: Term) -> Term:
        whole = (n >= 0) & (floor(n) == n)
        apart = _spherical if at_zero == np.inf else _signed
        made = apart(kind, where(whole, n, 0.0), z, at_zero)
        if at_zero == -np.inf:
            # The second kind has the other parity.
            made = where(z < 0, -made, made)
        return where(whole & ~is_nan(z), made, np.nan)

    def slope(n: Term, z: Term) -> Term:
        first = n == 0
        apart = z == 0
        at = where(apart, 1.0, z)
        below = of(where(first, 1.0, n - 1), z)
        usual = signs[0] * below - (n + 1) / at * of(n, z)
        zero = where(n == 1, 1 / 3, 0 * z) if at_zero == 1 else usual
        return where(first, signs[1] * below, where(apart, zero, usual))

    def of(n: Term, z: Term) -> Term:
        return known_derivative(name, value, [None, slope], [n, z])

    return of, slope


_JN = _spherical_function("spherical_jn", jv_of, 1.0, (1, -1))
_YN = _spherical_function("spherical_yn", yv_of, -np.inf, (1, -1))
_IN = _spherical_function("spherical_in", iv_of, 1.0, (1, 1))
_KN = _spherical_function("spherical_kn", kv_of, np.inf, (-1, -1))


def _recorded(name: str, pair: Any, n: Any, z: Any, derivative: bool) -> Any:
    if derivative not in (True, False):
        raise AttributeValueError(f"{name}: derivative must be True or False, not {derivative!r}")
    order, at = functions.floats(name, n, z)
    return lift(pair[bool(derivative)](order, at).value, None)


@implements(scipy_special.spherical_jn)
def spherical_jn(n: Any, z: Any, derivative: bool = False) -> Any:
    """The spherical Bessel function of the first kind, of whole order ``n``, or its derivative.

    Raises `ArgumentError` for what is no array of real numbers and `AttributeValueError` for
    another ``derivative``. Orders that are no whole numbers from 0 on give NaN.

    >>> tj.scipy.special.spherical_jn(1, 2.0).round(4)
    np.float64(0.4354)
    """
    return _recorded("spherical_jn", _JN, n, z, derivative)


@implements(scipy_special.spherical_yn)
def spherical_yn(n: Any, z: Any, derivative: bool = False) -> Any:
    """The spherical Bessel function of the second kind, of whole order ``n``, or its derivative.

    Raises `ArgumentError` for what is no array of real numbers and `AttributeValueError` for
    another ``derivative``. Orders that are no whole numbers from 0 on give NaN.

    >>> tj.scipy.special.spherical_yn(1, 2.0).round(4)
    np.float64(-0.3506)
    """
    return _recorded("spherical_yn", _YN, n, z, derivative)


@implements(scipy_special.spherical_in)
def spherical_in(n: Any, z: Any, derivative: bool = False) -> Any:
    """The modified spherical Bessel function of the first kind, or its derivative.

    Raises `ArgumentError` for what is no array of real numbers and `AttributeValueError` for
    another ``derivative``. Orders that are no whole numbers from 0 on give NaN.

    >>> tj.scipy.special.spherical_in(1, 2.0).round(4)
    np.float64(0.9744)
    """
    return _recorded("spherical_in", _IN, n, z, derivative)


@implements(scipy_special.spherical_kn)
def spherical_kn(n: Any, z: Any, derivative: bool = False) -> Any:
    """The modified spherical Bessel function of the second kind, or its derivative.

    Raises `ArgumentError` for what is no array of real numbers and `AttributeValueError` for
    another ``derivative``. Orders that are no whole numbers from 0 on give NaN.

    >>> tj.scipy.special.spherical_kn(1, 2.0).round(4)
    np.float64(0.1594)
    """
    return _recorded("spherical_kn", _KN, n, z, derivative)
