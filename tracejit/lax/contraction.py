"""Contractions, spelled as in `jax.lax`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracejit.lax.elementwise import operands
from tracejit.ops import contraction
from tracejit.ops.contraction import DotDimensionNumbers
from tracejit.shapes import ElementType, element_type_of
from tracejit.trace.public import public
from tracejit.trace.tracer import lift

Precision = str | Sequence[str] | None


def preferred(dtype: Any) -> ElementType | None:
    """The element type of ``preferred_element_type=``, where one is given."""
    return None if dtype is None else element_type_of(dtype)


@public
def dot(lhs: Any, rhs: Any, precision: Precision = None, preferred_element_type: Any = None) -> Any:
    """The product of vectors or matrices.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tj.lax.dot(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    np.float64(11.0)
    """
    x, y = operands(lhs, rhs)
    return lift(contraction.dot(x, y, precision, preferred(preferred_element_type)))


@public
def dot_general(
    lhs: Any,
    rhs: Any,
    dimension_numbers: Any,
    precision: Precision = None,
    preferred_element_type: Any = None,
) -> Any:
    """Sums of products over contracting dimensions, batch dimensions in step.

    ``dimension_numbers`` is ((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch)).

    Raises `ArgumentError` for what is no array of numbers, `ShapeError` for shapes that do not
    fit and `AttributeValueError` for an option or a size out of range.

    >>> tj.lax.dot_general(np.ones((2, 3)), np.ones((3, 4)), (((1,), (0,)), ((), ()))).shape
    (2, 4)
    """
    x, y = operands(lhs, rhs)
    if not isinstance(dimension_numbers, DotDimensionNumbers):
        (left, right), (left_batch, right_batch) = dimension_numbers
        dimension_numbers = DotDimensionNumbers(
            tuple(left), tuple(right), tuple(left_batch), tuple(right_batch)
        )
    element_type = preferred(preferred_element_type)
    return lift(contraction.dot_general(x, y, dimension_numbers, precision, element_type))


@public
def batch_matmul(lhs: Any, rhs: Any, precision: Precision = None) -> Any:
    """Products of matrices in the last two dimensions, all others in step.

    Raises `ArgumentError` for what is no array of numbers, `ShapeError` for shapes that do not
    fit and `AttributeValueError` for an option or a size out of range.

    >>> tj.lax.batch_matmul(np.ones((2, 1, 3)), np.ones((2, 3, 1))).ravel()
    array([3., 3.])
    """
    x, y = operands(lhs, rhs)
    rank = x.array_shape.rank
    steps = tuple(range(rank - 2))
    numbers = DotDimensionNumbers((rank - 1,), (rank - 2,), steps, steps)
    return lift(contraction.dot_general(x, y, numbers, precision))
