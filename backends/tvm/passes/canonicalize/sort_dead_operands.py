"""Removes operands of a Sort whose sorted results have no users.

    eliminate_dead_sort_operands(roots)        sort(x, iota)[0] -> sort(x)

Operands that the comparator reads stay.
"""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.backends.tvm.analysis.tuple_liveness import live_elements
from tracejit.graph import Computation, Instruction
from tracejit.ops.base import make
from tracejit.ops.constants import GET_TUPLE_ELEMENT, get_tuple_element, parameter
from tracejit.ops.reduction import SORT, sort_order
from tracejit.shapes import TupleShape
from tracejit.traversal import in_order, substitute, transform


def eliminate_dead_sort_operands(roots: Sequence[Instruction]) -> list[Instruction]:
    """Equal ``roots`` whose sorts have only live operands."""
    used = live_elements(roots, lambda i: i.op is SORT and isinstance(i.shape, TupleShape))
    kept = {sort: sorted(numbers | _compared(sort)) for sort, numbers in used.items()}
    kept = {sort: numbers for sort, numbers in kept.items() if _is_shorter(sort, numbers)}

    def visit(instruction: Instruction, operands: tuple[Instruction, ...]) -> Instruction | None:
        if instruction in kept:
            return _shorter(instruction, operands, kept[instruction])
        if instruction.op is not GET_TUPLE_ELEMENT or instruction.operands[0] not in kept:
            return None
        numbers = kept[instruction.operands[0]]
        if len(numbers) == 1:
            return operands[0]
        return get_tuple_element(operands[0], numbers.index(instruction.attributes["index"]))

    return transform(roots, visit) if kept else list(roots)


def _is_shorter(sort: Instruction, numbers: Sequence[int]) -> bool:
    return 0 < len(numbers) < len(sort.operands)


def _compared(sort: Instruction) -> set[int]:
    """The operands that the comparator reads."""
    comparator = sort.attributes["to_apply"]
    reached = set(in_order([comparator.root]))
    return {number // 2 for number, p in enumerate(comparator.parameters) if p in reached}


def _shorter(
    sort: Instruction, operands: Sequence[Instruction], numbers: Sequence[int]
) -> Instruction:
    comparator = _of_parts(sort.attributes["to_apply"], numbers)
    arrays = [operands[number] for number in numbers]
    return make(SORT, *arrays, **{**sort.attributes, "to_apply": comparator})


def _of_parts(comparator: Computation, numbers: Sequence[int]) -> Computation:
    """The comparator of some of the operands; one from `sort_order` stays one."""
    types = [p.array_shape.element_type for p in comparator.parameters[::2]]
    rest = [types[number] for number in numbers]
    if numbers[0] == 0:
        for descending in (False, True):
            if comparator is sort_order(*types, descending=descending):
                return sort_order(*rest, descending=descending)
    old = [p for number in numbers for p in comparator.parameters[2 * number : 2 * number + 2]]
    new = tuple(parameter(place, p.shape) for place, p in enumerate(old))
    (root,) = substitute([comparator.root], dict(zip(old, new, strict=True)))
    return Computation(comparator.name, new, root)
