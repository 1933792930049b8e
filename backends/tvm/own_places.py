"""What an update reads of the array that it updates: its own places, or others.

An update that reads an element of the array only where it writes that element, or that is one
element, may be computed while it is stored. Any other has to be computed before.
"""

from __future__ import annotations

from collections.abc import Callable

from tracejit.backends.tvm.reshapes import stripped
from tracejit.backends.tvm.scope import pointwise
from tracejit.graph import Instruction
from tracejit.ops.layout import DYNAMIC_SLICE, DYNAMIC_UPDATE_SLICE, RESHAPE


def reads_elsewhere(update: Instruction, is_stored: Callable[[Instruction], bool]) -> bool:
    """Whether an update reads the array that it updates at other places than it writes.

    ``update`` is a DynamicUpdateSlice or a Scatter; ``is_stored`` tells what has memory.
    """
    array = stripped(update.operands[0])
    if update.op is DYNAMIC_UPDATE_SLICE:
        _, value, *starts = update.operands
        if value.array_shape.size == 1:
            return False
        stack = [(value, True), *((start, False) for start in starts)]
    else:
        value, starts = update, []
        stack = [(operand, False) for operand in update.operands[1:]]
    seen: set[tuple[Instruction, bool]] = set()
    while stack:
        asked = stack.pop()
        if asked in seen:
            continue
        seen.add(asked)
        instruction, straight = asked
        if instruction is array:
            return True
        if is_stored(instruction):
            continue
        if (
            straight
            and instruction.op is DYNAMIC_SLICE
            and stripped(instruction.operands[0]) is array
        ):
            _, *places = instruction.operands
            same = instruction.array_shape.dimensions == value.array_shape.dimensions
            if same and places == starts:
                stack.extend((place, False) for place in places)
                continue
        keeps = straight and (
            instruction.op is RESHAPE or pointwise.get(instruction.op) is not None
        )
        stack.extend((operand, keeps) for operand in instruction.operands)
    return False
