"""Incomplete gamma and beta functions of large parameters near their mean: Temme's expansions.

Both are the integral of sqrt(n / 2 pi) exp(-n z**2 / 2) f(z), up to a factor, where f(z) is
z / t(z) and t' = f (1 + c t - p t**2), p = (1 - c**2) / 4: c is 1 for gamma(a), n = a and t =
x / a - 1; for beta(a, b) c is (b - a) / (a + b) and n = a b / (a + b). So the lower function is

    erfc(-z sqrt(n / 2)) / 2 - exp(-n z**2 / 2) / sqrt(2 pi n) S(z),  z S - S' / n = G f - 1

with S = G (b_0 + b_1 z + ...), b_m-1 = f_m + (m + 1) b_m+1 / n and 1 / G = 1 + b_1 / n.
Reference: N. Temme, The asymptotic expansion of the incomplete gamma functions, 1979; A. Gil,
J. Segura and N. Temme, Efficient and accurate algorithms for the computation and inversion of the
incomplete gamma function ratios, 2012. These formulas have no loops: their derivatives are what
differentiation makes of them.
"""

from __future__ import annotations

import functools
import math

import numpy as np
from numpy.typing import NDArray

from tracejit.scipy.special.errors import erfcx_of
from tracejit.scipy.special.stirling import gap_ratio
from tracejit.scipy.special.terms import (
    Term,
    constant_like,
    exp,
    magnitude,
    polynomial,
    sqrt,
    where,
)

_GAMMA_FROM, _GAMMA_WIDTH, _GAMMA_TERMS = 20.0, 0.4, 27
_BETA_FROM, _BETA_WIDTH, _BETA_TERMS = 200.0, 0.25, 16
_SINGLE_TERMS = 12


Series = NDArray[np.float64]
"""The coefficients of a polynomial in c."""


def _series(c: Series, p: Series, count: int) -> list[Series]:
    """f_0, f_1 ... as polynomials in c of as many coefficients as ``c`` has."""
    size = len(c)
    one, nothing = np.eye(1, size)[0], np.zeros(size)

    def times(x: Series, y: Series) -> Series:
        return np.convolve(x, y)[:size]

    # What stands at z**m in 1 + c t - p t**2 is right[m]; f t is z.
    t, f, right = [nothing, one], [one], [one]
    for m in range(1, count):
        square = sum((times(t[i], t[m - i]) for i in range(1, m)), nothing)
        right.append(times(c, t[m]) - times(p, square))
        before = sum((times(f[k], t[m + 1 - k]) for k in range(1, m)), nothing)
        known = sum((times(f[k], right[m - k]) for k in range(m)), nothing)
        # f_m is -before - t_m+1, and (m + 1) t_m+1 is f_m + known.
        t.append((known - before) / (m + 2))
        f.append(-before - t[-1])
    return f


@functools.cache
def _of_gamma() -> list[float]:
    return [float(one[0]) for one in _series(np.ones(1), np.zeros(1), _GAMMA_TERMS)]


@functools.cache
def _of_beta() -> list[list[float]]:
    """Of f_m at 1, c**2 ... for even m, at c, c**3 ... for odd m: the others are zero."""
    c, p = np.zeros(_BETA_TERMS), np.zeros(_BETA_TERMS)
    c[1], p[0], p[2] = 1, 0.25, -0.25
    found = enumerate(_series(c, p, _BETA_TERMS))
    return [[float(x) for x in one[m % 2 : m + 1 : 2]] for m, one in found]


def _shares(n: Term, z: Term, f: list[Term]) -> tuple[Term, Term]:
    """The lower and the upper function; see above."""
    last = len(f) - 1
    b = {last + 1: z * 0, last: z * 0}
    for m in range(last, 0, -1):
        b[m - 1] = b[m + 1] * ((m + 1) / n) + f[m]
    total = b[last - 1]
    for m in range(last - 2, -1, -1):
        total = total * z + b[m]
    rest = total / (1 + b[1] / n) / sqrt(2 * math.pi * n)
    upwards = z >= 0
    size = where(upwards, z, -z)
    scaled = 0.5 * erfcx_of(size * sqrt(n * 0.5)) + where(upwards, rest, -rest)
    tail = exp(-0.5 * n * z * z) * scaled
    return where(upwards, 1 - tail, tail), where(upwards, tail, 1 - tail)


def near_gamma(a: Term, x: Term) -> Term:
    """Where `gamma_shares` is used."""
    return (a >= _GAMMA_FROM) & (a < np.inf) & (magnitude(x - a) <= _GAMMA_WIDTH * a)


def gamma_shares(a: Term, x: Term) -> tuple[Term, Term]:
    """The regularised incomplete gamma functions P and Q."""
    u = (x - a) / a
    z = u * sqrt(2 * gap_ratio(u))
    terms = _SINGLE_TERMS if a.is_single else _GAMMA_TERMS
    return _shares(a, z, [constant_like(a, one) for one in _of_gamma()[:terms]])


def _distances(a: Term, b: Term, x: Term) -> tuple[Term, Term, Term]:
    """n, and how far x and 1 - x lie from their means, relative to these."""
    n = a * (b / (a + b))
    distance = b * x - a * (1 - x)
    return n, distance / a, distance / b


def near_beta(a: Term, b: Term, x: Term) -> Term:
    """Where `beta_shares` is used."""
    n, u, v = _distances(a, b, x)
    near = (magnitude(u) <= _BETA_WIDTH) & (magnitude(v) <= _BETA_WIDTH)
    return (n >= _BETA_FROM) & (n < np.inf) & near


def beta_shares(a: Term, b: Term, x: Term) -> tuple[Term, Term]:
    """The regularised incomplete beta function, and one less it."""
    n, u, v = _distances(a, b, x)
    by_a, by_b = a / (a + b), b / (a + b)
    z = (u + v) * sqrt(2 * (by_b * gap_ratio(u) + by_a * gap_ratio(-v)))
    c = by_b - by_a
    square = c * c
    terms = _SINGLE_TERMS if a.is_single else _BETA_TERMS
    f = [constant_like(a, 1.0)]
    for m, coefficients in enumerate(_of_beta()[1:terms], 1):
        even = polynomial(square, coefficients)
        f.append(even * c if m % 2 else even)
    return _shares(n, z, f)
