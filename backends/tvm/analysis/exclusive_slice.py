"""The exclusive backward slice of an instruction: everything that only it needs."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence

from tracejit.graph import Instruction


def exclusive_slice(
    root: Instruction,
    users: Mapping[Instruction, Sequence[Instruction]],
    is_inner: Callable[[Instruction], bool],
    goes_on: Callable[[Instruction], bool] = lambda instruction: True,
    most: int = 1 << 14,
) -> set[Instruction]:
    """The root, and those below it that ``is_inner`` holds for and that nothing else needs.

    Where ``goes_on`` does not hold, nothing below is looked at. Where there are more than ``most``,
    some of them are left out.
    """
    region = {root}
    # The last made first, so that all users of an instruction have been looked at before it.
    waiting = [(-operand.serial, operand) for operand in set(root.operands)]
    heapq.heapify(waiting)
    seen = {operand for _, operand in waiting}
    while waiting and len(region) <= most:
        _, instruction = heapq.heappop(waiting)
        if not region.issuperset(users[instruction]):
            continue
        if is_inner(instruction):
            region.add(instruction)
            if goes_on(instruction):
                for operand in set(instruction.operands) - seen:
                    seen.add(operand)
                    heapq.heappush(waiting, (-operand.serial, operand))
    return region
