"""The Bessel functions J and Y of any real order: jv, yv, and the spherical and Airy functions.

J'/J is a continued fraction (DLMF 10.10.1), and with the Wronskian a second, complex one (DLMF
10.74) for x from 2 on, or N. Temme's series below, gives both kinds at an order of at most one
half, from where the recurrences go to the order wanted. Far out Hankel's form. References: N.
Temme, On the numerical evaluation of the ordinary Bessel function of the second kind, 1976; J.
Steed's method in A. Barnett et al., Coulomb wave functions, 1974.
"""

from __future__ import annotations

import functools
import math

import numpy as np
import scipy.special as scipy_special

from tracejit.scipy.special.convergence import MOST, apart, least, precision
from tracejit.scipy.special.terms import (
    Term,
    constant_like,
    cos,
    cosine_of_pi,
    exp,
    floor,
    hyperbolic_sine,
    is_nan,
    known_derivative,
    larger,
    log,
    magnitude,
    no_slope,
    polynomial,
    repeat,
    sin,
    sine_of_pi,
    sqrt,
    where,
)

_HANKEL_TERMS = 24
_EULER = float(np.euler_gamma)


@functools.cache
def _reciprocal_gamma() -> list[float]:
    """Coefficients of 1 / gamma(1 + m) by powers of m, from those of its logarithm."""
    slopes = [_EULER] + [(-1) ** (k + 1) * float(scipy_special.zeta(k)) for k in range(2, 26)]
    made = [1.0]
    for n in range(1, 25):
        made.append(sum(slopes[k] * made[n - 1 - k] for k in range(n)) / n)
    return made


def _fraction(v: Term, x: Term) -> tuple[Term, Term]:
    """J'_v / J_v by its continued fraction (Lentz's method), and the sign of J_v."""
    eps, tiny = precision(x) * 0.5, least(x)

    def step(
        n: Term, b: Term, c: Term, d: Term, h: Term, sign: Term, change: Term, *x: Term
    ) -> list[Term]:
        running = magnitude(change - 1) > eps
        b = b + 2 / x[0]
        d = 1 / apart(b - d, tiny)
        c = apart(b - 1 / c, tiny)
        change = where(running, c * d, change)
        sign = where(running & (d < 0), -sign, sign)
        return [n + 1, b, c, d, where(running, h * change, h), sign, change, *x]

    def go_on(
        n: Term, b: Term, c: Term, d: Term, h: Term, sign: Term, change: Term, x: Term
    ) -> Term:
        return (magnitude(change - 1) > eps) & (n < MOST)

    one = constant_like(x, 1.0)
    h = apart(v / x, tiny)
    made = repeat(step, go_on, [one, 2 * v / x, h, 0 * one, h, one, one * 2, x])
    return made[4], made[5]


def _down(v: Term, steps: Term, x: Term, slope: Term, sign: Term) -> tuple[Term, Term]:
    """(scale, f): J_v = scale times J of the order ``steps`` lower, and f is J' / J there."""
    big = 1e15 if x.is_single else 1e150

    def step(k: Term, j: Term, derivative: Term, first: Term, *at: Term) -> list[Term]:
        order, steps, x = at
        running = k < steps
        factor = (order - k) / x
        lower = factor * j + derivative
        following = (factor - 1 / x) * lower - j
        # Both are scaled down before they overflow.
        shrink = where(magnitude(lower) > big, constant_like(x, 1 / big), 1.0)
        made = (lower * shrink, following * shrink, first * shrink)
        kept = (j, derivative, first)
        return [k + 1, *(where(running, a, b) for a, b in zip(made, kept, strict=True)), *at]

    def go_on(k: Term, j: Term, derivative: Term, first: Term, *at: Term) -> Term:
        return k < at[1]

    state = [0 * x, sign, slope * sign, sign, v, steps, x]
    _, j, derivative, first, *_ = repeat(step, go_on, state)
    j = where(j == 0, least(x), j)
    return first / j, derivative / j


def _by_series(m: Term, x: Term, f: Term) -> tuple[Term, Term, Term]:
    """J_m, Y_m and Y_(m+1) for x below 2: Temme's series."""
    eps = precision(x)
    plus = polynomial(m, _reciprocal_gamma())
    minus = polynomial(-m, _reciprocal_gamma())
    square = m * m
    odd = -polynomial(square, _reciprocal_gamma()[1::2])
    even = polynomial(square, _reciprocal_gamma()[0::2])
    angle = m * math.pi
    flat = magnitude(angle) < 1e-7
    inside = where(flat, 1.0, angle)
    fact = where(flat, 1.0, inside / sin(inside))
    logarithm = -log(0.5 * x)
    e = m * logarithm
    small = magnitude(e) < 1e-7
    fact2 = where(small, 1.0, hyperbolic_sine(where(small, 1.0, e)) / where(small, 1.0, e))
    growth = exp(e)
    ff = (2 / math.pi) * fact * (odd * 0.5 * (growth + 1 / growth) + even * fact2 * logarithm)
    p = growth / (plus * math.pi)
    q = 1 / (growth * math.pi * minus)
    fact3 = where(flat, 1.0, sin(0.5 * inside) / (0.5 * inside))
    r = math.pi * 0.5 * angle * fact3 * fact3

    def step(
        i: Term, ff: Term, c: Term, p: Term, q: Term, total: Term, total1: Term, *at: Term
    ) -> list[Term]:
        m, quarter, r, _ = at
        ff = (i * ff + p + q) / (i * i - m * m)
        c = c * quarter / i
        p, q = p / (i - m), q / (i + m)
        part = c * (ff + r * q)
        return [i + 1, ff, c, p, q, total + part, total1 + c * p - i * part, m, quarter, r, part]

    def go_on(i: Term, ff: Term, c: Term, p: Term, q: Term, total: Term, *rest: Term) -> Term:
        return (magnitude(rest[-1]) > eps * (1 + magnitude(total))) & (i < 200.0)

    one = constant_like(x, 1.0)
    state = [one, ff, one, p, q, ff + r * q, p, m, -0.25 * x * x, r, one]
    made = repeat(step, go_on, state)
    y, y1 = -made[5], -made[6] * 2 / x
    return (2 / math.pi) / (x * (m / x * y - y1 - f * y)), y, y1


def _by_second_fraction(m: Term, x: Term, f: Term) -> tuple[Term, Term, Term]:
    """abs(J_m), and Y_m and Y_(m+1) for that sign of J_m, for x from 2 on: Steed's method."""
    eps = precision(x) * 0.5
    one = constant_like(x, 1.0)
    a = 0.25 - m * m
    p, q = -0.5 / x, one
    br, bi = 2 * x, 2 * one
    fact = a / x / (p * p + q * q)
    cr, ci = br + q * fact, bi + p * fact
    den = br * br + bi * bi
    dr, di = br / den, -bi / den
    dlr, dli = cr * dr - ci * di, cr * di + ci * dr
    p, q = p * dlr - q * dli, p * dli + q * dlr

    def step(i: Term, *s: Term) -> list[Term]:
        a, bi, cr, ci, dr, di, p, q, change, br = s
        running = change > eps
        a, bi = a + 2 * (i - 1), bi + 2
        dr, di = a * dr + br, a * di + bi
        fact = a / (cr * cr + ci * ci)
        cr, ci = br + cr * fact, bi - ci * fact
        den = dr * dr + di * di
        dr, di = dr / den, -di / den
        dlr, dli = cr * dr - ci * di, cr * di + ci * dr
        before = (p, q)
        p, q = p * dlr - q * dli, p * dli + q * dlr
        change = where(running, magnitude(dlr - 1) + magnitude(dli), change)
        p, q = where(running, p, before[0]), where(running, q, before[1])
        return [i + 1, a, bi, cr, ci, dr, di, p, q, change, br]

    def go_on(i: Term, *s: Term) -> Term:
        return (s[8] > eps) & (i < MOST)

    made = repeat(step, go_on, [one * 2, a, bi, cr, ci, dr, di, p, q, one, br])
    p, q = made[7], made[8]
    gam = (p - f) / q
    j = sqrt((2 / math.pi) / (x * ((p - f) * gam + q)))
    y = j * gam
    return j, y, m / x * y - (y * p + j * q)


def _up(m: Term, steps: Term, x: Term, y: Term, y1: Term) -> Term:
    def step(k: Term, before: Term, value: Term, *at: Term) -> list[Term]:
        m, steps, x = at
        following = (m + k) * (2 / x) * value - before
        goes_on = (k <= steps) & (magnitude(before) < np.inf) & (magnitude(value) < np.inf)
        return [k + 1, where(goes_on, value, before), where(goes_on, following, value), *at]

    def go_on(k: Term, before: Term, value: Term, *at: Term) -> Term:
        return k <= at[1]

    made = repeat(step, go_on, [constant_like(x, 1.0), y, y1, m, steps, x])
    return where(magnitude(made[2]) < np.inf, made[1], where(steps > 0, made[2], made[1]))


def _near(v: Term, x: Term) -> tuple[Term, Term]:
    below = x < 2
    steps = where(below, floor(v + 0.5), larger(floor(v - x + 1.5), 0.0))
    m = v - steps
    slope, sign = _fraction(v, x)
    scale, f = _down(v, steps, x, slope, sign)
    js, ys, ys1 = _by_series(where(below, m, 0.25), where(below, x, 1.0), where(below, f, 0.0))
    jf, yf, yf1 = _by_second_fraction(
        where(below, 0.25, m), where(below, 3.0, x), where(below, 0.0, f)
    )
    # The fraction gives the magnitude: the sign is what the first fraction counted.
    turned = where(scale == 0, sign, where(scale < 0, -sign, sign))
    j = where(below, js, jf * turned)
    y, y1 = where(below, ys, yf * turned), where(below, ys1, yf1 * turned)
    return j * scale, _up(m, steps, x, y, y1)


def _far(v: Term, x: Term) -> tuple[Term, Term]:
    square = 4 * v * v
    term = constant_like(x, 1.0)
    sums = [term, 0 * term]
    for k in range(1, _HANKEL_TERMS):
        term = term * (square - (2 * k - 1) ** 2) / (8 * k * x)
        sums[k % 2] = sums[k % 2] + (term if k % 4 < 2 else -term)
    turn = 0.5 * v + 0.25
    c, s = cosine_of_pi(turn), sine_of_pi(turn)
    cosine, sine = cos(x) * c + sin(x) * s, sin(x) * c - cos(x) * s
    root = sqrt((2 / math.pi) / x)
    p, q = sums
    return root * (p * cosine - q * sine), root * (p * sine + q * cosine)


def _both(v: Term, x: Term) -> tuple[Term, Term]:
    """J and Y of a real order for x from 0 on."""
    usual = (x > 0) & (x < np.inf) & (magnitude(v) < 1e5)
    order, at = where(usual, magnitude(v), 0.5), where(usual, x, 1.0)
    far = (at > 40) & (at > 0.5 * order * order)
    jn, yn = _near(where(far, 0.5, order), where(far, 1.0, at))
    jf, yf = _far(where(far, order, 0.5), where(far, at, 50.0))
    j, y = where(far, jf, jn), where(far, yf, yn)
    # J_-v and Y_-v turn both into each other.
    negative = v < 0
    s, c = sine_of_pi(order), cosine_of_pi(order)
    s_j, s_y = where(s == 0, 0.0, s * y), where(s == 0, 0.0, s * j)
    c_j, c_y = where(c == 0, 0.0, c * j), where(c == 0, 0.0, c * y)
    j, y = where(negative, c_j - s_j, j), where(negative, s_y + c_y, y)
    whole = v == floor(v)
    at_zero = where(v == 0, 1.0, where(whole | (v > 0), 0 * v, sign_of_gamma(v) * np.inf))
    below = where(v == floor(v) + 0.5, where(v < 0, 0 * v, -np.inf), -np.inf + 0 * v)
    wrong = is_nan(x) | is_nan(v) | (magnitude(v) >= 1e5)
    j = where(usual, j, where(x == 0, at_zero, 0.0))
    y = where(usual, y, where(x == 0, below, 0.0))
    return where(wrong, np.nan, j), where(wrong | (x < 0), np.nan, y)


def sign_of_gamma(v: Term) -> Term:
    """The sign of gamma(v + 1)."""
    return where((floor(v) - 2 * floor(0.5 * floor(v)) == 1) & (v < -1), -1.0, 0 * v + 1)


def _jv(v: Term, x: Term) -> Term:
    whole = v == floor(v)
    odd = whole & (v - 2 * floor(0.5 * v) == 1)
    made = _both(v, magnitude(x))[0]
    made = where((x < 0) & odd, -made, made)
    return where((x < 0) & ~whole, np.nan, made)


def jv_of(v: Term, x: Term) -> Term:
    """The Bessel function of the first kind of a real order; NaN below 0 unless that is whole."""

    def slope(v: Term, x: Term) -> Term:
        return 0.5 * (jv_of(v - 1, x) - jv_of(v + 1, x))

    return known_derivative("jv", _jv, [no_slope, slope], [v, x])


def yv_of(v: Term, x: Term) -> Term:
    """The Bessel function of the second kind of a real order; NaN below 0."""

    def slope(v: Term, x: Term) -> Term:
        return 0.5 * (yv_of(v - 1, x) - yv_of(v + 1, x))

    return known_derivative("yv", lambda v, x: _both(v, x)[1], [no_slope, slope], [v, x])
