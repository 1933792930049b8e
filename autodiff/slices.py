"""Sums of cotangents that belong to slices apart: put side by side, not added up.

Each slice's cotangent comes as a Pad with zeros. Where the slices of an array differ in one
dimension and have nothing in common, as the layers of stacked weights, their sum is a Concatenate;
a sum of whole arrays, mostly zeros, would take their time and memory for each slice.
"""

from __future__ import annotations

from bisect import bisect_left

from tracejit.attributes import PaddingDimension
from tracejit.graph import Instruction
from tracejit.ops.constants import CONSTANT
from tracejit.ops.layout import PAD, concatenate, full, pad

Box = tuple[tuple[int, int], ...]
"""Where a slice lies: for each dimension its first element and the one behind its last."""


class Pieces:
    """Slices along one dimension, none over another, of an array that is zero elsewhere."""

    def __init__(self, first: Instruction, box: Box) -> None:
        self._shape = first.array_shape
        self._zero = first.operands[1]
        self._first = first.operands[0]
        self._box = box
        self._along: int | None = None
        self._starts: list[int] = []
        self._parts: list[tuple[int, Instruction]] = []
        """The end of each part along the dimension, and its cotangent, in the starts' order."""

    @classmethod
    def of(cls, cotangent: object) -> Pieces | None:
        """A Pad of a slice with zeros; None for anything else."""
        box = _box(cotangent)
        if box is None:
            return None
        assert isinstance(cotangent, Instruction)
        return cls(cotangent, box)

    def takes(self, cotangent: object) -> bool:
        """Adds another slice's cotangent, if the slice differs in one dimension and lies apart."""
        box = _box(cotangent)
        if box is None:
            return False
        assert isinstance(cotangent, Instruction)
        others = [d for d, (a, b) in enumerate(zip(self._box, box, strict=True)) if a != b]
        if self._along is None and len(others) == 1:
            self._along = others[0]
            self._put(self._box[self._along], self._first)
        if others != [self._along]:
            return False
        return self._put(box[others[0]], cotangent.operands[0])

    def _put(self, span: tuple[int, int], cotangent: Instruction) -> bool:
        start, end = span
        place = bisect_left(self._starts, start)
        if place < len(self._starts) and self._starts[place] < end:
            return False
        if place and self._parts[place - 1][0] > start:
            return False
        self._starts.insert(place, start)
        self._parts.insert(place, (end, cotangent))
        return True

    def joined(self) -> Instruction:
        """The sum of all cotangents."""
        box, made = list(self._box), self._first
        if self._along is not None:
            box[self._along] = (self._starts[0], self._parts[-1][0])
            made = concatenate(self._without_gaps(self._along), self._along)
        sizes = self._shape.dimensions
        if made.array_shape.dimensions == sizes:
            return made
        around = [
            PaddingDimension(start, size - end)
            for (start, end), size in zip(box, sizes, strict=True)
        ]
        return pad(made, self._zero, around)

    def _without_gaps(self, along: int) -> list[Instruction]:
        made: list[Instruction] = []
        reached = self._starts[0]
        for start, (end, part) in zip(self._starts, self._parts, strict=True):
            if reached < start:
                sizes = list(part.array_shape.dimensions)
                sizes[along] = start - reached
                made.append(full(self._shape.with_dimensions(sizes), 0))
            made.append(part)
            reached = end
        return made


def _box(cotangent: object) -> Box | None:
    """Where a Pad with zeros, which neither crops nor spreads, puts its operand."""
    if not isinstance(cotangent, Instruction) or cotangent.op is not PAD:
        return None
    operand, value = cotangent.operands
    padding = cotangent.attributes["padding"]
    if value.op is not CONSTANT or value.attributes["literal"] != 0:
        return None
    if cotangent.array_shape.is_dynamic or operand.array_shape.is_dynamic:
        return None
    if any(entry.interior or entry.low < 0 or entry.high < 0 for entry in padding):
        return None
    sizes = operand.array_shape.dimensions
    return tuple((p.low, p.low + size) for p, size in zip(padding, sizes, strict=True))
