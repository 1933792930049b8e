"""Arrays of which each step of a loop has a slice of its own, and what steps read of them.

    own = OwnSlices(loop, lanes, order)     raises RefusedError if steps depend on each other
    own.made(instruction, operands)         a read or a write of all steps, None for what is neither

Steps may be done all at once if no two write to one place, and none reads what one before it has
written: it reads its own slice, or places that are known to be others. There it reads the array as
it was before the loop. What a mask hides at once is not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tracejit.backends.tvm.bounded import bounds_of
from tracejit.backends.tvm.counted_loops import CountedLoop, place_of
from tracejit.batching.batch import Batched, applied
from tracejit.graph import Instruction
from tracejit.ops.constants import parameter
from tracejit.ops.dimensions import moved
from tracejit.ops.element_types import convert_element_type
from tracejit.ops.elementwise import SELECT, select
from tracejit.ops.layout import (
    DYNAMIC_SLICE,
    DYNAMIC_UPDATE_SLICE,
    RESHAPE,
    SLICE,
    broadcast_in_dim,
    dynamic_slice,
    dynamic_update_slice,
    reshape,
    rev,
)
from tracejit.shapes import ElementType, Shape
from tracejit.trace.counters import Affine, counting, least


class RefusedError(Exception):
    """The steps of a loop depend on each other, or it is not known that they do not."""


@dataclass(frozen=True)
class Lanes:
    """The steps side by side: ``count`` of them, at which the counter is ``first`` and up.

    Of those with a ``mask``, pred[count], some are no steps.
    """

    first: Affine
    count: int
    mask: Instruction | None = None


Range = tuple[Affine, Affine] | None
"""Places from the first up to, not with, the second; None where they are not known."""


@dataclass(frozen=True)
class _Own:
    """An array of the state: its slices lie at ``place`` along ``dimension``.

    ``versions`` are the array as it is before, between and after a step's writes.
    """

    part: int
    versions: Sequence[Instruction]
    dimension: int
    place: Affine

    def writes(self, version: Instruction) -> Sequence[Instruction]:
        """Those that made a version."""
        return self.versions[1 : self.versions.index(version) + 1]


class OwnSlices:
    """The arrays that a loop's steps write to; ``arrays`` are their numbers in the state."""

    def __init__(self, loop: CountedLoop, lanes: Lanes, order: Iterable[Instruction]) -> None:
        self._loop, self._lanes = loop, lanes
        self._users: dict[Instruction, list[Instruction]] = {}
        for instruction in order:
            for operand in instruction.operands:
                self._users.setdefault(operand, []).append(instruction)
        self._owners: dict[Instruction, _Own] = {}
        self._before: set[Instruction] = set()
        self.arrays: set[int] = set()
        with loop.known():
            for number, made in enumerate(loop.made):
                versions = _versions(loop.parts[number], made)
                if len(versions) > 1:
                    self._add(number, versions)

    def _add(self, number: int, versions: Sequence[Instruction]) -> None:
        own = self._own(number, versions)
        if own is None:
            raise RefusedError("several steps may write to one place")
        self.arrays.add(number)
        self._owners.update(dict.fromkeys(versions, own))
        root = self._loop.body.root
        for version, following in zip(versions, (*versions[1:], root), strict=True):
            for user in self._users.get(version, ()):
                is_only_user = user.operands.count(version) == 1
                if user is following and is_only_user:
                    continue
                is_read = user.op in (DYNAMIC_SLICE, SLICE) and user.operands[0] is version
                if not is_read:
                    raise RefusedError("a step needs the whole of an array that it writes to")
                if not self._is_own(user, own):
                    self._require_apart(user, own, version)
                    self._before.add(user)

    def _own(self, number: int, versions: Sequence[Instruction]) -> _Own | None:
        """The dimension along which each step writes at its own place."""
        counter = self._loop.number
        for dimension in range(versions[0].array_shape.rank):
            places = [place_of(write.operands[2 + dimension]) for write in versions[1:]]
            sizes = {w.operands[1].array_shape.dimensions[dimension] for w in versions[1:]}
            place = places[0]
            if place is None or sizes != {1} or any(other != place for other in places):
                continue
            if abs(place.terms.get(counter, 0)) == 1 and self._fits(
                place, versions[0].array_shape.dimensions[dimension]
            ):
                return _Own(number, versions, dimension, place)
        return None

    def _at(self, place: Affine, lane: int) -> Affine:
        """A place at the step that is number ``lane``."""
        by = place.terms.get(self._loop.number, 0)
        rest = place.plus(self._loop.place, -by)
        return rest.plus(self._lanes.first, by).plus(Affine(by * lane))

    def _fits(self, place: Affine, size: int) -> bool:
        """Whether a place lies within a dimension in all lanes."""
        ends = (self._at(place, 0), self._at(place, self._lanes.count - 1))
        return all(_is_within(end, end.plus(Affine(1)), size) for end in ends)

    def _is_own(self, read: Instruction, own: _Own) -> bool:
        if read.op is not DYNAMIC_SLICE or read.array_shape.dimensions[own.dimension] != 1:
            return False
        return place_of(read.operands[1 + own.dimension]) == own.place

    # What is read elsewhere

    def _require_apart(self, read: Instruction, own: _Own, version: Instruction) -> None:
        """Raises if a read may meet a write of an earlier step, or one of its own before it."""
        loop = self._loop
        earlier = parameter(0, Shape(ElementType.S64))
        ahead, behind = loop.place.plus(Affine(1)), loop.place.plus(Affine(-1))
        limits = (loop.low, behind) if loop.step > 0 else (ahead, loop.high)
        to_earlier = Affine(0, {earlier: 1}).plus(loop.place, -1)
        for region in self._regions(read):
            for write in own.versions[1:]:
                places = _region(write, write.operands[1], write.operands[2:])
                with counting(earlier, *limits):
                    shifted = [_shifted(one, loop.number, to_earlier) for one in places]
                    is_apart = _are_apart(region, shifted)
                if not is_apart or (
                    write in own.writes(version) and not _are_apart(region, places)
                ):
                    raise RefusedError("a step may read what one before it has written")

    def _regions(self, read: Instruction) -> list[list[Range]]:
        """What is read of an array, for each use; without what a mask hides at once."""
        if read.op is SLICE:
            parts = read.attributes["slice"]
            whole: list[Range] = [(Affine(p.start), Affine(p.limit)) for p in parts]
        else:
            whole = _region(read.operands[0], read, read.operands[1:])
        found: list[list[Range]] = []
        dims: tuple[int | None, ...] = tuple(range(read.array_shape.rank))
        stack = [(read, dims)]
        while stack:
            value, dims = stack.pop()
            for user in self._users.get(value, ()):
                if user.op is RESHAPE:
                    kept = _dims(value.array_shape, user.array_shape, dims)
                    if kept is not None:
                        stack.append((user, kept))
                        continue
                found.append(_hidden(whole, user, value, dims))
        return found

    # All steps at once

    def made(self, instruction: Instruction, operands: Sequence[Batched]) -> Batched | None:
        """A slice, or an array with slices written to it, of all steps, where they lie together."""
        own = self._owners.get(instruction)
        if own is not None:
            return Batched(self._written(instruction, operands, own), False)
        if instruction.op is SLICE and instruction in self._before:
            own = self._owners[instruction.operands[0]]
            attributes = instruction.attributes
            source = instruction.source
            array = (self._loop.init[own.part],)
            made = Instruction(SLICE, array, instruction.shape, attributes, source)
            return Batched(made, False)
        if instruction.op is not DYNAMIC_SLICE or operands[0].is_batched:
            return None
        own = self._owners.get(instruction.operands[0])
        if own is not None and instruction not in self._before:
            return self._read(instruction, operands, own.dimension, own.place)
        if own is not None:
            operands = [Batched(self._loop.init[own.part], False), *operands[1:]]
        moving = [d for d, start in enumerate(operands[1:]) if start.is_batched]
        if len(moving) == 1 and instruction.array_shape.dimensions[moving[0]] == 1:
            with self._loop.known():
                place = place_of(instruction.operands[1 + moving[0]])
                size = operands[0].value.array_shape.dimensions[moving[0]]
                fits = (
                    place is not None
                    and abs(place.terms.get(self._loop.number, 0)) == 1
                    and self._fits(place, size)
                )
            if fits and place is not None:
                return self._read(instruction, operands, moving[0], place)
        return None if own is None else applied(instruction, operands, self._lanes.count)

    def _starts(
        self, instruction: Instruction, starts: Sequence[Batched], dimension: int, place: Affine
    ) -> list[Instruction]:
        """Where the slices of all steps begin; along ``dimension`` the first of them in memory."""
        if any(s.is_batched for d, s in enumerate(starts) if d != dimension):
            raise RefusedError("slices do not lie side by side")
        by = place.terms[self._loop.number]
        first = self._loop.outside(self._at(place, 0 if by > 0 else self._lanes.count - 1))
        made = [start.value for start in starts]
        made[dimension] = convert_element_type(first, instruction.array_shape.element_type)
        return made

    def _read(
        self, instruction: Instruction, operands: Sequence[Batched], dimension: int, place: Affine
    ) -> Batched:
        """The slices of all steps, of size 1 along a dimension, stacked."""
        number = instruction.operands[1]
        starts = self._starts(number, operands[1:], dimension, place)
        sizes = instruction.array_shape.dimensions
        return Batched(self._taken(operands[0].value, starts, sizes, dimension, place), True)

    def _taken(
        self,
        whole: Instruction,
        starts: Sequence[Instruction],
        sizes: Sequence[int],
        dimension: int,
        place: Affine,
    ) -> Instruction:
        count = self._lanes.count
        wide = (*sizes[:dimension], count, *sizes[dimension + 1 :])
        is_all = wide == whole.array_shape.dimensions
        block = whole if is_all else dynamic_slice(whole, starts, wide)
        if place.terms[self._loop.number] < 0:
            block = rev(block, [dimension])
        return reshape(moved(block, dimension, 0), (count, *sizes))

    def _written(
        self, instruction: Instruction, operands: Sequence[Batched], own: _Own
    ) -> Instruction:
        """The array with the slices of all steps written to it."""
        whole, update, *places = operands
        sizes = instruction.operands[1].array_shape.dimensions
        dimension, place = own.dimension, own.place
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
        if block.shape == whole.value.shape:
            return block
        return dynamic_update_slice(whole.value, block, starts)


def _versions(part: Instruction, made: Instruction) -> list[Instruction]:
    """An array before and after each of the writes that make ``made`` of it; one alone if none."""
    found = [made]
    while found[-1] is not part:
        if found[-1].op is not DYNAMIC_UPDATE_SLICE:
            return found[:1]
        found.append(found[-1].operands[0])
    return found[::-1]


def _is_within(first: Affine, end: Affine, size: int) -> bool:
    low, room = least(first), least(Affine(size).plus(end, -1))
    return low is not None and room is not None and low >= 0 <= room


def _region(whole: Instruction, part: Instruction, starts: Sequence[Instruction]) -> list[Range]:
    """The places of a slice, or of an update, as long as it is not moved inside the array."""
    found: list[Range] = []
    sizes = zip(whole.array_shape.dimensions, part.array_shape.dimensions, starts, strict=True)
    for total, size, start in sizes:
        first = place_of(start)
        end = None if first is None else first.plus(Affine(size))
        is_sure = first is not None and end is not None and _is_within(first, end, total)
        found.append((first, end) if is_sure and first is not None and end is not None else None)
    return found


def _shifted(places: Range, number: Instruction, by: Affine) -> Range:
    """The same places at another step."""
    if places is None:
        return None
    first, end = (place.plus(by, place.terms.get(number, 0)) for place in places)
    return first, end


def _are_apart(one: Sequence[Range], other: Sequence[Range]) -> bool:
    """Whether two regions have no place in common, as far as counters tell."""
    for left, right in zip(one, other, strict=True):
        if left is None or right is None:
            continue
        rooms = least(left[0].plus(right[1], -1)), least(right[0].plus(left[1], -1))
        if any(room is not None and room >= 0 for room in rooms):
            return True
    return False


def _dims(old: Shape, new: Shape, dims: Sequence[int | None]) -> tuple[int | None, ...] | None:
    """``dims`` of a value, of what it is reshaped to; None if more than sizes of 1 come or go."""
    kept = [d for d, size in zip(dims, old.dimensions, strict=True) if size != 1]
    if [size for size in old.dimensions if size != 1] != [n for n in new.dimensions if n != 1]:
        return None
    rest = iter(kept)
    return tuple(None if size == 1 else next(rest) for size in new.dimensions)


def _hidden(
    region: list[Range], user: Instruction, value: Instruction, dims: Sequence[int | None]
) -> list[Range]:
    """What of a region a user sees, for which a mask may hide some of a dimension."""
    if user.op is not SELECT or user.operands.count(value) > 1 or user.operands[1] is not value:
        return region
    bounds = bounds_of(user.operands[0])
    dimension = None if bounds is None else dims[bounds.dimension]
    places = None if dimension is None else region[dimension]
    if bounds is None or dimension is None or places is None:
        return region
    first, end = places
    if bounds.first is not None:
        inside = place_of(bounds.first)
        first = first if inside is None else places[0].plus(inside)
    if bounds.end is not None:
        inside = place_of(bounds.end)
        end = end if inside is None else places[0].plus(inside)
    return [*region[:dimension], (first, end), *region[dimension + 1 :]]
