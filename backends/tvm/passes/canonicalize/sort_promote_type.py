"""Widens the keys of 8- and 16-bit Sorts to 32 bits, which vector compress instructions support.

promote_sort_keys(roots)        sort(x: s16) -> s16(sort(s32(x)))
"""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.backends.tvm.analysis.sort_keys import order_of
from tracejit.graph import Instruction
from tracejit.ops.element_types import convert_element_type
from tracejit.ops.reduction import SORT, sort, sort_order
from tracejit.shapes import ElementType, Shape
from tracejit.traversal import transform

_WIDE = {
    **dict.fromkeys((ElementType.S8, ElementType.S16, ElementType.PRED), ElementType.S32),
    **dict.fromkeys((ElementType.U8, ElementType.U16), ElementType.S32),
    **dict.fromkeys((ElementType.F16, ElementType.BF16), ElementType.F32),
}


def promote_sort_keys(roots: Sequence[Instruction]) -> list[Instruction]:
    """Equal ``roots``, for a processor with vector compress."""
    return transform(roots, _widened)


def _widened(instruction: Instruction, operands: tuple[Instruction, ...]) -> Instruction | None:
    if instruction.op is not SORT or not isinstance(instruction.shape, Shape):
        return None
    element_type = instruction.shape.element_type
    order = order_of(instruction.attributes["to_apply"])
    if order is None or element_type not in _WIDE:
        return None
    if element_type.is_floating and order.total:
        # A conversion would merge different NaN.
        return None
    wide = _WIDE[element_type]
    (dimension,) = instruction.attributes["dimensions"]
    comparator = sort_order(wide, descending=order.descending)
    keys = convert_element_type(operands[0], wide)
    made = sort(keys, comparator, dimension, instruction.attributes["is_stable"])
    return convert_element_type(made, element_type)
