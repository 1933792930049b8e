"""Array regions: the index ranges of slices and updates, as affine functions of loop counters.

    versions_of(part, made)             the array before and after each write
    region_of(whole, part, starts)      the region of a slice or an update
    read_region(read)                   the region of a read
    are_apart(one, other)               whether two regions are disjoint

Use them inside `CountedLoop.known`, where the bounds of counters are known.
"""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.affine import Affine
from tracejit.backends.tvm.analysis.contiguous_access import is_within
from tracejit.backends.tvm.analysis.induction import place_of
from tracejit.graph import Instruction
from tracejit.ops.layout import DYNAMIC_UPDATE_SLICE, SLICE
from tracejit.trace.affine_bounds import least

Range = tuple[Affine, Affine] | None
"""A half-open range of indices; None where it is unknown."""


def versions_of(part: Instruction, made: Instruction) -> list[Instruction]:
    """An array before and after each of the writes from ``part`` to ``made``; one
    version if none.
    """
    found = [made]
    while found[-1] is not part:
        if found[-1].op is not DYNAMIC_UPDATE_SLICE:
            return found[:1]
        found.append(found[-1].operands[0])
    return found[::-1]


def region_of(whole: Instruction, part: Instruction, starts: Sequence[Instruction]) -> list[Range]:
    """The region of a slice or an update, if its start is not clamped."""
    found: list[Range] = []
    sizes = zip(whole.array_shape.dimensions, part.array_shape.dimensions, starts, strict=True)
    for total, size, start in sizes:
        first = place_of(start)
        end = None if first is None else first + size
        is_sure = first is not None and end is not None and is_within(first, end, total)
        found.append((first, end) if is_sure and first is not None and end is not None else None)
    return found


def read_region(read: Instruction) -> list[Range]:
    """The region of a Slice or a DynamicSlice; with strides, its bounding box."""
    if read.op is SLICE:
        return [(Affine(part.start), Affine(part.limit)) for part in read.attributes["slice"]]
    return region_of(read.operands[0], read, read.operands[1:])


def are_apart(one: Sequence[Range], other: Sequence[Range]) -> bool:
    """Whether two regions are provably disjoint."""
    for left, right in zip(one, other, strict=True):
        if left is None or right is None:
            continue
        rooms = least(left[0] - right[1]), least(right[0] - left[1])
        if any(room is not None and room >= 0 for room in rooms):
            return True
    return False
