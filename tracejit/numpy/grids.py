"""Index arrays: grids of coordinates, places along diagonals and in triangles, flat indices."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tracejit.errors import ArgumentError, AttributeValueError, ShapeError, StaticIndexError
from tracejit.numpy import joining
from tracejit.numpy.manipulation import as_array, broadcast_arrays
from tracejit.numpy.sizes import known, known_or_none
from tracejit.trace.context import current_trace
from tracejit.trace.convert import PYTHON_SCALARS, operand
from tracejit.trace.promotion import result_dtype
from tracejit.trace.public import adopted, enter, implements
from tracejit.trace.table import find_traced
from tracejit.trace.tracer import Tracer


@implements(np.indices, creates=True)
def indices(dimensions: Sequence[int], dtype: Any = int, sparse: bool = False) -> Any:
    """For each dimension of a shape an array of the places along it.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.indices((2, 2))
    array([[[0, 0],
            [1, 1]],
    <BLANKLINE>
           [[0, 1],
            [0, 1]]])
    """
    make: Any = np.indices
    return adopted(make(tuple(dimensions), dtype, sparse))


@implements(np.diag_indices, creates=True)
def diag_indices(n: int, ndim: int = 2) -> Any:
    """The places on the main diagonal of an array of ``ndim`` dimensions of size ``n``.

    Raises `ArgumentError` for arguments that it does not take and `ConcretizationError` for an
    option that is unknown while tracing.

    >>> tnp.diag_indices(2)
    (array([0, 1]), array([0, 1]))
    """
    return adopted(np.diag_indices(n, ndim))


@implements(np.diag_indices_from)
def diag_indices_from(arr: Any) -> Any:
    """The places on the main diagonal of an array whose dimensions are equal.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tnp.diag_indices_from(np.ones((2, 2)))
    (array([0, 1]), array([0, 1]))
    """
    x = as_array(arr)
    if x.ndim < 2 or len(set(x.shape)) != 1:
        raise ShapeError(f"diag_indices_from: array {x.shape} must have two or more equal sizes")
    return diag_indices(x.shape[0], x.ndim)


@implements(np.tril_indices, creates=True)
def tril_indices(n: int, k: int = 0, m: int | None = None) -> Any:
    """The places on and below diagonal number ``k`` of an n by m matrix.

    Raises `ArgumentError` for arguments that it does not take and `ConcretizationError` for an
    option that is unknown while tracing.

    >>> tnp.tril_indices(2)
    (array([0, 1, 1]), array([0, 0, 1]))
    """
    return adopted(np.tril_indices(n, k, m))


@implements(np.triu_indices, creates=True)
def triu_indices(n: int, k: int = 0, m: int | None = None) -> Any:
    """The places on and above diagonal number ``k`` of an n by m matrix.

    Raises `ArgumentError` for arguments that it does not take and `ConcretizationError` for an
    option that is unknown while tracing.

    >>> tnp.triu_indices(2)
    (array([0, 0, 1]), array([0, 1, 1]))
    """
    return adopted(np.triu_indices(n, k, m))


def _matrix_sizes(function: str, arr: Any) -> tuple[int, ...]:
    x = as_array(arr)
    if x.ndim != 2:
        raise ShapeError(f"{function}: array {x.shape} must have two dimensions")
    return x.shape


@implements(np.tril_indices_from)
def tril_indices_from(arr: Any, k: int = 0) -> Any:
    """The places on and below diagonal number ``k`` of a matrix.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tnp.tril_indices_from(np.ones((2, 2)))
    (array([0, 1, 1]), array([0, 0, 1]))
    """
    rows, columns = _matrix_sizes("tril_indices_from", arr)
    return tril_indices(rows, k, columns)


@implements(np.triu_indices_from)
def triu_indices_from(arr: Any, k: int = 0) -> Any:
    """The places on and above diagonal number ``k`` of a matrix.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tnp.triu_indices_from(np.ones((2, 2)))
    (array([0, 0, 1]), array([0, 1, 1]))
    """
    rows, columns = _matrix_sizes("triu_indices_from", arr)
    return triu_indices(rows, k, columns)


@implements(np.mask_indices, creates=True)
def mask_indices(n: int, mask_func: Callable[..., Any], k: Any = 0) -> Any:
    """The places of an n by n matrix that ``mask_func``, np.triu or its like, leaves standing.

    Raises `ArgumentError` for arguments that it does not take and `ConcretizationError` for an
    option that is unknown while tracing.

    >>> tnp.mask_indices(2, np.triu)
    (array([0, 0, 1]), array([0, 1, 1]))
    """
    mask = known("mask_indices", mask_func(np.ones((n, n), int), k), "use np.where")
    return adopted(np.nonzero(mask))


@implements(np.ix_)
def ix_(*args: Any) -> Any:
    """Vectors, each along a dimension of its own, that index every combination of places.

    Raises `ArgumentError` for what is no array of numbers and `AttributeValueError` for an
    option or a size out of range.

    >>> tnp.ix_([0, 2], [1])
    (array([[0],
           [2]]), array([[1]]))
    """
    made = []
    for position, arg in enumerate(args):
        x = as_array(arg)
        if x.ndim != 1:
            raise AttributeValueError(f"ix_: argument {position} {x.shape} must have one dimension")
        if x.dtype == np.bool_:
            x = as_array(np.flatnonzero(known("ix_", x, "index with np.where instead")))
        elif not x.size:
            x = x.astype(np.intp)
        made.append(x.reshape([-1 if d == position else 1 for d in range(len(args))]))
    return tuple(made)


def _checked(function: str, index: Any, size: int, mode: str) -> Tracer:
    """Places within a dimension; those outside raise if they are known, clip or wrap."""
    x = as_array(index)
    if not x.element_type.is_integral:
        raise ArgumentError(f"{function}: indices must be integers, not {x.dtype}")
    if mode == "wrap":
        wrapped: Tracer = x.astype(np.intp) % size
        return wrapped
    if mode == "raise":
        values = known_or_none(x)
        if values is not None and ((values < 0) | (values >= size)).any():
            raise StaticIndexError(f"{function}: an index is out of bounds for size {size}")
    elif mode != "clip":
        raise AttributeValueError(f"{function}: mode must be raise, wrap or clip, not {mode!r}")
    clipped: Any = np.clip(x.astype(np.intp), 0, max(size - 1, 0))
    made: Tracer = clipped
    return made


def _ordered(function: str, values: Sequence[Any], order: str) -> list[Any]:
    """From the slowest dimension to the fastest."""
    if order not in ("C", "F"):
        raise AttributeValueError(f"{function}: order must be 'C' or 'F', not {order!r}")
    return list(values) if order == "C" else list(reversed(values))


@implements(np.unravel_index)
def unravel_index(indices: Any, shape: Any, order: str = "C") -> Any:
    """The places along each dimension that flat indices into an array of ``shape`` mean.

    Unknown indices out of range are clamped.

    Raises `ArgumentError` for what is no array of numbers and `StaticIndexError` for a place
    out of range.

    >>> tnp.unravel_index([2, 3], (2, 3))
    (array([0, 1]), array([2, 0]))
    """
    sizes = (int(shape),) if np.ndim(shape) == 0 else tuple(int(size) for size in shape)
    rest = _checked("unravel_index", indices, math.prod(sizes), "raise")
    made = []
    for size in reversed(_ordered("unravel_index", sizes, order)):
        made.append(rest % size)
        rest = rest // size
    return tuple(made[::-1] if order == "C" else made)


@implements(np.ravel_multi_index)
def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C") -> Any:
    """The flat index that places along each dimension mean. Unknown ones are clamped.

    ``mode`` is 'raise', 'wrap' or 'clip', for all dimensions or one for each.

    Raises `AttributeValueError` for an option or a size out of range and `StaticIndexError` for
    a place out of range.

    >>> tnp.ravel_multi_index(([0, 1], [2, 0]), (2, 3))
    array([2, 3])
    """
    sizes = tuple(int(size) for size in dims)
    if len(multi_index) != len(sizes):
        raise AttributeValueError(
            f"ravel_multi_index: {len(multi_index)} indices for {len(sizes)} dimensions"
        )
    modes = (mode,) * len(sizes) if isinstance(mode, str) else tuple(mode)
    places = [
        _checked("ravel_multi_index", index, size, how)
        for index, size, how in zip(broadcast_arrays(*multi_index), sizes, modes, strict=True)
    ]
    pairs = list(zip(places, sizes, strict=True))
    made: Any = 0
    for place, size in _ordered("ravel_multi_index", pairs, order):
        made = made * size + place
    return made


class _Grid:
    """``mgrid[0:5, 0:3]`` and ``ogrid[0:5, 0:3]``."""

    def __init__(self, like: Any, name: str) -> None:
        self._like = like
        self.__doc__ = f"``np.{name}``, recorded: coordinate arrays of a grid between brackets."

    def __getitem__(self, key: Any) -> Any:
        made = self._like[_static(key)]
        return made if current_trace() is None else adopted(made)


def _static(item: Any) -> Any:
    """An index with known numbers in place of traced ones."""
    if isinstance(item, tuple):
        return tuple(map(_static, item))
    if isinstance(item, slice):
        return slice(_static(item.start), _static(item.stop), _static(item.step))
    if isinstance(item, Tracer):
        return known("grid", item, "sizes must be known: make the argument static")[()]
    return item


class _Join:
    """``r_[1:4, 0, x]`` and ``c_[x, y]``: what stands between the brackets, joined."""

    def __init__(self, like: Any, name: str, axis: int, ndmin: int, new: int) -> None:
        self._like = like
        self._name = name
        self._settings = (axis, ndmin, new)
        self.__doc__ = f"``np.{name}``, recorded: joins what stands between the brackets."

    def __getitem__(self, key: Any) -> Any:
        items = list(key) if isinstance(key, tuple) else [key]
        if find_traced(items) is None:
            made = self._like[key]
            return made if current_trace() is None else adopted(made)
        axis, ndmin, new = self._settings
        if items and isinstance(items[0], str):
            numbers = [int(part) for part in items.pop(0).split(",")]
            axis, ndmin, new = (*numbers, *(axis, ndmin, new)[len(numbers) :])
        parts = [self._part(item, ndmin, new) for item in items]
        # Python numbers count as such beside arrays.
        kinds = [
            operand(item).type if type(item) in PYTHON_SCALARS else part.dtype
            for item, part in zip(items, parts, strict=True)
        ]
        return joining.concatenate(parts, axis, dtype=result_dtype(kinds), casting="unsafe")

    def _part(self, item: Any, ndmin: int, new: int) -> Any:
        if isinstance(item, slice):
            return self._raised(as_array(np.r_[_static(item)]), ndmin, new, 1)
        x = as_array(item)
        return self._raised(x, ndmin, new, x.ndim)

    @staticmethod
    def _raised(x: Tracer, ndmin: int, new: int, rank: int) -> Any:
        """With new dimensions in front, the old ones standing from ``new`` on."""
        if not rank:
            return x.reshape((1,) * max(ndmin, 1))
        if rank >= ndmin:
            return x
        front = ndmin - rank if new < 0 else new
        return x.reshape((1,) * front + x.shape + (1,) * (ndmin - rank - front))


mgrid = _Grid(np.mgrid, "mgrid")
ogrid = _Grid(np.ogrid, "ogrid")
r_ = _Join(np.r_, "r_", 0, 1, -1)
c_ = _Join(np.c_, "c_", -1, 2, 0)
for _like, _made in ((np.mgrid, mgrid), (np.ogrid, ogrid), (np.r_, r_), (np.c_, c_)):
    enter(_like, _made)  # type: ignore[arg-type]


class ndenumerate:
    """Iterates over (place, element) of an array, as ``np.ndenumerate``.

    >>> list(tnp.ndenumerate([5, 6]))
    [((0,), np.int64(5)), ((1,), np.int64(6))]
    """

    def __init__(self, arr: Any) -> None:
        self._array = arr if isinstance(arr, Tracer) else np.asarray(arr)
        self._places = np.ndindex(self._array.shape)

    def __next__(self) -> tuple[tuple[int, ...], Any]:
        place = next(self._places)
        return place, self._array[place]

    def __iter__(self) -> Iterator[tuple[tuple[int, ...], Any]]:
        return self


enter(np.ndenumerate, ndenumerate)
