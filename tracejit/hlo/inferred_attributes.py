"""Attributes that text may leave out though XLA prints them: they follow from the operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tracejit.graph import Instruction, Op
from tracejit.ops.contraction import DOT_GENERAL
from tracejit.ops.control import MAP
from tracejit.ops.layout import BROADCAST_IN_DIM
from tracejit.ops.tokens import OUTFEED
from tracejit.shapes import AnyShape, Shape

_Usual = Callable[[Sequence[Instruction], Mapping[str, Any]], Any]


def _product(operands: Sequence[Instruction], attributes: Mapping[str, Any]) -> Shape:
    """The result of a dot of the operands' element type; sizes that fit no dot are kept wrong."""
    sizes: list[int] = []
    for side, operand in zip(("lhs", "rhs"), operands, strict=True):
        batch, contracting = (
            attributes[f"{side}_batch_dims"],
            attributes[f"{side}_contracting_dims"],
        )
        dimensions = operand.array_shape.dimensions
        if side == "lhs":
            sizes += [dimensions[d] for d in batch if 0 <= d < len(dimensions)]
        taken = {*batch, *contracting}
        sizes += [size for d, size in enumerate(dimensions) if d not in taken]
    return Shape(operands[0].array_shape.element_type, tuple(sizes))


def _all_dimensions(operands: Sequence[Instruction], _: Mapping[str, Any]) -> tuple[int, ...]:
    return tuple(range(operands[0].array_shape.rank))


def _of_a_scalar(_: Sequence[Instruction], __: Mapping[str, Any]) -> tuple[int, ...]:
    return ()


def _operand_shape(operands: Sequence[Instruction], _: Mapping[str, Any]) -> AnyShape:
    return operands[0].shape


LEFT_OUT: Mapping[Op, Mapping[str, _Usual]] = {
    BROADCAST_IN_DIM: {"dimensions": _of_a_scalar},
    DOT_GENERAL: {"shape": _product},
    MAP: {"dimensions": _all_dimensions},
    OUTFEED: {"outfeed_shape": _operand_shape},
}
"""By op and attribute, what makes the value of the operands and the other attributes."""
