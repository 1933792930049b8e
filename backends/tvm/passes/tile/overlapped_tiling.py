"""Overlapped tiling: chains of stencils are computed one block of rows at a time.

    roots = tile_stencils(roots, machine)

Where a large array is made of others that slices read at several places, these would be stored as a
whole, and read again when they have left the caches. A loop makes some rows of the result, of a few
more rows of what it is made of, and of still more of what that is made of. The first and last rows,
which may be made in another way, come by themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from tracejit.backends.tvm.analysis.bounds_inference import (
    Rows,
    can_be_cut,
    made_rows,
    needed_rows,
    uniform_rows,
)
from tracejit.backends.tvm.analysis.exclusive_slice import exclusive_slice
from tracejit.backends.tvm.fusion.planner import fuse
from tracejit.backends.tvm.ir.machine import Machine
from tracejit.backends.tvm.passes.tile.tile_loop import made_in_blocks, starts_along
from tracejit.graph import Instruction
from tracejit.ops import elementwise
from tracejit.ops.constants import CONSTANT, constant, parameter
from tracejit.ops.layout import (
    CONCATENATE,
    REV,
    SLICE,
    dynamic_slice,
    dynamic_update_slice,
    slice_in_dim,
)
from tracejit.shapes import ElementType, Shape
from tracejit.traversal import in_order, substitute, users_of

# Arrays are made in blocks where they are so many times the second caches' size, and what else is
# stored is at least such a part of them.
_LARGE, _PART = 8, 4
# A block and all that it is made of are at most so many times that size: the last cache is larger.
_MOST = 4
# A block has more rows than are computed for it and its neighbour, and if they fit so many times.
_ENOUGH = 2
# There are so many blocks at least, and the rows that are made by themselves are such a part.
_FEWEST, _FEW = 4, 1 / 4


def tile_stencils(roots: Sequence[Instruction], machine: Machine) -> list[Instruction]:
    """Equal ``roots``, in which large arrays between overlapping slices are not stored whole."""
    room = machine.l2 * machine.threads
    cuttable = [root for root in dict.fromkeys(roots) if can_be_cut(root)]
    large = [root for root in cuttable if root.array_shape.nbytes >= _LARGE * room]
    if not large:
        return list(roots)
    kept, users = set(roots), users_of(in_order(roots))
    found: dict[Instruction, Instruction] = {}
    for root in large:
        region = exclusive_slice(root, users, lambda i: i not in kept and can_be_cut(i))
        blocks = _blocks(root, region, room)
        if blocks is not None:
            found[root] = blocks.looped()
    return substitute(roots, found) if found else list(roots)


def _blocks(root: Instruction, region: AbstractSet[Instruction], room: int) -> _Blocks | None:
    """How a region is made in blocks; None if nothing in it is worth it."""
    if not any(i.op is SLICE and i.operands[0] in region for i in region):
        return None
    stored = _stored(root, region)
    first, end = uniform_rows(root, region)
    if not stored or end - first < (1 - _FEW) * root.array_shape.dimensions[0]:
        return None
    some = (end - first) // _FEWEST
    needed = needed_rows(root, (first, first + some), region)
    if any(len(runs) > 1 for runs in needed.values()):
        return None
    outside = [i for i in needed if i not in region]
    shapes = [i.array_shape for i in (root, *stored, *outside)]
    per_row = sum(shape.nbytes // shape.dimensions[0] for shape in shapes)
    more = max(last - begin for ((begin, last),) in needed.values()) - some
    length = max(room // per_row, min(_MOST * room // per_row, _ENOUGH * more))
    if not more < length <= some:
        return None
    return _Blocks(root, region, (first, end), length)


def _stored(root: Instruction, region: AbstractSet[Instruction]) -> list[Instruction]:
    """What is stored on the way to ``root``, and not much smaller.

    Arrays that are joined of others in memory are read where these are.
    """
    memory = fuse([root]).memory
    least = root.array_shape.nbytes // _PART

    def is_made(instruction: Instruction) -> bool:
        if instruction.op is not CONCATENATE:
            return True
        return any(_source(operand) not in memory for operand in instruction.operands)

    return [i for i in memory & region - {root} if i.array_shape.nbytes >= least and is_made(i)]


def _source(instruction: Instruction) -> Instruction:
    """What an instruction shows parts of."""
    while instruction.op in (SLICE, REV):
        (instruction,) = instruction.operands
    return instruction


@dataclass(frozen=True)
class _Blocks:
    """The ``rows`` of ``root`` that are made so many at a time, of what is in the region."""

    root: Instruction
    region: AbstractSet[Instruction]
    rows: Rows
    length: int

    def looped(self) -> Instruction:
        """The whole array."""
        first, end = self.rows
        whole = self._middle()
        for rows in ((0, first), (end, self.root.array_shape.dimensions[0])):
            if rows[0] < rows[1]:
                starts = starts_along(whole, 0, constant(rows[0], ElementType.S32))
                whole = dynamic_update_slice(whole, self._edge(rows), starts)
        return whole

    def _edge(self, rows: Rows) -> Instruction:
        """Some rows, all at once."""

        def leaf(instruction: Instruction, rows: Rows | None) -> Instruction:
            return instruction if rows is None else slice_in_dim(instruction, *rows, 1, 0)

        return made_rows(self.root, needed_rows(self.root, rows, self.region), self.region, leaf)

    def _middle(self) -> Instruction:
        """An array with all the rows that are made alike."""
        first, _ = self.rows
        needed = needed_rows(self.root, (first, first + self.length), self.region)
        away = parameter(0, Shape(ElementType.S32))
        given: dict[Instruction, Instruction] = {}

        def leaf(instruction: Instruction, rows: Rows | None) -> Instruction:
            if instruction.op is CONSTANT and not instruction.array_shape.rank:
                return instruction
            array = given.setdefault(instruction, parameter(len(given) + 1, instruction.shape))
            if rows is None:
                return array
            sizes = rows[1] - rows[0], *array.array_shape.dimensions[1:]
            start = elementwise.add(away, constant(rows[0], ElementType.S32))
            return dynamic_slice(array, starts_along(array, 0, start), sizes)

        block = made_rows(self.root, needed, self.region, leaf)

        def made(moved: Instruction, *arrays: Instruction) -> Instruction:
            known = {away: moved, **dict(zip(given.values(), arrays, strict=True))}
            return substitute([block], known)[0]

        shape = self.root.array_shape
        return made_in_blocks("stencil_blocks", shape, 0, self.rows, self.length, [*given], made)
