"""Diagonals and triangles of matrices: made, read, written and summed."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracejit.errors import ShapeError
from tracejit.graph import Instruction
from tracejit.numpy.building import axes_of, fill, where
from tracejit.numpy.creation import require_cpu
from tracejit.numpy.manipulation import as_array, broadcast_to, ravel
from tracejit.numpy.reducing import reduced
from tracejit.numpy.selecting import require_traced
from tracejit.ops import comparison, elementwise, layout
from tracejit.ops.constants import constant, iota
from tracejit.shapes import ElementType, Shape, element_type_of
from tracejit.trace.convert import converted
from tracejit.trace.index_fancy import Diagonal
from tracejit.trace.public import implements
from tracejit.trace.tracer import Tracer, lift


def _diagonal_mask(rows: int, columns: int, k: int, direction: str) -> Instruction:
    """Where the column compares with the row plus ``k``."""
    shape = Shape(ElementType.S64, (rows, columns))
    row, column = iota(shape, 0), iota(shape, 1)
    return comparison.compare(column, elementwise.add(row, fill(row, k)), direction)


@implements(np.eye, creates=True)
def eye(
    N: int,
    M: int | None = None,
    k: int = 0,
    dtype: Any = float,
    order: str = "C",
    *,
    device: Any = None,
    like: Any = None,
) -> Any:
    """1 on the diagonal number ``k`` and 0 elsewhere.

    Raises `ArgumentError` for what is no array of numbers, `ShapeError` for shapes that do not
    fit and `ConcretizationError` for an option that is unknown while tracing.

    >>> tnp.eye(2, 3, k=1)
    array([[0., 1., 0.],
           [0., 0., 1.]])
    """
    require_cpu("eye", device)
    mask = _diagonal_mask(int(N), int(N if M is None else M), int(k), "EQ")
    return lift(converted(mask, element_type_of(np.float64 if dtype is None else dtype)), False)


@implements(np.identity, creates=True)
def identity(n: int, dtype: Any = None, *, like: Any = None) -> Any:
    """The identity matrix.

    Raises `ArgumentError` for what is no array of numbers, `ShapeError` for shapes that do not
    fit and `ConcretizationError` for an option that is unknown while tracing.

    >>> tnp.identity(2)
    array([[1., 0.],
           [0., 1.]])
    """
    return eye(n, dtype=dtype)


@implements(np.tri, creates=True)
def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = float, *, like: Any = None) -> Any:
    """1 on and below the diagonal number ``k`` and 0 above.

    Raises `ArgumentError` for what is no array of numbers, `ShapeError` for shapes that do not
    fit and `ConcretizationError` for an option that is unknown while tracing.

    >>> tnp.tri(2)
    array([[1., 0.],
           [1., 1.]])
    """
    mask = _diagonal_mask(int(N), int(N if M is None else M), int(k), "LE")
    return lift(converted(mask, element_type_of(np.float64 if dtype is None else dtype)), False)


def _triangle(m: Any, k: int, direction: str) -> Tracer:
    x = as_array(m)
    if x.ndim == 1:
        x = broadcast_to(x, (x.shape[0], x.shape[0]))
    mask = _diagonal_mask(x.shape[-2], x.shape[-1], int(k), direction)
    wide = layout.broadcast_in_dim(mask, x.shape, (x.ndim - 2, x.ndim - 1))
    return lift(where(wide, x.instruction, 0), False)


@implements(np.tril)
def tril(m: Any, k: int = 0) -> Any:
    """The array with 0 above the diagonal number ``k``.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.tril([[1, 2], [3, 4]])
    array([[1, 0],
           [3, 4]])
    """
    return _triangle(m, k, "LE")


@implements(np.triu)
def triu(m: Any, k: int = 0) -> Any:
    """The array with 0 below the diagonal number ``k``.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.triu([[1, 2], [3, 4]])
    array([[1, 2],
           [0, 4]])
    """
    return _triangle(m, k, "GE")


@implements(np.diagonal)
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """The elements whose places along two axes differ by ``offset``: a view, only to be read.

    Raises `ArgumentError` for what is no array of numbers, `ShapeError` for shapes that do not
    fit and `DimensionError` for an axis that the array lacks.

    >>> tnp.diagonal([[1, 2], [3, 4]])
    array([1, 4])
    """
    x = as_array(a)
    if x.ndim < 2:
        raise ShapeError(f"diagonal: array {x.shape} must have two dimensions")
    first, second = axes_of("diagonal", (axis1, axis2), x.ndim)
    return x.through(Diagonal(offset, first, second), False)


@implements(np.diag)
def diag(v: Any, k: int = 0) -> Any:
    """A matrix with a vector on its diagonal number ``k``, or the diagonal of a matrix.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tnp.diag([1, 2])
    array([[1, 0],
           [0, 2]])
    """
    x = as_array(v)
    if x.ndim == 2:
        return diagonal(x, k)
    if x.ndim != 1:
        raise ShapeError(f"diag: array {x.shape} must have one or two dimensions")
    size = x.shape[0] + abs(k)
    wide = layout.pad_in_dim(x.instruction, constant(0, x.element_type), 0, max(k, 0), max(-k, 0))
    columns = layout.broadcast_in_dim(wide, (size, size), (1,))
    return lift(where(_diagonal_mask(size, size, k, "EQ"), columns, 0), False)


@implements(np.diagflat)
def diagflat(v: Any, k: int = 0) -> Any:
    """`diag` of the flat array.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.diagflat([[1, 2]])
    array([[1, 0],
           [0, 2]])
    """
    return diag(ravel(v), k)


@implements(np.trace)
def trace(
    a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None
) -> Any:
    """The sum along a diagonal.

    Raises `ArgumentError` for what is no array of numbers, `ShapeError` for shapes that do not
    fit and `DimensionError` for an axis that the array lacks.

    >>> tnp.trace([[1, 2], [3, 4]])
    np.int64(5)
    """
    return reduced("add", diagonal(a, offset, axis1, axis2), -1, dtype, out)


@implements(np.fill_diagonal)
def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    """Writes ``val`` to the diagonal of an array whose dimensions are equal.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> x = np.zeros((2, 2))
    >>> tj.jit(lambda x: tnp.fill_diagonal(x, 1.0), mutates=0)(x)
    >>> x
    array([[1., 0.],
           [0., 1.]])
    """
    require_traced("fill_diagonal", a)
    if a.ndim < 2 or (a.ndim > 2 and len(set(a.shape)) > 1):
        raise ShapeError(f"fill_diagonal: array {a.shape} must be a matrix or have equal sizes")
    places = np.arange(min(a.shape))
    if wrap and a.ndim == 2:
        flat = np.arange(0, a.size, a.shape[1] + 1)
        a.reshape(-1)[flat] = val
        return
    a[(places,) * a.ndim] = val
