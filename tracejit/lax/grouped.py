"""Contractions in groups and in scaled blocks, spelled as in `jax.lax`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tracejit.errors import AttributeValueError
from tracejit.lax.contraction import Precision
from tracejit.lax.elementwise import operands
from tracejit.ops import grouped
from tracejit.ops.constants import constant
from tracejit.ops.contraction import DotDimensionNumbers
from tracejit.shapes import ElementType, element_type_of
from tracejit.trace.convert import operand
from tracejit.trace.public import public
from tracejit.trace.tracer import lift


@dataclass(frozen=True)
class RaggedDotDimensionNumbers:
    """``((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))``, and the groups'."""

    dot_dimension_numbers: Any
    lhs_ragged_dimensions: Sequence[int]
    rhs_group_dimensions: Sequence[int]


def _dot_numbers(numbers: Any) -> DotDimensionNumbers:
    if isinstance(numbers, DotDimensionNumbers):
        return numbers
    (left, right), (left_batch, right_batch) = numbers
    return DotDimensionNumbers(tuple(left), tuple(right), tuple(left_batch), tuple(right_batch))


def _element_type(dtype: Any) -> ElementType | None:
    return None if dtype is None else element_type_of(dtype)


@public
def ragged_dot(
    lhs: Any,
    rhs: Any,
    group_sizes: Any,
    precision: Precision = None,
    preferred_element_type: Any = None,
    group_offset: Any = None,
) -> Any:
    """Rows of ``lhs`` [m, k] times the matrix of their group in ``rhs`` [g, k, n].

    Raises `ArgumentError` for what is no array of numbers, `ElementTypeError` for an element
    type that it does not take, `ShapeError` for shapes that do not fit and
    `AttributeValueError` for an option or a size out of range.

    >>> tj.lax.ragged_dot(
    ...     np.ones((3, 2)),
    ...     np.stack([np.ones((2, 1)), 5 * np.ones((2, 1))]),
    ...     np.int32([1, 2]),
    ... ).ravel()
    array([ 2., 10., 10.])
    """
    basic = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))
    return ragged_dot_general(
        lhs, rhs, group_sizes, basic, precision, preferred_element_type, group_offset
    )


@public
def ragged_dot_general(
    lhs: Any,
    rhs: Any,
    group_sizes: Any,
    ragged_dot_dimension_numbers: Any,
    precision: Precision = None,
    preferred_element_type: Any = None,
    group_offset: Any = None,
) -> Any:
    """`dot_general` in groups along a dimension of ``lhs``; elements beyond the groups are zeros.

    Raises `AttributeValueError` for a ``group_offset``.

    >>> tj.lax.ragged_dot_general(
    ...     np.ones((3, 2)),
    ...     np.ones((2, 2, 1)),
    ...     np.int32([1, 2]),
    ...     tj.lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), [0], [0]),
    ... ).ravel()
    array([2., 2., 2.])
    """
    if group_offset is not None:
        raise AttributeValueError("ragged_dot_general: group_offset is not supported")
    x, y = operands(lhs, rhs)
    given = ragged_dot_dimension_numbers
    numbers = grouped.RaggedDotDimensionNumbers(
        _dot_numbers(given.dot_dimension_numbers),
        tuple(given.lhs_ragged_dimensions),
        tuple(given.rhs_group_dimensions),
    )
    made = grouped.ragged_dot(
        x,
        y,
        operand(group_sizes).natural,
        numbers,
        precision,
        _element_type(preferred_element_type),
    )
    return lift(made, False)


@public
def scaled_dot(
    lhs: Any,
    rhs: Any,
    *,
    lhs_scale: Any = None,
    rhs_scale: Any = None,
    dimension_numbers: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """`dot_general` of operands that scales multiply block by block; by default of matrices.

    Raises `ArgumentError` for what is no array of numbers, `ShapeError` for shapes that do not
    fit and `AttributeValueError` for an option or a size out of range.

    >>> tj.lax.scaled_dot(np.ones((2, 4)), np.ones((4, 2))).shape
    (2, 2)
    """
    x, y = operands(lhs, rhs)
    numbers = (((1,), (0,)), ((), ())) if dimension_numbers is None else dimension_numbers
    one = constant(1, x.array_shape.element_type)
    scales = [one if s is None else operand(s).natural for s in (lhs_scale, rhs_scale)]
    made = grouped.scaled_dot(
        x,
        scales[0],
        y,
        scales[1],
        _dot_numbers(numbers),
        None,
        _element_type(preferred_element_type),
    )
    return lift(made, False)
