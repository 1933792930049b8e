"""Reductions: sums, products, extremes and where they are, truth of all and of any."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracejit.errors import ShapeError
from tracejit.graph import Instruction
from tracejit.numpy.building import Axis, canonical_axis, fill, is_nan, where
from tracejit.numpy.complex_order import place_of_extreme
from tracejit.numpy.reducing import NO_VALUE, combined, reduced, reduction_axes, with_axes
from tracejit.numpy.storing import finish
from tracejit.ops import elementwise, layout
from tracejit.ops.computations import highest, lowest
from tracejit.ops.reduction import argmax as argmax_of
from tracejit.ops.reduction import argmin as argmin_of
from tracejit.shapes import ElementType
from tracejit.trace.convert import converted, operand
from tracejit.trace.public import implements
from tracejit.trace.tracer import lift

_where = where


@implements(np.sum)
def sum(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """The sum along ``axis``; integers narrower than 64 bits are summed in 64.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.sum([[1, 2], [3, 4]], axis=0)
    array([4, 6])
    """
    return reduced("add", a, axis, dtype, out, keepdims, initial, where)


@implements(np.prod)
def prod(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """The product along ``axis``; integers narrower than 64 bits are multiplied in 64.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.prod([[1, 2], [3, 4]], axis=0)
    array([3, 8])
    """
    return reduced("mul", a, axis, dtype, out, keepdims, initial, where)


@implements(np.max, np.amax)
def max(
    a: Any,
    axis: Axis = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """The greatest element along ``axis``; NaN if there is one.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.amax([[1, 5], [3, 2]], axis=1)
    array([5, 3])
    """
    return reduced("max", a, axis, None, out, keepdims, initial, where)


@implements(np.min, np.amin)
def min(
    a: Any,
    axis: Axis = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """The least element along ``axis``; NaN if there is one.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.amin([[1, 5], [3, 2]], axis=1)
    array([1, 2])
    """
    return reduced("min", a, axis, None, out, keepdims, initial, where)


amax, amin = max, min


def _truth(a: Any) -> Any:
    return lift(converted(operand(a).natural, ElementType.PRED), False)


@implements(np.all)
def all(
    a: Any, axis: Axis = None, out: Any = None, keepdims: Any = False, *, where: Any = True
) -> Any:
    """Whether all elements along ``axis`` are true, that is, not zero.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.all([[True, False], [True, True]], axis=0)
    array([ True, False])
    """
    return reduced("and", _truth(a), axis, None, out, keepdims, None, where)


@implements(np.any)
def any(
    a: Any, axis: Axis = None, out: Any = None, keepdims: Any = False, *, where: Any = True
) -> Any:
    """Whether any element along ``axis`` is true, that is, not zero.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.any([[False, False], [True, False]], axis=1)
    array([False,  True])
    """
    return reduced("or", _truth(a), axis, None, out, keepdims, None, where)


@implements(np.count_nonzero)
def count_nonzero(a: Any, axis: Axis = None, *, keepdims: bool = False) -> Any:
    """How many elements along ``axis`` are not zero.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.count_nonzero([[0, 1], [2, 3]], axis=0)
    array([1, 2])
    """
    return reduced("add", _truth(a), axis, np.int64, None, keepdims)


@implements(np.ptp)
def ptp(a: Any, axis: Axis = None, out: Any = None, keepdims: Any = False) -> Any:
    """The greatest minus the least element along ``axis``.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.ptp([1, 7, 3])
    np.int64(6)
    """
    greatest = reduced("max", a, axis, None, None, keepdims)
    least = reduced("min", a, axis, None, None, keepdims)
    return finish("ptp", elementwise.sub(greatest.instruction, least.instruction), out)


def _arg_reduced(
    name: str, a: Any, axis: int | None, out: Any, keepdims: Any, replaced: Any = None
) -> Any:
    x = operand(a).natural
    if replaced is not None and x.array_shape.element_type.is_floating:
        x = _where(is_nan(x), fill(x, replaced(x.array_shape.element_type)), x)
    dimensions = x.array_shape.dimensions
    rank = len(dimensions)
    flat = axis is None or not rank
    if flat:
        x = layout.reshape(x, [x.array_shape.size])
    position = 0 if axis is None or not rank else canonical_axis(name, axis, rank)
    if not x.array_shape.dimensions[position]:
        raise ShapeError(f"{name}: attempt to get {name} of an empty sequence")
    if x.array_shape.element_type.is_complex:
        made = place_of_extreme(name[-3:], x, position)
    else:
        made = (argmax_of if name.endswith("argmax") else argmin_of)(x, position, ElementType.S64)
    if keepdims is True or (keepdims not in NO_VALUE and keepdims):
        made = with_axes(made, dimensions, tuple(range(rank)) if axis is None else (position,))
    return finish(name, made, out)


@implements(np.argmax)
def argmax(a: Any, axis: int | None = None, out: Any = None, *, keepdims: Any = False) -> Any:
    """Where the first greatest element along ``axis`` is; a NaN counts as greatest.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.argmax([[1, 5], [7, 2]], axis=1)
    array([1, 0])
    """
    return _arg_reduced("argmax", a, axis, out, keepdims)


@implements(np.argmin)
def argmin(a: Any, axis: int | None = None, out: Any = None, *, keepdims: Any = False) -> Any:
    """Where the first least element along ``axis`` is; a NaN counts as least.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.argmin([[1, 5], [7, 2]], axis=1)
    array([0, 1])
    """
    return _arg_reduced("argmin", a, axis, out, keepdims)


def without_nan(a: Any, value: Any) -> Any:
    """The array with ``value`` in place of NaN."""
    x = operand(a).natural
    if not x.array_shape.element_type.is_inexact:
        return lift(x, False)
    return lift(_where(is_nan(x), fill(x, value), x), False)


@implements(np.nansum)
def nansum(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """The sum, ignoring NaN.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.nansum([np.nan, 1.0, 3.0])
    np.float64(4.0)
    """
    return reduced("add", without_nan(a, 0), axis, dtype, out, keepdims, initial, where)


@implements(np.nanprod)
def nanprod(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """The product, ignoring NaN.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.nanprod([np.nan, 2.0, 3.0])
    np.float64(6.0)
    """
    return reduced("mul", without_nan(a, 1), axis, dtype, out, keepdims, initial, where)


def _nan_extreme(
    name: str, a: Any, axis: Axis, out: Any, keepdims: Any, initial: Any, where: Any
) -> Any:
    x = operand(a).natural
    element_type = x.array_shape.element_type
    if not element_type.is_inexact:
        return reduced(name, lift(x, False), axis, None, out, keepdims, initial, where)
    extreme = lowest if name == "max" else highest
    worst = extreme(element_type.real)
    if element_type.is_complex:
        worst = complex(worst, worst)
    made = reduced(name, without_nan(a, worst), axis, None, None, keepdims, initial, where)
    # Nothing but NaN: NaN.
    axes = reduction_axes(f"nan{name}", axis, x.array_shape.rank)
    empty: Instruction = combined("and", is_nan(x), axes)
    empty = layout.reshape(empty, made.shape)
    return finish(
        f"nan{name}", _where(empty, fill(made.instruction, np.nan), made.instruction), out
    )


@implements(np.nanmax)
def nanmax(
    a: Any,
    axis: Axis = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """The maximum, ignoring NaN; NaN where all elements are.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.nanmax([np.nan, 1.0, 3.0])
    np.float64(3.0)
    """
    return _nan_extreme("max", a, axis, out, keepdims, initial, where)


@implements(np.nanmin)
def nanmin(
    a: Any,
    axis: Axis = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """The minimum, ignoring NaN; NaN where all elements are.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.nanmin([np.nan, 1.0, 3.0])
    np.float64(1.0)
    """
    return _nan_extreme("min", a, axis, out, keepdims, initial, where)


@implements(np.nanargmax)
def nanargmax(a: Any, axis: int | None = None, out: Any = None, *, keepdims: Any = False) -> Any:
    """The index of the maximum, ignoring NaN.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.nanargmax([np.nan, 1.0, 3.0])
    np.int64(2)
    """
    return _arg_reduced("nanargmax", a, axis, out, keepdims, lowest)


@implements(np.nanargmin)
def nanargmin(a: Any, axis: int | None = None, out: Any = None, *, keepdims: Any = False) -> Any:
    """The index of the minimum, ignoring NaN.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.nanargmin([np.nan, 1.0, 3.0])
    np.int64(1)
    """
    return _arg_reduced("nanargmin", a, axis, out, keepdims, highest)
