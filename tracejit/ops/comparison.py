"""Comparisons: Compare and its twelve builder functions, with XLA's strict broadcasting.

lt(x, y)                floating point as IEEE 754 has it: NaN compares unequal to everything
lt_total_order(x, y)    -NaN < -inf < -finite < -0 < +0 < +finite < +inf < +NaN
"""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.attributes import Attribute, Kind
from tracejit.errors import AttributeValueError, ElementTypeError, ShapeError
from tracejit.graph import Instruction
from tracejit.ops.base import define, make, require_array, require_same_element_type
from tracejit.ops.elementwise import broadcast_operands
from tracejit.shapes import AnyShape, ElementType, Shape

DIRECTIONS = ("EQ", "NE", "GE", "GT", "LE", "LT")
COMPARISON_TYPES = ("FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED")


def default_comparison_type(element_type: ElementType) -> str:
    """How elements compare unless a comparison says otherwise: FLOAT, SIGNED or UNSIGNED."""
    if element_type.is_inexact:
        return "FLOAT"
    return "SIGNED" if element_type.is_signed else "UNSIGNED"


@define(
    "Compare",
    "compare",
    Attribute("direction", Kind.NAME),
    Attribute("type", Kind.NAME, None),
)
def COMPARE(lhs: AnyShape, rhs: AnyShape, *, direction: str, type: str | None) -> Shape:
    left = require_array("compare", "lhs", lhs)
    right = require_array("compare", "rhs", rhs)
    require_same_element_type("compare", lhs=left, rhs=right)
    if left.dimensions != right.dimensions:
        raise ShapeError(f"compare: shapes must be equal; lhs {left}, rhs {right}")
    if direction not in DIRECTIONS:
        raise AttributeValueError(
            f"compare: direction must be one of {', '.join(DIRECTIONS)}, not {direction!r}"
        )
    if left.element_type.is_complex and direction not in ("EQ", "NE"):
        raise ElementTypeError(
            f"compare: complex numbers have no order, so direction must be EQ or NE, "
            f"not {direction}; lhs {left}"
        )
    allowed = [default_comparison_type(left.element_type)]
    if left.element_type.is_floating:
        allowed.append("TOTALORDER")
    if type is not None and type not in allowed:
        raise AttributeValueError(
            f"compare: type must be {' or '.join(allowed)} for {left.element_type}, not {type!r}; "
            f"lhs {left}"
        )
    return Shape(ElementType.PRED, left.dimensions)


def compare(
    lhs: Instruction,
    rhs: Instruction,
    direction: str,
    type: str | None = None,
    broadcast_dimensions: Sequence[int] | None = None,
) -> Instruction:
    """A pred: whether lhs stands in ``direction`` (EQ NE GE GT LE LT) to rhs (XLA: Compare).

    ``type`` is FLOAT, TOTALORDER, SIGNED or UNSIGNED; None, and the one that the element type has
    anyway, are the same. Raises `AttributeValueError` for one that does not fit the element type.
    """
    left, right = broadcast_operands("compare", lhs, rhs, broadcast_dimensions)
    if type == default_comparison_type(left.array_shape.element_type):
        type = None
    return make(COMPARE, left, right, direction=direction, type=type)


def _compare_total_order(
    direction: str,
    lhs: Instruction,
    rhs: Instruction,
    broadcast_dimensions: Sequence[int] | None,
) -> Instruction:
    """Integers, pred and complex numbers compare in total order as they always do."""
    shape = require_array("compare", "lhs", lhs.shape)
    type = "TOTALORDER" if shape.element_type.is_floating else None
    return compare(lhs, rhs, direction, type, broadcast_dimensions)


def eq(
    lhs: Instruction, rhs: Instruction, broadcast_dimensions: Sequence[int] | None = None
) -> Instruction:
    """Whether lhs equals rhs (XLA: Eq)."""
    return compare(lhs, rhs, "EQ", None, broadcast_dimensions)


def ne(
    lhs: Instruction, rhs: Instruction, broadcast_dimensions: Sequence[int] | None = None
) -> Instruction:
    """Whether lhs differs from rhs (XLA: Ne)."""
    return compare(lhs, rhs, "NE", None, broadcast_dimensions)


def ge(
    lhs: Instruction, rhs: Instruction, broadcast_dimensions: Sequence[int] | None = None
) -> Instruction:
    """Whether lhs is at least rhs (XLA: Ge)."""
    return compare(lhs, rhs, "GE", None, broadcast_dimensions)


def gt(
    lhs: Instruction, rhs: Instruction, broadcast_dimensions: Sequence[int] | None = None
) -> Instruction:
    """Whether lhs is greater than rhs (XLA: Gt)."""
    return compare(lhs, rhs, "GT", None, broadcast_dimensions)


def le(
    lhs: Instruction, rhs: Instruction, broadcast_dimensions: Sequence[int] | None = None
) -> Instruction:
    """Whether lhs is at most rhs (XLA: Le)."""
    return compare(lhs, rhs, "LE", None, broadcast_dimensions)


def lt(
    lhs: Instruction, rhs: Instruction, broadcast_dimensions: Sequence[int] | None = None
) -> Instruction:
    """Whether lhs is less than rhs (XLA: Lt)."""
    return compare(lhs, rhs, "LT", None, broadcast_dimensions)


def eq_total_order(
    lhs: Instruction, rhs: Instruction, broadcast_dimensions: Sequence[int] | None = None
) -> Instruction:
    """Whether lhs equals rhs in the total order of its type (XLA: EqTotalOrder)."""
    return _compare_total_order("EQ", lhs, rhs, broadcast_dimensions)


def ne_total_order(
    lhs: Instruction, rhs: Instruction, broadcast_dimensions: Sequence[int] | None = None
) -> Instruction:
    """Whether lhs differs from rhs in the total order of its type (XLA: NeTotalOrder)."""
    return _compare_total_order("NE", lhs, rhs, broadcast_dimensions)


def ge_total_order(
    lhs: Instruction, rhs: Instruction, broadcast_dimensions: Sequence[int] | None = None
) -> Instruction:
    """Whether lhs is at least rhs in the total order of its type (XLA: GeTotalOrder)."""
    return _compare_total_order("GE", lhs, rhs, broadcast_dimensions)


def gt_total_order(
    lhs: Instruction, rhs: Instruction, broadcast_dimensions: Sequence[int] | None = None
) -> Instruction:
    """Whether lhs is greater than rhs in the total order of its type (XLA: GtTotalOrder)."""
    return _compare_total_order("GT", lhs, rhs, broadcast_dimensions)


def le_total_order(
    lhs: Instruction, rhs: Instruction, broadcast_dimensions: Sequence[int] | None = None
) -> Instruction:
    """Whether lhs is at most rhs in the total order of its type (XLA: LeTotalOrder)."""
    return _compare_total_order("LE", lhs, rhs, broadcast_dimensions)


def lt_total_order(
    lhs: Instruction, rhs: Instruction, broadcast_dimensions: Sequence[int] | None = None
) -> Instruction:
    """Whether lhs is less than rhs in the total order of its type (XLA: LtTotalOrder)."""
    return _compare_total_order("LT", lhs, rhs, broadcast_dimensions)
