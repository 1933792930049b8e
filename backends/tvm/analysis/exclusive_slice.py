"""The exclusive backward slice of an instruction: its operands that nothing else uses."""

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
    """The root and its transitive operands that satisfy ``is_inner`` and have no user outside the
    slice.

    Operands of instructions that fail ``goes_on`` are not visited. If there are more than
    ``most``, some are left out.
    """
    region = {root}
    # In reverse order of creation, so that all users of an instruction are visited before it.
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
