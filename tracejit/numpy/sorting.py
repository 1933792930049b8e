"""Sorting, ranking and searching in sorted arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracejit.errors import AttributeValueError, DimensionError, ElementTypeError, ShapeError
from tracejit.numpy import comparison
from tracejit.numpy.building import canonical_axis, fill
from tracejit.numpy.joining import flip
from tracejit.numpy.manipulation import as_array, ravel
from tracejit.ops.constants import elements_of, iota
from tracejit.ops.reduction import sort as sort_ops
from tracejit.shapes import ElementType, Shape
from tracejit.trace.convert import operand
from tracejit.trace.evaluation import known_value
from tracejit.trace.promotion import result_dtype
from tracejit.trace.public import implements
from tracejit.trace.result_layouts import as_first
from tracejit.trace.tracer import Tracer, lift

FEW = 64
"""The most elements that are compared with all at once; more are found by binary search."""


def _sortable(function: str, a: Any, axis: int | None) -> tuple[Tracer, int]:
    x = as_array(a)
    if axis is None:
        return ravel(x), 0
    if not x.ndim:
        raise DimensionError(f"{function}: axis {axis} is out of bounds for array of dimension 0")
    return x, canonical_axis(function, axis, x.ndim)


@implements(np.sort, layout=as_first)
def sort(
    a: Any,
    axis: int | None = -1,
    kind: Any = None,
    order: Any = None,
    *,
    stable: Any = None,
    descending: bool = False,
) -> Any:
    """The elements along ``axis`` in rising order, NaN last, or ``descending``, NaN first.

    Complex numbers are ordered by their real part, equal ones by their imaginary part.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.sort([3.0, 1.0, 2.0])
    array([1., 2., 3.])
    """
    x, position = _sortable("sort", a, axis)
    if x.element_type.is_complex:
        made: Any = np.take_along_axis(x, argsort(x, position), position)
    else:
        made = lift(sort_ops(x.instruction, None, position, is_stable=True), False)
    return flip(made, position) if descending else made


def sorted_and_places(x: Tracer, axis: int) -> tuple[Tracer, Tracer]:
    """The elements along ``axis`` in rising order and the places where they were, in one sort."""
    places = iota(Shape(ElementType.S64, x.shape), axis)
    made = elements_of(sort_ops([x.instruction, places], None, axis, is_stable=True))
    return lift(made[0], False), lift(made[1], False)


@implements(np.argsort)
def argsort(
    a: Any,
    axis: int | None = -1,
    kind: Any = None,
    order: Any = None,
    *,
    stable: Any = None,
    descending: bool = False,
) -> Any:
    """The places of the elements along ``axis`` in rising order; equal ones keep their order.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.argsort([3.0, 1.0, 2.0])
    array([1, 2, 0])
    """
    x, position = _sortable("argsort", a, axis)
    if descending:
        # The last of the reversed elements comes first, so that equal ones keep their order.
        return flip(x.shape[position] - 1 - argsort(flip(x, position), position), position)
    if x.element_type.is_complex:
        return lexsort((x.imag, x.real), position)
    return sorted_and_places(x, position)[1]


@implements(np.partition)
def partition(a: Any, kth: Any, axis: int | None = -1, kind: Any = None, order: Any = None) -> Any:
    """Sorted altogether, which puts every ``kth`` element in its place.

    Raises `AttributeValueError` where a known ``kth`` is none of the places.

    >>> tnp.partition([3.0, 1.0, 2.0], 1)[1]
    np.float64(2.0)
    """
    _require_places("partition", a, kth, axis)
    return sort(a, axis)


@implements(np.argpartition)
def argpartition(
    a: Any, kth: Any, axis: int | None = -1, kind: Any = None, order: Any = None
) -> Any:
    """The places of the elements in rising order. Raises as `partition` does.

    >>> tnp.argpartition([3.0, 1.0, 2.0], 0)[0]
    np.int64(1)
    """
    _require_places("argpartition", a, kth, axis)
    return argsort(a, axis)


def _require_places(function: str, a: Any, kth: Any, axis: int | None) -> None:
    x, position = _sortable(function, a, axis)
    size, places = x.shape[position], known_value(operand(kth).natural)
    if places is not None and ((places < -size) | (places >= size)).any():
        raise AttributeValueError(f"{function}: kth {kth} must be places of {size} elements")


@implements(np.sort_complex)
def sort_complex(a: Any) -> Any:
    """The elements in rising order, as complex numbers.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.sort_complex([2 + 1j, 1 + 5j])
    array([1.+5.j, 2.+1.j])
    """
    made = sort(a)
    if made.element_type.is_complex:
        return made
    narrow = made.dtype.char in "bhBH"
    return made.astype(np.complex64 if narrow else np.complex128)


@implements(np.lexsort)
def lexsort(keys: Any, axis: int = -1) -> Any:
    """The order by the last key, ties by the one before it, and so on.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.lexsort(([1, 0, 1], [2, 2, 1]))
    array([2, 1, 0])
    """
    columns = [as_array(key) for key in keys]
    position = canonical_axis("lexsort", axis, columns[0].ndim)
    made = argsort(columns[0], position)
    for column in columns[1:]:
        order = argsort(np.take_along_axis(column, made, position), position)
        made = np.take_along_axis(made, order, position)
    return made


@implements(np.searchsorted)
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    """Where in the rising vector ``a`` the elements of ``v`` belong, before or after equal ones.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tnp.searchsorted([1.0, 2.0, 3.0], [0.5, 2.0])
    array([0, 1])
    """
    if side not in ("left", "right"):
        raise AttributeValueError(f"searchsorted: side must be 'left' or 'right', not {side!r}")
    rows = as_array(a)
    if rows.ndim != 1:
        raise ShapeError(f"searchsorted: a {rows.shape} must have one dimension")
    if sorter is not None:
        rows = rows[sorter]
    wanted = as_array(v)
    common = result_dtype([rows.dtype, wanted.dtype])
    rows, wanted = rows.astype(common), wanted.astype(common)
    if rows.element_type.is_complex:
        raise ElementTypeError("searchsorted: complex numbers cannot be sorted here")
    count = rows.shape[0]
    if count <= FEW:
        # As many elements stand before it as are less (or not greater).
        return _stands_before(rows, wanted[..., None], side).sum(-1)
    found = _by_halves(rows, wanted, side)
    return found[()] if not wanted.ndim and operand(v).is_weak else found


def _by_halves(rows: Tracer, wanted: Tracer, side: str) -> Any:
    """`searchsorted` of at least one row.

    The place lies among those from ``low`` to ``low + left``, both included. How many are left
    does not depend on the elements, so that no place has to be kept from going too far.
    """
    left = rows.shape[0]
    dtype = np.int32 if left <= np.iinfo(np.int32).max else np.int64
    low = lift(fill(wanted.instruction, 0), False).astype(dtype)

    def passed(place: Any) -> Any:
        return _stands_before(np.take(rows, place, mode="clip"), wanted, side)

    while left > 1:
        half = left // 2
        low = low + np.where(passed(low + dtype(half - 1)), dtype(half), dtype(0))
        left -= half
    return (low + passed(low).astype(dtype)).astype(np.int64)


def _stands_before(row: Any, wanted: Any, side: str) -> Any:
    """Whether elements stand before the place of others; NaN is greatest."""
    before = comparison.less if side == "left" else comparison.less_equal
    stands = before(row, wanted)
    if row.element_type.is_floating:
        is_last = comparison.isnan(wanted)
        stands = stands | (is_last & (~comparison.isnan(row) if side == "left" else True))
    return stands


@implements(np.digitize)
def digitize(x: Any, bins: Any, right: bool = False) -> Any:
    """Which interval between monotonic ``bins`` each element lies in.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tnp.digitize([0.5, 2.5], [1.0, 2.0, 3.0])
    array([0, 2])
    """
    edges = as_array(bins)
    if edges.ndim != 1:
        raise ShapeError(f"digitize: bins {edges.shape} must have one dimension")
    if as_array(x).element_type.is_complex:
        raise ElementTypeError("digitize: x may not be complex")
    side = "left" if right else "right"
    values = known_value(edges.instruction)
    if values is None:
        # Falling edges are searched from behind, whichever they are.
        rising = searchsorted(edges, x, side)
        falling = edges.shape[0] - searchsorted(edges[::-1], x, side)
        is_rising = edges[:1].sum() <= edges[-1:].sum()
        return lift(as_array(np.where(is_rising, rising, falling)).instruction)
    steps = np.diff(values)
    if (steps >= 0).all():
        return searchsorted(edges, x, side)
    if not (steps <= 0).all():
        raise AttributeValueError("digitize: bins must be monotonically increasing or decreasing")
    return edges.shape[0] - searchsorted(edges[::-1], x, side)
