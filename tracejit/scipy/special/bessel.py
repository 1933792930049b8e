"""Bessel functions of whole orders: j0, j1, jn and y0, y1, yn; jv and yv choose by their order.

Orders 0 and 1 are polynomials up to 8 and Hankel's form beyond. Higher orders of Y go up by the
recurrence, those of J as well as long as the order is less than the argument; above, ratios of
neighbours come down by their continued fraction. Reference: Abramowitz and Stegun, Handbook of
Mathematical Functions, 9.1.27 and 9.1.73.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy.special as scipy_special

from tracejit.numpy.bessel import chebyshev
from tracejit.numpy.building import constant_value
from tracejit.scipy.special import bessel_tables as tables
from tracejit.scipy.special.bessel_real import jv_of, yv_of
from tracejit.scipy.special.functions import special
from tracejit.scipy.special.terms import (
    Term,
    cos,
    floor,
    is_nan,
    known_derivative,
    log,
    magnitude,
    no_slope,
    repeat,
    sin,
    sqrt,
    where,
)

_LIMIT = 8.0
_MORE = 40
"""So far beyond the order begins the continued fraction of an argument that is no greater."""


def _near(x: Term, coefficients: Sequence[float]) -> Term:
    return Term(chebyshev((x * x * (1 / 32) - 1).value, coefficients))


def _near_j(x: Term, order: int) -> Term:
    first, second = tables.SQUARED_ZEROS[order]
    square = x * x
    factors = (square - first) * (square - second)
    if order == 0:
        return factors * _near(x, tables.NEAR_J0)
    return x * factors * _near(x, tables.NEAR_J1)


def _far(x: Term, order: int, is_second: bool) -> Term:
    """Beyond 8: sqrt(2 / (pi x)) times P cos(a) - Q sin(a), or P sin(a) + Q cos(a).

    a is x - pi/4, less another right angle for order 1.
    """
    ratio = _LIMIT / x
    t = (2 * ratio * ratio - 1).value
    p = Term(chebyshev(t, tables.P0 if order == 0 else tables.P1))
    q = Term(chebyshev(t, tables.Q0 if order == 0 else tables.Q1)) * ratio
    endless = x == np.inf
    inside = where(endless, 1.0, x)
    s, c = sin(inside), cos(inside)
    # cos(a) and sin(a), times the root of two.
    cosine, sine = (c + s, s - c) if order == 0 else (s - c, -(s + c))
    wave = p * sine + q * cosine if is_second else p * cosine - q * sine
    return where(endless, 0.0, wave / sqrt(math.pi * inside))


def _of_order_j(order: int, x: Term) -> Term:
    size = magnitude(x)
    is_near = size <= _LIMIT
    near = _near_j(where(is_near, size, 1.0), order)
    made = where(is_near, near, _far(where(is_near, 10.0, size), order, False))
    return where(x < 0, -made, made) if order else made


def _of_order_y(order: int, x: Term) -> Term:
    is_near = x <= _LIMIT
    usual = is_near & (x > 0)
    inside = where(usual, x, 1.0)
    regular = _near(inside, tables.NEAR_Y0 if order == 0 else tables.NEAR_Y1)
    j = (2 / math.pi) * log(inside) * _near_j(inside, order)
    near = regular + j if order == 0 else inside * regular + (j - (2 / math.pi) / inside)
    made = where(is_near, near, _far(where(is_near, 10.0, x), order, True))
    return where(x == 0, -np.inf, where((x < 0) | is_nan(x), np.nan, made))


def _over(value: Term, x: Term, at_zero: float) -> Term:
    """value / x."""
    is_zero = x == 0
    return where(is_zero, at_zero, value / where(is_zero, 1.0, x))


def j0_of(x: Term) -> Term:
    """The Bessel function of the first kind of order 0."""
    return known_derivative("j0", lambda x: _of_order_j(0, x), [lambda x: -j1_of(x)], [x])


def j1_of(x: Term) -> Term:
    """The Bessel function of the first kind of order 1."""

    def slope(x: Term) -> Term:
        return j0_of(x) - _over(j1_of(x), x, 0.5)

    return known_derivative("j1", lambda x: _of_order_j(1, x), [slope], [x])


def y0_of(x: Term) -> Term:
    """The Bessel function of the second kind of order 0; NaN below 0."""
    return known_derivative("y0", lambda x: _of_order_y(0, x), [lambda x: -y1_of(x)], [x])


def y1_of(x: Term) -> Term:
    """The Bessel function of the second kind of order 1; NaN below 0."""

    def slope(x: Term) -> Term:
        return y0_of(x) - y1_of(x) / x

    return known_derivative("y1", lambda x: _of_order_y(1, x), [slope], [x])


def _upwards(first: Term, second: Term, n: Term, x: Term) -> Term:
    """f_n of f_0 and f_1, where f_{k+1} = 2 k / x f_k - f_{k-1}; at infinity it stays."""

    def step(k: Term, before: Term, value: Term, n: Term, x: Term) -> list[Term]:
        following = 2 * k / x * value - before
        goes_on = (k < n) & (magnitude(value) < np.inf)
        return [k + 1, where(goes_on, value, before), where(goes_on, following, value), n, x]

    def go_on(k: Term, before: Term, value: Term, n: Term, x: Term) -> Term:
        return k < n

    made = repeat(step, go_on, [n * 0 + 1, first, second, n, x])[2]
    return where(n == 0, first, made)


def _downwards(j0: Term, j1: Term, n: Term, x: Term) -> Term:
    """J_n by the ratios r_k = J_k / J_{k-1} = x / (2 k - x r_{k+1}), for n not below x."""

    def step(k: Term, ratio: Term, product: Term, n: Term, x: Term) -> list[Term]:
        divisor = 2 * k - x * ratio
        following = x / where(divisor == 0, 1e-30, divisor)
        # Other elements may still have steps to go.
        ratio = where(k > 0, following, ratio)
        return [k - 1, ratio, where((k <= n) & (k > 1), product * ratio, product), n, x]

    def go_on(k: Term, ratio: Term, product: Term, n: Term, x: Term) -> Term:
        return k > 0

    one = n * 0 + 1
    _, ratio, product, _, _ = repeat(step, go_on, [n + _MORE, one * 0, one, n, x])
    # Whichever of the two is not close to a zero.
    return product * where(magnitude(j0) > magnitude(j1), j0 * ratio, j1)


def _jn(n: Term, x: Term) -> Term:
    size, order = magnitude(x), magnitude(n)
    j0, j1 = j0_of(size), j1_of(size)
    is_up = size > order
    up = _upwards(j0, j1, where(is_up, order, 0.0), where(is_up, size, 1.0))
    is_down = ~is_up & (order > 0) & (size > 0)
    down = _downwards(j0, j1, where(is_down, order, 1.0), where(is_down, size, 0.5))
    made = where(is_up, up, where(is_down, down, where(order == 0, j0, 0.0)))
    is_odd = order - 2 * floor(order * 0.5) == 1
    made = where(is_odd & ((x < 0) != (n < 0)), -made, made)
    return where(is_nan(x) | (n != floor(n)), np.nan, made)


def jn_of(n: Term, x: Term) -> Term:
    """The Bessel function of the first kind of a whole order; NaN for others."""

    def slope(n: Term, x: Term) -> Term:
        return 0.5 * (jn_of(n - 1, x) - jn_of(n + 1, x))

    return known_derivative("jn", _jn, [no_slope, slope], [n, x])


def _yn(n: Term, x: Term) -> Term:
    whole = where(n < 0, -floor(-n), floor(n))
    order = magnitude(whole)
    usual = x > 0
    inside = where(usual, x, 1.0)
    made = _upwards(y0_of(inside), y1_of(inside), order, inside)
    made = where(x == 0, -np.inf, where(usual, made, np.nan))
    is_odd = order - 2 * floor(order * 0.5) == 1
    return where(is_odd & (whole < 0), -made, made)


def yn_of(n: Term, x: Term) -> Term:
    """The Bessel function of the second kind; of an order, what is beyond a whole one is cut."""

    def slope(n: Term, x: Term) -> Term:
        return 0.5 * (yn_of(n - 1, x) - yn_of(n + 1, x))

    return known_derivative("yn", _yn, [None, slope], [n, x])


def _known_to_be_whole(n: Term) -> bool:
    order = constant_value(n.value)
    return order is not None and float(order.real) == math.floor(order.real)


def _jv(n: Term, x: Term) -> Term:
    return jn_of(n, x) if _known_to_be_whole(n) else jv_of(n, x)


def _yv(n: Term, x: Term) -> Term:
    return yn_of(n, x) if _known_to_be_whole(n) else yv_of(n, x)


j0 = special(scipy_special.j0, j0_of)
j1 = special(scipy_special.j1, j1_of)
jn = jv = special(scipy_special.jv, _jv)
jve = special(scipy_special.jve, _jv)
yv = special(scipy_special.yv, _yv)
yve = special(scipy_special.yve, _yv)
y0 = special(scipy_special.y0, y0_of)
y1 = special(scipy_special.y1, y1_of)
yn = special(scipy_special.yn, yn_of)
