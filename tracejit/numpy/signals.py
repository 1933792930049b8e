"""Sampled functions: interpolation, convolution, correlation, phases, outer zeros."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracejit.errors import AttributeValueError, ShapeError
from tracejit.graph import Instruction
from tracejit.numpy import cumulative, joining, sorting
from tracejit.numpy.building import canonical_axis
from tracejit.numpy.manipulation import as_array
from tracejit.numpy.sizes import known
from tracejit.ops import layout
from tracejit.ops.convolution import conv_general_dilated
from tracejit.shapes import ElementType
from tracejit.trace.convert import converted, operand
from tracejit.trace.promotion import common_element_type, result_dtype
from tracejit.trace.public import implements
from tracejit.trace.tracer import Tracer, lift


@implements(np.interp)
def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Any:
    """Piecewise linear interpolation through the points (xp, fp), in float64 or complex128.

    ``xp`` must rise; outside it the result is ``left`` and ``right``, by default the outermost
    values. With a ``period`` the points are sorted by their remainders.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tnp.interp(2.5, [1.0, 2.0, 3.0], [10.0, 20.0, 30.0])
    np.float64(25.0)
    """
    points = as_array(xp).astype(np.float64)
    values = as_array(fp)
    values = values.astype(np.complex128 if values.element_type.is_complex else np.float64)
    if points.ndim != 1 or points.shape != values.shape:
        raise ShapeError(f"interp: xp {points.shape} and fp {values.shape} must be equal vectors")
    if not points.size:
        raise ShapeError("interp: array of sample points is empty")
    wanted = as_array(x).astype(np.float64)
    if period is not None:
        length = np.absolute(as_array(period).astype(np.float64))
        wanted, points = wanted % length, points % length
        order = sorting.argsort(points)
        points, values = points[order], values[order]
        points = joining.concatenate([points[-1:] - length, points, points[:1] + length])
        values = joining.concatenate([values[-1:], values, values[:1]])
        left = right = None
    if points.shape[0] == 1:
        made = np.where(wanted == wanted, values[0], wanted)
    else:
        last = points.shape[0] - 1
        after = np.clip(sorting.searchsorted(points, wanted, "right"), 1, last)
        x0, x1, y0, y1 = points[after - 1], points[after], values[after - 1], values[after]
        width = x1 - x0
        flat = width == 0
        slope = np.where(flat, 0, (y1 - y0) / np.where(flat, 1, width))
        made = np.where(wanted == x1, y1, y0 + slope * (wanted - x0))
    low = values[0] if left is None else left
    high = values[-1] if right is None else right
    made = np.where(wanted > points[-1], high, np.where(wanted < points[0], low, made))
    if points.shape[0] > 1:
        made = np.where(wanted != wanted, wanted, made)
    return lift(operand(made).natural)


def _slid(x: Instruction, kernel: Instruction, low: int, high: int) -> Instruction:
    """The sums of products of ``kernel`` with each stretch of the padded ``x``."""
    lhs = layout.reshape(x, (1, 1, x.array_shape.size))
    rhs = layout.reshape(kernel, (1, 1, kernel.array_shape.size))
    made = conv_general_dilated(lhs, rhs, (1,), [(low, high)])
    return layout.reshape(made, (made.array_shape.size,))


def _convolved(function: str, a: Any, v: Any, mode: str) -> Tracer:
    """The sums of products; `correlate` has its second vector reversed already."""
    first, second = as_array(a), as_array(v)
    if first.ndim > 1 or second.ndim > 1:
        raise ShapeError(f"{function}: {first.shape} and {second.shape} must have one dimension")
    first, second = first.reshape(-1), second.reshape(-1)
    if not first.size or not second.size:
        raise ShapeError(f"{function}: an array is empty; {first.shape}, {second.shape}")
    swapped = second.size > first.size
    if swapped:
        first, second = second, first
    element_type = common_element_type(operand(x).type for x in (first, second))
    small = element_type is ElementType.PRED
    work = ElementType.S32 if small else element_type
    longer, shorter = operand(first).to(work), operand(second).to(work)
    n, m = first.size, second.size
    # If the first vector of a correlation is the shorter one, NumPy rounds the middle up.
    low = m - 1 - m // 2 if swapped and function == "correlate" else m // 2
    edges = {"full": (m - 1, m - 1), "same": (low, m - 1 - low), "valid": (0, 0)}
    if mode not in edges:
        raise AttributeValueError(f"{function}: mode must be full, same or valid, not {mode!r}")
    made = _slid(longer, layout.rev(shorter, [0]), *edges[mode])
    assert made.array_shape.size == {"full": n + m - 1, "same": n, "valid": n - m + 1}[mode]
    return lift(converted(made, element_type), False)


@implements(np.convolve)
def convolve(a: Any, v: Any, mode: str = "full") -> Any:
    """The convolution of two vectors; mode full, same or valid.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tnp.convolve([1.0, 2.0, 3.0], [1.0, 0.5])
    array([1. , 2.5, 4. , 1.5])
    """
    return _convolved("convolve", a, v, mode)


@implements(np.correlate)
def correlate(a: Any, v: Any, mode: str = "valid") -> Any:
    """The correlation sum(a[n + k] conj(v[n])) of two vectors; mode full, same or valid.

    Raises `ArgumentError` for what is no array of numbers, `ShapeError` for shapes that do not
    fit and `AttributeValueError` for an option or a size out of range.

    >>> tnp.correlate([1.0, 2.0, 3.0], [0.0, 1.0], mode="same")
    array([1., 2., 3.])
    """
    first, second = as_array(a), as_array(v).conj()
    return _convolved("correlate", first, second.reshape(-1)[::-1], mode)


@implements(np.unwrap)
def unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: Any = 6.283185307179586) -> Any:
    """Phases with jumps beyond ``discont`` (half a period by default) taken out of them.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.unwrap([0.0, 6.0]).round(4)
    array([ 0.    , -0.2832])
    """
    x = as_array(p)
    position = canonical_axis("unwrap", axis, x.ndim)
    work = result_dtype([x.dtype, operand(period).type])
    x = x.astype(work)
    steps = cumulative.diff(x, axis=position)
    limit = period / 2 if discont is None else discont
    if np.issubdtype(work, np.integer):
        low, remains = -((-period) // -2), period % 2
        low, high = -(period // 2), period // 2
        ambiguous = remains == 0
    else:
        low, high, ambiguous = -period / 2, period / 2, True
    wrapped = (steps - low) % period + low
    if ambiguous:
        wrapped = np.where((wrapped == low) & (steps > 0), high, wrapped)
    correction = np.where(np.absolute(steps) < limit, 0, wrapped - steps)
    first = x[(slice(None),) * position + (slice(0, 1),)]
    rest = x[(slice(None),) * position + (slice(1, None),)]
    moved = (rest + cumulative.cumsum(correction, axis=position)).astype(work)
    return joining.concatenate([first, moved], position)


@implements(np.trim_zeros)
def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    """The array without its outer zeros, which must be known while tracing.

    Raises `ArgumentError` for what is no array of numbers and `ConcretizationError` for an
    option that is unknown while tracing.

    >>> tnp.trim_zeros(np.array([0, 1, 2, 0]))
    array([1, 2])
    """
    x = as_array(filt)
    values = known("trim_zeros", x, "cut to a known size with x[start:stop]")
    if trim.lower() not in ("fb", "bf", "f", "b", ""):
        raise AttributeValueError(f"trim_zeros: trim must consist of 'f' and 'b', not {trim!r}")
    axes = range(x.ndim) if axis is None else [canonical_axis("trim_zeros", axis, x.ndim)]
    cuts = [slice(None)] * x.ndim
    places = np.argwhere(values)
    for d in axes:
        if not len(places):
            cuts[d] = slice(0, 0)
            continue
        start = int(places[:, d].min()) if "f" in trim.lower() else 0
        stop = int(places[:, d].max()) + 1 if "b" in trim.lower() else x.shape[d]
        cuts[d] = slice(start, stop)
    return x[tuple(cuts)]
