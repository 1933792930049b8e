"""Sums of cotangents that belong to slices: put side by side where they do not overlap.

A slice's cotangent comes as a Pad with zeros. A sum of Pads would take the time and memory of the
whole array for each slice. Cotangents of the same slice are added up as they are. Then slices
that differ in one dimension and have nothing in common, as the layers of stacked weights or the
elements that a loop reads, make one Concatenate. Where slices overlap, as windows do, there are as
many of these as cover one element, and only they are added up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from heapq import heappop, heappush

from tracejit.attributes import PaddingDimension
from tracejit.graph import Instruction
from tracejit.ops.constants import CONSTANT
from tracejit.ops.elementwise import add
from tracejit.ops.layout import PAD, concatenate, full, pad, scalar_like
from tracejit.shapes import Shape

Box = tuple[tuple[int, int], ...]
"""Where a slice lies: for each dimension its first element and the one behind its last."""
SliceCotangent = tuple[Box, Instruction]
"""A slice and its cotangent."""
Padding = tuple[PaddingDimension, ...]


class Slices:
    """Cotangents of slices of an array of ``shape``, which is zero elsewhere."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._added: dict[tuple[Padding, Shape], Instruction] = {}
        self._pads: dict[tuple[Padding, Instruction], Instruction] = {}

    def takes(self, cotangent: Instruction) -> bool:
        """Adds a Pad with zeros; says no to anything else."""
        if cotangent.op is not PAD or cotangent.array_shape.is_dynamic:
            return False
        part, value = cotangent.operands
        if value.op is not CONSTANT or value.attributes["literal"] != 0:
            return False
        padding = cotangent.attributes["padding"]
        self._pads[padding, part] = cotangent
        key = padding, part.array_shape
        known = self._added.get(key)
        self._added[key] = part if known is None else add(known, part)
        return True

    def arrays(self) -> list[Instruction]:
        """Arrays of the whole shape whose sum is that of all cotangents."""
        made, parts = [], list[SliceCotangent]()
        for (padding, given), part in self._added.items():
            if any(p.interior or p.low < 0 or p.high < 0 for p in padding):
                made.append(self._padded(part, padding))
            elif given.size or len(self._added) == 1:
                sizes = zip(padding, given.dimensions, strict=True)
                parts.append((tuple((p.low, p.low + size) for p, size in sizes), part))
        for dimension in reversed(range(self._shape.rank)):
            parts = self._joined(parts, dimension)
        everywhere = tuple((0, size) for size in self._shape.dimensions)
        whole = [self._padded(part, _around(box, everywhere)) for box, part in parts]
        return [*whole, *made]

    def _padded(self, part: Instruction, padding: Padding) -> Instruction:
        """The part with zeros around, the Pad that it came as if it did."""
        if all(entry == PaddingDimension() for entry in padding):
            return part
        return self._pads.get((padding, part)) or pad(part, scalar_like(part, 0), padding)

    def _joined(self, parts: list[SliceCotangent], along: int) -> list[SliceCotangent]:
        """Slices that differ in one dimension put together, and those in the others lined up."""
        rows: dict[Box, list[SliceCotangent]] = {}
        for box, part in parts:
            rows.setdefault((*box[:along], *box[along + 1 :]), []).append((box, part))
        made = [
            _side_by_side(layer, along) for row in rows.values() for layer in _layers(row, along)
        ]
        spans = {box[along] for box, _ in made}
        if len(spans) < 2 or len({box[:along] for box, _ in made}) < 2:
            return made
        hull = (min(start for start, _ in spans), max(end for _, end in spans))
        boxes = [(*box[:along], hull, *box[along + 1 :]) for box, _ in made]
        if sum(map(_size, boxes)) > self._shape.size:
            return made
        return [_stretched(part, box) for part, box in zip(made, boxes, strict=True)]


def _size(box: Box) -> int:
    return math.prod(end - start for start, end in box)


def _layers(row: Sequence[SliceCotangent], along: int) -> list[list[SliceCotangent]]:
    """The slices in as few lists as possible, without overlaps inside a list."""
    layers: list[list[SliceCotangent]] = []
    ends: list[tuple[int, int]] = []
    for part in sorted(row, key=lambda part: part[0][along]):
        start, end = part[0][along]
        layer = heappop(ends)[1] if ends and ends[0][0] <= start else len(layers)
        if layer == len(layers):
            layers.append([])
        layers[layer].append(part)
        heappush(ends, (end, layer))
    return layers


def _side_by_side(layer: Sequence[SliceCotangent], along: int) -> SliceCotangent:
    """Slices in order as one, with zeros between them."""
    if len(layer) == 1:
        return layer[0]
    box = layer[0][0]
    made: list[Instruction] = []
    first = reached = box[along][0]
    for place, part in layer:
        start, end = place[along]
        if reached < start:
            sizes = list(part.array_shape.dimensions)
            sizes[along] = start - reached
            made.append(full(part.array_shape.with_dimensions(sizes), 0))
        made.append(part)
        reached = end
    return (*box[:along], (first, reached), *box[along + 1 :]), concatenate(made, along)


def _stretched(part: SliceCotangent, box: Box) -> SliceCotangent:
    """A slice as part of a greater one."""
    own, cotangent = part
    return box, pad(cotangent, scalar_like(cotangent, 0), _around(own, box))


def _around(box: Box, whole: Box) -> Padding:
    """What lies around one box in another."""
    spans = zip(box, whole, strict=True)
    return tuple(PaddingDimension(a - low, high - b) for (a, b), (low, high) in spans)
