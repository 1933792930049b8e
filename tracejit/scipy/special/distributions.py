"""Distribution functions under their names in Cephes, by the incomplete gamma and beta functions.

special.stdtr(df, t); special.pdtr(k, mean); special.fdtr(dfn, dfd, x)
"""

from __future__ import annotations

import numpy as np
import scipy.special as scipy_special

from tracejit.scipy.special.functions import special
from tracejit.scipy.special.incomplete_beta import betainc_of
from tracejit.scipy.special.incomplete_gamma import gammainc_of, gammaincc_of
from tracejit.scipy.special.terms import Term, constant_like, floor, where


def _chdtr(v: Term, x: Term) -> Term:
    inside = x >= 0
    made = gammainc_of(v * 0.5, where(inside, x, 1.0) * 0.5)
    return where(inside, made, where(x < 0, 0.0, constant_like(x, np.nan)))


def _chdtrc(v: Term, x: Term) -> Term:
    inside = x >= 0
    made = gammaincc_of(v * 0.5, where(inside, x, 1.0) * 0.5)
    return where(inside, made, where(x < 0, 1.0, constant_like(x, np.nan)))


def _gamma_scale(a: Term, x: Term) -> tuple[Term, Term]:
    """Where the argument is in range, and the scaled argument."""
    inside = x >= 0
    return inside, a * where(inside, x, 1.0)


def _gdtr(a: Term, b: Term, x: Term) -> Term:
    inside, scaled = _gamma_scale(a, x)
    return where(inside, gammainc_of(b, scaled), constant_like(x, np.nan))


def _gdtrc(a: Term, b: Term, x: Term) -> Term:
    inside, scaled = _gamma_scale(a, x)
    return where(inside, gammaincc_of(b, scaled), constant_like(x, np.nan))


def _pdtr(k: Term, m: Term) -> Term:
    inside = (k >= 0) & (m >= 0)
    count, mean = where(inside, floor(k), 1.0), where(inside, m, 1.0)
    made = where(mean == 0, 1.0, gammaincc_of(count + 1, where(mean == 0, 1.0, mean)))
    return where(inside, made, constant_like(k, np.nan))


def _pdtrc(k: Term, m: Term) -> Term:
    inside = (k >= 0) & (m >= 0)
    count, mean = where(inside, floor(k), 1.0), where(inside, m, 1.0)
    made = where(mean == 0, 0.0, gammainc_of(count + 1, where(mean == 0, 1.0, mean)))
    return where(inside, made, constant_like(k, np.nan))


def _fdtr(dfn: Term, dfd: Term, x: Term) -> Term:
    inside = (x >= 0) & (dfn > 0) & (dfd > 0)
    a, b, at = (where(inside, one, 1.0) for one in (dfn, dfd, x))
    scaled = a * at
    made = betainc_of(a * 0.5, b * 0.5, scaled / (b + scaled))
    return where(inside, made, constant_like(x, np.nan))


def _fdtrc(dfn: Term, dfd: Term, x: Term) -> Term:
    inside = (x >= 0) & (dfn > 0) & (dfd > 0)
    a, b, at = (where(inside, one, 1.0) for one in (dfn, dfd, x))
    made = betainc_of(b * 0.5, a * 0.5, b / (b + a * at))
    return where(inside, made, constant_like(x, np.nan))


def _stdtr(df: Term, t: Term) -> Term:
    inside = (df > 0) & (t == t)
    a, at = where(inside, df, 1.0), where(inside, t, 1.0)
    square = at * at
    # The tail's share through the smaller of the two complementary arguments.
    near = square < a
    half = constant_like(a, 0.5)
    far = where(near, constant_like(a, 1.0), at)
    tail = betainc_of(a * 0.5, half, a / (a + far * far))
    middle = betainc_of(half, a * 0.5, where(near, square, 0.0) / (a + where(near, square, 0.0)))
    both = where(near, 1 - middle, tail)
    made = where(at < 0, 0.5 * both, 1 - 0.5 * both)
    return where(inside, made, constant_like(t, np.nan))


betaincc = special(scipy_special.betaincc, lambda a, b, x: betainc_of(b, a, 1 - x))
chdtr = special(scipy_special.chdtr, _chdtr)
chdtrc = special(scipy_special.chdtrc, _chdtrc)
fdtr = special(scipy_special.fdtr, _fdtr)
fdtrc = special(scipy_special.fdtrc, _fdtrc)
gdtr = special(scipy_special.gdtr, _gdtr)
gdtrc = special(scipy_special.gdtrc, _gdtrc)
pdtr = special(scipy_special.pdtr, _pdtr)
pdtrc = special(scipy_special.pdtrc, _pdtrc)
stdtr = special(scipy_special.stdtr, _stdtr)
