"""Quantiles and the median."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tracejit.errors import AttributeValueError, ElementTypeError, ShapeError
from tracejit.numpy import (
    cumulative,
    manipulation,
    rounding,
    selecting,
    sorting,
)
from tracejit.numpy.building import Axis, axes_of, is_nan
from tracejit.numpy.manipulation import as_array
from tracejit.numpy.means import mean
from tracejit.numpy.reducing import NO_VALUE
from tracejit.numpy.sizes import known_or_none
from tracejit.numpy.storing import finish
from tracejit.shapes import element_type_of
from tracejit.trace.convert import operand
from tracejit.trace.promotion import result_dtype
from tracejit.trace.public import implements
from tracejit.trace.result_layouts import unknown
from tracejit.trace.tracer import Tracer, lift

_POSITIONS: dict[str, Callable[[Any, Any], Any]] = {
    # Where in n sorted elements the quantile q lies, counted from 0 (Hyndman and Fan, 1996).
    "inverted_cdf": lambda q, n: n * q - 1,
    "averaged_inverted_cdf": lambda q, n: n * q - 1,
    "closest_observation": lambda q, n: n * q - 1.5,
    "interpolated_inverted_cdf": lambda q, n: n * q - 1,
    "hazen": lambda q, n: n * q - 0.5,
    "weibull": lambda q, n: (n + 1) * q - 1,
    "linear": lambda q, n: (n - 1) * q,
    "median_unbiased": lambda q, n: n * q + (q + 1) / 3 - 1,
    "normal_unbiased": lambda q, n: n * q + (q / 4 + 3 / 8) - 1,
    "lower": lambda q, n: (n - 1) * q,
    "higher": lambda q, n: (n - 1) * q,
    "midpoint": lambda q, n: (n - 1) * q,
    "nearest": lambda q, n: (n - 1) * q,
}
_DISCRETE = ("inverted_cdf", "closest_observation", "lower", "higher", "nearest")
"""Methods that answer with an element, of the array's own dtype."""


class _Rows(NamedTuple):
    """An array with the axes of a quantile joined into a last one: outer dimensions, then rows."""

    values: Tracer
    axes: tuple[int, ...]
    rank: int

    @property
    def outer(self) -> tuple[int, ...]:
        return self.values.shape[:-1]


def _rows(function: str, a: Any, axis: Axis) -> _Rows:
    x = as_array(a)
    if x.element_type.is_complex:
        raise ElementTypeError(f"{function}: complex numbers have no order here")
    if x.dtype == np.bool_:
        x = x.astype(np.uint8) if function == "median" else x
    axes = axes_of(function, axis, x.ndim)
    kept = [d for d in range(x.ndim) if d not in axes]
    joined = manipulation.transpose(x, [*kept, *axes]).reshape(
        [*(x.shape[d] for d in kept), math.prod(x.shape[d] for d in axes)]
    )
    if not joined.shape[-1]:
        raise ShapeError(f"{function}: no elements along axis {axis} of an array {x.shape}")
    return _Rows(joined, axes, x.ndim)


def _neighbours(position: Any, method: str) -> tuple[Any, Any, Any]:
    """The places below and above a position, and how far between them it lies."""
    below = rounding.floor(position)
    part = position - below
    if method == "lower":
        return below, below, part * 0
    if method == "higher":
        up = rounding.ceil(position)
        return up, up, part * 0
    if method == "nearest":
        near = rounding.rint(position)
        return near, near, part * 0
    if method in ("inverted_cdf", "closest_observation"):
        stays = part == 0
        if method == "closest_observation":
            stays = stays & (below % 2 == 1)
        chosen = selecting.where(stays, below, below + 1)
        return chosen, chosen, part * 0
    if method == "averaged_inverted_cdf":
        part = selecting.where(part == 0, part * 0 + 0.5, part * 0 + 1)
    elif method == "midpoint":
        part = selecting.where(part == 0, part * 0, part * 0 + 0.5)
    return below, below + 1, part


def _at(ranked: Tracer, places: Any, per_row: bool, rank: int) -> Any:
    """The elements at ``places``, whose dimensions for q stand in front of the outer ones."""
    if not per_row:
        found = ranked[..., places]
        return manipulation.moveaxis(
            found, list(range(found.ndim - rank, found.ndim)), list(range(rank))
        )
    spread = manipulation.moveaxis(places, list(range(rank)), list(range(-rank, 0)))
    flat = spread.reshape((*ranked.shape[:-1], -1))
    found = selecting.take_along_axis(ranked, flat, -1).reshape(spread.shape)
    return manipulation.moveaxis(found, list(range(-rank, 0)), list(range(rank)))


def _interpolated(ranked: Tracer, share: Any, count: Any, method: str) -> Any:
    """The quantiles of the first ``count`` elements of sorted rows."""
    per_row = isinstance(count, Tracer)
    rank = share.ndim
    if per_row:
        share = share.reshape(share.shape + (1,) * (ranked.ndim - 1))
        count = count.astype(share.dtype)
    position = _POSITIONS[method](share, count)
    low, high, part = _neighbours(position, method)
    last = count - 1
    first_place = selecting.clip(low, 0, np.maximum(last, 0)).astype(np.int64)
    first = _at(ranked, first_place, per_row, rank)
    if method in _DISCRETE:
        return first
    part = selecting.where((position < 0) | (position >= last), part * 0, part)
    second_place = selecting.clip(high, 0, np.maximum(last, 0)).astype(np.int64)
    second = _at(ranked, second_place, per_row, rank)
    if not per_row:
        part = part.reshape(part.shape + (1,) * (first.ndim - rank))
    gap = second - first
    # From the nearer end, so that equal neighbours give themselves.
    return selecting.where(part >= 0.5, second - gap * (1 - part), first + gap * part)


def _weighted(rows: _Rows, share: Any, weights: Any, x: Tracer, drop_nan: bool) -> Any:
    """The least elements whose cumulative weight reaches the shares of the total weight."""
    given = as_array(weights)
    if given.shape != x.shape:
        if given.ndim != 1 or len(rows.axes) != 1 or given.shape[0] != x.shape[rows.axes[0]]:
            raise ShapeError(f"quantile: weights {given.shape} do not fit array {x.shape}")
        wanted = [-1 if d == rows.axes[0] else 1 for d in range(x.ndim)]
        given = manipulation.broadcast_to(given.reshape(wanted), x.shape)
    heavy = _rows("quantile", given, rows.axes).values.astype(np.float64)
    if drop_nan:
        heavy = selecting.where(is_nan_of(rows.values), 0.0, heavy)
    order = sorting.argsort(rows.values, -1)
    ranked = selecting.take_along_axis(rows.values, order, -1)
    reached = cumulative.cumsum(selecting.take_along_axis(heavy, order, -1), -1)
    reached = (reached / reached[..., -1:]).astype(share.dtype)
    reached = selecting.where(reached == 0, -1, reached)
    wanted_share = share.reshape(share.shape + (1,) * reached.ndim)
    place = np.minimum((reached < wanted_share).sum(-1), ranked.shape[-1] - 1)
    return _at(ranked, place, True, share.ndim), ranked


def _quantiles(
    function: str,
    a: Any,
    share: Any,
    axis: Axis,
    out: Any,
    method: str,
    keepdims: Any,
    weights: Any,
    drop_nan: bool,
) -> Any:
    if method not in _POSITIONS:
        raise AttributeValueError(
            f"{function}: {method!r} is not a method; use one of {', '.join(_POSITIONS)}"
        )
    if weights is not None and method != "inverted_cdf":
        raise AttributeValueError(f"{function}: only method 'inverted_cdf' supports weights")
    values = known_or_none(share)
    if values is not None and not ((values >= 0) & (values <= 1)).all():
        raise AttributeValueError(f"{function}: quantiles must be in the range [0, 1]")
    rows = _rows(function, a, axis)
    if method not in _DISCRETE and not rows.values.element_type.is_inexact:
        rows = rows._replace(values=rows.values.astype(np.float64))
    inexact = rows.values.element_type.is_inexact
    if weights is not None:
        made, ranked = _weighted(rows, share, weights, as_array(a), drop_nan)
    else:
        ranked = sorting.sort(rows.values, -1)
        count: Any = ranked.shape[-1]
        if drop_nan and inexact:
            count = (~is_nan_of(ranked)).sum(-1)
            count = as_array(count)
        made = _interpolated(ranked, share, count, method)
    if inexact:
        # NaN is sorted last.
        bad = is_nan_of(ranked[..., 0] if drop_nan else ranked[..., -1])
        made = selecting.where(bad, made.dtype.type(np.nan), made)
    if keepdims is True or (keepdims not in NO_VALUE and keepdims):
        for d in sorted(rows.axes):
            made = manipulation.expand_dims(made, share.ndim + d)
    return finish(function, made.instruction, out)


def _share(a: Any, q: Any, hundredths: bool = False) -> Any:
    """``q`` as an array of the dtype that positions are worked out in."""
    given, of = operand(q), operand(a).element_type
    own = of.is_floating and given.is_weak
    dtype = of.dtype if own else result_dtype([given.type, np.dtype(np.float64)])
    if given.element_type.is_floating and not given.is_weak:
        dtype = given.element_type.dtype
    share = lift(given.to(element_type_of(dtype)), False)
    return share / dtype.type(100) if hundredths else share


def is_nan_of(x: Tracer) -> Tracer:
    """Which elements are NaN."""
    return lift(is_nan(x.instruction), False)


@implements(np.quantile)
def quantile(
    a: Any,
    q: Any,
    axis: Axis = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = False,
    *,
    weights: Any = None,
) -> Any:
    """The value below which a share ``q`` of the elements lies, NaN if one of them is NaN.

    Methods are the thirteen of NumPy; weights go with 'inverted_cdf'. Raises
    `AttributeValueError` for another method, and for a known ``q`` outside [0, 1].

    >>> tnp.quantile([1.0, 2.0, 3.0], 0.25)
    np.float64(1.5)
    """
    return _quantiles("quantile", a, _share(a, q), axis, out, method, keepdims, weights, False)


@implements(np.percentile)
def percentile(
    a: Any,
    q: Any,
    axis: Axis = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = False,
    *,
    weights: Any = None,
) -> Any:
    """`quantile` with ``q`` in hundredths.

    Raises `ArgumentError` for what is no array of numbers, `DimensionError` for an axis that
    the array lacks and `AttributeValueError` for an option or a size out of range.

    >>> tnp.percentile([1.0, 2.0, 3.0], 75)
    np.float64(2.5)
    """
    share = _share(a, q, True)
    return _quantiles("percentile", a, share, axis, out, method, keepdims, weights, False)


@implements(np.nanquantile, layout=unknown)
def nanquantile(
    a: Any,
    q: Any,
    axis: Axis = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = False,
    *,
    weights: Any = None,
) -> Any:
    """`quantile` ignoring NaN; NaN where all elements are.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.nanquantile([np.nan, 1.0, 3.0], 0.25)
    np.float64(1.5)
    """
    share = _share(a, q)
    return _quantiles("nanquantile", a, share, axis, out, method, keepdims, weights, True)


@implements(np.nanpercentile, layout=unknown)
def nanpercentile(
    a: Any,
    q: Any,
    axis: Axis = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = False,
    *,
    weights: Any = None,
) -> Any:
    """`nanquantile` with ``q`` in hundredths.

    Raises `ArgumentError` for what is no array of numbers, `DimensionError` for an axis that
    the array lacks and `AttributeValueError` for an option or a size out of range.

    >>> tnp.nanpercentile([np.nan, 1.0, 3.0], 50)
    np.float64(2.0)
    """
    share = _share(a, q, True)
    return _quantiles("nanpercentile", a, share, axis, out, method, keepdims, weights, True)


def _kept(made: Any, axes: tuple[int, ...], keepdims: Any) -> Any:
    if keepdims is True or (keepdims not in NO_VALUE and keepdims):
        for d in sorted(axes):
            made = manipulation.expand_dims(made, d)
    return made


@implements(np.median)
def median(
    a: Any,
    axis: Axis = None,
    out: Any = None,
    overwrite_input: bool = False,
    keepdims: Any = False,
) -> Any:
    """The middle element along ``axis``, or the mean of the two middle ones.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.median([3.0, 1.0, 2.0, 9.0])
    np.float64(2.5)
    """
    rows = _rows("median", a, axis)
    ranked = sorting.sort(rows.values, -1)
    count = ranked.shape[-1]
    made = mean(ranked[..., (count - 1) // 2 : count // 2 + 1], -1)
    if ranked.element_type.is_inexact:
        made = selecting.where(is_nan_of(ranked[..., -1]), made.dtype.type(np.nan), made)
    return finish("median", _kept(made, rows.axes, keepdims).instruction, out)


@implements(np.nanmedian)
def nanmedian(
    a: Any,
    axis: Axis = None,
    out: Any = None,
    overwrite_input: bool = False,
    keepdims: Any = False,
) -> Any:
    """The median, ignoring NaN; NaN where all elements are.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.nanmedian([np.nan, 1.0, 3.0])
    np.float64(2.0)
    """
    rows = _rows("nanmedian", a, axis)
    if not rows.values.element_type.is_inexact:
        return median(a, axis, out, overwrite_input, keepdims)
    ranked = sorting.sort(rows.values, -1)
    count = as_array((~is_nan_of(ranked)).sum(-1))
    places = np.stack([np.maximum(count - 1, 0) // 2, np.maximum(count // 2, 0)], -1)
    places = np.minimum(places, ranked.shape[-1] - 1)
    made = mean(selecting.take_along_axis(ranked, places, -1), -1)
    return finish("nanmedian", _kept(made, rows.axes, keepdims).instruction, out)
