"""Cumulative sums and products, differences, and integrals of samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracejit.errors import AttributeValueError, ShapeError
from tracejit.graph import Instruction
from tracejit.numpy import arithmetic, joining, manipulation
from tracejit.numpy.building import along, canonical_axis, fill, is_nan, where
from tracejit.numpy.reducing import accumulator_type
from tracejit.numpy.storing import finish
from tracejit.ops import layout
from tracejit.ops.windows import cumulative
from tracejit.shapes import ElementType, Shape
from tracejit.trace.convert import converted, operand
from tracejit.trace.public import implements
from tracejit.trace.result_layouts import as_first
from tracejit.trace.tracer import lift


def _accumulated(
    name: str, a: Any, axis: int | None, dtype: Any, out: Any, replaced: Any = None
) -> Any:
    function = {"add": "cumsum", "mul": "cumprod"}[name]
    value = operand(a)
    x = value.to(accumulator_type(name, value, dtype))
    if replaced is not None and x.array_shape.element_type.is_inexact:
        x = where(is_nan(x), fill(x, replaced), x)
    if axis is None or (not x.array_shape.rank and axis in (0, -1)):
        axis = 0
        x = layout.reshape(x, [x.array_shape.size])
    return finish(function, running(name, x, axis), out)


def running(name: str, x: Instruction, axis: int) -> Instruction:
    """Each element combined with all before it; narrow floating types through f32."""
    element_type = x.array_shape.element_type
    position = canonical_axis(f"cum{name}", axis, x.array_shape.rank)
    narrow = element_type.is_floating and element_type.bits < 32
    wide = converted(x, ElementType.F32) if narrow else x
    return converted(cumulative(name, wide, position), element_type)


@implements(np.cumsum, layout=as_first)
def cumsum(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Any:
    """The sums of each element and all before it along ``axis``, or of the flat array.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.cumsum([[1, 2], [3, 4]], axis=0)
    array([[1, 2],
           [4, 6]])
    """
    return _accumulated("add", a, axis, dtype, out)


@implements(np.cumprod, layout=as_first)
def cumprod(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Any:
    """The products of each element and all before it along ``axis``, or of the flat array.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.cumprod([1, 2, 3, 4])
    array([ 1,  2,  6, 24])
    """
    return _accumulated("mul", a, axis, dtype, out)


@implements(np.nancumsum)
def nancumsum(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Any:
    """`cumsum` with NaN counted as 0.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.nancumsum([2.0, np.nan, 3.0])
    array([2., 2., 5.])
    """
    return _accumulated("add", a, axis, dtype, out, 0)


@implements(np.nancumprod)
def nancumprod(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Any:
    """`cumprod` with NaN counted as 1.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.nancumprod([2.0, np.nan, 3.0])
    array([2., 2., 6.])
    """
    return _accumulated("mul", a, axis, dtype, out, 1)


@implements(np.diff)
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """The differences of neighbours along ``axis``, taken ``n`` times.

    Raises `ArgumentError` for what is no array of numbers, `ShapeError` for shapes that do not
    fit, `DimensionError` for an axis that the array lacks and `AttributeValueError` for an
    option or a size out of range.

    >>> tnp.diff([1, 4, 9], n=2)
    array([2])
    """
    if n < 0:
        raise AttributeValueError(f"diff: n must not be negative, not {n}")
    x = lift(operand(a).natural, False)
    if not n:
        return x
    if not x.ndim:
        raise ShapeError("diff: a number has no neighbours")
    position = canonical_axis("diff", axis, x.ndim)
    parts = [_edge(p, x.shape, position) for p in (prepend,) if _given(p)]
    parts += [x, *(_edge(p, x.shape, position) for p in (append,) if _given(p))]
    if len(parts) > 1:
        x = joining.concatenate(parts, position)
    for _ in range(n):
        later, earlier = x[along(position, slice(1, None))], x[along(position, slice(None, -1))]
        boolean = x.dtype == np.bool_
        x = later ^ earlier if boolean else arithmetic.subtract(later, earlier)
    return x


def _given(value: Any) -> bool:
    return value is not None and value is not np._NoValue


def _edge(value: Any, dimensions: tuple[int, ...], axis: int) -> Any:
    given = operand(value)
    if given.dimensions:
        return value
    wanted = [1 if d == axis else size for d, size in enumerate(dimensions)]
    return manipulation.broadcast_to(value, wanted)


@implements(np.ediff1d)
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """The differences of neighbours in the flat array, between ``to_begin`` and ``to_end``.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.ediff1d([1, 4, 9], to_end=0)
    array([3, 5, 0])
    """
    x = manipulation.ravel(ary)
    parts = [] if to_begin is None else [manipulation.ravel(to_begin).astype(x.dtype)]
    parts.append(arithmetic.subtract(x[1:], x[:-1]))
    if to_end is not None:
        parts.append(manipulation.ravel(to_end).astype(x.dtype))
    return joining.concatenate(parts, 0) if len(parts) > 1 else parts[0]


@implements(np.trapezoid)
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """The integral of samples by the trapezoidal rule.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.trapezoid([1.0, 2.0, 3.0], dx=0.5)
    np.float64(2.0)
    """
    samples = lift(operand(y).natural, False)
    position = canonical_axis("trapezoid", axis, samples.ndim)
    later = samples[along(position, slice(1, None))]
    earlier = samples[along(position, slice(None, -1))]
    if x is None:
        width = dx
    else:
        points = lift(operand(x).natural, False)
        width = diff(points, axis=0 if points.ndim == 1 else position)
        if points.ndim == 1:
            width = width.reshape([-1 if d == position else 1 for d in range(samples.ndim)])
    return (width * (later + earlier) / 2.0).sum(position)


@implements(np.cumulative_sum)
def cumulative_sum(
    x: Any,
    /,
    *,
    axis: int | None = None,
    dtype: Any = None,
    out: Any = None,
    include_initial: bool = False,
) -> Any:
    """`cumsum` along an axis, which may be left out for one dimension only.

    Raises `ArgumentError` for what is no array of numbers, `ShapeError` for shapes that do not
    fit and `DimensionError` for an axis that the array lacks.

    >>> tnp.cumulative_sum([2, 3], include_initial=True)
    array([0, 2, 5])
    """
    return _with_initial("cumulative_sum", cumsum, x, axis, dtype, out, include_initial, 0)


@implements(np.cumulative_prod)
def cumulative_prod(
    x: Any,
    /,
    *,
    axis: int | None = None,
    dtype: Any = None,
    out: Any = None,
    include_initial: bool = False,
) -> Any:
    """`cumprod` along an axis, which may be left out for one dimension only.

    Raises `ArgumentError` for what is no array of numbers, `ShapeError` for shapes that do not
    fit and `DimensionError` for an axis that the array lacks.

    >>> tnp.cumulative_prod([2, 3], include_initial=True)
    array([1, 2, 6])
    """
    return _with_initial("cumulative_prod", cumprod, x, axis, dtype, out, include_initial, 1)


def _with_initial(
    function: str, running: Any, x: Any, axis: Any, dtype: Any, out: Any, include: bool, first: int
) -> Any:
    array = manipulation.as_array(x)
    if array.ndim == 0:
        raise ShapeError(f"{function}: the array must have a dimension, not {array.shape}")
    if axis is None and array.ndim != 1:
        raise ShapeError(f"{function}: for an array {array.shape} axis= must be given")
    position = canonical_axis(function, 0 if axis is None else axis, array.ndim)
    made = running(array, position, dtype)
    if include:
        sizes = [1 if d == position else size for d, size in enumerate(array.shape)]
        start = lift(layout.full(Shape(made.element_type, tuple(sizes)), first), False)
        made = joining.concatenate([start, made], position)
    return finish(function, made.instruction, out)


@implements(np.gradient)
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Second-order differences inside, one-sided ones of ``edge_order`` at the edges.

    Spacings are numbers, or vectors of coordinates, one for all axes or one for each. Raises
    `ShapeError` when an axis has fewer than edge_order + 1 elements.

    >>> tnp.gradient([1.0, 4.0, 9.0])
    array([3., 4., 5.])
    """
    if edge_order not in (1, 2):
        raise AttributeValueError(f"gradient: edge_order must be 1 or 2, not {edge_order}")
    x = lift(operand(f).natural, False)
    if not x.element_type.is_inexact:
        x = x.astype(np.float64)
    axes = range(x.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    positions = [canonical_axis("gradient", one, x.ndim) for one in axes]
    spacings = list(varargs) or [1.0]
    if len(spacings) == 1:
        spacings *= len(positions)
    if len(spacings) != len(positions):
        raise AttributeValueError(
            f"gradient: {len(varargs)} spacings for {len(positions)} axes; give one, or one for "
            f"each"
        )
    made = []
    for d, spacing in zip(positions, spacings, strict=True):
        if x.shape[d] < edge_order + 1:
            raise ShapeError(
                f"gradient: axis {d} of array {x.shape} must have at least {edge_order + 1} "
                f"elements"
            )
        made.append(_central(x, d, spacing, edge_order))
    return made[0] if (axis is not None and isinstance(axis, int)) or x.ndim == 1 else tuple(made)


def _steps(spacing: Any, x: Any, axis: int) -> tuple[Any, bool]:
    """The distances of neighbours, shaped to multiply; a number if there is only one."""
    given = operand(spacing)
    if not given.dimensions:
        return spacing, True
    points = lift(given.natural, False)
    if points.ndim != 1 or points.shape[0] != x.shape[axis]:
        raise ShapeError(
            f"gradient: coordinates {points.shape} do not match axis {axis} of array {x.shape}"
        )
    if points.element_type.is_integral:
        points = points.astype(np.float64)
    return diff(points).reshape([-1 if d == axis else 1 for d in range(x.ndim)]), False


def _central(x: Any, axis: int, spacing: Any, edge_order: int) -> Any:
    step, even = _steps(spacing, x, axis)

    def part(start: int | None, stop: int | None) -> Any:
        return x[along(axis, slice(start, stop))]

    def distance(place: int) -> Any:
        return step if even else step[along(axis, slice(place, place + 1 or None))]

    if even:
        inside = (part(2, None) - part(None, -2)) / (2.0 * step)
    else:
        # The parabola through three points, differentiated in the middle one.
        before, after = step[along(axis, slice(None, -1))], step[along(axis, slice(1, None))]
        inside = (
            -after / (before * (before + after)) * part(None, -2)
            + (after - before) / (before * after) * part(1, -1)
            + before / (after * (before + after)) * part(2, None)
        )
    if edge_order == 1:
        first = (part(1, 2) - part(0, 1)) / distance(0)
        last = (part(-1, None) - part(-2, -1)) / distance(-1)
    else:
        # The same parabola, differentiated in its outer point.
        first = _edge_slope(part(0, 1), part(1, 2), part(2, 3), distance(0), distance(1))
        ends = part(-1, None), part(-2, -1), part(-3, -2)
        last = -_edge_slope(*ends, distance(-1), distance(-2))
    return joining.concatenate([first, inside, last], axis)


def _edge_slope(outer: Any, middle: Any, inner: Any, near: Any, far: Any) -> Any:
    """The slope in the outer of three points, ``near`` and ``far`` apart."""
    return (
        -(2.0 * near + far) / (near * (near + far)) * outer
        + (near + far) / (near * far) * middle
        - near / (far * (near + far)) * inner
    )
