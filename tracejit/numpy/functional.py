"""Functions of functions: along axes, over axes, element by element, piece by piece."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracejit import tree
from tracejit.errors import ArgumentError, AttributeValueError
from tracejit.lax.scanning import scan
from tracejit.numpy import creation, manipulation
from tracejit.numpy.building import axes_of, canonical_axis
from tracejit.numpy.manipulation import as_array
from tracejit.trace.public import enter, implements, public
from tracejit.trace.table import Traced
from tracejit.trace.tracer import Tracer

MOST_CALLS = 32
"""With more elements than this a function is recorded once, as the body of a loop."""


def _each(function: Callable[..., Any], columns: Sequence[Tracer]) -> Any:
    """``function`` of the rows of ``columns``, one call for each; results stacked."""
    count = columns[0].shape[0]
    _, made = scan(
        lambda carry, row: (carry, function(*row)),
        (),
        tuple(columns),
        unroll=count <= MOST_CALLS,
    )
    return made


@implements(np.apply_along_axis)
def apply_along_axis(
    func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any
) -> Any:
    """``func1d`` of every vector along ``axis``; what it returns stands in the axis's place.

    Raises `ArgumentError` for what is no array of numbers, `DimensionError` for an axis that
    the array lacks and `ConcretizationError` for an option that is unknown while tracing.

    >>> tnp.apply_along_axis(np.sum, 0, [[1.0, 2.0], [3.0, 4.0]])
    array([4., 6.])
    """
    x = as_array(arr)
    position = canonical_axis("apply_along_axis", axis, x.ndim)
    rows = manipulation.moveaxis(x, position, -1)
    outer, size = rows.shape[:-1], rows.shape[-1]
    if not math.prod(outer):
        raise AttributeValueError(
            f"apply_along_axis: no vectors along axis {axis} of an array {x.shape} of no elements"
        )
    flat = rows.reshape((-1, size))
    made = as_array(_each(lambda row: _result(func1d(row, *args, **kwargs)), [flat]))
    shaped = made.reshape((*outer, *made.shape[1:]))
    rank, inner = len(outer), made.ndim - 1
    order = [*range(position), *range(rank, rank + inner), *range(position, rank)]
    return shaped.transpose(order)


def _result(value: Any) -> Any:
    return value if isinstance(value, Traced | np.ndarray) else as_array(value)


@implements(np.apply_over_axes)
def apply_over_axes(func: Callable[..., Any], a: Any, axes: Any) -> Any:
    """``func(x, axis)`` for one axis after the other; axes it drops come back with size 1.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.apply_over_axes(np.sum, np.ones((2, 3)), (0, 1))
    array([[6.]])
    """
    x = as_array(a)
    for axis in axes_of("apply_over_axes", axes, x.ndim):
        made = as_array(func(x, axis))
        if made.ndim == x.ndim - 1:
            made = manipulation.expand_dims(made, axis)
        if made.ndim != x.ndim:
            raise ArgumentError(
                "apply_over_axes: the function does not return an array of the rank"
            )
        x = made
    return x


@implements(np.piecewise)
def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Any:
    """Where a condition holds, the function or value of its place; the last one wins.

    Every function is called on the whole array. One function more than conditions is for the
    places where none holds; else these are 0.

    Raises `ArgumentError` for what is no array of numbers, `ShapeError` for shapes that do not
    fit and `AttributeValueError` for an option or a size out of range.

    >>> tnp.piecewise(np.array([-1.0, 2.0]), [np.array([True, False])], [0.0, 1.0])
    array([0., 1.])
    """
    array = as_array(x)
    conditions = _conditions(array, condlist)
    if len(funclist) not in (len(conditions), len(conditions) + 1):
        raise AttributeValueError(
            f"piecewise: {len(conditions)} conditions need as many functions or one more, not "
            f"{len(funclist)}"
        )
    made: Any = np.zeros_like(array)
    if len(funclist) == len(conditions) + 1:
        made = _piece(funclist[-1], array, args, kw)
    for condition, function in zip(conditions, funclist, strict=False):
        made = np.where(condition, _piece(function, array, args, kw), made)
    return manipulation.broadcast_to(made, array.shape).copy("K")


def _conditions(array: Tracer, condlist: Any) -> list[Tracer]:
    many = isinstance(condlist, list | tuple) or as_array(condlist).ndim > array.ndim
    listed = list(condlist) if many else [condlist]
    single = isinstance(condlist, list | tuple) and array.ndim and listed
    if single and np.ndim(listed[0]) == 0 and not isinstance(listed[0], Traced):
        listed = [condlist]
    return [as_array(condition).astype(np.bool_) for condition in listed]


def _piece(function: Any, array: Tracer, args: Any, kw: Any) -> Any:
    made = function(array, *args, **kw) if callable(function) else function
    return as_array(made).astype(array.dtype)


@implements(np.fromfunction, creates=True)
def fromfunction(
    function: Callable[..., Any], shape: Any, *, dtype: Any = float, **kwargs: Any
) -> Any:
    """``function`` of the coordinate arrays of a shape.

    Raises `ArgumentError` for arguments that it does not take.

    >>> tnp.fromfunction(lambda i, j: i + 10 * j, (2, 2))
    array([[ 0., 10.],
           [ 1., 11.]])
    """
    kwargs.pop("like", None)
    return function(*np.indices(tuple(shape), dtype=dtype), **kwargs)


@implements(np.fromiter, creates=True)
def fromiter(iter: Any, dtype: Any, count: int = -1, **kwargs: Any) -> Any:
    """The array of an iterator's values, traced numbers included.

    Raises `ArgumentError` for arguments that it does not take.

    >>> tnp.fromiter(range(3), dtype=np.int32)
    array([0, 1, 2], dtype=int32)
    """
    items = [item for _, item in zip(range(count), iter, strict=False)] if count >= 0 else [*iter]
    if 0 <= count != len(items):
        raise AttributeValueError(f"fromiter: iterator too short: {len(items)} of {count} items")
    return creation.array(items, dtype=dtype) if items else creation.zeros(0, dtype)


class vectorize:
    """A function of numbers as a function of arrays, as ``np.vectorize``.

    Arguments are stretched to one shape, and the function is called for every element: recorded
    once, as the body of a loop, when there are many. With a ``signature`` such as '(n),(n)->()'
    it is called for every array of the core dimensions.

    >>> tnp.vectorize(lambda a, b: a + 2 * b)([1.0, 2.0], 3.0)
    array([7., 8.])
    """

    def __init__(
        self,
        pyfunc: Callable[..., Any],
        otypes: Any = None,
        doc: str | None = None,
        excluded: Any = None,
        cache: bool = False,
        signature: str | None = None,
    ) -> None:
        self.pyfunc = pyfunc
        self._plain = np.vectorize(pyfunc, otypes, doc, excluded, cache, signature)
        self.excluded = set() if excluded is None else set(excluded)
        self.signature = signature
        self.otypes = self._plain.otypes
        self.__doc__ = self._plain.__doc__
        self.__name__ = getattr(pyfunc, "__name__", "vectorize")
        self._public = public(self._record, self._plain)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._public(*args, **kwargs)

    def _record(self, *args: Any, **kwargs: Any) -> Any:
        names = [k for k in kwargs if k not in self.excluded]
        places = [p for p in range(len(args)) if p not in self.excluded]
        given = [as_array(args[p]) for p in places] + [as_array(kwargs[k]) for k in names]
        cores = _core_ranks(self.signature, len(given))
        shapes = [x.shape[: x.ndim - core] for x, core in zip(given, cores, strict=True)]
        outer = np.broadcast_shapes(*shapes)
        columns = [
            manipulation.broadcast_to(x, (*outer, *x.shape[x.ndim - core :])).reshape(
                (math.prod(outer), *x.shape[x.ndim - core :])
            )
            for x, core in zip(given, cores, strict=True)
        ]

        def one(*rows: Any) -> Any:
            positional = list(args)
            for place, row in zip(places, rows, strict=False):
                positional[place] = row
            named = {**kwargs, **dict(zip(names, rows[len(places) :], strict=True))}
            return tree.map(_result, self.pyfunc(*positional, **named))

        if not math.prod(outer) and self.otypes is None:
            raise AttributeValueError("vectorize: cannot call on size 0 inputs without otypes")
        made = _each(one, columns)
        types = iter(self.otypes or "")
        return tree.map(lambda rows: _shaped(rows, outer, next(types, None)), made)


def _shaped(rows: Tracer, outer: tuple[int, ...], otype: str | None) -> Any:
    made = rows.reshape((*outer, *rows.shape[1:]))
    return made if otype is None else made.astype(otype)


def _core_ranks(signature: str | None, count: int) -> list[int]:
    """How many core dimensions each argument has."""
    if signature is None:
        return [0] * count
    inputs = signature.replace(" ", "").partition("->")[0]
    ranks = [
        sum(bool(name) for name in group.split(",")) for group in inputs.strip("()").split("),(")
    ]
    if len(ranks) != count:
        raise AttributeValueError(f"vectorize: signature {signature} is for {len(ranks)} arguments")
    return ranks


def _vectorize(pyfunc: Any = None, *args: Any, **kwargs: Any) -> Any:
    """``np.vectorize`` as a traced function sees it; also as a decorator with arguments."""
    if pyfunc is None or pyfunc is np._NoValue:
        return lambda function: vectorize(function, *args, **kwargs)
    return vectorize(pyfunc, *args, **kwargs)


enter(np.vectorize, _vectorize)
