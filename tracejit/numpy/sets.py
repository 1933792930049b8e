"""Distinct elements and sets of them.

Where the size of a result depends on unknown elements, ``size=`` fixes it: the first ``size`` are
kept, and missing ones are ``fill_value`` (by default the least element).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tracejit.errors import AttributeValueError
from tracejit.numpy import joining, manipulation, sorting
from tracejit.numpy.building import canonical_axis
from tracejit.numpy.manipulation import as_array, ravel
from tracejit.numpy.sizes import (
    checked_size,
    known,
    known_or_none,
    listed,
    padded,
    places_where,
)
from tracejit.trace.convert import operand
from tracejit.trace.promotion import result_dtype
from tracejit.trace.public import implements
from tracejit.trace.tracer import Tracer, lift

FEW = 48
"""The most test elements that are compared with all elements; more are found by binary search."""

ADVICE = "pass size= to fix it (tracejit.numpy.{0}(..., size=n, fill_value=v)), or call it outside"


class UniqueAll(NamedTuple):
    """What `unique_all` returns."""

    values: Any
    indices: Any
    inverse_indices: Any
    counts: Any


class UniqueCounts(NamedTuple):
    """What `unique_counts` returns."""

    values: Any
    counts: Any


class UniqueInverse(NamedTuple):
    """What `unique_inverse` returns."""

    values: Any
    inverse_indices: Any


class _Distinct(NamedTuple):
    """The distinct rows of an array, where each first occurs, which each is, how many there are."""

    values: Tracer
    indices: Any
    inverse: Any
    counts: Any


def _rows(function: str, ar: Any, axis: int | None) -> tuple[Tracer, int | None]:
    """The array with the dimension of its elements in front."""
    x = as_array(ar)
    if axis is None:
        return ravel(x), None
    position = canonical_axis(function, axis, x.ndim)
    return manipulation.moveaxis(x, position, 0), position


def _is_same(later: Tracer, earlier: Tracer, equal_nan: bool) -> Tracer:
    """Which rows equal their neighbours, as a vector."""
    same: Any = later == earlier
    if equal_nan and later.ndim == 1 and later.element_type.is_inexact:
        same = same | ((later != later) & (earlier != earlier))
    axes = tuple(range(1, same.ndim))
    made: Tracer = same.all(axes) if axes else same
    return made


def _distinct(rows: Tracer, size: int, fill_value: Any, equal_nan: bool) -> _Distinct:
    """The distinct rows in rising order, as many as ``size`` says."""
    count = rows.shape[0]
    if rows.ndim == 1 and not rows.element_type.is_complex:
        ranked, order = sorting.sorted_and_places(rows, 0)
    else:
        columns = rows.reshape((count, -1))
        order = sorting.lexsort([columns[:, d] for d in range(columns.shape[1] - 1, -1, -1)])
        ranked = rows[order]
    same = _is_same(ranked[1:], ranked[:-1], equal_nan)
    is_first = joining.concatenate([listed(np.ones(min(count, 1), bool)), ~same])
    places, found = places_where(is_first, size, count)
    inverse = listed(np.zeros(count, np.int64)).copy()
    inverse[order] = is_first.astype(np.int64).cumsum() - 1
    if not count:
        empty = listed(np.zeros(size, np.int64))
        missing = 0 if fill_value is None else fill_value
        blank = listed(np.zeros((size, *rows.shape[1:]), rows.dtype)) + missing
        return _Distinct(blank.astype(rows.dtype), empty, inverse, empty)
    inside = np.minimum(places, count - 1)
    missing = ranked[0] if fill_value is None else fill_value
    values = padded(ranked[inside], found, missing)
    indices = padded(order[inside], found, order[0])
    # The places of the next ones are the ends; behind the last stands the end of all.
    ends = joining.concatenate([places[1:], listed(np.array([count]))])[:size]
    if size < count:
        later, _ = places_where(is_first, size + 1, count)
        ends = later[1:]
    return _Distinct(values, indices, inverse, padded(ends - places, found, 0))


def _known_distinct(rows: Tracer, values: np.ndarray, equal_nan: bool) -> _Distinct:
    """The distinct rows of known elements, read from the array so that derivatives pass."""
    _, indices, inverse, counts = np.unique(
        values,
        return_index=True,
        return_inverse=True,
        return_counts=True,
        axis=None if values.ndim == 1 else 0,
        equal_nan=equal_nan,
    )
    return _Distinct(rows[indices], listed(indices), listed(inverse.ravel()), listed(counts))


def _found(
    function: str, ar: Any, axis: int | None, size: Any, fill_value: Any, equal_nan: bool
) -> _Distinct:
    rows, position = _rows(function, ar, axis)
    if size is None:
        values = known(function, rows, ADVICE.format(function))
        made = _known_distinct(rows, values, equal_nan)
    else:
        made = _distinct(rows, checked_size(function, size), fill_value, equal_nan)
    if position is None:
        return made
    return made._replace(values=manipulation.moveaxis(made.values, 0, position))


@implements(np.unique)
def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """The distinct elements, or slices along ``axis``, in rising order.

    Also, if asked for: where each first occurs, which of them each element is, and how often each
    occurs. Raises `ConcretizationError` for unknown elements without ``size``.

    >>> tnp.unique([3, 1, 3], return_counts=True)
    (array([1, 3]), array([1, 2]))
    """
    found = _found("unique", ar, axis, size, fill_value, equal_nan)
    shape = as_array(ar).shape if axis is None else None
    made: list[Any] = [found.values]
    if return_index:
        made.append(found.indices)
    if return_inverse:
        made.append(found.inverse if shape is None else found.inverse.reshape(shape))
    if return_counts:
        made.append(found.counts)
    return made[0] if len(made) == 1 else tuple(made)


@implements(np.unique_all)
def unique_all(x: Any, *, size: int | None = None, fill_value: Any = None) -> UniqueAll:
    """The distinct elements, where they first occur, which of them each element is, how often.

    Raises `ArgumentError` for what is no array of numbers and `ConcretizationError` for an
    option that is unknown while tracing.

    >>> tnp.unique_all([3, 1, 3]).values
    array([1, 3])
    """
    found = _found("unique_all", x, None, size, fill_value, False)
    shape = as_array(x).shape
    return UniqueAll(found.values, found.indices, found.inverse.reshape(shape), found.counts)


@implements(np.unique_counts)
def unique_counts(x: Any, *, size: int | None = None, fill_value: Any = None) -> UniqueCounts:
    """The distinct elements and how often each occurs.

    Raises `ArgumentError` for what is no array of numbers and `ConcretizationError` for an
    option that is unknown while tracing.

    >>> tnp.unique_counts([3, 1, 3]).counts
    array([1, 2])
    """
    found = _found("unique_counts", x, None, size, fill_value, False)
    return UniqueCounts(found.values, found.counts)


@implements(np.unique_inverse)
def unique_inverse(x: Any, *, size: int | None = None, fill_value: Any = None) -> UniqueInverse:
    """The distinct elements and which of them each element is.

    Raises `ArgumentError` for what is no array of numbers and `ConcretizationError` for an
    option that is unknown while tracing.

    >>> tnp.unique_inverse([3, 1, 3]).inverse_indices
    array([1, 0, 1])
    """
    found = _found("unique_inverse", x, None, size, fill_value, False)
    return UniqueInverse(found.values, found.inverse.reshape(as_array(x).shape))


@implements(np.unique_values)
def unique_values(x: Any, *, size: int | None = None, fill_value: Any = None) -> Any:
    """The distinct elements, in rising order.

    Raises `ArgumentError` for what is no array of numbers and `ConcretizationError` for an
    option that is unknown while tracing.

    >>> tnp.unique_values([3, 1, 3])
    array([1, 3])
    """
    return _found("unique_values", x, None, size, fill_value, False).values


@implements(np.isin)
def isin(
    element: Any,
    test_elements: Any,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: str | None = None,
) -> Any:
    """Which elements occur among the test elements.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.isin([1, 2, 3], [2, 4])
    array([False,  True, False])
    """
    if kind not in (None, "sort", "table"):
        raise AttributeValueError(f"isin: kind must be 'sort' or 'table', not {kind!r}")
    x, tests = as_array(element), ravel(test_elements)
    if not tests.size:
        return listed(np.full(x.shape, invert))
    common = result_dtype([x.dtype, tests.dtype])
    x, tests = x.astype(common), tests.astype(common)
    if tests.size <= FEW or tests.element_type.is_complex:
        found = (x[..., None] == tests).any(-1)
    else:
        ranked = sorting.sort(tests)
        place = np.minimum(sorting.searchsorted(ranked, x), tests.size - 1)
        found = ranked[place] == x
    made = ~found if invert else found
    return lift(made.instruction, False)


def _merged(ar1: Any, ar2: Any) -> Tracer:
    made: Tracer = joining.concatenate([ravel(ar1), ravel(ar2)])
    return made


def _chosen(function: str, values: Any, mask: Any, size: Any, fill_value: Any) -> Any:
    """The elements of a vector where a mask holds."""
    x = as_array(values)
    if size is None:
        return x[np.flatnonzero(known(function, mask, ADVICE.format(function)))]
    count = checked_size(function, size)
    places, found = places_where(as_array(mask), count, max(x.shape[0] - 1, 0))
    if not x.shape[0]:
        return listed(np.zeros(count, x.dtype)) + (0 if fill_value is None else fill_value)
    missing = x[places[0]] if fill_value is None and count else fill_value
    return padded(x[places], found, missing) if count else x[:0]


@implements(np.union1d)
def union1d(ar1: Any, ar2: Any, *, size: int | None = None, fill_value: Any = None) -> Any:
    """The elements of either array, distinct and in rising order.

    Raises `ArgumentError` for what is no array of numbers and `ConcretizationError` for an
    option that is unknown while tracing.

    >>> tnp.union1d([1, 2], [2, 3])
    array([1, 2, 3])
    """
    return _found("union1d", _merged(ar1, ar2), None, size, fill_value, True).values


@implements(np.intersect1d)
def intersect1d(
    ar1: Any,
    ar2: Any,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """The elements of both arrays, distinct and in rising order, and where they first occur.

    Raises `ArgumentError` for what is no array of numbers and `ConcretizationError` for an
    option that is unknown while tracing.

    >>> tnp.intersect1d([1, 2, 3], [2, 3, 4])
    array([2, 3])
    """
    first, second = ravel(ar1), ravel(ar2)
    common = result_dtype([operand(first).type, operand(second).type])
    x = _all_distinct(first.astype(common))
    is_common = isin(x.values, second.astype(common)) & _are_there(x)
    choose = ("intersect1d", size)
    values = _chosen(choose[0], x.values, is_common, size, fill_value)
    if not return_indices:
        return values
    y = second.astype(common)
    where_first = _chosen("intersect1d", x.indices, is_common, size, first.size)
    # The first of equal elements in the order of a stable sort.
    order = sorting.argsort(y)
    place = np.minimum(sorting.searchsorted(y[order], values), max(y.size - 1, 0))
    where_second = order[place] if y.size else listed(np.zeros(values.shape, np.int64))
    if size is not None:
        count = is_common.sum()
        where_second = padded(where_second, count, second.size)
    return values, where_first, where_second


def _all_distinct(x: Tracer) -> _Distinct:
    """The distinct elements; unknown ones padded to the array's size."""
    values = known_or_none(x)
    if values is not None:
        return _known_distinct(x, values, True)
    return _distinct(x, x.shape[0], None, True)


def _are_there(found: _Distinct) -> Tracer:
    """Which of the distinct elements are not fill values."""
    made: Tracer = found.counts > 0
    return made


@implements(np.setdiff1d)
def setdiff1d(
    ar1: Any,
    ar2: Any,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """The elements of the first array that are not in the second, distinct unless assumed so.

    Raises `ArgumentError` for what is no array of numbers and `ConcretizationError` for an
    option that is unknown while tracing.

    >>> tnp.setdiff1d([1, 2, 3], [2])
    array([1, 3])
    """
    if assume_unique:
        x = ravel(ar1)
        return _chosen("setdiff1d", x, isin(x, ar2, invert=True), size, fill_value)
    found = _all_distinct(ravel(ar1))
    is_left = isin(found.values, ar2, invert=True) & _are_there(found)
    return _chosen("setdiff1d", found.values, is_left, size, fill_value)


@implements(np.setxor1d)
def setxor1d(
    ar1: Any,
    ar2: Any,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """The elements of one array alone, distinct and in rising order.

    Raises `ArgumentError` for what is no array of numbers and `ConcretizationError` for an
    option that is unknown while tracing.

    >>> tnp.setxor1d([1, 2, 3], [2, 4])
    array([1, 3, 4])
    """
    common = result_dtype([operand(ravel(ar1)).type, operand(ravel(ar2)).type])
    x, y = (ravel(a).astype(common) for a in (ar1, ar2))
    found = _all_distinct(_merged(x, y))
    is_left = (isin(found.values, x) != isin(found.values, y)) & _are_there(found)
    return _chosen("setxor1d", found.values, is_left, size, fill_value)
