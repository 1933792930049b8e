"""The boundaries of Concatenates' operands in an array that is computed from them.

cuts(root, region)         along each dimension, the boundaries
operand_boxes(i, box)      the boxes of its operands that a box of an instruction reads
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

from tracejit.graph import Instruction
from tracejit.ops.layout import BROADCAST_IN_DIM, CONCATENATE, PAD, RESHAPE, REV, SLICE

Box = tuple[tuple[int, int], ...]
"""A box: its beginning and end along each dimension."""


@dataclass(frozen=True)
class _Along:
    """A dimension whose index p is index ``by + sign * p`` of the root's ``dimension``.

    ``dimension`` is -1 where elements are repeated.
    """

    dimension: int = -1
    by: int = 0
    sign: int = 1

    def moved(self, by: int) -> _Along:
        """The mapping for an array whose index 0 is index ``by`` of this one."""
        return _Along(self.dimension, self.by + self.sign * by, self.sign)

    def turned(self, size: int) -> _Along:
        """The mapping for this array, of this size, reversed."""
        return _Along(self.dimension, self.by + self.sign * size, -self.sign)


def squeezed(reshape: Instruction) -> tuple[list[int], list[int]] | None:
    """The dimensions of a Reshape's result and of its operand, without those of size 1.

    None if they differ by more.
    """
    sizes, others = (i.array_shape.dimensions for i in (reshape, reshape.operands[0]))
    to = [d for d, size in enumerate(sizes) if size != 1]
    of = [d for d, size in enumerate(others) if size != 1]
    return (to, of) if [sizes[d] for d in to] == [others[d] for d in of] else None


def cuts(root: Instruction, region: Set[Instruction]) -> list[list[int]]:
    """The indices along each dimension of ``root`` between which ``region`` reads one operand
    each.

    The first is 0 and the last the dimension's size.
    """
    sizes = root.array_shape.dimensions
    found = [{0, size} for size in sizes]
    seen: set[tuple[Instruction, tuple[_Along, ...]]] = set()

    def visit(instruction: Instruction, along: Sequence[_Along]) -> None:
        key = instruction, tuple(along)
        if instruction not in region or key in seen:
            return
        seen.add(key)
        for d, place in _edges(instruction):
            at = along[d].by + along[d].sign * place
            if along[d].dimension >= 0 and 0 < at < sizes[along[d].dimension]:
                found[along[d].dimension].add(at)
        for operand, below in zip(instruction.operands, _below(instruction, along), strict=True):
            visit(operand, below)

    visit(root, [_Along(d) for d in range(len(sizes))])
    return [sorted(places) for places in found]


def _edges(instruction: Instruction) -> list[tuple[int, int]]:
    """The boundaries in a concatenation, each with its dimension."""
    if instruction.op is CONCATENATE:
        (axis,) = instruction.attributes["dimensions"]
        return [(axis, begin) for begin in begins(instruction)[1:]]
    if instruction.op is not PAD:
        return []
    sizes = instruction.operands[0].array_shape.dimensions
    padding = instruction.attributes["padding"]
    lows = [(d, p.low) for d, p in enumerate(padding)]
    return lows + [(d, p.low + sizes[d]) for d, p in enumerate(padding)]


def begins(joined: Instruction) -> list[int]:
    """The first index of each operand of a Concatenate."""
    (axis,) = joined.attributes["dimensions"]
    places = [0]
    for operand in joined.operands[:-1]:
        places.append(places[-1] + operand.array_shape.dimensions[axis])
    return places


def _below(instruction: Instruction, along: Sequence[_Along]) -> list[Sequence[_Along]]:
    """The mapping of each operand's dimensions."""
    op, attributes, operands = instruction.op, instruction.attributes, instruction.operands
    sizes = operands[0].array_shape.dimensions if operands else ()
    if op is CONCATENATE:
        (axis,) = attributes["dimensions"]
        return [
            [a.moved(begin) if d == axis else a for d, a in enumerate(along)]
            for begin in begins(instruction)
        ]
    if op is PAD:
        padding = attributes["padding"]
        return [[a.moved(p.low) for a, p in zip(along, padding, strict=True)], []]
    if op is SLICE:
        parts = zip(along, attributes["slice"], strict=True)
        return [[a.moved(-part.start) for a, part in parts]]
    if op is REV:
        turned = attributes["dimensions"]
        return [[a.turned(sizes[d]) if d in turned else a for d, a in enumerate(along)]]
    if op is BROADCAST_IN_DIM:
        placed = zip(attributes["dimensions"], sizes, strict=True)
        return [[_Along() if size == 1 else along[d] for d, size in placed]]
    if op is RESHAPE:
        made_of = dict(_squeezed_pairs(instruction))
        return [[along[made_of[d]] if d in made_of else _Along() for d in range(len(sizes))]]
    return [along if operand.array_shape.rank else [] for operand in operands]


def _squeezed_pairs(reshape: Instruction) -> list[tuple[int, int]]:
    """The operand's dimensions other than size 1, each with the result's dimension."""
    found = squeezed(reshape)
    assert found is not None, f"{reshape} does more than to add dimensions of size 1"
    return list(zip(found[1], found[0], strict=True))


def operand_boxes(instruction: Instruction, box: Box) -> list[Box | None]:
    """The box of each operand that a box without boundaries reads; None for unread operands."""
    op, attributes, operands = instruction.op, instruction.attributes, instruction.operands
    sizes = operands[0].array_shape.dimensions if operands else ()
    if op is CONCATENATE:
        (axis,) = attributes["dimensions"]
        return [
            _inside(box, o, axis, b) for o, b in zip(operands, begins(instruction), strict=True)
        ]
    if op is PAD:
        made = [
            (b - p.low, e - p.low) for (b, e), p in zip(box, attributes["padding"], strict=True)
        ]
        is_inside = all(0 <= b < size for (b, _), size in zip(made, sizes, strict=True))
        return [tuple(made), None] if is_inside else [None, ()]
    if op is SLICE:
        parts = zip(box, attributes["slice"], strict=True)
        return [tuple((b + part.start, e + part.start) for (b, e), part in parts)]
    if op is REV:
        turned = attributes["dimensions"]
        other = tuple((n - end, n - begin) for n, (begin, end) in zip(sizes, box, strict=True))
        return [tuple(other[d] if d in turned else box[d] for d in range(len(box)))]
    if op is BROADCAST_IN_DIM:
        placed = zip(attributes["dimensions"], sizes, strict=True)
        return [tuple((0, 1) if size == 1 else box[d] for d, size in placed)]
    if op is RESHAPE:
        made_of = dict(_squeezed_pairs(instruction))
        return [tuple(box[made_of[d]] if d in made_of else (0, 1) for d in range(len(sizes)))]
    return [box if operand.array_shape.rank else () for operand in operands]


def _inside(box: Box, operand: Instruction, axis: int, begin: int) -> Box | None:
    """The box as a box of an operand, if it is inside."""
    first, last = box[axis][0] - begin, box[axis][1] - begin
    if not 0 <= first < operand.array_shape.dimensions[axis]:
        return None
    return (*box[:axis], (first, last), *box[axis + 1 :])
