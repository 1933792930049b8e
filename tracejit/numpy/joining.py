"""Joining arrays, splitting them, and repeating or removing parts."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit.errors import AttributeValueError, DimensionError, ElementTypeError, ShapeError
from tracejit.numpy.building import along, axes_of, canonical_axis
from tracejit.numpy.manipulation import (
    as_array,
    atleast_1d,
    atleast_2d,
    atleast_3d,
    moveaxis,
    ravel,
)
from tracejit.numpy.places import take_places
from tracejit.numpy.sizes import known
from tracejit.numpy.storing import finish
from tracejit.ops import layout
from tracejit.ops.constants import iota
from tracejit.shapes import ElementType, Shape, element_type_of
from tracejit.trace.convert import operand, stretch
from tracejit.trace.promotion import result_dtype
from tracejit.trace.public import implements
from tracejit.trace.result_layouts import by_rows, joined
from tracejit.trace.table import Traced
from tracejit.trace.tracer import Tracer, lift


def _parts(function: str, arrays: Any) -> list[Any]:
    """The arrays of a sequence, or the rows of an array."""
    parts = list(arrays)
    if not parts:
        raise ShapeError(f"{function}: need at least one array")
    return parts


@implements(np.concatenate, layout=joined)
def concatenate(
    arrays: Any,
    /,
    axis: int | None = 0,
    out: Any = None,
    *,
    dtype: Any = None,
    casting: Any = "same_kind",
) -> Any:
    """The arrays one after the other along ``axis``; flattened first if that is None.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.concat([[1, 2], [3]])
    array([1, 2, 3])
    """
    operands = [operand(a) for a in _parts("concatenate", arrays)]
    common = result_dtype(o.type for o in operands) if dtype is None else dtype
    for one in operands:
        if not (one.is_weak or np.can_cast(one.type, common, casting)):
            raise ElementTypeError(
                f"concatenate: cannot cast from {one.type} to {np.dtype(common)} by the rule "
                f"{casting!r}"
            )
    made = [o.to(element_type_of(common)) for o in operands]
    if axis is None:
        made = [layout.reshape(m, [m.array_shape.size]) for m in made]
    if not made[0].array_shape.rank:
        raise DimensionError("concatenate: arrays of rank 0 cannot be concatenated")
    position = canonical_axis("concatenate", axis or 0, made[0].array_shape.rank)
    return finish("concatenate", layout.concatenate(made, position), out, casting=casting)


concat = concatenate


@implements(np.stack)
def stack(
    arrays: Any,
    axis: int = 0,
    out: Any = None,
    *,
    dtype: Any = None,
    casting: Any = "same_kind",
) -> Any:
    """The arrays side by side along a new dimension.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.stack([[1, 2], [3, 4]], axis=1)
    array([[1, 3],
           [2, 4]])
    """
    parts = _parts("stack", arrays)
    shapes = {operand(p).dimensions for p in parts}
    if len(shapes) > 1:
        raise ShapeError(f"stack: all arrays must have the same shape, not {sorted(shapes)}")
    (dimensions,) = shapes
    position = canonical_axis("stack", axis, len(dimensions) + 1)
    widened = [
        as_array(p).reshape((*dimensions[:position], 1, *dimensions[position:])) for p in parts
    ]
    return concatenate(widened, position, out, dtype=dtype, casting=casting)


@implements(np.vstack)
def vstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    """The arrays below each other, vectors as rows.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.row_stack([[1, 2], [3, 4]])
    array([[1, 2],
           [3, 4]])
    """
    parts = [atleast_2d(a) for a in _parts("vstack", tup)]
    return concatenate(parts, 0, dtype=dtype, casting=casting)


row_stack = vstack


@implements(np.hstack)
def hstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    """The arrays beside each other.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.hstack([[1, 2], [3]])
    array([1, 2, 3])
    """
    parts = [atleast_1d(a) for a in _parts("hstack", tup)]
    return concatenate(parts, min(parts[0].ndim - 1, 1), dtype=dtype, casting=casting)


@implements(np.dstack)
def dstack(tup: Any) -> Any:
    """The arrays behind each other along a third dimension.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.dstack([[1, 2], [3, 4]])
    array([[[1, 3],
            [2, 4]]])
    """
    return concatenate([atleast_3d(a) for a in _parts("dstack", tup)], 2)


@implements(np.column_stack)
def column_stack(tup: Any) -> Any:
    """The arrays beside each other, vectors as columns.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.column_stack([[1, 2], [3, 4]])
    array([[1, 3],
           [2, 4]])
    """
    parts = [as_array(a) for a in _parts("column_stack", tup)]
    return concatenate([p[:, None] if p.ndim == 1 else atleast_2d(p) for p in parts], 1)


@implements(np.block)
def block(arrays: Any) -> Any:
    """An array from nested lists of blocks, the innermost joined along the last dimension.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.block([[np.eye(2), np.zeros((2, 1))]])
    array([[1., 0., 0.],
           [0., 1., 0.]])
    """
    depth = _depth(arrays)
    rank = max(depth, max(operand(leaf).dimensions.__len__() for leaf in _leaves(arrays)))
    return _block(arrays, depth, rank)


def _depth(arrays: Any) -> int:
    return 1 + _depth(arrays[0]) if isinstance(arrays, list) else 0


def _leaves(arrays: Any) -> list[Any]:
    if not isinstance(arrays, list):
        return [arrays]
    return [leaf for part in arrays for leaf in _leaves(part)]


def _block(arrays: Any, depth: int, rank: int) -> Any:
    if not isinstance(arrays, list):
        x = as_array(arrays)
        return x.reshape((1,) * (rank - x.ndim) + x.shape)
    return concatenate([_block(part, depth - 1, rank) for part in arrays], -depth)


@implements(np.append)
def append(arr: Any, values: Any, axis: int | None = None) -> Any:
    """``values`` after ``arr``, both flattened if ``axis`` is None.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.append([1, 2], [3, 4])
    array([1, 2, 3, 4])
    """
    x, more = as_array(arr), as_array(values)
    if axis is None:
        x, more = x.reshape(-1), more.reshape(-1)
    return concatenate([x, more], axis or 0)


@implements(np.array_split)
def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """Views of the parts between the given places, or of that many parts about equally long.

    Raises `ArgumentError` for what is no array of numbers, `DimensionError` for an axis that
    the array lacks, `AttributeValueError` for an option or a size out of range and
    `ConcretizationError` for an option that is unknown while tracing.

    >>> tnp.array_split(np.arange(5), 2)
    [array([0, 1, 2]), array([3, 4])]
    """
    x = as_array(ary)
    position = canonical_axis("array_split", axis, x.ndim)
    total = x.shape[position]
    if np.ndim(indices_or_sections) == 0:
        sections = int(indices_or_sections)
        if sections <= 0:
            raise AttributeValueError("array_split: the number of sections must be positive")
        each, longer = divmod(total, sections)
        bounds = np.cumsum([0] + [each + 1] * longer + [each] * (sections - longer)).tolist()
    else:
        bounds = [0, *(int(i) for i in indices_or_sections), None]
    return [x[along(position, slice(start, stop))] for start, stop in itertools.pairwise(bounds)]


@implements(np.split)
def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """`array_split`, but raises `ShapeError` unless equal parts come out.

    Raises `ArgumentError` for what is no array of numbers, `ShapeError` for shapes that do not
    fit, `DimensionError` for an axis that the array lacks and `ConcretizationError` for an
    option that is unknown while tracing.

    >>> tnp.split(np.arange(4), 2)
    [array([0, 1]), array([2, 3])]
    """
    if np.ndim(indices_or_sections) == 0:
        dimensions = operand(ary).dimensions
        total = dimensions[canonical_axis("split", axis, len(dimensions))]
        if total % int(indices_or_sections):
            raise ShapeError(
                f"split: {total} elements do not make {indices_or_sections} equal parts"
            )
    return array_split(ary, indices_or_sections, axis)


@implements(np.hsplit)
def hsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """`split` along the second dimension, of a vector along its only one.

    Raises `ArgumentError` for what is no array of numbers, `ShapeError` for shapes that do not
    fit, `DimensionError` for an axis that the array lacks and `ConcretizationError` for an
    option that is unknown while tracing.

    >>> tnp.hsplit(np.arange(4), 2)
    [array([0, 1]), array([2, 3])]
    """
    return split(ary, indices_or_sections, 1 if len(operand(ary).dimensions) > 1 else 0)


@implements(np.vsplit)
def vsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """`split` along the first dimension.

    Raises `ArgumentError` for what is no array of numbers, `ShapeError` for shapes that do not
    fit, `DimensionError` for an axis that the array lacks and `ConcretizationError` for an
    option that is unknown while tracing.

    >>> tnp.vsplit(np.ones((4, 1)), 2)[0].shape
    (2, 1)
    """
    return split(ary, indices_or_sections, 0)


@implements(np.dsplit)
def dsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """`split` along the third dimension.

    Raises `ArgumentError` for what is no array of numbers, `ShapeError` for shapes that do not
    fit, `DimensionError` for an axis that the array lacks and `ConcretizationError` for an
    option that is unknown while tracing.

    >>> [part.shape for part in tnp.dsplit(np.ones((1, 1, 4)), 2)]
    [(1, 1, 2), (1, 1, 2)]
    """
    return split(ary, indices_or_sections, 2)


@implements(np.unstack)
def unstack(x: Any, /, *, axis: int = 0) -> tuple[Any, ...]:
    """Views of the slices along ``axis``.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.unstack([[1, 2], [3, 4]])
    (array([1, 2]), array([3, 4]))
    """
    array = as_array(x)
    position = canonical_axis("unstack", axis, array.ndim)
    return tuple(array[along(position, i)] for i in range(array.shape[position]))


@implements(np.flip)
def flip(m: Any, axis: Any = None) -> Any:
    """A view with the elements along ``axis``, by default along all, in reverse order.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.flip([[1, 2], [3, 4]], axis=1)
    array([[2, 1],
           [4, 3]])
    """
    x = as_array(m)
    axes = axes_of("flip", axis, x.ndim)
    return x[tuple(slice(None, None, -1) if d in axes else slice(None) for d in range(x.ndim))]


@implements(np.fliplr)
def fliplr(m: Any) -> Any:
    """Left and right exchanged: the second dimension reversed.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.fliplr([[1, 2], [3, 4]])
    array([[2, 1],
           [4, 3]])
    """
    return flip(m, 1)


@implements(np.flipud)
def flipud(m: Any) -> Any:
    """Up and down exchanged: the first dimension reversed.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.flipud([[1, 2], [3, 4]])
    array([[3, 4],
           [1, 2]])
    """
    return flip(m, 0)


@implements(np.rot90)
def rot90(m: Any, k: int = 1, axes: Sequence[int] = (0, 1)) -> Any:
    """Turned by ``k`` quarters in the plane of two axes.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.rot90([[1, 2], [3, 4]])
    array([[2, 4],
           [1, 3]])
    """
    x = as_array(m)
    first, second = axes_of("rot90", tuple(axes), x.ndim)
    turns = k % 4
    if turns == 2:
        return flip(x, (first, second))
    if turns == 1:
        return flip(x, second).swapaxes(first, second)
    return flip(x.swapaxes(first, second), second) if turns == 3 else x


@implements(np.roll)
def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    """Moved by ``shift`` along ``axis``, what leaves at the end coming back at the start.

    Raises `ArgumentError` for what is no array of numbers, `DimensionError` for an axis that
    the array lacks and `StaticIndexError` for a place out of range.

    >>> tnp.roll([1, 2, 3], 1)
    array([3, 1, 2])
    """
    x = as_array(a)
    if axis is None:
        return roll(ravel(x), shift, 0).reshape(x.shape)
    axes = [axis] if np.ndim(axis) == 0 else list(axis)
    if not axes:
        return x.copy("K")
    # A list may hold numbers that are traced.
    is_one = not isinstance(shift, list | tuple) and np.ndim(shift) == 0
    shifts = [shift] if is_one else list(shift)
    if 1 not in (len(axes), len(shifts)) and len(axes) != len(shifts):
        raise AttributeValueError("roll: shift and axis must be equally many")
    count = max(len(axes), len(shifts))
    made = x
    for one, by in zip(axes * (count // len(axes)), shifts * (count // len(shifts)), strict=True):
        made = _rolled(made, by, canonical_axis("roll", one, x.ndim))
    return made


def _rolled(x: Tracer, shift: Any, axis: int) -> Tracer:
    total = x.shape[axis]
    if not total:
        return x
    if isinstance(shift, Traced):
        count = lift(iota(Shape(ElementType.S64, (total,))), False)
        made: Tracer = x[along(axis, (count - shift) % total)]
        return made
    first = -int(shift) % total
    if not first:
        return lift(x.instruction)
    bounds = ((first, total), (0, first))
    parts = [layout.slice_in_dim(x.instruction, *each, 1, axis) for each in bounds]
    return lift(layout.concatenate(parts, axis))


@implements(np.tile, layout=by_rows)
def tile(A: Any, reps: Any) -> Any:
    """The array repeated ``reps`` times along each dimension.

    Raises `ArgumentError` for what is no array of numbers, `AttributeValueError` for an option
    or a size out of range and `ConcretizationError` for an option that is unknown while
    tracing.

    >>> tnp.tile([1, 2], 2)
    array([1, 2, 1, 2])
    """
    x = as_array(A)
    times = (int(reps),) if np.ndim(reps) == 0 else tuple(int(r) for r in reps)
    rank = max(len(times), x.ndim)
    times = (1,) * (rank - len(times)) + times
    sizes = (1,) * (rank - x.ndim) + x.shape
    # Each dimension as (repetition, element), stretched in the first.
    paired = layout.reshape(x.instruction, [s for size in sizes for s in (1, size)])
    wide = [s for pair in zip(times, sizes, strict=True) for s in pair]
    made = layout.broadcast_in_dim(paired, wide, range(len(wide)))
    total = [t * s for t, s in zip(times, sizes, strict=True)]
    return lift(layout.reshape(made, total), False)


@implements(np.repeat, layout=by_rows)
def repeat(a: Any, repeats: Any, axis: int | None = None) -> Any:
    """Each element repeated, by one number for all or one for each, along ``axis``.

    Raises `ArgumentError` for what is no array of numbers, `DimensionError` for an axis that
    the array lacks, `AttributeValueError` for an option or a size out of range and
    `ConcretizationError` for an option that is unknown while tracing.

    >>> tnp.repeat([1, 2], 2)
    array([1, 1, 2, 2])
    """
    x = as_array(a)
    if axis is None:
        x, axis = ravel(x), 0
    position = canonical_axis("repeat", axis, x.ndim)
    counts = np.asarray(repeats)
    total = x.shape[position]
    if counts.size == 1:
        times = int(counts.reshape(-1)[0])
        shape = (*x.shape[: position + 1], times, *x.shape[position + 1 :])
        kept = [d for d in range(len(shape)) if d != position + 1]
        made = layout.broadcast_in_dim(x.instruction, shape, kept)
        sizes = [size * times if d == position else size for d, size in enumerate(x.shape)]
        return lift(layout.reshape(made, sizes))
    if counts.shape != (total,):
        raise ShapeError(f"repeat: {counts.shape} numbers for {total} elements")
    return lift(take_places(x.instruction, np.repeat(np.arange(total), counts), position))


@implements(np.delete)
def delete(arr: Any, obj: Any, axis: int | None = None) -> Any:
    """Without the elements at known places along ``axis``, or at one place, known or not.

    Raises `ArgumentError` for what is no array of numbers, `ElementTypeError` for an element
    type that it does not take, `DimensionError` for an axis that the array lacks and
    `ConcretizationError` for an option that is unknown while tracing.

    >>> tnp.delete([1, 2, 3, 4], [0, 2])
    array([2, 4])
    """
    x = as_array(arr)
    if axis is None:
        x, axis = ravel(x), 0
    position = canonical_axis("delete", axis, x.ndim)
    total = x.shape[position]
    if isinstance(obj, Tracer):
        if obj.ndim == 0:
            place = _from_front("delete", obj, total)
            rest = np.arange(max(total - 1, 0))
            return x[along(position, rest + (rest >= place))]
        obj = known("delete", obj, "delete at a single place, or select with a mask")
    kept = np.delete(np.arange(total), obj)
    return lift(take_places(x.instruction, kept, position))


@implements(np.insert)
def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Any:
    """With ``values`` before the elements at known places along ``axis``, or before one place,
    known or not.

    Raises `ArgumentError` for what is no array of numbers, `ElementTypeError` for an element
    type that it does not take and `DimensionError` for an axis that the array lacks.

    >>> tnp.insert([1, 2, 3], 1, 9)
    array([1, 9, 2, 3])
    """
    x = as_array(arr)
    if axis is None:
        x, axis = ravel(x), 0
    position = canonical_axis("insert", axis, x.ndim)
    total = x.shape[position]
    place = None
    if isinstance(obj, Tracer):
        if obj.ndim == 0:
            place, obj = _from_front("insert", obj, total), 0
        else:
            obj = known("insert", obj, "insert at a single place, or join slices of known sizes")
    update = lift(operand(values).to(x.element_type), False)
    places = np.arange(total + 1)[obj] if isinstance(obj, slice) else np.asarray(obj)
    if places.size == 1 and places.dtype.kind in "iu":
        # As many as there are values along the axis; those of a number's place have it first.
        update = update[(None,) * (x.ndim - update.ndim)]
        if places.ndim == 0:
            update = moveaxis(update, 0, position)
        obj = [np.insert(np.arange(total), places, -1).argmin()] * update.shape[position]
    marked = np.insert(np.arange(total), obj, -1)
    new = len(marked) - total
    dimensions = tuple(new if d == position else size for d, size in enumerate(x.shape))
    both = layout.concatenate(
        [x.instruction, stretch("insert", update.instruction, dimensions)], position
    )
    if place is not None:
        before = np.arange(total + new)
        order = np.where(
            before < place,
            before,
            np.where(before < place + new, total + before - place, before - new),
        )
        return lift(both, False)[along(position, order)]
    order = np.where(marked == -1, total + np.cumsum(marked == -1) - 1, marked)
    return lift(take_places(both, order, position))


def _from_front(function: str, place: Tracer, total: int) -> Tracer:
    """An unknown place along a dimension of ``total`` elements, counted from the front.

    Raises `ElementTypeError` unless it is an integer.
    """
    if not place.element_type.is_integral:
        raise ElementTypeError(f"{function}: a place must be an integer, not {place.dtype}")
    made: Any = np.where(place < 0, place + total, place)
    return lift(operand(made).natural, False)


@implements(np.resize)
def resize(a: Any, new_shape: Any) -> Any:
    """The elements repeated, or cut off, to fill another shape.

    Raises `ArgumentError` for what is no array of numbers and `AttributeValueError` for an
    option or a size out of range.

    >>> tnp.resize([1, 2, 3], (2, 2))
    array([[1, 2],
           [3, 1]])
    """
    x = ravel(a)
    sizes = (int(new_shape),) if np.ndim(new_shape) == 0 else tuple(int(s) for s in new_shape)
    if any(size < 0 for size in sizes):
        raise AttributeValueError(f"resize: sizes of {sizes} must not be negative")
    total = int(np.prod(sizes))
    if not x.size:
        return lift(layout.full(x.instruction.array_shape.with_dimensions(sizes), 0), False)
    copies = -(-total // x.size)
    return tile(x, copies)[:total].reshape(sizes)
