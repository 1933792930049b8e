"""Liveness of tuple elements: which elements of a tuple are used."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tracejit.graph import Instruction
from tracejit.ops.constants import GET_TUPLE_ELEMENT
from tracejit.traversal import in_order


def live_elements(
    roots: Sequence[Instruction], is_asked: Callable[[Instruction], bool]
) -> dict[Instruction, set[int]]:
    """The live elements of each instruction for which ``is_asked``.

    Instructions that are used as a whole, or are roots, are left out.
    """
    order = in_order(roots)
    used: dict[Instruction, set[int]] = {i: set() for i in order if is_asked(i)}
    for root in roots:
        used.pop(root, None)
    for instruction in order:
        for operand in instruction.operands:
            if operand not in used:
                continue
            if instruction.op is GET_TUPLE_ELEMENT:
                used[operand].add(instruction.attributes["index"])
            else:
                del used[operand]
    return used
