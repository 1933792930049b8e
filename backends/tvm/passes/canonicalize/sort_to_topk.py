"""Turns a Sort with only its first few elements used into a selection (FirstSorted).

convert_sorts_to_topk(roots, limits)        sort(x)[:10] -> first_sorted(x, 10)
"""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.backends.tvm.analysis.sort_keys import order_of
from tracejit.backends.tvm.ir.internal_ops import FIRST_SORTED
from tracejit.backends.tvm.ir.limits import Limits
from tracejit.graph import Instruction
from tracejit.ops.base import make
from tracejit.ops.constants import GET_TUPLE_ELEMENT, get_tuple_element
from tracejit.ops.layout import SLICE, slice_
from tracejit.ops.reduction import SORT
from tracejit.shapes import ElementType
from tracejit.traversal import in_order, transform


def convert_sorts_to_topk(roots: Sequence[Instruction], limits: Limits) -> list[Instruction]:
    """Equal ``roots`` in which sorts stop at the last element that is used, if that pays."""
    order = in_order(roots)
    sorts = [i for i in order if i.op is SORT]
    if not sorts:
        return list(roots)
    used = {sort: 0 for sort in sorts}
    elements = {i: i.operands[0] for i in order if i.op is GET_TUPLE_ELEMENT}
    whole = {elements.get(root, root) for root in roots}
    for instruction in order:
        for operand in instruction.operands:
            sort = elements.get(operand, operand)
            if sort not in used or instruction in elements:
                continue
            if instruction.op is SLICE:
                used[sort] = max(used[sort], instruction.attributes["slice"][_axis(sort)].limit)
            else:
                whole.add(sort)
    pays = {sort: count for sort, count in used.items() if _pays(sort, count, limits)}
    kept = {sort: count for sort, count in pays.items() if sort not in whole}

    def visit(instruction: Instruction, operands: tuple[Instruction, ...]) -> Instruction | None:
        if instruction in kept:
            count = kept[instruction]
            return make(FIRST_SORTED, *operands, **instruction.attributes, kept=count)
        if elements.get(instruction) in kept:
            return get_tuple_element(operands[0], instruction.attributes["index"])
        if instruction.op is SLICE and _sort_of(instruction, elements) in kept:
            parts = instruction.attributes["slice"]
            if operands[0].array_shape.dimensions == instruction.array_shape.dimensions:
                return operands[0]
            return slice_(
                operands[0],
                [part.start for part in parts],
                [part.limit for part in parts],
                [part.stride for part in parts],
            )
        return None

    return transform(roots, visit) if kept else list(roots)


def _axis(sort: Instruction) -> int:
    axis: int = sort.attributes["dimensions"][0]
    return axis


def _sort_of(slice_: Instruction, elements: dict[Instruction, Instruction]) -> Instruction:
    """The sort that a slice reads, possibly through a GetTupleElement."""
    (operand,) = slice_.operands
    return elements.get(operand, operand)


def _pays(sort: Instruction, count: int, limits: Limits) -> bool:
    length = sort.operands[0].array_shape.dimensions[_axis(sort)]
    order = order_of(sort.attributes["to_apply"])
    if order is None:
        return False
    # Booleans are sorted by a linear pass, whatever the number kept.
    is_flag = order.element_type is ElementType.PRED
    return 0 < count < length if is_flag else limits.selects(count, length)
