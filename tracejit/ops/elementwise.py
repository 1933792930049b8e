"""Elementwise ops of one, two and three operands, with XLA's strict broadcasting."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from tracejit.errors import AttributeValueError, ShapeError
from tracejit.graph import Instruction, Op
from tracejit.ops.base import (
    ALL,
    define,
    make,
    require_array,
    require_element_type,
    require_same_element_type,
)
from tracejit.ops.layout import broadcast_in_dim
from tracejit.shapes import AnyShape, ElementType, Shape


def binary(name: str, opcode: str, accepts: Collection[ElementType]) -> Op:
    """An op on two arrays of one shape and element type whose result has them too."""
    function = name.lower()

    def shape_rule(lhs: AnyShape, rhs: AnyShape) -> Shape:
        left = require_array(function, "lhs", lhs)
        right = require_array(function, "rhs", rhs)
        require_same_element_type(function, lhs=left, rhs=right)
        require_element_type(function, "lhs", left, accepts)
        if left.dimensions != right.dimensions:
            raise ShapeError(f"{function}: shapes must be equal; lhs {left}, rhs {right}")
        return left

    shape_rule.__module__ = __name__
    return define(name, opcode)(shape_rule)


def broadcast_operands(
    function: str,
    lhs: Instruction,
    rhs: Instruction,
    broadcast_dimensions: Sequence[int] | None = None,
) -> tuple[Instruction, Instruction]:
    """Both operands brought to one shape by XLA's rules.

    Equal ranks: dimensions of size 1 stretch. Different ranks: the lower one must be a scalar, or
    ``broadcast_dimensions`` says, strictly increasing, which dimension of the higher one each of
    its dimensions matches; then dimensions of size 1 stretch as well.
    """
    left = require_array(function, "lhs", lhs.shape)
    right = require_array(function, "rhs", rhs.shape)
    if left.dimensions == right.dimensions and not broadcast_dimensions:
        return lhs, rhs
    low, high = (left, right) if left.rank < right.rank else (right, left)
    if broadcast_dimensions is None or (low.rank == high.rank and not broadcast_dimensions):
        if low.rank not in (0, high.rank):
            raise ShapeError(
                f"{function}: operands of different ranks need broadcast_dimensions; "
                f"lhs {left}, rhs {right}"
            )
        mapping = tuple(range(low.rank))
    else:
        mapping = tuple(broadcast_dimensions)
    if len(mapping) != low.rank:
        raise AttributeValueError(
            f"{function}: broadcast_dimensions {mapping} must name one dimension for each of the "
            f"lower-rank operand's; lhs {left}, rhs {right}"
        )
    if list(mapping) != sorted(set(mapping)) or any(not 0 <= d < high.rank for d in mapping):
        raise AttributeValueError(
            f"{function}: broadcast_dimensions {mapping} must be strictly increasing and below "
            f"rank {high.rank}; lhs {left}, rhs {right}"
        )
    sizes = list(high.dimensions)
    for position, dimension in enumerate(mapping):
        size = low.dimensions[position]
        if size != sizes[dimension] and 1 not in (size, sizes[dimension]):
            raise ShapeError(
                f"{function}: dimensions must be equal or 1; lhs {left}, rhs {right}: "
                f"{size} against {sizes[dimension]} in dimension {dimension}"
            )
        if sizes[dimension] == 1:
            sizes[dimension] = size
    low_wide, high_wide = (lhs, rhs) if left.rank < right.rank else (rhs, lhs)
    low_wide = broadcast_in_dim(low_wide, sizes, mapping)
    high_wide = broadcast_in_dim(high_wide, sizes, range(high.rank))
    return (low_wide, high_wide) if left.rank < right.rank else (high_wide, low_wide)


def _binary(
    op: Op, lhs: Instruction, rhs: Instruction, broadcast_dimensions: Sequence[int] | None
) -> Instruction:
    left, right = broadcast_operands(op.function, lhs, rhs, broadcast_dimensions)
    return make(op, left, right)


ADD = binary("Add", "add", ALL)


def add(
    lhs: Instruction, rhs: Instruction, broadcast_dimensions: Sequence[int] | None = None
) -> Instruction:
    """lhs + rhs; on pred, the logical or (XLA: Add)."""
    return _binary(ADD, lhs, rhs, broadcast_dimensions)


Builder = Callable[..., Instruction]
