"""Instructions that XLA takes and the ops do not, as others in front of one that they do take.

A Broadcast whose dimensions are not in order is one of a Transpose; a dot or a convolution of two
element types is one of operands that are converted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracejit.graph import Instruction, Op
from tracejit.ops.contraction import DOT_GENERAL
from tracejit.ops.convolution import CONV_GENERAL_DILATED
from tracejit.ops.layout import BROADCAST_IN_DIM, transpose
from tracejit.ops.mixed_types import of_one_type
from tracejit.shapes import Shape


def with_normal_form(
    op: Op, operands: Sequence[Instruction], attributes: dict[str, Any]
) -> list[Instruction]:
    """The operands in the form that the op takes; ``attributes`` are changed to it."""
    if op in (DOT_GENERAL, CONV_GENERAL_DILATED) and isinstance(attributes["shape"], Shape):
        lhs, rhs = operands
        return [*of_one_type(lhs, rhs, attributes["shape"].element_type)]
    if op is BROADCAST_IN_DIM:
        (operand,) = operands
        dimensions: tuple[int, ...] | None = attributes["dimensions"]
        if dimensions is None:
            return [operand]
        in_order = tuple(sorted(set(dimensions)))
        is_permuted = len(in_order) == len(dimensions) and in_order != dimensions
        if is_permuted and isinstance(operand.shape, Shape) and operand.shape.rank == len(in_order):
            attributes["dimensions"] = in_order
            return [transpose(operand, [dimensions.index(d) for d in in_order])]
    return list(operands)
