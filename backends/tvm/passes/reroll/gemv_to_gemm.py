"""Merges products of many vectors out of the same two arrays into one matrix product.

``data[:, i] @ data[:, i:]`` in an unrolled loop reads the whole array for each ``i``. One product
of all that is read, of which each step takes its part, reads it once for a whole tile of results.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from tracejit.backends.tvm.analysis.reaching_writes import Box, WrittenParts, box_of_slice, hull
from tracejit.graph import Instruction
from tracejit.ops.base import make
from tracejit.ops.constants import CONSTANT, PARAMETER
from tracejit.ops.contraction import DOT_GENERAL
from tracejit.ops.layout import RESHAPE, reshape, slice_
from tracejit.shapes import Shape
from tracejit.traversal import in_order, rebuild

# So many products are made together, and at most so many times as many elements as are wanted: one
# costs a tenth of what it costs in a product with a vector.
LEAST_PRODUCTS = 8
MOST_WASTE = 3
MOST_BYTES = 64 << 20


@dataclass(frozen=True)
class View:
    """A part of an array, and which of its dimensions are left of those of size 1."""

    array: Instruction
    box: Box
    dims: tuple[int, ...]


@dataclass
class _Joint:
    """The boxes of many products' operands, without the dimension that is summed over."""

    lhs: list[Box] = field(default_factory=list)
    rhs: list[Box] = field(default_factory=list)
    made: Instruction | None = None

    def is_worth_it(self, itemsize: int) -> bool:
        wanted = sum(_size(a) * _size(b) for a, b in zip(self.lhs, self.rhs, strict=True))
        size = _size(hull(self.lhs)) * _size(hull(self.rhs))
        return (
            len(self.lhs) >= LEAST_PRODUCTS
            and size <= MOST_WASTE * wanted
            and size * itemsize <= MOST_BYTES
        )


def merge_gemvs(roots: Sequence[Instruction]) -> list[Instruction]:
    """Equal ``roots``, with all that is changed made anew, in the old order.

    Sums of products may be added up in another order.
    """
    order = in_order(roots)
    found = _Products(order)
    return found.rebuilt(roots, order) if found.joints else list(roots)


class _Products:
    def __init__(self, order: Sequence[Instruction]) -> None:
        self._parts = WrittenParts()
        self.joints: dict[object, _Joint] = {}
        self._sides: dict[Instruction, tuple[View, View, object]] = {}
        for instruction in order:
            self._parts.add(instruction)
            if instruction.op is DOT_GENERAL:
                self._add(instruction)
        itemsizes = {key: dot.array_shape.dtype.itemsize for dot, (*_, key) in self._sides.items()}
        self.joints = {k: j for k, j in self.joints.items() if j.is_worth_it(itemsizes[k])}

    def _add(self, dot: Instruction) -> None:
        attributes = dot.attributes
        sums = attributes["lhs_contracting_dims"], attributes["rhs_contracting_dims"]
        if attributes["lhs_batch_dims"] or len(sums[0]) != 1 or not dot.array_shape.size:
            return
        lhs, rhs = (self._view(operand) for operand in dot.operands)
        if lhs is None or rhs is None:
            return
        summed = lhs.dims[sums[0][0]], rhs.dims[sums[1][0]]
        key = (
            lhs.array,
            rhs.array,
            summed,
            lhs.box[summed[0]],
            rhs.box[summed[1]],
            dot.array_shape.element_type,
            attributes["operand_precision"],
        )
        boxes = _without(lhs.box, summed[0]), _without(rhs.box, summed[1])
        if min(map(_size, boxes)) > 1:
            return
        joint = self.joints.setdefault(key, _Joint())
        joint.lhs.append(boxes[0])
        joint.rhs.append(boxes[1])
        self._sides[dot] = lhs, rhs, key

    def _view(self, operand: Instruction) -> View | None:
        """What an operand is of an array, as it was before all that has not changed that part."""
        inner = operand.operands[0] if operand.op is RESHAPE else operand
        box = box_of_slice(inner)
        if box is None:
            sizes = operand.array_shape.dimensions
            return View(operand, tuple((0, n) for n in sizes), tuple(range(len(sizes))))
        dims = _kept(inner.array_shape.dimensions, operand.array_shape.dimensions)
        array = inner.operands[0]
        return None if dims is None else View(self._parts.origin(array, box), box, dims)

    def rebuilt(
        self, roots: Sequence[Instruction], order: Sequence[Instruction]
    ) -> list[Instruction]:
        new: dict[Instruction, Instruction] = {}
        for instruction in order:
            if instruction.op in (CONSTANT, PARAMETER):
                new[instruction] = instruction
                continue
            lhs, rhs, key = self._sides.get(instruction, (None, None, None))
            joint = self.joints.get(key) if key else None
            if joint is None or lhs is None or rhs is None:
                new[instruction] = rebuild(instruction, [new[o] for o in instruction.operands])
                continue
            summed = (
                lhs.dims[instruction.attributes["lhs_contracting_dims"][0]],
                rhs.dims[instruction.attributes["rhs_contracting_dims"][0]],
            )
            hulls = hull(joint.lhs), hull(joint.rhs)
            if joint.made is None:
                operands = []
                for view, box, d in zip((lhs, rhs), hulls, summed, strict=True):
                    whole = (*box[:d], view.box[d], *box[d:])
                    limits = [start for start, _ in whole], [end for _, end in whole]
                    operands.append(slice_(new[view.array], *limits))
                joint.made = _product(instruction, operands, summed)
            boxes = (*_without(lhs.box, summed[0]), *_without(rhs.box, summed[1]))
            firsts = [first for first, _ in (*hulls[0], *hulls[1])]
            starts = [start - first for (start, _), first in zip(boxes, firsts, strict=True)]
            ends = [end - first for (_, end), first in zip(boxes, firsts, strict=True)]
            part = slice_(joint.made, starts, ends)
            new[instruction] = reshape(part, instruction.array_shape.dimensions)
        return [new[root] for root in roots]


def _product(
    dot: Instruction, operands: Sequence[Instruction], summed: tuple[int, int]
) -> Instruction:
    """The product of whole arrays, otherwise as ``dot``."""
    sizes = [
        size
        for operand, d in zip(operands, summed, strict=True)
        for n, size in enumerate(operand.array_shape.dimensions)
        if n != d
    ]
    shape = Shape(dot.array_shape.element_type, tuple(sizes))
    attributes = {
        **dot.attributes,
        "lhs_contracting_dims": summed[:1],
        "rhs_contracting_dims": summed[1:],
        "shape": shape,
    }
    return make(DOT_GENERAL, *operands, **attributes)


def _kept(sizes: Sequence[int], left: Sequence[int]) -> tuple[int, ...] | None:
    """Which dimensions are ``left`` when others, of size 1, are dropped; None if that is not so."""
    dims = []
    at = 0
    for size in left:
        while at < len(sizes) and sizes[at] == 1 != size:
            at += 1
        if at == len(sizes) or sizes[at] != size:
            return None
        dims.append(at)
        at += 1
    return tuple(dims) if all(size == 1 for size in sizes[at:]) else None


def _without(box: Box, dimension: int) -> Box:
    return (*box[:dimension], *box[dimension + 1 :])


def _size(box: Box) -> int:
    return math.prod(end - start for start, end in box)
