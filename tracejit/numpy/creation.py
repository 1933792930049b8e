"""Making arrays: from values, filled, and by grids."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracejit.errors import ArgumentError, AttributeValueError, ShapeError
from tracejit.numpy.joining import stack
from tracejit.numpy.manipulation import (
    as_array,
    broadcast_to,
    is_contiguous,
    note_copy,
    sizes_of,
)
from tracejit.numpy.storing import finish
from tracejit.ops import layout
from tracejit.shapes import Shape, element_type_of
from tracejit.trace.convert import (
    as_instruction,
    assigned,
    operand,
    stretch,
)
from tracejit.trace.memory_order import (
    Layout,
    column_major,
    given_layout,
    is_vector,
    row_major,
)
from tracejit.trace.promotion import result_dtype
from tracejit.trace.public import implements
from tracejit.trace.tracer import Tracer, lift
from tracejit.trace.views import Reshape


@implements(np.array, creates=True, layout=None)
def array(
    object: Any,
    dtype: Any = None,
    *,
    copy: bool | None = True,
    order: str = "K",
    subok: bool = False,
    ndmin: int = 0,
    like: Any = None,
) -> Any:
    """A new array from values, which may be traced: ``np.array([t, 2 * t])``.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.array([[1, 2], [3, 4]], dtype=np.float32)
    array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    if copy is not True and isinstance(object, Tracer) and not object.is_scalar:
        if object.ndim >= ndmin and (dtype is None or object.dtype == np.dtype(dtype)):
            return asarray(object, order=order)
    made = as_instruction(object) if dtype is None else assigned(object, element_type_of(dtype))
    dimensions = made.array_shape.dimensions
    missing = ndmin - len(dimensions)
    if missing > 0:
        made = layout.reshape(made, (1,) * missing + dimensions)
    array = lift(made, False)
    array.lay(_copied_layout(object, order, array.ndim))
    return array


def _copied_layout(given: Any, order: str, rank: int) -> Layout | None:
    """How a copy in an order lies in memory, after dimensions of size 1 were put in front."""
    if isinstance(given, np.ndarray) and order in ("K", "A"):
        known = given_layout(given)
    elif isinstance(given, Tracer) or order in ("C", "F"):
        if order in ("C", "F"):
            return (row_major if order == "C" else column_major)(rank)
        known = given.copied_layout(order)
    else:
        return None
    if known is None or known.order is None:
        return known
    new = rank - len(known.order)
    return Layout((*range(new), *(d + new for d in known.order)), known.is_certain)


def require_cpu(function: str, device: Any) -> None:
    """Raises `AttributeValueError` for a device other than the CPU."""
    if device not in (None, "cpu"):
        raise AttributeValueError(f"{function}: device must be 'cpu', not {device!r}")


@implements(np.asarray, np.asanyarray, creates=True, layout=None)
def asarray(
    a: Any,
    dtype: Any = None,
    order: str | None = None,
    *,
    device: Any = None,
    copy: bool | None = None,
    like: Any = None,
) -> Any:
    """The array as it is if it is one of this dtype and lies in this order, else a new one.

    Raises `ArgumentError` for ``copy=False`` when a copy is needed.

    >>> tnp.asanyarray([1, 2])
    array([1, 2])
    """
    require_cpu("asarray", device)
    if copy:
        return array(a, dtype, order=order or "K")
    if isinstance(a, Tracer) and not a.is_scalar:
        if dtype is None or a.element_type is element_type_of(dtype):
            if order not in ("C", "F"):
                return a
            return _in_order(a, order)
    if copy is False:
        raise ArgumentError("asarray: copy=False, but this value cannot be an array without one")
    return array(a, dtype, order=order or "K")


asanyarray = asarray


@implements(np.from_dlpack, creates=True)
def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Any:
    """A traced array as it is; the elements of an array of another library that has DLPack.

    ``x`` lies in the CPU's memory; the result has its shape and dtype. Raises
    `AttributeValueError` for another ``device``, `ArgumentError` for what has no DLPack, and for
    ``copy=False`` where elements must be copied.

    >>> tnp.from_dlpack(np.arange(3.0))
    array([0., 1., 2.])
    """
    if not isinstance(x, Tracer) and not hasattr(x, "__dlpack__"):
        raise ArgumentError(f"from_dlpack: {type(x).__name__} has no __dlpack__")
    return asarray(x, device=device, copy=copy)


def _in_order(x: Tracer, order: str) -> Tracer:
    """The array itself, or a view of all of it, where it lies in memory in an order; else a copy.

    Where that depends on how arguments lie, a write to one of the two says that it was asked for.
    """
    turned = x if order == "C" else x.T
    known = x.layout
    if is_contiguous(turned):
        may_copy = known is not None and known.has_gaps
        if not may_copy and (is_vector(x.shape) or (known is not None and known.is_certain)):
            return x
        view = turned.through(Reshape(turned.shape, may_copy=True), False)
        return view if order == "C" else view.T
    if turned.has_unknown_order:
        view = turned.through(Reshape(turned.shape, may_copy=True), False)
        view.lay(row_major(x.ndim))
        return view if order == "C" else view.T
    made = x.copy(order)
    note_copy(made, x)
    return made


@implements(np.ascontiguousarray, creates=True, layout=None)
def ascontiguousarray(a: Any, dtype: Any = None, *, like: Any = None) -> Any:
    """The array as it is if it lies in memory row by row, else a new one; of rank 1 at least.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.ascontiguousarray([1, 2])
    array([1, 2])
    """
    x = asarray(a, dtype, "C")
    return x if x.ndim else x.reshape(1)


@implements(np.asfortranarray, creates=True, layout=None)
def asfortranarray(a: Any, dtype: Any = None, *, like: Any = None) -> Any:
    """The array as it is if it lies in memory column by column, else a new one.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.asfortranarray([[1, 2], [3, 4]])
    array([[1, 2],
           [3, 4]])
    """
    x = asarray(a, dtype, "F")
    return x if x.ndim else x.reshape(1)


@implements(np.copy, creates=True, layout=None)
def copy(a: Any, order: str = "K", subok: bool = False) -> Any:
    """A new array with the same elements.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.copy([1, 2])
    array([1, 2])
    """
    return array(a, order=order)


@implements(np.astype, layout=None)
def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    """The elements as another dtype.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.astype(np.array([1.7, -1.7]), np.int32)
    array([ 1, -1], dtype=int32)
    """
    require_cpu("astype", device)
    return as_array(x).astype(dtype, copy=copy)


def filled(shape: Any, value: complex, dtype: Any, order: str = "C") -> Tracer:
    """An array of ``shape`` with one known value in every element."""
    element_type = element_type_of(np.float64 if dtype is None else dtype)
    made = lift(layout.full(Shape(element_type, sizes_of(shape)), value), False)
    made.lay((column_major if order == "F" else row_major)(made.ndim))
    return made


@implements(np.zeros, creates=True, layout=None)
def zeros(
    shape: Any, dtype: Any = None, order: str = "C", *, device: Any = None, like: Any = None
) -> Any:
    """Filled with 0; float64 by default.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tnp.zeros((2, 2))
    array([[0., 0.],
           [0., 0.]])
    """
    require_cpu("zeros", device)
    return filled(shape, 0, dtype, order)


@implements(np.ones, creates=True, layout=None)
def ones(
    shape: Any, dtype: Any = None, order: str = "C", *, device: Any = None, like: Any = None
) -> Any:
    """Filled with 1; float64 by default.

    Raises `ArgumentError` for arguments that it does not take and `ShapeError` for shapes that
    do not fit.

    >>> tnp.ones((2, 2), dtype=np.float32)
    array([[1., 1.],
           [1., 1.]], dtype=float32)
    """
    require_cpu("ones", device)
    return filled(shape, 1, dtype, order)


@implements(np.empty, creates=True, layout=None)
def empty(
    shape: Any, dtype: Any = None, order: str = "C", *, device: Any = None, like: Any = None
) -> Any:
    """Filled with 0: a graph has no memory without a value.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tnp.empty((2, 3)).shape
    (2, 3)
    """
    require_cpu("empty", device)
    return filled(shape, 0, dtype, order)


@implements(np.full, creates=True, layout=None)
def full(
    shape: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "C",
    *,
    device: Any = None,
    like: Any = None,
) -> Any:
    """Filled with a value, which may be traced; of its dtype by default.

    Raises `ArgumentError` for what is no array of numbers and `AttributeValueError` for an
    option or a size out of range.

    >>> tnp.full((2, 2), 7)
    array([[7, 7],
           [7, 7]])
    """
    require_cpu("full", device)
    value = operand(fill_value)
    made = value.natural if dtype is None else value.to(element_type_of(dtype))
    array = lift(stretch("full", made, sizes_of(shape)), False)
    array.lay((column_major if order == "F" else row_major)(array.ndim))
    return array


def _like(a: Any, dtype: Any, shape: Any) -> tuple[tuple[int, ...], Any]:
    """The shape and the dtype that are given, or those of ``a``."""
    model = operand(a)
    sizes = model.dimensions if shape is None else sizes_of(shape)
    return sizes, model.element_type.dtype if dtype is None else dtype


def _filled_like(a: Any, value: complex, dtype: Any, order: str, shape: Any) -> Tracer:
    sizes, wanted = _like(a, dtype, shape)
    return _in_order_of(a, order, filled(sizes, value, wanted))


def _in_order_of(model: Any, order: str, made: Tracer) -> Tracer:
    """A new array, laid out in an order K or A as an array of its rank is; row by row else."""
    rank = made.ndim
    if order in ("C", "F"):
        made.lay((column_major if order == "F" else row_major)(rank))
    elif isinstance(model, Tracer | np.ndarray) and model.ndim == rank:
        given = as_array(model)
        made.lay(given.copied_layout(order) if given.is_permuted else row_major(rank))
    return made


@implements(np.zeros_like, creates=True, layout=None)
def zeros_like(
    a: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Any:
    """Filled with 0, of the array's shape and dtype.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.zeros_like(np.array([3.0]))
    array([0.])
    """
    require_cpu("zeros_like", device)
    return _filled_like(a, 0, dtype, order, shape)


@implements(np.ones_like, creates=True, layout=None)
def ones_like(
    a: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Any:
    """Filled with 1, of the array's shape and dtype.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.ones_like(np.array([3, 4]))
    array([1, 1])
    """
    require_cpu("ones_like", device)
    return _filled_like(a, 1, dtype, order, shape)


@implements(np.empty_like, creates=True, layout=None)
def empty_like(
    prototype: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Any:
    """Filled with 0, of the array's shape and dtype.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.empty_like(np.float32([1, 2])).dtype
    dtype('float32')
    """
    require_cpu("empty_like", device)
    return _filled_like(prototype, 0, dtype, order, shape)


@implements(np.full_like, creates=True, layout=None)
def full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Any:
    """Filled with a value, of the array's shape and dtype.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.full_like(np.zeros(2), 7)
    array([7., 7.])
    """
    require_cpu("full_like", device)
    sizes, wanted = _like(a, dtype, shape)
    return _in_order_of(a, order, full(sizes, fill_value, wanted))


@implements(np.meshgrid, creates=True)
def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    """Coordinate arrays of a grid; ``indexing`` 'xy' has the second coordinate along the rows.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.meshgrid([1, 2], [3, 4])
    (array([[1, 2],
           [1, 2]]), array([[3, 3],
           [4, 4]]))
    """
    if indexing not in ("xy", "ij"):
        raise AttributeValueError(f"meshgrid: indexing must be 'xy' or 'ij', not {indexing!r}")
    rank = len(xi)
    axes = list(range(rank))
    if indexing == "xy" and rank > 1:
        axes[:2] = [1, 0]
    made = [
        as_array(x).reshape([-1 if d == axis else 1 for d in range(rank)])
        for x, axis in zip(xi, axes, strict=True)
    ]
    if sparse or not made:
        return tuple(made)
    sizes = np.broadcast_shapes(*(m.shape for m in made))
    return tuple(broadcast_to(m, sizes).copy() for m in made)


@implements(np.vander)
def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    """The powers of ``x`` in columns, the highest first unless ``increasing``.

    Raises `ArgumentError` for what is no array of numbers, `ShapeError` for shapes that do not
    fit and `ConcretizationError` for an option that is unknown while tracing.

    >>> tnp.vander([1, 2, 3], 2)
    array([[1, 1],
           [2, 1],
           [3, 1]])
    """
    points = as_array(x)
    if points.ndim != 1:
        raise ShapeError(f"vander: the array {points.shape} must have one dimension")
    count = points.shape[0] if N is None else int(N)
    powers = np.arange(count) if increasing else np.arange(count)[::-1]
    wide = points.astype(result_dtype([points.dtype, np.dtype(int)]))
    columns = [wide ** int(power) for power in powers]
    if not columns:
        return filled((points.shape[0], 0), 0, wide.dtype)
    return stack(columns, 1)


@implements(np.copyto)
def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    """Writes ``src`` to ``dst``, where ``where`` holds.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> x = np.zeros(2)
    >>> tj.jit(lambda x: tnp.copyto(x, 3.0), mutates=0)(x)
    >>> x
    array([3., 3.])
    """
    given = operand(src)
    is_number = given.type is int and isinstance(dst, Tracer) and dst.element_type.is_integral
    made = given.to(dst.element_type) if is_number else given.natural
    finish("copyto", made, dst, where, casting)
