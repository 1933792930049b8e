"""Choosing elements: by conditions, by limits, and by places."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tracejit.errors import (
    ArgumentError,
    AttributeValueError,
    DimensionError,
    ElementTypeError,
    ShapeError,
)
from tracejit.graph import Instruction
from tracejit.numpy import comparison
from tracejit.numpy.building import along, canonical_axis, fill
from tracejit.numpy.manipulation import as_array, broadcast_to, moveaxis, ravel
from tracejit.numpy.places import take_places
from tracejit.numpy.reducing import NO_VALUE
from tracejit.numpy.sizes import (
    checked_size,
    known,
    known_or_none,
    narrow_places_where,
    padded,
    places_where,
)
from tracejit.numpy.storing import finish
from tracejit.ops import elementwise, layout
from tracejit.ops.computations import highest, lowest
from tracejit.ops.constants import constant, iota
from tracejit.shapes import ElementType, Shape
from tracejit.trace.convert import assigned, broadcast_together, converted, operand
from tracejit.trace.int_range_checks import require_between
from tracejit.trace.mask_places import MaskIndices
from tracejit.trace.promotion import common_element_type
from tracejit.trace.public import implements
from tracejit.trace.result_layouts import as_first, by_columns
from tracejit.trace.result_layouts import elementwise as elementwise_layout
from tracejit.trace.tracer import Tracer, lift

SIZE_ADVICE = (
    "write np.where(condition, x, other), or pass size= to fix it "
    "(tracejit.numpy.nonzero(x, size=n, fill_value=v))"
)
MASK_ADVICE = (
    "write np.where(condition, x, other), reduce with where=condition, or pass size= to fix it"
)


@implements(np.where, layout=elementwise_layout)
def where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    """``x`` where the condition holds, else ``y``; with the condition alone, `nonzero`.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tnp.where([True, False], [1, 2], [3, 4])
    array([1, 4])
    """
    if x is None and y is None:
        return nonzero(condition)
    choices = operand(x), operand(y)
    element_type = common_element_type(o.type for o in choices)
    mask = converted(operand(condition).natural, ElementType.PRED)
    arrays = broadcast_together("where", mask, *(o.to(element_type) for o in choices))
    return lift(elementwise.select(*arrays), False)


@implements(np.clip, layout=elementwise_layout)
def clip(
    a: Any,
    a_min: Any = None,
    a_max: Any = None,
    out: Any = None,
    *,
    min: Any = None,
    max: Any = None,
    where: Any = True,
    casting: Any = "same_kind",
    order: str = "K",
    dtype: Any = None,
    subok: bool = True,
) -> Any:
    """Each element, or the limit that it is beyond; NaN stays.

    With ``dtype``, elements and limits are cast to it first. Raises `ArgumentError` where
    ``casting`` does not allow that.

    >>> tnp.clip([-2, 0, 5], -1, 1)
    array([-1,  0,  1])
    """
    low = a_min if min in NO_VALUE else min
    high = a_max if max in NO_VALUE else max
    made = as_array(a)
    low, high = (None if limit is np._NoValue else limit for limit in (low, high))
    if dtype is not None:
        made = made.astype(dtype, casting=casting)
        low, high = (
            None if limit is None else as_array(limit).astype(dtype, casting=casting)
            for limit in (low, high)
        )
    if made.element_type.is_integral:
        low, high = _low(low, made.element_type), _high(high, made.element_type)
    if low is not None:
        made = comparison.maximum(made, low)
    if high is not None:
        made = comparison.minimum(made, high)
    return finish("clip", made.instruction, out, where, casting)


def _low(limit: Any, element_type: ElementType) -> Any:
    """A lower limit; a Python integer that nothing is below may be below all integers there are."""
    if type(limit) is int:
        return None if limit <= lowest(element_type) else limit
    if limit is None or operand(limit).type is not int:
        return limit
    least = max(int(lowest(element_type)), -(2**63))
    require_between(operand(limit).natural, -(2**63), int(highest(element_type)))
    return comparison.maximum(limit, least).astype(element_type.dtype)


def _high(limit: Any, element_type: ElementType) -> Any:
    if type(limit) is int:
        return None if limit >= highest(element_type) else limit
    if limit is None or operand(limit).type is not int:
        return limit
    most = min(int(highest(element_type)), 2**63 - 1)
    require_between(operand(limit).natural, int(lowest(element_type)), 2**63 - 1)
    return comparison.minimum(limit, most).astype(element_type.dtype)


@implements(np.select)
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    """For each element the choice of the first condition that holds there.

    Raises `ArgumentError` for what is no array of numbers and `AttributeValueError` for an
    option or a size out of range.

    >>> tnp.select([[True, False], [True, True]], [[1, 2], [3, 4]])
    array([1, 4])
    """
    if len(condlist) != len(choicelist):
        raise AttributeValueError("select: conditions and choices must be equally many")
    choices = [operand(c) for c in (*choicelist, default)]
    element_type = common_element_type(o.type for o in choices)
    made: Any = lift(choices[-1].to(element_type), False)
    for condition, choice in zip(reversed(condlist), reversed(choices[:-1]), strict=True):
        made = where(condition, lift(choice.to(element_type), False), made)
    return made


def _places(function: str, indices: Any, size: int, mode: str) -> Instruction:
    """Places within a dimension; what lies outside clips, wraps, or clips as Gather does."""
    index = operand(indices).natural
    if not index.array_shape.element_type.is_integral:
        raise ArgumentError(f"{function}: indices must be integers, not {index.shape}")
    if mode == "clip":
        wide = converted(index, ElementType.S64)
        return elementwise.clamp(fill(wide, 0), wide, fill(wide, max(size - 1, 0)))
    if mode == "wrap":
        wrapped: Tracer = lift(converted(index, ElementType.S64), False) % size
        return wrapped.instruction
    if mode != "raise":
        raise AttributeValueError(f"{function}: mode must be raise, wrap or clip, not {mode!r}")
    return index


@implements(np.take)
def take(
    a: Any, indices: Any, axis: int | None = None, out: Any = None, mode: str = "raise"
) -> Any:
    """The elements at ``indices`` along ``axis``, or of the flat array.

    Unknown indices out of range are clamped for mode 'raise'.

    Raises `ArgumentError` for what is no array of numbers, `DimensionError` for an axis that
    the array lacks and `StaticIndexError` for a place out of range.

    >>> tnp.take([10, 20, 30], [2, 0])
    array([30, 10])
    """
    x = as_array(a)
    if axis is None:
        x, axis = ravel(x), 0
    position = canonical_axis("take", axis, x.ndim)
    places = lift(_places("take", indices, x.shape[position], mode), False)
    made = x[along(position, places)]
    return made if out is None else finish("take", made.instruction, out)


def _along(function: str, x: Tracer, indices: Any, axis: int) -> tuple[Any, ...]:
    """Index arrays that name, for each element of ``indices``, its place in ``x``."""
    index = operand(indices).natural
    if index.array_shape.rank != x.ndim:
        raise DimensionError(
            f"{function}: indices {index.shape} must have as many dimensions as {x.shape}"
        )
    sizes = np.broadcast_shapes(
        *(
            tuple(1 if d == axis else s for d, s in enumerate(shape))
            for shape in (x.shape, index.array_shape.dimensions)
        )
    )
    sizes = tuple(index.array_shape.dimensions[d] if d == axis else s for d, s in enumerate(sizes))
    made = []
    for d in range(x.ndim):
        if d == axis:
            made.append(broadcast_to(lift(index, False), sizes))
            continue
        count = iota(Shape(ElementType.S64, sizes), d)
        made.append(lift(count if x.shape[d] != 1 else fill(count, 0), False))
    return tuple(made)


@implements(np.take_along_axis)
def take_along_axis(arr: Any, indices: Any, axis: int | None = -1) -> Any:
    """Along ``axis`` the elements that ``indices``, of the array's rank, name for each row.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.take_along_axis(np.array([[1, 2], [3, 4]]), np.array([[1], [0]]), axis=1)
    array([[2],
           [3]])
    """
    x = as_array(arr)
    if axis is None:
        x, axis, indices = ravel(x), 0, ravel(indices)
    position = canonical_axis("take_along_axis", axis, x.ndim)
    return x[_along("take_along_axis", x, indices, position)]


@implements(np.put_along_axis)
def put_along_axis(arr: Any, indices: Any, values: Any, axis: int | None) -> None:
    """Writes ``values`` to where `take_along_axis` would read.

    Raises `ArgumentError` for what is no array of numbers, `ShapeError` for shapes that do not
    fit, `DimensionError` for an axis that the array lacks and `ConcretizationError` for an
    option that is unknown while tracing.

    >>> x = np.zeros((2, 2))
    >>> tj.jit(lambda x: tnp.put_along_axis(x, np.array([[1], [0]]), 1.0, 1), mutates=0)(x)
    >>> x
    array([[0., 1.],
           [1., 0.]])
    """
    require_traced("put_along_axis", arr)
    x = arr if axis is not None else arr.flat
    position = canonical_axis("put_along_axis", axis or 0, x.ndim)
    x[_along("put_along_axis", x, indices, position)] = values


@implements(np.put)
def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    """Writes ``v``, repeated as needed, to the flat array at ``ind``.

    Raises `ArgumentError` for what is no array of numbers.

    >>> x = np.arange(3.0)
    >>> tj.jit(lambda x: tnp.put(x, [0], [9.0]), mutates=0)(x)
    >>> x
    array([9., 1., 2.])
    """
    require_traced("put", a)
    places = _places("put", ravel(ind), a.size, mode)
    count = places.array_shape.size
    values = ravel(lift(assigned(v, a.element_type), False))
    if not values.size or not count:
        return
    repeated = take_places(values.instruction, np.arange(count) % values.size, 0)
    a.flat[lift(places, False)] = lift(repeated, False)


@implements(np.putmask)
def putmask(a: Any, mask: Any, values: Any) -> None:
    """Writes ``values``, repeated to the array's size, where the mask holds.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> x = np.arange(3.0)
    >>> tj.jit(lambda x: tnp.putmask(x, x > 1, 9.0), mutates=0)(x)
    >>> x
    array([0., 1., 9.])
    """
    require_traced("putmask", a)
    given = ravel(lift(assigned(values, a.element_type), False))
    repeated = take_places(given.instruction, np.arange(a.size) % given.size, 0)
    a[...] = where(mask, lift(repeated, False).reshape(a.shape), a)


@implements(np.place)
def place(arr: Any, mask: Any, vals: Any) -> None:
    """Writes ``vals`` one after the other, repeated, to where the mask holds.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> x = np.arange(3.0)
    >>> tj.jit(lambda x: tnp.place(x, x > 0, [9.0]), mutates=0)(x)
    >>> x
    array([0., 9., 9.])
    """
    require_traced("place", arr)
    holds = converted(ravel(mask).instruction, ElementType.PRED)
    number = lift(converted(holds, ElementType.S64), False).cumsum() - 1
    given = ravel(lift(assigned(vals, arr.element_type), False))
    chosen = given[number % given.size].reshape(arr.shape)
    arr[...] = where(lift(holds, False).reshape(arr.shape), chosen, arr)


def require_traced(function: str, array: Any) -> None:
    if not isinstance(array, Tracer):
        raise ArgumentError(
            f"{function}: the array must be made inside the traced function, not "
            f"{type(array).__name__}: a traced value cannot be stored into it"
        )


@implements(np.choose)
def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    """For each element of ``a`` the element there of the choice it numbers.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.choose([0, 1, 0], [[1, 2, 3], [10, 20, 30]])
    array([ 1, 20,  3])
    """
    given = [operand(c) for c in choices]
    element_type = common_element_type(o.type for o in given)
    if operand(a).element_type is ElementType.U64:
        raise ElementTypeError("choose: places of uint64 do not fit into int64")
    index = _places("choose", a, len(given), mode)
    arrays = broadcast_together("choose", index, *(o.to(element_type) for o in given))
    which = lift(arrays[0], False)
    made: Any = lift(arrays[-1], False)
    for number, choice in reversed(list(enumerate(arrays[1:-1]))):
        made = where(which == number, lift(choice, False), made)
    return finish("choose", made.instruction, out)


def _kept(
    function: str, x: Tracer, condition: Any, axis: int, size: Any, fill_value: Any
) -> Instruction:
    """The slices along ``axis`` for which a vector of truth values holds."""
    if size is None:
        listed = np.flatnonzero(known(function, condition, MASK_ADVICE))
        return take_places(x.instruction, listed, axis)
    mask = ravel(condition)
    if mask.shape[0] > x.shape[axis]:
        raise ShapeError(f"{function}: condition {mask.shape} is longer than the axis of {x.shape}")
    rows = moveaxis(x, axis, 0)
    count = checked_size(function, size)
    kept: Any
    if not rows.shape[0]:
        kept = broadcast_to(as_array(fill_value).astype(x.dtype), (count, *rows.shape[1:]))
    else:
        places, found = places_where(mask, count, 0)
        kept = padded(rows[places], found, fill_value)
    made: Tracer = moveaxis(kept, 0, axis)
    return made.instruction


@implements(np.compress)
def compress(
    condition: Any,
    a: Any,
    axis: int | None = None,
    out: Any = None,
    *,
    size: int | None = None,
    fill_value: Any = 0,
) -> Any:
    """The slices along ``axis`` for which a condition holds.

    The condition must be known while tracing, unless ``size`` says how many slices to return.

    Raises `ArgumentError` for what is no array of numbers, `DimensionError` for an axis that
    the array lacks, `AttributeValueError` for an option or a size out of range and
    `ConcretizationError` for an option that is unknown while tracing.

    >>> tnp.compress([True, False, True], [1, 2, 3])
    array([1, 3])
    """
    x = as_array(a)
    if axis is None:
        x, axis = ravel(x), 0
    position = canonical_axis("compress", axis, x.ndim)
    return finish("compress", _kept("compress", x, condition, position, size, fill_value), out)


@implements(np.extract)
def extract(condition: Any, arr: Any, *, size: int | None = None, fill_value: Any = 0) -> Any:
    """The elements of the flat array for which a condition holds; see `compress`.

    Raises `ArgumentError` for what is no array of numbers, `AttributeValueError` for an option
    or a size out of range and `ConcretizationError` for an option that is unknown while
    tracing.

    >>> tnp.extract([True, False, True], [1, 2, 3])
    array([1, 3])
    """
    mask = ravel(as_array(condition).astype(np.bool_))
    return lift(_kept("extract", ravel(arr), mask, 0, size, fill_value), False)


@implements(np.nonzero)
def nonzero(a: Any, *, size: int | None = None, fill_value: Any = None) -> Any:
    """The places of the elements that are not zero, one vector for each dimension.

    While the elements are unknown the vectors can index arrays and be reduced, as elements under a
    mask can. With ``size`` that number of places is returned; missing ones are ``fill_value`` (0
    by default), a number or one for each dimension.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tnp.nonzero([0, 3, 0, 4])
    (array([1, 3]),)
    """
    x = as_array(a)
    if not x.ndim:
        raise ShapeError("nonzero: an array of rank 0 has no places; use np.atleast_1d")
    if size is None:
        found = known_or_none(x)
        if found is None:
            return _unknown_places((x != 0).instruction)
        return tuple(lift(constant(places), False) for places in np.nonzero(found))
    flat, count = narrow_places_where(ravel(x), checked_size("nonzero", size), 0)
    fills = np.broadcast_to(0 if fill_value is None else np.asarray(fill_value), (x.ndim,))
    made = []
    for d, missing in enumerate(fills):
        step = max(math.prod(x.shape[d + 1 :]), 1)
        along_d = flat // step if d < x.ndim - 1 else flat
        if d:
            along_d = along_d % max(x.shape[d], 1)
        made.append(padded(along_d.astype(np.int64), count, missing))
    return tuple(made)


def _unknown_places(mask: Instruction) -> tuple[MaskIndices, ...]:
    shape = Shape(ElementType.S64, mask.array_shape.dimensions)
    ones = layout.full(shape, 1)
    places = [elementwise.select(mask, iota(shape, d), ones) for d in range(shape.rank)]
    return tuple(MaskIndices(lift(place, False), mask, d) for d, place in enumerate(places))


@implements(np.flatnonzero)
def flatnonzero(a: Any, *, size: int | None = None, fill_value: Any = None) -> Any:
    """The places in the flat array of the elements that are not zero; see `nonzero`.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.flatnonzero([0, 3, 0, 4])
    array([1, 3])
    """
    return nonzero(ravel(a), size=size, fill_value=fill_value)[0]


@implements(np.argwhere, layout=by_columns)
def argwhere(a: Any, *, size: int | None = None, fill_value: Any = None) -> Any:
    """The places of the elements that are not zero, as rows; see `nonzero`.

    Raises `ArgumentError` for what is no array of numbers and `AttributeValueError` for an
    option or a size out of range.

    >>> tnp.argwhere([0, 3, 0, 4], size=2)
    array([[1],
           [3]])
    """
    x = as_array(a)
    if not x.ndim:
        count = len(np.argwhere(known("argwhere", x, SIZE_ADVICE))) if size is None else size
        return lift(constant(np.zeros((count, 0), np.int64)), False)
    if size is None:
        known("argwhere", x, SIZE_ADVICE)
    return np.stack(nonzero(x, size=size, fill_value=fill_value), 1)


@implements(np.nan_to_num, layout=as_first)
def nan_to_num(
    x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Any:
    """With numbers in place of NaN and infinities; by default 0 and the greatest and least.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.nan_to_num([np.nan, np.inf], posinf=1.0)
    array([0., 1.])
    """
    array = as_array(x)
    if array.element_type.is_complex:
        parts = [nan_to_num(p, True, nan, posinf, neginf) for p in (array.real, array.imag)]
        return lift(elementwise.complex(*(p.instruction for p in parts)))
    if not array.element_type.is_floating:
        return lift(array.instruction) if copy else array
    limits = np.finfo(array.dtype) if array.dtype.kind == "f" else None
    high = posinf if posinf is not None else limits.max if limits else None
    low = neginf if neginf is not None else limits.min if limits else None
    if high is None or low is None:
        raise AttributeValueError(f"nan_to_num: give posinf and neginf for {array.dtype}")
    made = where(comparison.isnan(array), array.dtype.type(0) + nan, array)
    made = where(array == np.inf, high, made)
    made = where(array == -np.inf, low, made).astype(array.dtype)
    if copy:
        return lift(made.instruction)
    array.write(made.instruction)
    return array
