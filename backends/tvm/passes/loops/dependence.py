"""Dependence test of counted loops: whether each iteration accesses only its own slice.

    own = OwnSlices(loop, lanes, order)     raises RefusedError if iterations depend on each other
    own.made(instruction, operands)         a read or write of all iterations; None for other ops

Iterations may run together if no two write to one element, and none reads an element that an
earlier one has written: it reads its own slice, or elements that are provably not written. Those
it reads from the array before the loop. Elements that a mask hides at once do not count as read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tracejit.affine import Affine
from tracejit.backends.tvm.analysis.array_regions import (
    Range,
    are_apart,
    read_region,
    region_of,
    versions_of,
)
from tracejit.backends.tvm.analysis.contiguous_access import (
    IterationBatch,
    RefusedError,
    SideBySide,
)
from tracejit.backends.tvm.analysis.induction import CountedLoop, place_of
from tracejit.backends.tvm.passes.loops.mask_to_bounds import bounds_of
from tracejit.batching.batch import Batched, applied
from tracejit.graph import Instruction
from tracejit.ops.constants import parameter
from tracejit.ops.elementwise import SELECT
from tracejit.ops.layout import DYNAMIC_SLICE, RESHAPE, SLICE
from tracejit.shapes import ElementType, Shape
from tracejit.trace.affine_bounds import counting
from tracejit.traversal import users_of


@dataclass(frozen=True)
class _Own:
    """An array of the state whose slices are at index ``place`` along ``dimension``.

    ``versions`` are the array before, between and after the writes of an iteration.
    """

    part: int
    versions: Sequence[Instruction]
    dimension: int
    place: Affine

    def writes(self, version: Instruction) -> Sequence[Instruction]:
        """The writes that lead to a version."""
        return self.versions[1 : self.versions.index(version) + 1]


class OwnSlices:
    """The arrays that a loop's iterations write to; ``arrays`` are their numbers in the state."""

    def __init__(
        self, loop: CountedLoop, lanes: IterationBatch, order: Iterable[Instruction]
    ) -> None:
        self._loop, self._lanes = loop, lanes
        self._beside = SideBySide(loop, lanes)
        self._users = users_of(order)
        self._owners: dict[Instruction, _Own] = {}
        self._before: set[Instruction] = set()
        self.arrays: set[int] = set()
        with loop.known():
            for number, made in enumerate(loop.made):
                found = versions_of(loop.parts[number], made)
                if len(found) > 1:
                    self._add(number, found)

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
        """The dimension along which each iteration writes at its own index."""
        for dimension in range(versions[0].array_shape.rank):
            places = [place_of(write.operands[2 + dimension]) for write in versions[1:]]
            sizes = {w.operands[1].array_shape.dimensions[dimension] for w in versions[1:]}
            place = places[0]
            if place is None or sizes != {1} or any(other != place for other in places):
                continue
            if self._beside.fits(place, versions[0].array_shape.dimensions[dimension]):
                return _Own(number, versions, dimension, place)
        return None

    def _is_own(self, read: Instruction, own: _Own) -> bool:
        if read.op is not DYNAMIC_SLICE or read.array_shape.dimensions[own.dimension] != 1:
            return False
        return place_of(read.operands[1 + own.dimension]) == own.place

    # Reads of other slices

    def _require_apart(self, read: Instruction, own: _Own, version: Instruction) -> None:
        """Raises if a read may overlap a write of an earlier iteration, or an earlier one of its
        own.
        """
        loop = self._loop
        earlier = parameter(0, Shape(ElementType.S64))
        ahead, behind = loop.place + 1, loop.place - 1
        limits = (loop.low, behind) if loop.step > 0 else (ahead, loop.high)
        to_earlier = Affine.of(earlier) - loop.place
        for region in self._regions(read):
            for write in own.versions[1:]:
                places = region_of(write, write.operands[1], write.operands[2:])
                with counting(earlier, *limits):
                    shifted = [_shifted(one, loop.number, to_earlier) for one in places]
                    is_apart = are_apart(region, shifted)
                if not is_apart or (write in own.writes(version) and not are_apart(region, places)):
                    raise RefusedError("a step may read what one before it has written")

    def _regions(self, read: Instruction) -> list[list[Range]]:
        """The regions that are read of an array, for each use, without elements that a
        mask hides.
        """
        whole = read_region(read)
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

    # All iterations together

    def made(self, instruction: Instruction, operands: Sequence[Batched]) -> Batched | None:
        """A slice, or an array with slices written to it, of all iterations, if they are
        contiguous.
        """
        own = self._owners.get(instruction)
        if own is not None:
            return self._beside.written(instruction, operands, own.dimension, own.place)
        if instruction.op in (DYNAMIC_SLICE, SLICE):
            own = self._owners.get(instruction.operands[0])
        if own is None:
            return self._beside.read(instruction, operands)
        if instruction not in self._before:
            return self._beside.slices(instruction, operands, own.dimension, own.place)
        operands = [Batched(self._loop.init[own.part], False), *operands[1:]]
        made = self._beside.read(instruction, operands)
        return applied(instruction, operands, self._lanes.count) if made is None else made


def _shifted(places: Range, number: Instruction, by: Affine) -> Range:
    """The same range in another iteration."""
    if places is None:
        return None
    first, end = (place.add(by, place.coefficient(number)) for place in places)
    return first, end


def _dims(old: Shape, new: Shape, dims: Sequence[int | None]) -> tuple[int | None, ...] | None:
    """``dims`` of a value mapped to its reshape; None if dimensions other than 1 change."""
    kept = [d for d, size in zip(dims, old.dimensions, strict=True) if size != 1]
    if [size for size in old.dimensions if size != 1] != [n for n in new.dimensions if n != 1]:
        return None
    rest = iter(kept)
    return tuple(None if size == 1 else next(rest) for size in new.dimensions)


def _hidden(
    region: list[Range], user: Instruction, value: Instruction, dims: Sequence[int | None]
) -> list[Range]:
    """The part of a region that a user sees, where a mask may hide some of a dimension."""
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
        first = first if inside is None else places[0] + inside
    if bounds.end is not None:
        inside = place_of(bounds.end)
        end = end if inside is None else places[0] + inside
    return [*region[:dimension], (first, end), *region[dimension + 1 :]]
