"""Changing the shape of an array: reshape, transpose, broadcast, and joining and splitting axes.

Where NumPy answers with a view the result is one here too: writes to it reach the array.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit.errors import AttributeValueError, DimensionError, ShapeError
from tracejit.numpy.building import axes_of, canonical_axis, integer
from tracejit.numpy.reducing import NO_VALUE, reduction_axes
from tracejit.ops import layout
from tracejit.trace.context import ask_order_if
from tracejit.trace.convert import broadcast_dimensions, operand
from tracejit.trace.memory_order import (
    given_layout,
    is_dense,
    is_vector,
    iteration_order,
    row_major,
)
from tracejit.trace.public import implements
from tracejit.trace.tracer import Tracer, lift
from tracejit.trace.views import (
    Broadcast,
    Permute,
    Reshape,
    reshaped_strides,
)


def as_array(value: Any) -> Tracer:
    """A traced array as it is, anything else as a new one."""
    if isinstance(value, Tracer):
        return value
    made = lift(operand(value).natural, False)
    if isinstance(value, np.ndarray):
        made.lay(given_layout(value))
    return made


def floating(x: Any) -> Tracer:
    """The array, integers as float64."""
    array = as_array(x)
    return array if array.element_type.is_inexact else array.astype(np.float64)


def sizes_of(shape: Any) -> tuple[int, ...]:
    """A shape given as one size or several, as a tuple."""
    given = (shape,) if np.ndim(shape) == 0 else shape
    return tuple(integer("shape", "a size", size) for size in given)


def reshaped(x: Tracer, dimensions: tuple[int, ...]) -> Tracer:
    """A view of ``x`` under other dimensions where NumPy gives one, else a copy."""
    if _without_ones(dimensions) == _without_ones(x.shape):
        return x.through(Reshape(dimensions), False)
    strides = x.strides_in_elements()
    if x.has_unknown_order or (
        strides is not None and reshaped_strides(x.shape, strides, dimensions) is not None
    ):
        return x.through(Reshape(dimensions, may_copy=True), False)
    return _copied(x, dimensions)


def _copied(x: Tracer, dimensions: tuple[int, ...]) -> Tracer:
    """A reshaped copy, row by row, where a view may be impossible."""
    made = lift(layout.reshape(x.instruction, dimensions), False)
    made.lay(row_major(len(dimensions)))
    note_copy(made, x)
    return made


def note_copy(made: Tracer, x: Tracer) -> None:
    """Says that a copy of ``x`` might be a view if arguments lay otherwise in memory.

    That is seen where one of the two is written to.
    """
    known = x.layout
    if known is None or not known.is_certain:
        before = x.version
        ask_order_if(lambda: made.version > 0 or x.version > before)


def _without_ones(dimensions: tuple[int, ...]) -> list[int]:
    return [size for size in dimensions if size != 1]


def _full_shape(x: Tracer, shape: Any) -> tuple[int, ...]:
    """``shape`` with its one -1, if there is one, worked out."""
    sizes = sizes_of(shape)
    unknown = [d for d, size in enumerate(sizes) if size < 0]
    if len(unknown) > 1 or any(sizes[d] != -1 for d in unknown):
        raise AttributeValueError(f"reshape: only one size of {sizes} may be unknown, written -1")
    known = math.prod(size for size in sizes if size >= 0)
    if unknown:
        missing = x.size // known if known else 0
        sizes = tuple(missing if size < 0 else size for size in sizes)
    if math.prod(sizes) != x.size:
        raise ShapeError(f"reshape: cannot reshape array of size {x.size} into shape {sizes}")
    return sizes


@implements(np.reshape)
def reshape(a: Any, /, shape: Any, order: str = "C", *, copy: bool | None = None) -> Any:
    """The same elements under another shape; one size may be -1.

    Order C, F, or A: F if the array lies column-major in memory. Raises `ShapeError` for
    ``copy=False`` when a copy is needed.

    >>> tnp.reshape([1, 2, 3, 4], (2, 2))
    array([[1, 2],
           [3, 4]])
    """
    x = as_array(a)
    sizes = _full_shape(x, shape)
    if copy:
        x = x.copy("K")
    if _is_column_major("reshape", x, order):
        made = reshaped(x.T, sizes[::-1]).T
    else:
        made = reshaped(x, sizes)
    if copy is False and made.root is not x.root:
        raise ShapeError("reshape: copy=False, but this shape needs a copy")
    return made


def _is_column_major(function: str, x: Tracer, order: str) -> bool:
    """Whether the first dimension of an order C, F or A counts up fastest."""
    if order not in ("C", "F", "A"):
        raise AttributeValueError(f"{function}: order must be 'C', 'F' or 'A', not {order!r}")
    if is_vector(x.shape):
        return False
    if order == "A":
        x.ask_order(function)
    return order == "F" or (order == "A" and not is_contiguous(x) and is_contiguous(x.T))


def is_contiguous(x: Tracer) -> bool:
    """Whether the elements lie one behind the other in memory, row by row."""
    strides = x.strides_in_elements()
    return is_vector(x.shape) if strides is None else is_dense(x.shape, strides)


@implements(np.ravel, layout=None)
def ravel(a: Any, order: str = "C") -> Any:
    """The array with one dimension: a view where it lies in memory in this order, else a copy.

    Order C, F, A as in `reshape`, or K: as the elements lie in memory.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.ravel([[1, 2], [3, 4]])
    array([1, 2, 3, 4])
    """
    x = as_array(a)
    if order == "K" and not is_vector(x.shape):
        strides = x.ask_order("ravel")
        x = x.through(Permute(iteration_order(x.shape, [(x.shape, strides)])), False)
    elif order != "K" and _is_column_major("ravel", x, order):
        x = x.T
    if is_contiguous(x) or x.has_unknown_order:
        return x.through(Reshape((x.size,), may_copy=True), False)
    return _copied(x, (x.size,))


@implements(np.transpose)
def transpose(a: Any, axes: Sequence[int] | None = None) -> Any:
    """The dimensions in another order, by default reversed.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.permute_dims(np.ones((2, 3)), (1, 0)).shape
    (3, 2)
    """
    x = as_array(a)
    if axes is None:
        axes = range(x.ndim - 1, -1, -1)
    order = axes_of("transpose", axes, x.ndim)
    if len(order) != x.ndim:
        raise DimensionError(f"transpose: axes {tuple(axes)} do not match array {x.shape}")
    return x.through(Permute(order), False)


permute_dims = transpose


@implements(np.matrix_transpose)
def matrix_transpose(x: Any, /) -> Any:
    """The last two dimensions exchanged.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.matrix_transpose([[1, 2], [3, 4]])
    array([[1, 3],
           [2, 4]])
    """
    array = as_array(x)
    if array.ndim < 2:
        raise DimensionError(f"matrix_transpose: array {array.shape} must have two dimensions")
    return swapaxes(array, -1, -2)


@implements(np.swapaxes)
def swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    """Two dimensions exchanged.

    Raises `ArgumentError` for what is no array of numbers, `DimensionError` for an axis that
    the array lacks and `ConcretizationError` for an option that is unknown while tracing.

    >>> tnp.swapaxes(np.ones((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    x = as_array(a)
    first, second = (canonical_axis("swapaxes", axis, x.ndim) for axis in (axis1, axis2))
    order = list(range(x.ndim))
    order[first], order[second] = second, first
    return x.through(Permute(tuple(order)), False)


@implements(np.moveaxis)
def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    """Dimensions moved to other places, the rest in their order.

    Raises `ArgumentError` for what is no array of numbers, `DimensionError` for an axis that
    the array lacks and `ConcretizationError` for an option that is unknown while tracing.

    >>> tnp.moveaxis(np.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    x = as_array(a)
    origins = axes_of("moveaxis", source, x.ndim)
    targets = axes_of("moveaxis", destination, x.ndim)
    if len(origins) != len(targets):
        raise AttributeValueError("moveaxis: source and destination must be equally many")
    order = [d for d in range(x.ndim) if d not in origins]
    for target, origin in sorted(zip(targets, origins, strict=True)):
        order.insert(target, origin)
    return x.through(Permute(tuple(order)), False)


@implements(np.rollaxis)
def rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    """One dimension moved until it stands before ``start``.

    Raises `ArgumentError` for what is no array of numbers, `DimensionError` for an axis that
    the array lacks and `ConcretizationError` for an option that is unknown while tracing.

    >>> tnp.rollaxis(np.ones((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    x = as_array(a)
    origin = canonical_axis("rollaxis", axis, x.ndim)
    target = start + x.ndim if start < 0 else start
    if not 0 <= target <= x.ndim:
        raise DimensionError(f"rollaxis: start {start} is out of bounds for {x.ndim} dimensions")
    return moveaxis(x, origin, target - (origin < target))


@implements(np.squeeze)
def squeeze(a: Any, axis: Any = None) -> Any:
    """Without the dimensions of size 1, or without those in ``axis``.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.squeeze([[1, 2]])
    array([1, 2])
    """
    x = as_array(a)
    if axis is None:
        dropped = tuple(d for d, size in enumerate(x.shape) if size == 1)
    else:
        dropped = reduction_axes("squeeze", axis, x.ndim)
    if any(x.shape[d] != 1 for d in dropped):
        raise ShapeError(f"squeeze: array {x.shape} has a size other than 1 in axis {axis}")
    kept = tuple(size for d, size in enumerate(x.shape) if d not in dropped)
    return x.through(Reshape(kept), x.is_scalar)


@implements(np.expand_dims)
def expand_dims(a: Any, axis: Any) -> Any:
    """With a new dimension of size 1 at each place in ``axis`` of the result.

    Raises `ArgumentError` for what is no array of numbers, `DimensionError` for an axis that
    the array lacks and `ConcretizationError` for an option that is unknown while tracing.

    >>> tnp.expand_dims([1, 2], 1)
    array([[1],
           [2]])
    """
    x = as_array(a)
    count = 1 if np.ndim(axis) == 0 else len(axis)
    new = axes_of("expand_dims", axis, x.ndim + count)
    sizes = iter(x.shape)
    shape = tuple(1 if d in new else next(sizes) for d in range(x.ndim + count))
    return x.through(Reshape(shape), False)


@implements(np.broadcast_to)
def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Any:
    """Stretched to ``shape``; what comes out cannot be written to.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tnp.broadcast_to([1, 2], (2, 2))
    array([[1, 2],
           [1, 2]])
    """
    x = as_array(array)
    sizes = sizes_of(shape)
    if broadcast_dimensions("broadcast_to", [x.shape, sizes]) != sizes:
        raise ShapeError(f"broadcast_to: array {x.shape} does not stretch to {sizes}")
    return x.through(Broadcast(sizes), False)


@implements(np.broadcast_arrays)
def broadcast_arrays(*args: Any, subok: bool = False) -> Any:
    """All arrays stretched to one shape.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tnp.broadcast_arrays([1, 2], [[3], [4]])
    (array([[1, 2],
           [1, 2]]), array([[3, 3],
           [4, 4]]))
    """
    arrays = [as_array(a) for a in args]
    sizes = broadcast_dimensions("broadcast_arrays", [x.shape for x in arrays])
    return tuple(broadcast_to(x, sizes) for x in arrays)


def _at_least(rank: int, arrays: tuple[Any, ...]) -> Any:
    made = []
    for a in arrays:
        x = as_array(a)
        if x.ndim >= rank:
            made.append(x)
        elif rank == 3:
            shape = {0: (1, 1, 1), 1: (1, *x.shape, 1), 2: (*x.shape, 1)}[x.ndim]
            made.append(reshape(x, shape))
        else:
            made.append(reshape(x, (1,) * (rank - x.ndim) + x.shape))
    return made[0] if len(made) == 1 else tuple(made)


@implements(np.atleast_1d)
def atleast_1d(*arys: Any) -> Any:
    """With at least one dimension.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.atleast_1d(3.0)
    array([3.])
    """
    return _at_least(1, arys)


@implements(np.atleast_2d)
def atleast_2d(*arys: Any) -> Any:
    """With at least two dimensions, new ones in front.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.atleast_2d([1, 2])
    array([[1, 2]])
    """
    return _at_least(2, arys)


@implements(np.atleast_3d)
def atleast_3d(*arys: Any) -> Any:
    """With at least three dimensions.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.atleast_3d([1, 2]).shape
    (1, 2, 1)
    """
    return _at_least(3, arys)


@implements(np.shape)
def shape(a: Any) -> tuple[int, ...]:
    """The sizes of the dimensions.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.shape([[1, 2]])
    (1, 2)
    """
    return operand(a).dimensions


@implements(np.ndim)
def ndim(a: Any) -> int:
    """How many dimensions there are.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.ndim([[1, 2]])
    2
    """
    return len(operand(a).dimensions)


@implements(np.size)
def size(a: Any, axis: Any = None) -> int:
    """How many elements there are, in all or along ``axis``.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.size([[1, 2]])
    2
    """
    dimensions = operand(a).dimensions
    if axis in NO_VALUE:
        return math.prod(dimensions)
    return math.prod(dimensions[d] for d in axes_of("size", axis, len(dimensions)))
