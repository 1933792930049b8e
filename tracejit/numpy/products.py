"""Products of vectors, matrices and tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit.errors import AttributeValueError, ShapeError
from tracejit.graph import Instruction
from tracejit.numpy import arithmetic
from tracejit.numpy.building import axes_of
from tracejit.numpy.manipulation import as_array, broadcast_to, expand_dims, moveaxis, ravel
from tracejit.numpy.reducing import reduced
from tracejit.numpy.storing import finish
from tracejit.ops import layout
from tracejit.ops.contraction import DotDimensionNumbers, dot_general
from tracejit.shapes import ElementType, element_type_of
from tracejit.trace.convert import broadcast_dimensions, converted, operand
from tracejit.trace.promotion import common_element_type
from tracejit.trace.public import implements
from tracejit.trace.result_layouts import by_rows, of_products
from tracejit.trace.tracer import lift
from tracejit.trace.views import broadcast


def _promoted(function: str, a: Any, b: Any, dtype: Any = None) -> tuple[Instruction, Instruction]:
    operands = operand(a), operand(b)
    # Python numbers count as arrays here, which have dtypes of their own.
    common = common_element_type(o.element_type.dtype for o in operands)
    element_type = common if dtype is None else element_type_of(dtype)
    return operands[0].to(element_type), operands[1].to(element_type)


def contract(x: Instruction, y: Instruction, numbers: DotDimensionNumbers) -> Instruction:
    """`dot_general` of one element type; truth values are multiplied by and, added by or."""
    if x.array_shape.element_type is ElementType.PRED:
        counts = converted(x, ElementType.S32), converted(y, ElementType.S32)
        return converted(dot_general(counts[0], counts[1], numbers), ElementType.PRED)
    return dot_general(x, y, numbers)


@implements(np.matmul, layout=of_products)
def matmul(
    x1: Any,
    x2: Any,
    /,
    out: Any = None,
    *,
    casting: str = "same_kind",
    order: str = "K",
    dtype: Any = None,
    subok: bool = True,
    axes: Any = None,
    axis: Any = None,
    keepdims: bool = False,
) -> Any:
    """The matrix product over the last two dimensions; those before are stretched to agree.

    Raises `ArgumentError` for what is no array of numbers, `ShapeError` for shapes that do not
    fit and `AttributeValueError` for an option or a size out of range.

    >>> tnp.matmul([[1.0, 2.0]], [[3.0], [4.0]])
    array([[11.]])
    """
    if axis is not None or keepdims:
        raise AttributeValueError(
            "matmul: axis= and keepdims= need one core dimension, as in vecdot"
        )
    places = _Places("matmul", axes, (2, 2, 2))
    x, y = _promoted("matmul", places.last(x1, 0), places.last(x2, 1), dtype)
    return finish("matmul", places.back(_matmul(x, y)), out, casting=casting)


class _Places:
    """``axes=`` of a product: where each operand's core dimensions, and the result's, are.

    ``ranks`` says how many core dimensions each has. Raises `AttributeValueError` for axes that do
    not fit.
    """

    def __init__(self, function: str, axes: Any, ranks: tuple[int, int, int]) -> None:
        self._axes: list[tuple[int, ...]] | None = None
        self._ranks = ranks
        if axes is None:
            return
        given = [(entry,) if isinstance(entry, int) else tuple(entry) for entry in axes]
        given += [()] * (len(given) == 2 and ranks[2] == 0)
        if [len(entry) for entry in given] != [*ranks]:
            raise AttributeValueError(
                f"{function}: axes= needs {ranks[0]}, {ranks[1]} and {ranks[2]} dimensions of lhs, "
                f"rhs and the result, not {axes}"
            )
        self._axes = given

    def last(self, array: Any, number: int) -> Any:
        """An operand with its core dimensions last."""
        if self._axes is None:
            return array
        return moveaxis(array, self._axes[number], range(-self._ranks[number], 0))

    def back(self, made: Instruction) -> Instruction:
        """The result with its core dimensions where they belong."""
        if self._axes is None or not self._ranks[2]:
            return made
        moved = moveaxis(lift(made, False), range(-self._ranks[2], 0), self._axes[2])
        return as_array(moved).instruction


def _matmul(x: Instruction, y: Instruction) -> Instruction:
    left, right = x.array_shape.dimensions, y.array_shape.dimensions
    if not left or not right:
        raise ShapeError(
            f"matmul: arrays must have at least one dimension; lhs {x.shape}, rhs {y.shape}"
        )
    vector_left, vector_right = len(left) == 1, len(right) == 1
    inner = left[-1], right[-1] if vector_right else right[-2]
    if inner[0] != inner[1]:
        raise ShapeError(
            f"matmul: the last dimension of lhs {x.shape} must be as long as the "
            f"{'only' if vector_right else 'second last'} one of rhs {y.shape}"
        )
    lead_left, lead_right = left[: -1 if vector_left else -2], right[: -1 if vector_right else -2]
    batch = broadcast_dimensions("matmul", [lead_left, lead_right])
    rank = len(batch)
    if lead_right and math.prod(lead_right) == 1 and math.prod(lead_left) == math.prod(batch):
        # One matrix for the whole batch needs no batch dimension.
        y = layout.reshape(y, right[len(lead_right) :])
        lead_right = ()
    if not lead_right:
        numbers = DotDimensionNumbers((len(left) - 1,), (0,))
        made = contract(x, y, numbers)
        tail = made.array_shape.dimensions[len(lead_left) :]
        return layout.reshape(made, (*batch, *tail))
    x = broadcast(x, (*batch, *left[len(lead_left) :]))
    y = broadcast(y, (*batch, *right[len(lead_right) :]))
    steps = tuple(range(rank))
    numbers = DotDimensionNumbers(
        (x.array_shape.rank - 1,), (rank + (not vector_right) * 0,), steps, steps
    )
    return contract(x, y, numbers)


@implements(np.dot, layout=by_rows)
def dot(a: Any, b: Any, out: Any = None) -> Any:
    """The sum of products over the last dimension of ``a`` and the second last of ``b``.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tnp.dot([[1.0, 2.0], [3.0, 4.0]], [1.0, 1.0])
    array([3., 7.])
    """
    x, y = _promoted("dot", a, b)
    if not x.array_shape.rank or not y.array_shape.rank:
        return arithmetic.multiply(lift(x, False), lift(y, False), out=out)
    axis = max(y.array_shape.rank - 2, 0)
    _require_equal("dot", x, x.array_shape.rank - 1, y, axis)
    numbers = DotDimensionNumbers((x.array_shape.rank - 1,), (axis,))
    return finish("dot", contract(x, y, numbers), out)


def _require_equal(function: str, x: Instruction, d: int, y: Instruction, e: int) -> None:
    if x.array_shape.dimensions[d] != y.array_shape.dimensions[e]:
        raise ShapeError(
            f"{function}: dimension {d} of lhs {x.shape} must be as long as dimension {e} of "
            f"rhs {y.shape}"
        )


@implements(np.vdot)
def vdot(a: Any, b: Any, /) -> Any:
    """The sum of products of two flat arrays, the first one conjugated.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tnp.vdot([1j, 2.0], [1j, 3.0])
    np.complex128(7+0j)
    """
    x = ravel(a)
    return dot(x.conj() if x.element_type.is_complex else x, ravel(b))


@implements(np.inner, layout=by_rows)
def inner(a: Any, b: Any, /) -> Any:
    """The sum of products over the last dimensions of both.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tnp.inner([1.0, 2.0], [3.0, 4.0])
    np.float64(11.0)
    """
    x, y = _promoted("inner", a, b)
    if not x.array_shape.rank or not y.array_shape.rank:
        return arithmetic.multiply(lift(x), lift(y))
    ranks = x.array_shape.rank, y.array_shape.rank
    _require_equal("inner", x, ranks[0] - 1, y, ranks[1] - 1)
    return lift(contract(x, y, DotDimensionNumbers((ranks[0] - 1,), (ranks[1] - 1,))))


@implements(np.outer, layout=by_rows)
def outer(a: Any, b: Any, out: Any = None) -> Any:
    """The products of every element of one flat array with every element of another.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.outer([1, 2], [3, 4])
    array([[3, 4],
           [6, 8]])
    """
    return arithmetic.multiply(ravel(a)[:, None], ravel(b)[None, :], out=out)


@implements(np.vecdot)
def vecdot(
    x1: Any,
    x2: Any,
    /,
    out: Any = None,
    *,
    casting: str = "same_kind",
    order: str = "K",
    dtype: Any = None,
    subok: bool = True,
    axes: Any = None,
    axis: Any = None,
    keepdims: bool = False,
) -> Any:
    """The sum of products along one axis, the first array conjugated.

    Raises `ArgumentError` for what is no array of numbers, `ShapeError` for shapes that do not
    fit and `DimensionError` for an axis that the array lacks.

    >>> tnp.vecdot([[1.0, 2.0], [3.0, 4.0]], [1.0, 1.0])
    array([3., 7.])
    """
    if axes is not None and axis is not None:
        raise AttributeValueError("vecdot: axis= and axes= exclude each other")
    if axis is not None:
        axes = [axis, axis]
    kept = axes[2] if axes is not None and len(axes) == 3 and keepdims else None
    places = _Places("vecdot", axes[:2] if keepdims and axes is not None else axes, (1, 1, 0))
    x, y = _promoted("vecdot", places.last(x1, 0), places.last(x2, 1), dtype)
    products = arithmetic.multiply(lift(x, False).conj(), lift(y, False))
    made = as_array(reduced("add", products, -1, products.dtype)).instruction
    if keepdims:
        place = kept if kept is not None else -1 if axes is None else axes[0]
        at = place[0] if isinstance(place, tuple) else place
        made = as_array(expand_dims(lift(made, False), at)).instruction
    return finish("vecdot", made, out, casting=casting)


@implements(np.matvec)
def matvec(
    x1: Any,
    x2: Any,
    /,
    out: Any = None,
    *,
    casting: str = "same_kind",
    order: str = "K",
    dtype: Any = None,
    subok: bool = True,
    axes: Any = None,
) -> Any:
    """Matrices times vectors, over stretched leading dimensions.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tnp.matvec([[1.0, 2.0], [3.0, 4.0]], [1.0, 1.0])
    array([3., 7.])
    """
    places = _Places("matvec", axes, (2, 1, 1))
    matrix, vector = places.last(x1, 0), as_array(places.last(x2, 1))
    x, y = _promoted("matvec", matrix, vector[..., None], dtype)
    made = as_array(lift(_matmul(x, y), False)[..., 0]).instruction
    return finish("matvec", places.back(made), out, casting=casting)


@implements(np.vecmat)
def vecmat(
    x1: Any,
    x2: Any,
    /,
    out: Any = None,
    *,
    casting: str = "same_kind",
    order: str = "K",
    dtype: Any = None,
    subok: bool = True,
    axes: Any = None,
) -> Any:
    """Conjugated vectors times matrices, over stretched leading dimensions.

    Raises `ArgumentError` for what is no array of numbers, `ShapeError` for shapes that do not
    fit and `DimensionError` for an axis that the array lacks.

    >>> tnp.vecmat([1.0, 1.0], [[1.0, 2.0], [3.0, 4.0]])
    array([4., 6.])
    """
    places = _Places("vecmat", axes, (1, 2, 1))
    vector, matrix = as_array(places.last(x1, 0)), places.last(x2, 1)
    x, y = _promoted("vecmat", vector.conj()[..., None, :], matrix, dtype)
    made = as_array(lift(_matmul(x, y), False)[..., 0, :]).instruction
    return finish("vecmat", places.back(made), out, casting=casting)


@implements(np.tensordot, layout=by_rows)
def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """The sum of products over ``axes``: that many last and first dimensions, or two lists.

    Raises `ArgumentError` for what is no array of numbers, `ShapeError` for shapes that do not
    fit and `DimensionError` for an axis that the array lacks.

    >>> tnp.tensordot(np.ones((2, 3)), np.ones((3, 4)), axes=1).shape
    (2, 4)
    """
    x, y = _promoted("tensordot", a, b)
    ranks = x.array_shape.rank, y.array_shape.rank
    left: Sequence[int]
    right: Sequence[int]
    if np.ndim(axes) == 0:
        count = int(axes)
        left, right = range(ranks[0] - count, ranks[0]), range(count)
    else:
        left, right = ((one,) if np.ndim(one) == 0 else tuple(one) for one in axes)
    if len(left) != len(right):
        raise AttributeValueError(f"tensordot: axes {axes} must pair as many axes of each array")
    pairs = (
        tuple(axes_of("tensordot", tuple(left), ranks[0])),
        tuple(axes_of("tensordot", tuple(right), ranks[1])),
    )
    for d, e in zip(*pairs, strict=True):
        _require_equal("tensordot", x, d, y, e)
    return lift(contract(x, y, DotDimensionNumbers(*pairs)), False)


@implements(np.kron)
def kron(a: Any, b: Any) -> Any:
    """The Kronecker product: every element of ``a`` times all of ``b``.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.kron([1, 10], [1, 2])
    array([ 1,  2, 10, 20])
    """
    x, y = as_array(a), as_array(b)
    rank = max(x.ndim, y.ndim)
    x = x.reshape((1,) * (rank - x.ndim) + x.shape)
    y = y.reshape((1,) * (rank - y.ndim) + y.shape)
    left = x.reshape([s for size in x.shape for s in (size, 1)])
    right = y.reshape([s for size in y.shape for s in (1, size)])
    sizes = [m * n for m, n in zip(x.shape, y.shape, strict=True)]
    return arithmetic.multiply(left, right).reshape(sizes)


@implements(np.cross)
def cross(
    a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Any:
    """The cross product of vectors of three elements along an axis.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.cross([1.0, 0.0, 0.0], [0.0, 1.0, 0.0])
    array([0., 0., 1.])
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = as_array(a), as_array(b)
    x, y = moveaxis(x, axisa, -1), moveaxis(y, axisb, -1)
    if x.shape[-1] != 3 or y.shape[-1] != 3:
        raise ShapeError(f"cross: vectors must have three elements; lhs {x.shape}, rhs {y.shape}")
    sizes = broadcast_dimensions("cross", [x.shape, y.shape])
    x, y = broadcast_to(x, sizes), broadcast_to(y, sizes)
    following, preceding = [1, 2, 0], [2, 0, 1]
    made = x[..., following] * y[..., preceding] - x[..., preceding] * y[..., following]
    return moveaxis(made, -1, axisc)
