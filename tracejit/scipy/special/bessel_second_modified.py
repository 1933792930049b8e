"""The modified Bessel functions of the second kind, of any real order: kv, kve, kn, k0, k1.

K_v(x) is the integral of exp(-x cosh t) cosh(v t) from 0 on, by the trapezoidal rule, which
converges exponentially for it; the integral times t**m is its derivative in the order. Reference:
DLMF 10.32.9; L. Trefethen and J. Weideman, The exponentially convergent trapezoidal rule, 2014.
"""

from __future__ import annotations

import functools

import numpy as np
import scipy.special as scipy_special

from tracejit.scipy.special.functions import special
from tracejit.scipy.special.terms import (
    Term,
    constant_like,
    exp,
    floor,
    hyperbolic_sine,
    is_nan,
    known_derivative,
    log,
    magnitude,
    repeat,
    smaller,
    sqrt,
    where,
)


def _integral(v: Term, x: Term, moment: int, growth: Term) -> Term:
    """exp(growth) times the integral of t**moment exp(-x cosh t) cosh(v t), or sinh for odd ones.

    For v from 0 on and finite x > 0.
    """
    # The integrand is greatest at sinh(t) = v / x, about as wide as a Gaussian of this deviation.
    ratio = v / x
    great = ratio > 1e8
    inside = where(great, 1.0, ratio)
    peak = where(great, log(2 * where(great, ratio, 1.0)), log(inside + sqrt(inside * inside + 1)))
    width = 1 / sqrt(sqrt(v * v + x * x))
    h = smaller(0.6 * width, 0.2)

    def exponent(t: Term, v: Term, x: Term) -> Term:
        root = hyperbolic_sine(0.5 * t)
        return v * t - 2 * x * root * root

    def step(k: Term, total: Term, part: Term, *at: Term) -> list[Term]:
        v, x, h, _, top = at
        t = k * h
        both = exp(exponent(t, v, x) - top)
        mirrored = exp(-2 * v * t)
        part = both * (1 - mirrored if moment % 2 else 1 + mirrored)
        for _ in range(moment):
            part = part * t
        return [k + 1, total + part, part, *at]

    def go_on(k: Term, total: Term, part: Term, *at: Term) -> Term:
        _, _, h, peak, _ = at
        return (k * h <= peak + 2 * h) | (part > 1e-18 * total)

    top = exponent(peak, v, x)
    one = constant_like(x, 1.0)
    first = 0 * one if moment else exp(-top)
    total = repeat(step, go_on, [one, first, one, v, x, h, peak, top])[1]
    # In two steps: the exponential overflows before the product.
    half = exp((top - x + growth) * 0.5)
    return half * (0.5 * h * total) * half


def _moment(v: Term, x: Term, scaled: bool, moment: int) -> Term:
    usual = (x > 0) & (x < np.inf) & (magnitude(v) < np.inf)
    at = where(usual, x, 1.0)
    order = where(usual, v, 0.0)
    made = _integral(magnitude(order), at, moment, at if scaled else at * 0)
    made = where((order < 0), -made, made) if moment % 2 else made
    at_zero = where(v < 0, -np.inf, v + np.inf) if moment % 2 else where(is_nan(v), v, np.inf)
    made = where(usual, made, where(x == 0, at_zero, where(x == np.inf, 0.0, at_zero)))
    return where((x < 0) | is_nan(x) | is_nan(v), np.nan, made)


@functools.cache
def _named(scaled: bool, moment: int) -> str:
    return ("kve" if scaled else "kv") + (f"_{moment}" if moment else "")


def kv_of(v: Term, x: Term, scaled: bool = False, moment: int = 0) -> Term:
    """The derivative of order ``moment`` in v of K_v(x), times exp(x) if ``scaled``."""

    def in_order(v: Term, x: Term) -> Term:
        return kv_of(v, x, scaled, moment + 1)

    def in_x(v: Term, x: Term) -> Term:
        neighbours = kv_of(v - 1, x, scaled, moment) + kv_of(v + 1, x, scaled, moment)
        own = kv_of(v, x, scaled, moment) if scaled else 0
        return own - 0.5 * neighbours

    def value(v: Term, x: Term) -> Term:
        return _moment(v, x, scaled, moment)

    return known_derivative(_named(scaled, moment), value, [in_order, in_x], [v, x])


def _of_whole_order(v: Term, x: Term) -> Term:
    return kv_of(where(v < 0, -floor(-v), floor(v)), x)


kv = special(scipy_special.kv, kv_of)
kve = special(scipy_special.kve, lambda v, x: kv_of(v, x, scaled=True))
kn = special(scipy_special.kn, _of_whole_order)
k0 = special(scipy_special.k0, lambda x: kv_of(constant_like(x, 0.0), x))
k0e = special(scipy_special.k0e, lambda x: kv_of(constant_like(x, 0.0), x, scaled=True))
k1 = special(scipy_special.k1, lambda x: kv_of(constant_like(x, 1.0), x))
k1e = special(scipy_special.k1e, lambda x: kv_of(constant_like(x, 1.0), x, scaled=True))
