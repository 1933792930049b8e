"""Batches the slices of all iterations of a counted loop into one contiguous block.

beside = SideBySide(loop, IterationBatch(first, count))
beside.read(instruction, operands)      x[i, j] for all j: x[i, :]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tracejit.affine import Affine
from tracejit.backends.tvm.analysis.induction import CountedLoop, place_of
from tracejit.batching.batch import Batched
from tracejit.graph import Instruction
from tracejit.ops.dimensions import moved
from tracejit.ops.element_types import convert_element_type
from tracejit.ops.elementwise import select
from tracejit.ops.layout import (
    DYNAMIC_SLICE,
    broadcast_in_dim,
    dynamic_slice,
    dynamic_update_slice,
    reshape,
    rev,
)
from tracejit.trace.affine_bounds import least


class RefusedError(Exception):
    """The iterations of a loop depend on each other, or may do so."""


@dataclass(frozen=True)
class IterationBatch:
    """A batch of ``count`` iterations, with counters from ``first`` on.

    With a ``mask``, pred[count], iterations where it is false do not run.
    """

    first: Affine
    count: int
    mask: Instruction | None = None


class SideBySide:
    """Blocks of slices of size 1 along a dimension, at indices that grow by one per iteration."""

    def __init__(self, loop: CountedLoop, lanes: IterationBatch) -> None:
        self._loop, self._lanes = loop, lanes

    def fits(self, place: Affine | None, size: int) -> bool:
        """Whether an index grows by one per iteration, and is in bounds for the whole batch.

        To be called where the bounds of the loop's counters are known.
        """
        if place is None or abs(place.coefficient(self._loop.number)) != 1:
            return False
        ends = (self._at(place, 0), self._at(place, self._lanes.count - 1))
        return all(is_within(end, end + 1, size) for end in ends)

    def _at(self, place: Affine, lane: int) -> Affine:
        """The value of an index in iteration ``lane`` of the batch."""
        by = place.terms[self._loop.number]
        rest = place.without(self._loop.number)
        return rest.add(self._lanes.first, by) + by * lane

    def read(self, instruction: Instruction, operands: Sequence[Batched]) -> Batched | None:
        """A DynamicSlice of all iterations, of a loop-invariant array; None for other slices."""
        if instruction.op is not DYNAMIC_SLICE or operands[0].is_batched:
            return None
        moving = [d for d, start in enumerate(operands[1:]) if start.is_batched]
        if len(moving) != 1 or instruction.array_shape.dimensions[moving[0]] != 1:
            return None
        with self._loop.known():
            place = place_of(instruction.operands[1 + moving[0]])
            is_block = self.fits(place, operands[0].value.array_shape.dimensions[moving[0]])
        if place is None or not is_block:
            return None
        return self.slices(instruction, operands, moving[0], place)

    def slices(
        self, instruction: Instruction, operands: Sequence[Batched], dimension: int, place: Affine
    ) -> Batched:
        """A DynamicSlice of all iterations, at an index that `fits` along a dimension."""
        starts = self._starts(instruction.operands[1], operands[1:], dimension, place)
        sizes = instruction.array_shape.dimensions
        return Batched(self._taken(operands[0].value, starts, sizes, dimension, place), True)

    def written(
        self, instruction: Instruction, operands: Sequence[Batched], dimension: int, place: Affine
    ) -> Batched:
        """A DynamicUpdateSlice of all iterations, at an index that `fits` along a dimension."""
        whole, update, *places = operands
        sizes = instruction.operands[1].array_shape.dimensions
        starts = self._starts(instruction.operands[2], places, dimension, place)
        values = update.stretched(self._lanes.count)
        if self._lanes.mask is not None:
            old = self._taken(whole.value, starts, sizes, dimension, place)
            mask = broadcast_in_dim(self._lanes.mask, old.array_shape.dimensions, (0,))
            values = select(mask, values, old)
        flat = (self._lanes.count, *sizes[:dimension], *sizes[dimension + 1 :])
        block = moved(reshape(values, flat), 0, dimension)
        if place.terms[self._loop.number] < 0:
            block = rev(block, [dimension])
        if block.shape != whole.value.shape:
            block = dynamic_update_slice(whole.value, block, starts)
        return Batched(block, False)

    def _starts(
        self, like: Instruction, starts: Sequence[Batched], dimension: int, place: Affine
    ) -> list[Instruction]:
        """The start indices of the block; along ``dimension`` the lowest of all iterations."""
        if any(s.is_batched for d, s in enumerate(starts) if d != dimension):
            raise RefusedError("slices do not lie side by side")
        lane = 0 if place.terms[self._loop.number] > 0 else self._lanes.count - 1
        made = [start.value for start in starts]
        first = self._loop.outside(self._at(place, lane))
        made[dimension] = convert_element_type(first, like.array_shape.element_type)
        return made

    def _taken(
        self,
        whole: Instruction,
        starts: Sequence[Instruction],
        sizes: Sequence[int],
        dimension: int,
        place: Affine,
    ) -> Instruction:
        """The slices of all iterations, stacked."""
        count = self._lanes.count
        wide = (*sizes[:dimension], count, *sizes[dimension + 1 :])
        is_all = wide == whole.array_shape.dimensions
        block = whole if is_all else dynamic_slice(whole, starts, wide)
        if place.terms[self._loop.number] < 0:
            block = rev(block, [dimension])
        return reshape(moved(block, dimension, 0), (count, *sizes))


def is_within(first: Affine, end: Affine, size: int) -> bool:
    """Whether the indices ``first`` up to ``end`` are within a dimension."""
    low, room = least(first), least(Affine(size) - end)
    return low is not None and room is not None and low >= 0 <= room
