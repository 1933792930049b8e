"""Means, variances and standard deviations, also weighted and without NaN."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tracejit.errors import AttributeValueError
from tracejit.graph import Instruction
from tracejit.numpy import arithmetic, manipulation
from tracejit.numpy.building import Axis, axes_of, both_parts, fill, is_nan, where
from tracejit.numpy.reducing import NO_VALUE, combined, mask_of, reduced, with_axes
from tracejit.numpy.storing import finish
from tracejit.ops import elementwise, elementwise_unary, layout
from tracejit.ops.comparison import eq
from tracejit.ops.element_types import convert_element_type
from tracejit.shapes import ElementType, element_type_of
from tracejit.trace.convert import converted, operand
from tracejit.trace.promotion import result_dtype
from tracejit.trace.public import implements
from tracejit.trace.tracer import lift
from tracejit.trace.views import broadcast

_where = where


def _work_types(a: Any, dtype: Any) -> tuple[ElementType, ElementType]:
    """The element types of a mean's arithmetic and of its result."""
    given = operand(a).element_type
    wanted = element_type_of(dtype) if dtype is not None else given
    if dtype is None and not given.is_inexact:
        wanted = ElementType.F64
    narrow = wanted.is_floating and wanted.bits < 32
    return (ElementType.F32 if narrow else wanted), wanted


def _counted(x: Instruction, axes: tuple[int, ...], mask: Instruction | None) -> Instruction:
    """How many elements are reduced into each of the results, in the element type of ``x``."""
    dimensions = x.array_shape.dimensions
    kept = [size for d, size in enumerate(dimensions) if d not in axes]
    if mask is None:
        count = math.prod(dimensions[a] for a in axes)
        return layout.full(x.array_shape.with_dimensions(kept), count)
    return combined("add", converted(mask, x.array_shape.element_type), axes)


def _mean(x: Instruction, axes: tuple[int, ...], mask: Instruction | None) -> Instruction:
    return elementwise.div(combined("add", x, axes, mask), _counted(x, axes, mask))


def _is_true(keepdims: Any) -> bool:
    return keepdims is True or (keepdims not in NO_VALUE and bool(keepdims))


@implements(np.mean)
def mean(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    *,
    where: Any = True,
) -> Any:
    """The arithmetic mean along ``axis``; of integers in float64, of float16 through float32.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.mean([[1.0, 2.0], [3.0, 5.0]], axis=1)
    array([1.5, 4. ])
    """
    work, wanted = _work_types(a, dtype)
    x = operand(a).to(work)
    dimensions = x.array_shape.dimensions
    axes = axes_of("mean", axis, len(dimensions))
    made = _mean(x, axes, mask_of("mean", where, dimensions))
    if _is_true(keepdims):
        made = with_axes(made, dimensions, axes)
    return finish("mean", convert_element_type(made, wanted), out, casting="unsafe")


def _variance(
    x: Instruction,
    axes: tuple[int, ...],
    ddof: float,
    mask: Instruction | None,
    mean: Instruction | None = None,
) -> Instruction:
    """The mean squared distance from the mean, of real type."""
    dimensions = x.array_shape.dimensions
    centre = with_axes(_mean(x, axes, mask), dimensions, axes) if mean is None else mean
    distance = elementwise.sub(x, broadcast(centre, dimensions))
    if x.array_shape.element_type.is_complex:
        real, imaginary = both_parts(distance)
        squares = elementwise.add(
            elementwise.mul(real, real), elementwise.mul(imaginary, imaginary)
        )
    else:
        squares = elementwise.mul(distance, distance)
    count = _counted(squares, axes, mask)
    freedom = elementwise.max(elementwise.sub(count, fill(count, ddof)), fill(count, 0))
    return elementwise.div(combined("add", squares, axes, mask), freedom)


def _spread(
    function: str,
    a: Any,
    axis: Axis,
    dtype: Any,
    out: Any,
    ddof: float,
    keepdims: Any,
    where: Any,
    mean: Any,
    correction: Any,
) -> Any:
    work, wanted = _work_types(a, dtype)
    x = operand(a).to(work)
    dimensions = x.array_shape.dimensions
    axes = axes_of(function, axis, len(dimensions))
    centre = None if mean in NO_VALUE else operand(mean).to(work)
    freedom = ddof if correction in NO_VALUE else correction
    made = _variance(x, axes, freedom, mask_of(function, where, dimensions), centre)
    if function == "std":
        # The derivative of a constant's deviation is zero, not 0 / 0.
        made = _where(eq(made, fill(made, 0)), fill(made, 0), elementwise_unary.sqrt(made))
    if _is_true(keepdims):
        made = with_axes(made, dimensions, axes)
    casting = "unsafe" if function == "var" else "same_kind"
    return finish(function, convert_element_type(made, wanted.real), out, casting=casting)


@implements(np.var)
def var(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: Any = None,
    ddof: float = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
    mean: Any = None,
    correction: Any = None,
) -> Any:
    """The variance along ``axis``, with divisor N - ddof; real also for complex numbers.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.var([[1.0, 3.0], [2.0, 6.0]], axis=1)
    array([1., 4.])
    """
    return _spread("var", a, axis, dtype, out, ddof, keepdims, where, mean, correction)


@implements(np.std)
def std(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: Any = None,
    ddof: float = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
    mean: Any = None,
    correction: Any = None,
) -> Any:
    """The standard deviation along ``axis``: the square root of `var`; derivative 0 at 0.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.std([[1.0, 3.0], [2.0, 6.0]], axis=1)
    array([1., 2.])
    """
    return _spread("std", a, axis, dtype, out, ddof, keepdims, where, mean, correction)


def _nan_mask(a: Any, where: Any) -> tuple[Any, Any]:
    """The array with 0 for NaN, and the mask of elements that are not NaN."""
    x = operand(a).natural
    if not x.array_shape.element_type.is_inexact:
        return a, where
    present = elementwise_unary.not_(is_nan(x))
    extra = mask_of("nan", where, x.array_shape.dimensions)
    mask = present if extra is None else elementwise.and_(present, extra)
    return lift(_where(is_nan(x), fill(x, 0), x), False), lift(mask, False)


@implements(np.nanmean)
def nanmean(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    *,
    where: Any = True,
) -> Any:
    """The mean, ignoring NaN; NaN where all elements are.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.nanmean([np.nan, 1.0, 3.0])
    np.float64(2.0)
    """
    filled, mask = _nan_mask(a, where)
    return mean(filled, axis, dtype, out, keepdims, where=mask)


@implements(np.nanvar)
def nanvar(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: Any = None,
    ddof: float = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
    mean: Any = None,
    correction: Any = None,
) -> Any:
    """The variance, ignoring NaN.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.nanvar([np.nan, 1.0, 3.0])
    np.float64(1.0)
    """
    filled, mask = _nan_mask(a, where)
    given = {"mean": mean, "correction": correction}
    return var(filled, axis, dtype, out, ddof, keepdims, where=mask, **given)


@implements(np.nanstd)
def nanstd(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: Any = None,
    ddof: float = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
    mean: Any = None,
    correction: Any = None,
) -> Any:
    """The standard deviation, ignoring NaN.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.nanstd([np.nan, 1.0, 3.0])
    np.float64(1.0)
    """
    filled, mask = _nan_mask(a, where)
    given = {"mean": mean, "correction": correction}
    return std(filled, axis, dtype, out, ddof, keepdims, where=mask, **given)


@implements(np.average)
def average(
    a: Any,
    axis: Axis = None,
    weights: Any = None,
    returned: bool = False,
    *,
    keepdims: Any = False,
) -> Any:
    """The weighted mean; with ``returned``, also the sums of the weights.

    Raises `ArgumentError` for what is no array of numbers, `DimensionError` for an axis that
    the array lacks and `AttributeValueError` for an option or a size out of range.

    >>> tnp.average([1.0, 2.0, 4.0], weights=[1, 1, 2])
    np.float64(2.75)
    """
    x = lift(operand(a).natural, False)
    if weights is None:
        made = mean(x, axis, keepdims=keepdims)
        count = x.size / max(made.size, 1)
        return (made, lift(fill(made.instruction, count))) if returned else made
    w = lift(operand(weights).natural, False)
    if w.shape != x.shape:
        axes = axes_of("average", axis, x.ndim)
        if w.shape != tuple(x.shape[a] for a in axes) or axis is None:
            raise AttributeValueError(
                f"average: weights {w.shape} must have the shape of the array {x.shape}, or of "
                f"its dimensions {axis}"
            )
        order = sorted(range(len(axes)), key=axes.__getitem__)
        w = manipulation.transpose(w, order).reshape(
            [size if d in axes else 1 for d, size in enumerate(x.shape)]
        )
    dtype = result_dtype([x.dtype, w.dtype, *([np.dtype(np.float64)] * (x.dtype.kind in "biu"))])
    scale = reduced("add", manipulation.broadcast_to(w, x.shape), axis, dtype, None, keepdims)
    total = reduced("add", arithmetic.multiply(x, w), axis, dtype, None, keepdims)
    made = arithmetic.divide(total, scale)
    return (made, scale) if returned else made
