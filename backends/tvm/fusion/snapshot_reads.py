"""Write-after-read hazards: small slices are copied before an update overwrites what they read.

    snapshot_reads(order, users, writers)

What a kernel computes of such a part together with what the update has made would need the array as
it was and as it is: a copy of all of it. The part has memory of its own instead, and the update
takes place in the array.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tracejit.backends.tvm.ir.reshapes import base_buffer
from tracejit.graph import Instruction
from tracejit.ops.indexing import SCATTER
from tracejit.ops.layout import DYNAMIC_SLICE, DYNAMIC_UPDATE_SLICE, SLICE

# A part is small if the array is so many times greater; so many instructions are asked.
SMALL = 4
NEAR = 256

Links = Mapping[Instruction, Sequence[Instruction]]


def snapshot_reads(order: Iterable[Instruction], users: Links, writers: Links) -> set[Instruction]:
    """Which of the slices in a graph are to have memory.

    ``writers`` has for an array what may work in its memory.
    """
    found = set()
    for part in order:
        if part.op not in (DYNAMIC_SLICE, SLICE):
            continue
        array = base_buffer(part.operands[0])
        if part.array_shape.size * SMALL > array.array_shape.size:
            continue
        updates = [w for w in writers.get(array, ()) if w.op in (DYNAMIC_UPDATE_SLICE, SCATTER)]
        if len(updates) == 1 and _meet(part, updates[0], users):
            found.add(part)
    return found


def _meet(part: Instruction, update: Instruction, users: Links) -> bool:
    """Whether something needs both, the part not by way of the update."""
    made = _above(update, users, None)
    return not made.isdisjoint(_above(part, users, update))


def _above(
    instruction: Instruction, users: Links, apart_from: Instruction | None
) -> set[Instruction]:
    """What needs an instruction otherwise than by way of another one; few are asked."""
    found: set[Instruction] = set()
    stack = [instruction]
    while stack and len(found) < NEAR:
        for user in users[stack.pop()]:
            if user not in found and user is not apart_from:
                found.add(user)
                stack.append(user)
    return found
