"""Bounds inference: which rows of each input the given rows of an array are computed from.

    needed = needed_rows(root, (8, 16), region)     # of each instruction, the rows that it takes
    rows = made_rows(root, needed, region, leaf)    # what makes them, of rows of what lies outside

Rows are places along the first dimension. The ``region`` are instructions that `can_be_cut`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from tracejit.attributes import PaddingDimension
from tracejit.backends.tvm.analysis.element_rules import pointwise
from tracejit.graph import Instruction
from tracejit.ops.constants import CONSTANT, IOTA
from tracejit.ops.layout import (
    BROADCAST_IN_DIM,
    CONCATENATE,
    DYNAMIC_UPDATE_SLICE,
    PAD,
    RESHAPE,
    REV,
    SLICE,
    TRANSPOSE,
    broadcast_in_dim,
    concatenate,
    dynamic_update_slice,
    pad,
    scalar_like,
    slice_,
    slice_in_dim,
)
from tracejit.shapes import Shape

Rows = tuple[int, int]
"""The first, and the one behind the last."""
Needed = Mapping[Instruction, Sequence[Rows]]
"""Rows of instructions, in runs that are apart."""

# So many instructions are looked at, those that are read at several places more than once.
_MOST_VISITED = 1 << 14


def resized(
    instruction: Instruction, operands: Sequence[Instruction], axis: int, size: int
) -> Instruction:
    """The same op on operands, and of a result, of another size along one dimension."""
    sizes = [*instruction.array_shape.dimensions]
    sizes[axis] = size
    shape, attributes = instruction.array_shape.with_dimensions(sizes), instruction.attributes
    if "shape" in attributes:
        attributes = {**attributes, "shape": shape}
    return Instruction(instruction.op, tuple(operands), shape, attributes, instruction.source)


def can_be_cut(instruction: Instruction) -> bool:
    """Whether rows of an instruction are made of rows of its operands."""
    op, attributes = instruction.op, instruction.attributes
    shape = instruction.shape
    if not isinstance(shape, Shape) or not shape.rank or shape.is_dynamic:
        return False
    if op is SLICE:
        return bool(attributes["slice"][0].stride == 1)
    if op is PAD:
        return not attributes["padding"][0].interior
    if op is TRANSPOSE:
        return bool(attributes["dimensions"][0] == 0)
    if op is RESHAPE:
        of = instruction.operands[0].array_shape.dimensions
        return of[:1] == shape.dimensions[:1]
    if op is DYNAMIC_UPDATE_SLICE:
        return all(i.op is CONSTANT and not i.array_shape.rank for i in instruction.operands[2:])
    if op is REV:
        return 0 not in attributes["dimensions"]
    if op is IOTA:
        return bool(attributes["iota_dimension"])
    return op in (BROADCAST_IN_DIM, CONCATENATE) or pointwise.get(op) is not None


def _first_row(update: Instruction) -> int:
    """Where an update begins, moved to where it fits."""
    array, part, start, *_ = update.operands
    room = array.array_shape.dimensions[0] - part.array_shape.dimensions[0]
    return min(max(int(start.attributes["literal"]), 0), room)


def _parts(instruction: Instruction) -> list[tuple[Instruction, int]] | None:
    """Of what is put together along rows: the operands, and where the rows of each begin."""
    if instruction.op is PAD:
        return [(instruction.operands[0], instruction.attributes["padding"][0].low)]
    if instruction.op is DYNAMIC_UPDATE_SLICE:
        array, part = instruction.operands[:2]
        return [(array, 0), (part, _first_row(instruction))]
    if instruction.op is CONCATENATE and instruction.attributes["dimensions"] == (0,):
        begins, begin = [], 0
        for operand in instruction.operands:
            begins.append((operand, begin))
            begin += operand.array_shape.dimensions[0]
        return begins
    return None


def _straight(instruction: Instruction) -> list[tuple[Instruction, int]]:
    """Of all others: the operands that have rows, and how far on theirs are."""
    if instruction.op is BROADCAST_IN_DIM:
        has_rows = instruction.attributes["dimensions"][:1] == (0,)
        return [(instruction.operands[0], 0)] if has_rows else []
    by = instruction.attributes["slice"][0].start if instruction.op is SLICE else 0
    return [(operand, by) for operand in instruction.operands if operand.array_shape.rank]


def _below(instruction: Instruction, rows: Rows) -> Iterator[tuple[Instruction, Rows]]:
    """Which rows of which operands some rows take."""
    first, end = rows
    parts = _parts(instruction)
    if parts is None:
        for operand, by in _straight(instruction):
            yield operand, (first + by, end + by)
        return
    for operand, begin in parts:
        own = max(first - begin, 0), min(end - begin, operand.array_shape.dimensions[0])
        if own[0] < own[1]:
            yield operand, own


def uniform_rows(root: Instruction, region: AbstractSet[Instruction]) -> Rows:
    """The most rows in a row of ``root`` that are all made alike, of rows as far from their own."""
    size = root.array_shape.dimensions[0]
    cuts = {0, size}
    seen: set[tuple[Instruction, int]] = set()
    stack = [(root, 0)]
    while stack:
        instruction, away = item = stack.pop()
        if instruction not in region or item in seen:
            continue
        seen.add(item)
        if len(seen) > _MOST_VISITED:
            return 0, 0
        parts = _parts(instruction)
        if parts is None:
            stack += [(operand, away + by) for operand, by in _straight(instruction)]
            continue
        for operand, begin in parts:
            ends = begin, begin + operand.array_shape.dimensions[0]
            cuts.update(end - away for end in ends if 0 < end - away < size)
            stack.append((operand, away - begin))
    places = sorted(cuts)
    return max(itertools.pairwise(places), key=lambda rows: rows[1] - rows[0])


def needed_rows(root: Instruction, rows: Rows, region: AbstractSet[Instruction]) -> Needed:
    """Which rows of what is in the region, and next to it, those of ``root`` are made of."""
    needed = {root: [rows]}
    for instruction in sorted(region, key=lambda i: -i.serial):
        for part in needed.get(instruction, ()):
            for operand, own in _below(instruction, part):
                needed[operand] = _joined([*needed.get(operand, ()), own])
    return needed


def _joined(every: Sequence[Rows]) -> list[Rows]:
    """The same rows, in as few runs as they are."""
    made: list[Rows] = []
    for first, end in sorted(every):
        if made and first <= made[-1][1]:
            made[-1] = made[-1][0], max(end, made[-1][1])
        else:
            made.append((first, end))
    return made


def made_rows(
    root: Instruction,
    needed: Needed,
    region: AbstractSet[Instruction],
    leaf: Callable[[Instruction, Rows | None], Instruction],
) -> Instruction:
    """The needed rows of ``root``; ``leaf`` gives those of what lies outside, or None all of it."""
    made: dict[tuple[Instruction, Rows], Instruction] = {}

    def run(instruction: Instruction, rows: Rows) -> tuple[Instruction, int]:
        """What has some rows, and where they begin in it."""
        whole = next(r for r in needed[instruction] if r[0] <= rows[0] and rows[1] <= r[1])
        if (instruction, whole) not in made:
            made[instruction, whole] = leaf(instruction, whole)
        return made[instruction, whole], rows[0] - whole[0]

    for instruction in sorted(needed.keys() & region, key=lambda i: i.serial):
        for rows in needed[instruction]:
            below = [(o, own, *run(o, own)) for o, own in _below(instruction, rows)]
            if instruction.op is SLICE:
                ((_, own, array, begin),) = below
                made[instruction, rows] = _sliced(instruction, array, begin, own[1] - own[0])
                continue
            parts = [(o, _cut(a, begin, own[1] - own[0])) for o, own, a, begin in below]
            made[instruction, rows] = _made(instruction, rows, parts, leaf)
    (rows,) = needed[root]
    return made[root, rows]


def _cut(array: Instruction, first: int, length: int) -> Instruction:
    if length == array.array_shape.dimensions[0]:
        return array
    return slice_in_dim(array, first, first + length, 1, 0)


def _sliced(like: Instruction, array: Instruction, first: int, length: int) -> Instruction:
    """So many rows of an array, and of these what a Slice takes along the other dimensions."""
    others = like.attributes["slice"][1:]
    return slice_(
        array,
        [first, *(along.start for along in others)],
        [first + length, *(along.limit for along in others)],
        [1, *(along.stride for along in others)],
    )


def _made(
    instruction: Instruction,
    rows: Rows,
    parts: Sequence[tuple[Instruction, Instruction]],
    leaf: Callable[[Instruction, Rows | None], Instruction],
) -> Instruction:
    """Some rows of an instruction, of those of its operands."""
    first, end = rows
    length, operands, of = end - first, instruction.operands, dict(parts)
    if instruction.op is PAD:
        return _padded(instruction, rows, of.get(operands[0]), leaf(operands[1], None))
    if instruction.op is DYNAMIC_UPDATE_SLICE:
        array, part, start, *starts = operands
        if part not in of:
            return of[array]
        begin = scalar_like(start, max(_first_row(instruction) - first, 0))
        return dynamic_update_slice(of[array], of[part], [begin, *starts])
    if _parts(instruction) is not None:
        return concatenate([made for _, made in parts], 0)
    given = [of[o] if o in of else leaf(o, None) for o in operands]
    return resized(instruction, given, 0, length)


def _padded(
    instruction: Instruction, rows: Rows, inside: Instruction | None, value: Instruction
) -> Instruction:
    """Some rows of a Pad, of those of its operand ``inside``."""
    first, end = rows
    if inside is None:
        sizes = end - first, *instruction.array_shape.dimensions[1:]
        return broadcast_in_dim(value, sizes, ())
    whole, *others = instruction.attributes["padding"]
    low = max(whole.low - first, 0)
    high = end - first - low - inside.array_shape.dimensions[0]
    return pad(inside, value, [PaddingDimension(low, high), *others])
