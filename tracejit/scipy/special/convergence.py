"""When series and continued fractions have converged: they run until all elements have."""

from __future__ import annotations

from tracejit.scipy.special.terms import Term, magnitude, where

MOST = 20000.0
"""The most steps of an iteration."""


def precision(x: Term) -> float:
    """What a part may be of the whole to be left out."""
    return 2e-7 if x.is_single else 4e-16


def least(x: Term) -> float:
    """The replacement of zero in Lentz's method."""
    return 1e-30 if x.is_single else 1e-290


def moved(h: Term, factor: Term, change: Term, eps: float) -> Term:
    """The value after one more step, if the step before changed it: others wait."""
    return where(magnitude(change - 1) > eps, h * factor, h)


def apart(x: Term, tiny: float) -> Term:
    """``x``, or a tiny number in place of zero."""
    return where(x == 0, tiny, x)
