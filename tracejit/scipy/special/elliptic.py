"""Elliptic integrals and functions: Legendre's forms, Carlson's, Jacobi's, and the mean AGM.

Complete integrals are arithmetic-geometric means, incomplete ones Carlson's R_F and R_D, whose
arguments duplication brings together. The iterations have a fixed number of steps, and their
derivatives are what differentiation makes of them. References: B. Carlson, Numerical computation
of real or complex elliptic integrals, 1995; DLMF 19.8, 19.25 and 22.20.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.special as scipy_special

from tracejit.scipy.special.functions import special
from tracejit.scipy.special.terms import (
    Term,
    arcsin,
    atan2,
    constant_like,
    cos,
    exp,
    expm1,
    is_nan,
    larger,
    magnitude,
    nearest,
    sin,
    smaller,
    sqrt,
    where,
)

_MEANS = 13
"""Steps of the mean of numbers as far apart as 1 and 1e-160."""
_DUPLICATIONS = 13


def _mean(a: Term, b: Term, steps: int = _MEANS) -> Term:
    for _ in range(steps):
        a, b = 0.5 * (a + b), sqrt(a) * sqrt(b)
    return 0.5 * (a + b)


def _agm(a: Term, b: Term) -> Term:
    usual = (magnitude(a) > 0) & (magnitude(a) < np.inf) & (magnitude(b) > 0)
    usual = usual & (magnitude(b) < np.inf)
    x, y = where(usual, magnitude(a), 1.0), where(usual, magnitude(b), 1.0)
    made = where(a < 0, -_mean(x, y), _mean(x, y))
    nothing = (a == 0) | (b == 0)
    endless = (magnitude(a) == np.inf) | (magnitude(b) == np.inf)
    wrong = (a < 0) & (b > 0) | (a > 0) & (b < 0) | is_nan(a) | is_nan(b) | nothing & endless
    made = where(usual, made, where(nothing, 0.0, where(a < 0, -np.inf, constant_like(a, np.inf))))
    return where(wrong, np.nan, made)


def k_of_complement(p: Term) -> Term:
    """The complete elliptic integral K of 1 - p."""
    usual = (p > 0) & (p < np.inf)
    inside = where(usual, p, 1.0)
    made = (math.pi / 2) / _mean(constant_like(p, 1.0), sqrt(inside))
    made = where(p == 0, np.inf, where(usual, made, 0.0))
    return where((p < 0) | is_nan(p), np.nan, made)


def k_of(m: Term) -> Term:
    """The complete elliptic integral of the first kind of the parameter m = k**2."""
    return k_of_complement(1 - m)


def e_of(m: Term) -> Term:
    """The complete elliptic integral of the second kind."""
    usual = (m < 1) & (m > -np.inf)
    inside = where(usual, m, 0.5)
    negative = inside < 0
    # E(m) = sqrt(1 - m) E(m / (m - 1)), so that no parameter is negative.
    turned = where(negative, inside / (inside - 1), inside)
    rest = where(negative, 1 / (1 - inside), 1 - inside)
    a, b, total, weight = constant_like(m, 1.0), sqrt(rest), 0.5 * turned, 1.0
    for _ in range(_MEANS):
        c = 0.5 * (a - b)
        a, b = 0.5 * (a + b), sqrt(a * b)
        total = total + weight * c * c
        weight *= 2
    made = (math.pi / 2) / a * (1 - total)
    made = where(negative, made * sqrt(1 - inside), made)
    made = where(m == 1, 1.0, where(usual, made, constant_like(m, np.inf)))
    return where((m > 1) | is_nan(m), np.nan, made)


def _together(x: Term, y: Term, z: Term) -> tuple[Term, Term, Term, Term]:
    """Arguments after a step of duplication, and the number that it adds."""
    roots = sqrt(x), sqrt(y), sqrt(z)
    shift = roots[0] * roots[1] + roots[1] * roots[2] + roots[2] * roots[0]
    return 0.25 * (x + shift), 0.25 * (y + shift), 0.25 * (z + shift), shift


def rf_of(x: Term, y: Term, z: Term) -> Term:
    """Carlson's R_F for arguments from 0 on; at most one may be 0."""
    for _ in range(_DUPLICATIONS):
        x, y, z, _ = _together(x, y, z)
    mean = (x + y + z) * (1 / 3)
    p, q = 1 - x / mean, 1 - y / mean
    r = -(p + q)
    e2, e3 = p * q - r * r, p * q * r
    series = 1 - e2 * 0.1 + e3 * (1 / 14) + e2 * e2 * (1 / 24) - e2 * e3 * (3 / 44)
    return series / sqrt(mean)


def rd_of(x: Term, y: Term, z: Term) -> Term:
    """Carlson's R_D, z above 0."""
    total, factor = 0 * x, 1.0
    for _ in range(_DUPLICATIONS):
        root, before = sqrt(z), z
        x, y, z, shift = _together(x, y, z)
        total = total + factor / (root * (before + shift))
        factor *= 0.25
    mean = (x + y + 3 * z) * 0.2
    p, q = 1 - x / mean, 1 - y / mean
    r = -(p + q) * (1 / 3)
    e2, e3 = p * q - 6 * r * r, (3 * p * q - 8 * r * r) * r
    e4, e5 = 3 * (p * q - r * r) * r * r, p * q * r * r * r
    series = 1 - e2 * (3 / 14) + e3 * (1 / 6) + e2 * e2 * (9 / 88) - e4 * (3 / 22)
    series = series - e2 * e3 * (9 / 52) + e5 * (3 / 26)
    return 3 * total + factor * series / (mean * sqrt(mean))


def _three(x: Term, y: Term, z: Term, last: bool) -> tuple[Term, Term, Term, Term]:
    """Where all arguments are in range, and such arguments."""
    zeros = where(x == 0, 1.0, 0 * x) + where(y == 0, 1.0, 0 * x)
    zeros = zeros + where(z == 0, 1.0 + last, 0 * x)
    usual = (x >= 0) & (y >= 0) & (z >= 0) & (zeros < 2) & (x < np.inf) & (y < np.inf)
    usual = usual & (z < np.inf)
    return usual, where(usual, x, 1.0), where(usual, y, 1.0), where(usual, z, 1.0)


def _outside(x: Term, y: Term, z: Term, at_zero: float = np.inf) -> Term:
    """Infinite where too many arguments are 0, 0 where one is infinite, else NaN."""
    wrong = (x < 0) | (y < 0) | (z < 0) | is_nan(x) | is_nan(y) | is_nan(z)
    endless = (x == np.inf) | (y == np.inf) | (z == np.inf)
    return where(wrong, np.nan, where(endless, 0.0, constant_like(x, at_zero)))


def _rf(x: Term, y: Term, z: Term) -> Term:
    usual, *at = _three(x, y, z, False)
    return where(usual, rf_of(*at), _outside(x, y, z))


def _rd(x: Term, y: Term, z: Term) -> Term:
    usual, *at = _three(x, y, z, True)
    return where(usual, rd_of(*at), _outside(x, y, z))


def _rc(x: Term, y: Term) -> Term:
    usual, first, second, _ = _three(x, magnitude(y), magnitude(y), False)
    negative = y < 0
    # The principal value below 0.
    moved, other = where(negative, first + second, first), second
    made = rf_of(moved, other, other)
    made = where(negative, made * sqrt(first / moved), made)
    return where(usual & (y != 0), made, _outside(x, magnitude(y), magnitude(y)))


def _rg(x: Term, y: Term, z: Term) -> Term:
    finite = (x >= 0) & (y >= 0) & (z >= 0) & (x < np.inf) & (y < np.inf) & (z < np.inf)
    low = smaller(smaller(x, y), z)
    high = larger(larger(x, y), z)
    middle = larger(smaller(x, y), smaller(larger(x, y), z))
    usual = finite & (middle > 0)
    a, b, c = where(usual, low, 1.0), where(usual, middle, 1.0), where(usual, high, 1.0)
    # With z between the others all parts are positive.
    made = b * rf_of(a, c, b) + (b - a) * (c - b) * (1 / 3) * rd_of(a, c, b)
    made = 0.5 * (made + sqrt(a * c / b))
    made = where(usual, made, 0.5 * sqrt(where(finite, high, 0.0)))
    wrong = (low < 0) | is_nan(x) | is_nan(y) | is_nan(z)
    return where(wrong, np.nan, where(high == np.inf, np.inf, made))


def _reduced(phi: Term, m: Term) -> tuple[Term, Term, Term, Term, Term]:
    """Half turns in the angle; and of the rest sin, cos**2 and 1 - m sin**2; and where it is so."""
    usual = magnitude(phi) < np.inf
    angle = where(usual, phi, 0.0)
    turns = nearest(angle * (1 / math.pi))
    rest = angle - turns * math.pi
    s, c = sin(rest), cos(rest)
    delta = where(m > 0.5, c * c + (1 - m) * s * s, 1 - m * s * s)
    return turns, s, c * c, delta, usual


def _incomplete_f(phi: Term, m: Term) -> Term:
    turns, s, square, delta, usual = _reduced(phi, m)
    inside = (delta > 0) & usual & (m > -np.inf)
    one = constant_like(phi, 1.0)
    part = s * rf_of(where(inside, square, 0.5), where(inside, delta, 1.0), one)
    # No half turns, no complete integral, which may be infinite.
    complete = k_of(where(turns == 0, 0.0, m))
    made = part + where(turns == 0, 0.0, 2 * turns * complete)
    endless = where(m == -np.inf, 0.0, where(usual, constant_like(phi, np.nan), phi))
    edge = (delta == 0) & usual
    made = where(inside, made, where(edge, where(phi < 0, -np.inf, one * np.inf), endless))
    return where(is_nan(phi) | is_nan(m) | (m > 1), np.nan, made)


def _incomplete_e(phi: Term, m: Term) -> Term:
    turns, s, square, delta, usual = _reduced(phi, m)
    inside = (delta >= 0) & usual & (m > -np.inf)
    safe = where(inside & (delta > 0), delta, 1.0)
    at = where(inside & (delta > 0), square, 0.5)
    one = constant_like(phi, 1.0)
    part = s * rf_of(at, safe, one) - m * s * s * s * (1 / 3) * rd_of(at, safe, one)
    part = where(delta == 0, where(phi < 0, -1.0, one), part)
    part = where(m == 1, s, part)
    made = part + where(turns == 0, 0.0, 2 * turns * e_of(where(turns == 0, 0.0, m)))
    endless = where(usual, where(m == -np.inf, np.inf * one, np.nan), phi)
    made = where(inside, made, endless)
    return where(is_nan(phi) | is_nan(m) | (m > 1), np.nan, made)


def _jacobi(u: Term, m: Term) -> tuple[Term, Term, Term, Term]:
    """sn, cn, dn and the amplitude, by Landen's descending transformation."""
    usual = (m >= 0) & (m <= 1) & (magnitude(u) < np.inf)
    nearly = m >= (1 - 1e-5 if u.is_single else 1 - 1e-10)
    inside, at = where(usual & ~nearly, m, 0.5), where(usual, u, 0.5)
    a, b = constant_like(u, 1.0), sqrt(1 - inside)
    shares = []
    steps = 8
    for _ in range(steps):
        c = 0.5 * (a - b)
        a, b = 0.5 * (a + b), sqrt(a * b)
        shares.append(c / a)
    phi = at * a * 2.0**steps
    for share in reversed(shares):
        phi = 0.5 * (phi + arcsin(share * sin(phi)))
    s, c = sin(phi), cos(phi)
    delta = sqrt(where(inside > 0.5, c * c + (1 - inside) * s * s, 1 - inside * s * s))
    # Nearly 1: hyperbolic functions, and their first correction.
    bounded = larger(smaller(at, 300.0), -300.0)
    grown = exp(-magnitude(bounded))
    cosh = 0.5 * (grown + 1 / grown)
    tanh = where(bounded < 0, 1.0, -1.0 + 0 * u) * expm1(-2 * magnitude(bounded))
    tanh = tanh / (1 + grown * grown)
    rest = 0.25 * (1 - where(usual & nearly, m, 1.0))
    sinh = tanh * cosh
    other = sinh * cosh - bounded
    amplitude = 2 * atan2(exp(bounded), 0 * u + 1) - math.pi / 2 + rest * other / cosh
    sn = tanh + rest * other / (cosh * cosh)
    cn = 1 / cosh - rest * other * tanh / cosh
    dn = 1 / cosh + rest * (sinh * cosh + bounded) * tanh / cosh
    pairs = ((s, sn), (c, cn), (delta, dn), (phi, amplitude))
    found = [where(usual, where(nearly, y, x), np.nan) for x, y in pairs]
    return found[0], found[1], found[2], found[3]


agm = special(scipy_special.agm, _agm)
ellipk = special(scipy_special.ellipk, k_of)
ellipkm1 = special(scipy_special.ellipkm1, k_of_complement)
ellipe = special(scipy_special.ellipe, e_of)
ellipkinc = special(scipy_special.ellipkinc, _incomplete_f)
ellipeinc = special(scipy_special.ellipeinc, _incomplete_e)
ellipj = special(scipy_special.ellipj, _jacobi)
elliprc = special(scipy_special.elliprc, _rc)
elliprd = special(scipy_special.elliprd, _rd)
elliprf = special(scipy_special.elliprf, _rf)
elliprg = special(scipy_special.elliprg, _rg)
