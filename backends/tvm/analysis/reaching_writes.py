"""Reaching writes: which earlier updates of an array a Slice can read; often none.

A loop that Python has unrolled writes element after element, each into what the one before has
made, and reads ``x[i]`` out of that, which nobody has written yet: it lies in the array as it was.
"""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.graph import Instruction
from tracejit.ops.constants import CONSTANT
from tracejit.ops.layout import DYNAMIC_UPDATE_SLICE, SLICE

Box = tuple[tuple[int, int], ...]
"""A part of an array: in each dimension where it begins, and where it ends."""

# What has been written is remembered as so many boxes at most.
BOXES = 4


class WrittenParts:
    """What updates have written since the array that they all began with.

    ``add`` wants each instruction of a graph, in order.
    """

    def __init__(self) -> None:
        self._written: dict[Instruction, tuple[Instruction, tuple[Box, ...]]] = {}

    def add(self, instruction: Instruction) -> None:
        """Remembers what an update writes; anything else is left alone."""
        box = box_of_update(instruction)
        if box is not None:
            operand = instruction.operands[0]
            base, boxes = self._written.get(operand, (operand, ()))
            self._written[instruction] = base, _with(boxes, box)

    def origin(self, array: Instruction, box: Box) -> Instruction:
        """Where a part of an array may be read just as well: before all that has not changed it."""
        base, boxes = self._written.get(array, (array, ()))
        return base if all(_are_apart(box, one) for one in boxes) else array


def box_of_slice(instruction: Instruction) -> Box | None:
    """What a Slice without strides reads; None of all others."""
    if instruction.op is not SLICE or not instruction.array_shape.size:
        return None
    cuts = instruction.attributes["slice"]
    if any(cut.stride != 1 for cut in cuts):
        return None
    return tuple((cut.start, cut.limit) for cut in cuts)


def box_of_update(instruction: Instruction) -> Box | None:
    """What a DynamicUpdateSlice at a known place writes; None of all others."""
    if instruction.op is not DYNAMIC_UPDATE_SLICE:
        return None
    operand, update, *starts = instruction.operands
    if any(start.op is not CONSTANT for start in starts) or not update.array_shape.size:
        return None
    box = []
    sizes = zip(operand.array_shape.dimensions, update.array_shape.dimensions, strict=True)
    for start, (whole, size) in zip(starts, sizes, strict=True):
        first = min(max(int(start.attributes["literal"]), 0), whole - size)
        box.append((first, first + size))
    return tuple(box)


def _are_apart(one: Box, other: Box) -> bool:
    return any(a[1] <= b[0] or b[1] <= a[0] for a, b in zip(one, other, strict=True))


def _with(boxes: Sequence[Box], box: Box) -> tuple[Box, ...]:
    """Boxes that have all of ``boxes`` and one more; where they are too many, more than that."""
    kept = list(boxes)
    while kept:
        union = hull((kept[-1], box))
        differing = [d for d, (a, b) in enumerate(zip(kept[-1], box, strict=True)) if a != b]
        touch = all(a[0] <= b[1] and b[0] <= a[1] for a, b in zip(kept[-1], box, strict=True))
        if box != union != kept[-1] and not (len(differing) == 1 and touch):
            break
        kept.pop()
        box = union
    kept.append(box)
    return tuple(kept) if len(kept) <= BOXES else (hull(kept),)


def hull(boxes: Sequence[Box]) -> Box:
    """The least box around some."""
    return tuple(
        (min(start for start, _ in along), max(end for _, end in along))
        for along in zip(*boxes, strict=True)
    )
