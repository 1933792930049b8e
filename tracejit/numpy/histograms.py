"""Counting into bins: bincount and histograms of one, two and more dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit.errors import AttributeValueError, ConcretizationError, ShapeError
from tracejit.numpy import sorting
from tracejit.numpy.manipulation import as_array, ravel
from tracejit.numpy.sizes import checked_size, known, known_or_none, listed
from tracejit.trace.promotion import result_dtype
from tracejit.trace.public import implements
from tracejit.trace.result_layouts import unknown
from tracejit.trace.tracer import Tracer


def counted(
    places: Tracer, weights: Tracer | None, length: int, *, are_inside: bool = False
) -> Tracer:
    """How often each of ``length`` places occurs, or the sum of its weights.

    Places out of range do not count; where the caller says that all ``are_inside``, another one
    raises under ``check=True``.
    """
    inside = (places >= 0) & (places < length)
    # A negative place must not count from the end.
    target = np.where(places < 0 if are_inside else ~inside, length, places)
    dtype = np.dtype(np.int64) if weights is None else weights.dtype
    made = listed(np.zeros(length + (not are_inside), dtype)).copy()
    np.add.at(made, target, np.ones(places.shape, dtype) if weights is None else weights)
    result: Tracer = made[:length].copy()
    return result


def _weights(function: str, weights: Any, x: Tracer) -> Tracer | None:
    if weights is None:
        return None
    given = as_array(weights)
    if given.shape != x.shape:
        raise ShapeError(f"{function}: weights {given.shape} must have the shape of x {x.shape}")
    return given


@implements(np.bincount)
def bincount(x: Any, /, weights: Any = None, minlength: int = 0, *, length: Any = None) -> Any:
    """How often each whole number from 0 on occurs, or the sums of weights in float64.

    ``x`` [n] of integers, and ``weights`` [n], give int64 or float64 counts. The result reaches to
    the greatest number, at least to ``minlength``, where the numbers are known while tracing.
    Otherwise it has ``length`` elements, by default ``minlength``, which must be positive then:
    larger numbers are not counted; beyond ``minlength`` they raise `DynamicIndexError` under
    ``check=True``. Raises
    `ShapeError` for arrays of other ranks, `AttributeValueError` for known negative numbers, and
    `ConcretizationError` without a length for unknown ones.

    >>> tnp.bincount([0, 2, 2], minlength=4)
    array([1, 0, 2, 0])
    """
    places = as_array(x)
    if places.ndim != 1:
        raise ShapeError(f"bincount: x {places.shape} must have one dimension")
    values = known_or_none(places)
    if values is not None and values.size and values.min() < 0:
        raise AttributeValueError("bincount: x must not hold negative numbers")
    if length is None and (values is not None or not int(minlength)):
        advice = "pass minlength=, a number above the greatest"
        found = known("bincount", places, advice)
        count = max(int(found.max(initial=-1)) + 1, int(minlength))
    else:
        count = max(checked_size("bincount", length or 0), int(minlength))
    given = _weights("bincount", weights, places)
    wide = places.astype(np.int64) if places.size else listed(np.zeros(0, np.int64))
    sums = None if given is None else given.astype(np.float64)
    return counted(wide, sums, count, are_inside=length is None)


def _edges(function: str, a: Tracer, bins: Any, range: Any) -> tuple[Tracer, bool]:
    """The edges of the bins, and whether they are evenly spaced."""
    if isinstance(bins, str):
        values = known_or_none(a)
        if values is None:
            raise ConcretizationError(
                f"{function}: how many bins {bins!r} makes depends on elements unknown while "
                f"tracing; pass a number of bins, or their edges"
            )
        return listed(np.histogram_bin_edges(values, bins, range)), True
    if np.ndim(bins) == 1:
        given = as_array(bins)
        values = known_or_none(given)
        if values is not None and (values[1:] < values[:-1]).any():
            raise AttributeValueError(f"{function}: bins must increase monotonically")
        return given, False
    if np.ndim(bins):
        raise AttributeValueError(f"{function}: bins must be a number or one-dimensional")
    count = int(known(function, bins, "pass a known number of bins")[()])
    if count < 1:
        raise AttributeValueError(f"{function}: bins must be at least 1, not {count}")
    low, high = _bounds(function, a, range)
    work = result_dtype([low.dtype, high.dtype, a.dtype])
    if not np.issubdtype(work, np.inexact):
        work = result_dtype([work, np.dtype(float)])
    made: Any = np.linspace(low, high, count + 1, dtype=work)
    return made, True


def _bounds(function: str, a: Tracer, range: Any) -> tuple[Tracer, Tracer]:
    """The outer edges: those given, or the least and greatest element; never equal."""
    if range is not None:
        low, high = (as_array(edge) for edge in range)
        is_wrong = known_or_none(low > high)
        if is_wrong is not None and is_wrong:
            raise AttributeValueError(f"{function}: max must be larger than min in range")
    elif not a.size:
        low, high = listed(np.array(0.0)), listed(np.array(1.0))
    else:
        low, high = a.min(), a.max()
    work = result_dtype([low.dtype, high.dtype])
    if not np.issubdtype(work, np.inexact):
        work = np.dtype(np.float64)
    first, last = low.astype(work), high.astype(work)
    same = first == last
    half = work.type(0.5)
    widened: Any = np.where(same, first - half, first), np.where(same, last + half, last)
    pair: tuple[Tracer, Tracer] = widened
    return pair


@implements(np.histogram_bin_edges)
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    """The edges that `histogram` uses; a rule by name needs known elements.

    Raises `ArgumentError` for what is no array of numbers, `AttributeValueError` for an option
    or a size out of range and `ConcretizationError` for an option that is unknown while
    tracing.

    >>> tnp.histogram_bin_edges([0.0, 4.0], bins=4)
    array([0., 1., 2., 3., 4.])
    """
    return _edges("histogram_bin_edges", _numbers(a), bins, range)[0]


def _numbers(a: Any) -> Tracer:
    x = ravel(a)
    number: Tracer = x.astype(np.uint8) if x.dtype == np.bool_ else x
    return number


def _bins_of(x: Tracer, edges: Tracer, uniform: bool) -> Tracer:
    """Which bin each element lies in; -1 for those in none. The last bin holds its right edge."""
    count = edges.shape[0] - 1
    if uniform:
        low, high = edges[0], edges[-1]
        inside = (x >= low) & (x <= high)
        place = np.where(inside, (x - low) / (high - low) * count, 0).astype(np.int64)
        place = np.minimum(place, count - 1)
        # Rounding may have put an element beside its bin.
        place = place - (inside & (x < edges[place]))
        place = place + (inside & (x >= edges[place + 1]) & (place != count - 1))
    else:
        place = sorting.searchsorted(edges, x, "right") - 1
        place = np.where(x == edges[-1], count - 1, place)
        inside = (x >= edges[0]) & (x <= edges[-1])
    made: Any = np.where(inside, place, -1)
    chosen: Tracer = made
    return chosen


@implements(np.histogram)
def histogram(
    a: Any, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None
) -> Any:
    """(counts, edges): how many elements lie in each of ``bins`` intervals, or their weights.

    ``bins`` is a number, or the edges, which may be traced. ``density`` divides by the total and
    the widths.

    Raises `ArgumentError` for what is no array of numbers, `AttributeValueError` for an option
    or a size out of range and `ConcretizationError` for an option that is unknown while
    tracing.

    >>> tnp.histogram([1.0, 2.0, 2.5], bins=2)
    (array([1, 2]), array([1.  , 1.75, 2.5 ]))
    """
    x = _numbers(a)
    given = None if weights is None else ravel(_weights("histogram", weights, as_array(a)))
    edges, uniform = _edges("histogram", x, bins, range)
    # Sums of weights keep their dtype.
    counts = counted(_bins_of(x, edges, uniform), given, edges.shape[0] - 1)
    if density:
        return counts / (edges[1:] - edges[:-1]) / counts.sum(), edges
    return counts, edges


@implements(np.histogramdd, layout=unknown)
def histogramdd(
    sample: Any,
    bins: Any = 10,
    range: Any = None,
    density: bool | None = None,
    weights: Any = None,
) -> Any:
    """(counts, edges): the histogram of points, given as rows or as a list of coordinates.

    Raises `ArgumentError` for what is no array of numbers, `AttributeValueError` for an option
    or a size out of range and `ConcretizationError` for an option that is unknown while
    tracing.

    >>> tnp.histogramdd([[0.0, 0.0], [1.0, 1.0]], bins=2)[0]
    array([[0., 0.],
           [0., 2.]])
    """
    if isinstance(sample, list | tuple):
        columns = [_numbers(column) for column in sample]
    else:
        points: Any = as_array(sample)
        points = points if points.ndim > 1 else points.reshape((-1, 1))
        columns = [points[:, d] for d in builtin_range(points.shape[1])]
    rank = len(columns)
    each = [bins] * rank if not isinstance(bins, list | tuple) and np.ndim(bins) == 0 else bins
    if len(each) != rank:
        raise AttributeValueError(f"histogramdd: {len(each)} bins for points of {rank} coordinates")
    ranges = [None] * rank if range is None else range
    edges, places = [], []
    for column, bin, bounds in zip(columns, each, ranges, strict=True):
        found, _ = _edges("histogramdd", column, bin, bounds)
        work = found if found.element_type.is_inexact else found.astype(np.float64)
        edges.append(work)
        # By search, as NumPy does it in more dimensions, also for evenly spaced edges.
        places.append(_bins_of(column, work, False))
    sizes = [edge.shape[0] - 1 for edge in edges]
    flat: Any = 0
    valid: Any = True
    for place, size in zip(places, sizes, strict=True):
        flat = flat * size + place
        valid = valid & (place >= 0)
    given = None if weights is None else ravel(weights).astype(np.float64)
    flat = np.where(valid, flat, -1)
    counts = counted(flat, given, math.prod(sizes))
    made: Any = counts.reshape(sizes).astype(np.float64)
    if density:
        total = made.sum()
        for d, edge in enumerate(edges):
            widths = edge[1:] - edge[:-1]
            made = made / widths.reshape([-1 if e == d else 1 for e in builtin_range(rank)])
        made = made / total
    return made, tuple(edges)


@implements(np.histogram2d)
def histogram2d(
    x: Any,
    y: Any,
    bins: Any = 10,
    range: Any = None,
    density: bool | None = None,
    weights: Any = None,
) -> Any:
    """(counts, x edges, y edges): the histogram of points in the plane.

    Raises `ArgumentError` for what is no array of numbers, `ShapeError` for shapes that do not
    fit, `AttributeValueError` for an option or a size out of range and `ConcretizationError`
    for an option that is unknown while tracing.

    >>> tnp.histogram2d([0.0, 1.0], [0.0, 1.0], bins=2)[0]
    array([[1., 0.],
           [0., 1.]])
    """
    first, second = as_array(x), as_array(y)
    if first.shape != second.shape:
        raise ShapeError(f"histogram2d: x {first.shape} and y {second.shape} must be equally long")
    both = bins
    if isinstance(bins, list | tuple | np.ndarray | Tracer) and len(bins) != 2:
        # One list of edges, or one number in a list, counts for both directions.
        both = [bins, bins] if len(bins) > 1 else [bins[0], bins[0]]
    counts, edges = histogramdd([first, second], both, range, density, weights)
    return counts, edges[0], edges[1]


def builtin_range(count: int) -> Sequence[int]:
    """`range`, whose name the arguments of histograms take."""
    return tuple(np.arange(count).tolist())
