"""Integrals of sampled functions: the names of ``scipy.integrate``.

integrate.simpson(y, x=x); integrate.cumulative_trapezoid(y, dx=0.1, initial=0)
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.integrate as scipy_integrate

from tracejit.errors import AttributeValueError, ShapeError
from tracejit.numpy import cumulative
from tracejit.numpy.building import canonical_axis
from tracejit.numpy.manipulation import as_array
from tracejit.numpy.padding import pad
from tracejit.numpy.selecting import where
from tracejit.trace.public import implements
from tracejit.trace.tracer import Tracer

__all__ = ["cumulative_trapezoid", "simpson", "trapezoid"]


def _last(function: str, y: Any, axis: int) -> tuple[Tracer, int]:
    """The samples with their axis last, and where it was."""
    array = as_array(y)
    position = canonical_axis(function, axis, array.ndim)
    return array.swapaxes(position, -1), position


def _steps(function: str, x: Any, dx: Any, y: Tracer, position: int) -> Any:
    """The distances of samples along the last axis: a number, or an array that broadcasts to y."""
    if x is None:
        return dx
    given = as_array(x)
    if given.ndim == 1:
        steps = cumulative.diff(given)
    else:
        steps = cumulative.diff(given.swapaxes(position, -1), axis=-1)
    if steps.shape[-1] != y.shape[-1] - 1:
        raise ShapeError(
            f"{function}: x must have as many elements as y along axis {position}; x {given.shape}"
        )
    return steps


@implements(scipy_integrate.trapezoid)
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """The integral of ``y`` along ``axis`` by the trapezoidal rule; see `tracejit.numpy.trapezoid`.

    Samples lie at ``x``, of one dimension or of the shape of ``y``, or ``dx`` apart.
    """
    array = as_array(y)
    made = cumulative.trapezoid(array, x, dx, axis)
    # An x of greater precision does not count.
    return made.astype(array.dtype) if array.element_type.is_inexact else made


@implements(scipy_integrate.cumulative_trapezoid)
def cumulative_trapezoid(
    y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1, initial: Any = None
) -> Any:
    """The integrals of ``y`` from the first sample to each other one, by the trapezoidal rule.

    One element less along ``axis`` than ``y``, unless ``initial`` is 0 and stands in front. Raises
    `AttributeValueError` for another ``initial``, `ShapeError` for an ``x`` that does not fit.
    """
    array, position = _last("cumulative_trapezoid", y, axis)
    if initial not in (None, 0):
        raise AttributeValueError(f"cumulative_trapezoid: initial must be None or 0, not {initial}")
    steps = _steps("cumulative_trapezoid", x, dx, array, position)
    if not array.shape[-1]:
        raise ShapeError(f"cumulative_trapezoid: no samples along axis {axis}; y {array.shape}")
    made = cumulative.cumsum(steps * (array[..., 1:] + array[..., :-1]) / 2.0, axis=-1)
    if initial is not None:
        made = pad(made, [(0, 0)] * (made.ndim - 1) + [(1, 0)])
    return made.swapaxes(position, -1)


def _quotient(over: Any, under: Any) -> Any:
    """over / under, and 0 where samples lie in one place."""
    is_zero = under == 0
    return where(is_zero, 0, over / where(is_zero, 1, under))


def _pairs(y: Tracer, h: Any) -> Any:
    """Simpson's rule for an odd number of samples, at distances ``h`` that may differ."""
    y0, y1, y2 = y[..., :-2:2], y[..., 1:-1:2], y[..., 2::2]
    if np.ndim(h) == 0:
        return (h / 3.0) * (y0 + 4 * y1 + y2).sum(-1)
    h0, h1 = h[..., ::2], h[..., 1::2]
    total = h0 + h1
    ratio = _quotient(h0, h1)
    inverse = _quotient(np.ones((), h0.dtype), ratio)
    product = _quotient(total * total, h0 * h1)
    return ((total / 6) * (y0 * (2 - inverse) + y1 * product + y2 * (2 - ratio))).sum(-1)


@implements(scipy_integrate.simpson)
def simpson(y: Any, x: Any = None, *, dx: Any = 1.0, axis: int = -1) -> Any:
    """The integral of ``y`` along ``axis`` by Simpson's rule, without that axis.

    Samples lie at ``x``, of one dimension or of the shape of ``y``, or ``dx`` apart. With an even
    number of samples the last interval has Cartwright's correction, as SciPy's has. Raises
    `ShapeError` for an ``x`` that does not fit.
    """
    array, position = _last("simpson", y, axis)
    array = array if array.element_type.is_inexact else array.astype(np.float64)
    h = _steps("simpson", x, dx, array, position)
    count = array.shape[-1]
    is_even = np.ndim(h) == 0
    if count % 2:
        made = _pairs(array, h) if count > 1 else array[..., 0] * 0
    elif count == 2:
        step = h if is_even else h[..., -1]
        made = 0.5 * step * (array[..., 1] + array[..., 0])
    elif count == 0:
        made = array.sum(-1)
    else:
        h0, h1 = (h, h) if is_even else (h[..., -2], h[..., -1])
        # Integrates the parabola through the last three samples over the last interval.
        a = _quotient(2 * h1**2 + 3 * h0 * h1, 6 * (h1 + h0))
        b = _quotient(h1**2 + 3 * h0 * h1, 6 * h0)
        c = _quotient(h1**3, 6 * h0 * (h0 + h1))
        last = a * array[..., -1] + b * array[..., -2] - c * array[..., -3]
        made = _pairs(array[..., :-1], h if is_even else h[..., :-1]) + last
    return made


def __dir__() -> list[str]:
    return __all__
