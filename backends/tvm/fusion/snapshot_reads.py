"""Breaks write-after-read hazards: copies small slices before an update overwrites their array.

A kernel that reads both such a slice and the update's result would need the array before and after
the update: a copy of all of it. The slice is materialised instead, and the update is done in
place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tracejit.backends.tvm.ir.reshapes import base_buffer
from tracejit.graph import Instruction
from tracejit.ops.indexing import SCATTER
from tracejit.ops.layout import DYNAMIC_SLICE, DYNAMIC_UPDATE_SLICE, SLICE

# The least ratio of array to slice, and the most users visited.
SMALL = 4
NEAR = 256

Links = Mapping[Instruction, Sequence[Instruction]]


def snapshot_reads(order: Iterable[Instruction], users: Links, writers: Links) -> set[Instruction]:
    """The slices of a graph to materialise.

    ``writers`` maps arrays to the instructions that may write to their buffer.
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
    """Whether an instruction depends on both, on the slice not only through the update."""
    made = _above(update, users, None)
    return not made.isdisjoint(_above(part, users, update))


def _above(
    instruction: Instruction, users: Links, apart_from: Instruction | None
) -> set[Instruction]:
    """Transitive users not reached through ``apart_from``; the search stops after `NEAR`
    instructions.
    """
    found: set[Instruction] = set()
    stack = [instruction]
    while stack and len(found) < NEAR:
        for user in users[stack.pop()]:
            if user not in found and user is not apart_from:
                found.add(user)
                stack.append(user)
    return found
