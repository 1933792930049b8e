"""Operations that move elements, spelled as in `jax.lax`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit.errors import AttributeValueError, ShapeError
from tracejit.lax.elementwise import operands
from tracejit.ops import elementwise_unary, indexing, layout
from tracejit.ops.computations import scalar_computation
from tracejit.ops.constants import constant
from tracejit.ops.constants import iota as iota_op
from tracejit.ops.indexing import GatherDimensionNumbers, ScatterDimensionNumbers
from tracejit.shapes import Shape, canonical_dimension, element_type_of
from tracejit.trace.convert import operand
from tracejit.trace.examples import documented
from tracejit.trace.index_basic import INDEX_TYPE, normalised
from tracejit.trace.public import public
from tracejit.trace.tracer import lift


@public
def broadcast(operand_: Any, sizes: Sequence[int]) -> Any:
    """Repeated along new leading dimensions.

    Raises `ArgumentError` for what is no array of numbers and `AttributeValueError` for an
    option or a size out of range.

    >>> tj.lax.broadcast(np.array([1, 2]), (2,))
    array([[1, 2],
           [1, 2]])
    """
    return lift(layout.broadcast(operand(operand_).natural, sizes))


@public
def broadcast_in_dim(
    operand_: Any, shape: Sequence[int], broadcast_dimensions: Sequence[int]
) -> Any:
    """Stretched to ``shape``; dimension i becomes ``broadcast_dimensions[i]``.

    Raises `ArgumentError` for what is no array of numbers, `ShapeError` for shapes that do not
    fit and `AttributeValueError` for an option or a size out of range.

    >>> tj.lax.broadcast_in_dim(np.array([1, 2]), (2, 2), (0,))
    array([[1, 1],
           [2, 2]])
    """
    return lift(
        layout.broadcast_in_dim(operand(operand_).natural, shape, broadcast_dimensions), False
    )


@public
def reshape(
    operand_: Any, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None
) -> Any:
    """The elements, the dimensions put in order first, under other sizes.

    Raises `ArgumentError` for what is no array of numbers, `ShapeError` for shapes that do not
    fit and `AttributeValueError` for an option or a size out of range.

    >>> tj.lax.reshape(np.arange(4), (2, 2))
    array([[0, 1],
           [2, 3]])
    """
    value = operand(operand_).natural
    if dimensions is not None:
        value = layout.transpose(value, dimensions)
    return lift(layout.reshape(value, new_sizes))


@public
def collapse(operand_: Any, start_dimension: int, stop_dimension: int) -> Any:
    """Dimensions from start up to, not with, stop made one.

    Raises `ArgumentError` for what is no array of numbers, `AttributeValueError` for an option
    or a size out of range and `ConcretizationError` for an option that is unknown while
    tracing.

    >>> tj.lax.collapse(np.ones((2, 3, 4)), 0, 2).shape
    (6, 4)
    """
    value = operand(operand_).natural
    return lift(layout.collapse(value, range(start_dimension, stop_dimension)))


@public
def expand_dims(array: Any, dimensions: Sequence[int]) -> Any:
    """New dimensions of size 1 at these places of the result.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tj.lax.expand_dims(np.ones(3), (0,)).shape
    (1, 3)
    """
    value = operand(array).natural
    rank = value.array_shape.rank + len(dimensions)
    new = {canonical_dimension(d, rank, "expand_dims") for d in dimensions}
    sizes = iter(value.array_shape.dimensions)
    return lift(layout.reshape(value, [1 if d in new else next(sizes) for d in range(rank)]))


@public
def squeeze(array: Any, dimensions: Sequence[int]) -> Any:
    """Without these dimensions, all of size 1.

    Raises `ArgumentError` for what is no array of numbers, `ShapeError` for shapes that do not
    fit and `DimensionError` for an axis that the array lacks.

    >>> tj.lax.squeeze(np.ones((1, 3)), (0,)).shape
    (3,)
    """
    value = operand(array).natural
    shape = value.array_shape
    dropped = {canonical_dimension(d, shape.rank, "squeeze") for d in dimensions}
    kept = [size for d, size in enumerate(shape.dimensions) if d not in dropped]
    return lift(layout.reshape(value, kept))


@public
def transpose(operand_: Any, permutation: Sequence[int]) -> Any:
    """The dimensions in another order.

    Raises `ArgumentError` for what is no array of numbers and `AttributeValueError` for an
    option or a size out of range.

    >>> tj.lax.transpose(np.arange(4).reshape(2, 2), (1, 0))
    array([[0, 2],
           [1, 3]])
    """
    return lift(layout.transpose(operand(operand_).natural, tuple(permutation)))


@public
def rev(operand_: Any, dimensions: Sequence[int]) -> Any:
    """The elements along ``dimensions`` in reverse order.

    Raises `ArgumentError` for what is no array of numbers and `AttributeValueError` for an
    option or a size out of range.

    >>> tj.lax.rev(np.array([1, 2, 3]), (0,))
    array([3, 2, 1])
    """
    return lift(layout.rev(operand(operand_).natural, tuple(dimensions)))


@public
def pad(operand_: Any, padding_value: Any, padding_config: Sequence[tuple[int, int, int]]) -> Any:
    """A number added before, after and between the elements, (low, high, interior) each.

    Raises `ArgumentError` for what is no array of numbers, `ShapeError` for shapes that do not
    fit and `AttributeValueError` for an option or a size out of range.

    >>> tj.lax.pad(np.array([1.0, 2.0]), 0.0, [(1, 0, 1)])
    array([0., 1., 0., 2.])
    """
    value, padding = operands(operand_, padding_value)
    return lift(layout.pad(value, padding, padding_config))


@public
def concatenate(operands_: Sequence[Any], dimension: int) -> Any:
    """The arrays one after the other along ``dimension``.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tj.lax.concatenate([np.array([1, 2]), np.array([3])], 0)
    array([1, 2, 3])
    """
    return lift(layout.concatenate([operand(o).natural for o in operands_], dimension))


@public
def slice(
    operand_: Any,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> Any:
    """Every ``strides[i]``-th element from start up to, not with, limit.

    Raises `ArgumentError` for what is no array of numbers and `AttributeValueError` for an
    option or a size out of range.

    >>> tj.lax.slice(np.arange(6), (1,), (5,), (2,))
    array([1, 3])
    """
    value = operand(operand_).natural
    return lift(layout.slice_(value, start_indices, limit_indices, strides))


@public
def slice_in_dim(
    operand_: Any,
    start_index: int | None,
    limit_index: int | None,
    stride: int = 1,
    axis: int = 0,
) -> Any:
    """`slice` along one axis; negative limits count from the back.

    Raises `ArgumentError` for what is no array of numbers, `AttributeValueError` for an option
    or a size out of range and `ConcretizationError` for an option that is unknown while
    tracing.

    >>> tj.lax.slice_in_dim(np.arange(6), 1, 5, 2)
    array([1, 3])
    """
    value = operand(operand_).natural
    size = value.array_shape.dimensions[axis]
    start = 0 if start_index is None else start_index + size * (start_index < 0)
    limit = size if limit_index is None else limit_index + size * (limit_index < 0)
    return lift(layout.slice_in_dim(value, start, limit, stride, axis))


def _starts(value: Any, start_indices: Any) -> list[Any]:
    """One s64 scalar for each dimension, negative ones counted from the back."""
    sizes = value.array_shape.dimensions
    if not isinstance(start_indices, list | tuple):
        start_indices = [start_indices[i] for i in range(len(sizes))]
    return [
        normalised(operand(index).natural, size)
        for index, size in zip(start_indices, sizes, strict=True)
    ]


@public
def dynamic_slice(operand_: Any, start_indices: Any, slice_sizes: Sequence[int]) -> Any:
    """A part of known size from a place that may be unknown, clamped to the array.

    Raises `ArgumentError` for what is no array of numbers and `AttributeValueError` for an
    option or a size out of range.

    >>> tj.lax.dynamic_slice(np.arange(5), (2,), (2,))
    array([2, 3])
    """
    value = operand(operand_).natural
    return lift(layout.dynamic_slice(value, _starts(value, start_indices), slice_sizes))


@public
def dynamic_update_slice(operand_: Any, update: Any, start_indices: Any) -> Any:
    """The array with ``update`` written at a place that may be unknown, clamped to the array.

    Raises `ArgumentError` for what is no array of numbers and `ElementTypeError` for an element
    type that it does not take.

    >>> tj.lax.dynamic_update_slice(np.arange(4), np.array([8, 9]), (1,))
    array([0, 8, 9, 3])
    """
    value, part = operands(operand_, update)
    return lift(layout.dynamic_update_slice(value, part, _starts(value, start_indices)))


def _starts_in_dim(value: Any, index: Any, axis: int) -> list[Any]:
    starts = [constant(0, INDEX_TYPE)] * value.array_shape.rank
    starts[axis] = normalised(operand(index).natural, value.array_shape.dimensions[axis])
    return starts


@public
def dynamic_slice_in_dim(operand_: Any, start_index: Any, slice_size: int, axis: int = 0) -> Any:
    """`dynamic_slice` along one axis.

    Raises `ArgumentError` for what is no array of numbers, `DimensionError` for an axis that
    the array lacks, `AttributeValueError` for an option or a size out of range and
    `ConcretizationError` for an option that is unknown while tracing.

    >>> tj.lax.dynamic_slice_in_dim(np.arange(5), 2, 2)
    array([2, 3])
    """
    value = operand(operand_).natural
    sizes = list(value.array_shape.dimensions)
    axis = canonical_dimension(axis, len(sizes), "dynamic_slice_in_dim")
    sizes[axis] = slice_size
    return lift(layout.dynamic_slice(value, _starts_in_dim(value, start_index, axis), sizes))


@public
def dynamic_update_slice_in_dim(operand_: Any, update: Any, start_index: Any, axis: int) -> Any:
    """`dynamic_update_slice` along one axis.

    Raises `ArgumentError` for what is no array of numbers, `ElementTypeError` for an element
    type that it does not take, `DimensionError` for an axis that the array lacks and
    `ConcretizationError` for an option that is unknown while tracing.

    >>> tj.lax.dynamic_update_slice_in_dim(np.arange(4), np.array([8, 9]), 1, 0)
    array([0, 8, 9, 3])
    """
    value, part = operands(operand_, update)
    axis = canonical_dimension(axis, value.array_shape.rank, "dynamic_update_slice_in_dim")
    starts = _starts_in_dim(value, start_index, axis)
    return lift(layout.dynamic_update_slice(value, part, starts))


@public
def dynamic_index_in_dim(operand_: Any, index: Any, axis: int = 0, keepdims: bool = True) -> Any:
    """One slice along ``axis``, whose place may be unknown.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tj.lax.dynamic_index_in_dim(np.array([10, 20, 30]), 1, keepdims=False)
    np.int64(20)
    """
    value = operand(operand_).natural
    sizes = list(value.array_shape.dimensions)
    axis = canonical_dimension(axis, len(sizes), "dynamic_index_in_dim")
    sizes[axis] = 1
    made = layout.dynamic_slice(value, _starts_in_dim(value, index, axis), sizes)
    return lift(made if keepdims else layout.reshape(made, sizes[:axis] + sizes[axis + 1 :]))


@public
def index_in_dim(operand_: Any, index: int, axis: int = 0, keepdims: bool = True) -> Any:
    """One slice along ``axis`` at a known place; negative places count from the back.

    Raises `AttributeValueError` for a place outside of the array.

    >>> tj.lax.index_in_dim(np.array([10, 20, 30]), -1, keepdims=False)
    np.int64(30)
    """
    value = operand(operand_).natural
    sizes = list(value.array_shape.dimensions)
    axis = canonical_dimension(axis, len(sizes), "index_in_dim")
    size = sizes[axis]
    if not -size <= index < size:
        raise AttributeValueError(
            f"index_in_dim: index {index} is out of bounds for axis {axis} with size {size}"
        )
    start = index % size
    made = layout.slice_in_dim(value, start, start + 1, 1, axis)
    return lift(made if keepdims else layout.reshape(made, sizes[:axis] + sizes[axis + 1 :]))


@public
def split(operand_: Any, sizes: Sequence[int], axis: int = 0) -> list[Any]:
    """Parts of these ``sizes`` along ``axis``, one after the other.

    Raises `ShapeError` unless the sizes add up to that of the axis.

    >>> tj.lax.split(np.arange(4), (1, 3))
    [array([0]), array([1, 2, 3])]
    """
    value = operand(operand_).natural
    axis = canonical_dimension(axis, value.array_shape.rank, "split")
    size = value.array_shape.dimensions[axis]
    if sum(sizes) != size or min(sizes, default=0) < 0:
        raise ShapeError(
            f"split: sizes {tuple(sizes)} must add up to {size}, the size of axis {axis} of "
            f"{value.array_shape}"
        )
    ends = np.cumsum(sizes).tolist()
    starts = [0, *ends[:-1]]
    return [
        lift(layout.slice_in_dim(value, *pair, 1, axis)) for pair in zip(starts, ends, strict=True)
    ]


@public
def tile(operand_: Any, reps: Sequence[int]) -> Any:
    """The array repeated ``reps[i]`` times along dimension i.

    Raises `ShapeError` unless there is one number for each dimension.

    >>> tj.lax.tile(np.array([1, 2]), (2,))
    array([1, 2, 1, 2])
    """
    value = operand(operand_).natural
    sizes = value.array_shape.dimensions
    if len(reps) != len(sizes):
        raise ShapeError(f"tile: reps {tuple(reps)} must have a number for each of {sizes}")
    wide = [n for pair in zip(reps, sizes, strict=True) for n in pair]
    made = layout.broadcast_in_dim(value, wide, range(1, 2 * len(sizes), 2))
    flat = [n * size for n, size in zip(reps, sizes, strict=True)]
    return lift(layout.reshape(made, flat), False)


@public
def stack(xs: Sequence[Any], axis: int = 0) -> Any:
    """Arrays of one shape side by side along a new ``axis``. Raises `ShapeError` for none.

    >>> tj.lax.stack([np.array([1, 2]), np.array([3, 4])])
    array([[1, 2],
           [3, 4]])
    """
    if not xs:
        raise ShapeError("stack: needs at least one array")
    values = [operand(x).natural for x in xs]
    sizes = list(values[0].array_shape.dimensions)
    axis = canonical_dimension(axis, len(sizes) + 1, "stack")
    new = [*sizes[:axis], 1, *sizes[axis:]]
    return lift(layout.concatenate([layout.reshape(value, new) for value in values], axis))


@public
def unstack(x: Any, axis: int = 0) -> tuple[Any, ...]:
    """The slices of an array along ``axis``, without that dimension.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tj.lax.unstack(np.array([[1, 2], [3, 4]]))
    (array([1, 2]), array([3, 4]))
    """
    value = operand(x).natural
    axis = canonical_dimension(axis, value.array_shape.rank, "unstack")
    return tuple(
        index_in_dim(lift(value, False), n, axis, False)
        for n in range(value.array_shape.dimensions[axis])
    )


@public
def dynamic_update_index_in_dim(operand_: Any, update: Any, index: Any, axis: int) -> Any:
    """The array with one slice along ``axis``, whose place may be unknown, written.

    Raises `ArgumentError` for what is no array of numbers, `ElementTypeError` for an element
    type that it does not take, `ShapeError` for shapes that do not fit, `DimensionError` for an
    axis that the array lacks and `ConcretizationError` for an option that is unknown while
    tracing.

    >>> tj.lax.dynamic_update_index_in_dim(np.arange(3), 9, 1, 0)
    array([0, 9, 2])
    """
    value, part = operands(operand_, update)
    sizes = list(value.array_shape.dimensions)
    axis = canonical_dimension(axis, len(sizes), "dynamic_update_index_in_dim")
    sizes[axis] = 1
    starts = _starts_in_dim(value, index, axis)
    return lift(layout.dynamic_update_slice(value, layout.reshape(part, sizes), starts))


@public
def full(shape: Sequence[int], fill_value: Any, dtype: Any = None) -> Any:
    """Filled with one value.

    Raises `ArgumentError` for what is no array of numbers and `AttributeValueError` for an
    option or a size out of range.

    >>> tj.lax.full((2,), 7.0)
    array([7., 7.])
    """
    value = operand(fill_value)
    made = value.natural if dtype is None else value.to(element_type_of(dtype))
    return lift(layout.broadcast(made, tuple(shape)), False)


@public
def full_like(
    x: Any, fill_value: Any, dtype: Any = None, shape: Sequence[int] | None = None
) -> Any:
    """Filled with one value, of the shape and dtype of ``x`` unless others are given.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tj.lax.full_like(np.zeros(2), 7.0)
    array([7., 7.])
    """
    like = operand(x)
    sizes = like.dimensions if shape is None else tuple(shape)
    made = operand(fill_value).to(like.element_type if dtype is None else element_type_of(dtype))
    return lift(layout.broadcast(made, sizes), False)


@public
def empty(shape: Sequence[int], dtype: Any) -> Any:
    """An array whose elements nobody has given a value: zeros here.

    Raises `ArgumentError` for arguments that it does not take and `AttributeValueError` for an
    option or a size out of range.

    >>> tj.lax.empty((2,), np.float32).shape
    (2,)
    """
    return full(shape, 0, dtype)


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape that arrays of these shapes are stretched to together.

    Raises `ShapeError` for shapes that do not fit.

    >>> tj.lax.broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    try:
        return np.broadcast_shapes(*map(tuple, shapes))
    except ValueError:
        raise ShapeError(f"broadcast_shapes: {shapes} cannot be broadcast together") from None


@public
def broadcast_to_rank(x: Any, rank: int) -> Any:
    """The array with as many dimensions of size 1 in front as make its rank ``rank``.

    Raises `ShapeError` for an array of a higher rank.

    >>> tj.lax.broadcast_to_rank(np.ones(3), 3).shape
    (1, 1, 3)
    """
    value = operand(x).natural
    missing = rank - value.array_shape.rank
    if missing < 0:
        raise ShapeError(f"broadcast_to_rank: {value.array_shape} has a rank above {rank}")
    return lift(layout.reshape(value, [1] * missing + list(value.array_shape.dimensions)))


@public
def iota(dtype: Any, size: int) -> Any:
    """Numbers counting up from 0.

    Raises `ArgumentError` for arguments that it does not take and `ShapeError` for shapes that
    do not fit.

    >>> tj.lax.iota(np.int32, 3)
    array([0, 1, 2], dtype=int32)
    """
    return lift(iota_op(Shape(element_type_of(dtype), (size,))))


@public
def broadcasted_iota(dtype: Any, shape: Sequence[int], dimension: int) -> Any:
    """Numbers counting up from 0 along one dimension.

    Raises `ArgumentError` for arguments that it does not take, `ShapeError` for shapes that do
    not fit, `DimensionError` for an axis that the array lacks and `ConcretizationError` for an
    option that is unknown while tracing.

    >>> tj.lax.broadcasted_iota(np.int32, (2, 2), 1)
    array([[0, 1],
           [0, 1]], dtype=int32)
    """
    return lift(iota_op(Shape(element_type_of(dtype), tuple(shape)), dimension))


@public
def gather(
    operand_: Any,
    start_indices: Any,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    indices_are_sorted: bool = False,
) -> Any:
    """Slices from places that ``start_indices`` names, each clamped to the array.

    Raises `ArgumentError` for what is no array of numbers, `ElementTypeError` for an element
    type that it does not take and `AttributeValueError` for an option or a size out of range.

    >>> tj.lax.gather(
    ...     np.array([10, 20, 30]),
    ...     np.array([[2], [0]]),
    ...     tj.lax.GatherDimensionNumbers((), (0,), (0,), 1),
    ...     (1,),
    ... )
    array([30, 10])
    """
    value, indices = operand(operand_).natural, operand(start_indices).natural
    return lift(indexing.gather(value, indices, dimension_numbers, slice_sizes, indices_are_sorted))


def _scattered(
    name: str,
    operand_: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    indices_are_sorted: bool,
    unique_indices: bool,
) -> Any:
    value, update = operands(operand_, updates)
    element_type = value.array_shape.element_type
    if name == "replace":
        computation = indexing.replace_computation(element_type)
    else:
        computation = scalar_computation(name, element_type)
    indices = operand(scatter_indices).natural
    return lift(
        indexing.scatter(
            value,
            indices,
            update,
            computation,
            dimension_numbers,
            indices_are_sorted,
            unique_indices,
        )
    )


def _scatter(title: str, name: str, doc: str) -> Any:
    def record(
        operand_: Any,
        scatter_indices: Any,
        updates: Any,
        dimension_numbers: ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
    ) -> Any:
        return _scattered(
            name,
            operand_,
            scatter_indices,
            updates,
            dimension_numbers,
            indices_are_sorted,
            unique_indices,
        )

    record.__name__ = record.__qualname__ = title
    about = f"{doc} at places that ``scatter_indices`` names; what is outside is dropped."
    record.__doc__ = documented(about, f"lax.{title}")
    return public(record)


scatter = _scatter("scatter", "replace", "``updates`` written")
scatter_add = _scatter("scatter_add", "add", "``updates`` added")
scatter_mul = _scatter("scatter_mul", "mul", "``updates`` multiplied in")
scatter_max = _scatter("scatter_max", "max", "The greater of element and update")
scatter_min = _scatter("scatter_min", "min", "The lesser of element and update")


@public
def scatter_sub(
    operand_: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
) -> Any:
    """``updates`` subtracted at places that ``scatter_indices`` names; others are dropped.

    Raises `ArgumentError` for what is no array of numbers, `ElementTypeError` for an element
    type that it does not take, `ShapeError` for shapes that do not fit and
    `AttributeValueError` for an option or a size out of range.

    >>> tj.lax.scatter_sub(
    ...     np.ones(3),
    ...     np.array([[1]]),
    ...     np.array([9.0]),
    ...     tj.lax.ScatterDimensionNumbers((), (0,), (0,), 1),
    ... )
    array([ 1., -8.,  1.])
    """
    value, update = operands(operand_, updates)
    return scatter_add(
        lift(value, False),
        scatter_indices,
        lift(elementwise_unary.neg(update)),
        dimension_numbers,
        indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices,
    )
