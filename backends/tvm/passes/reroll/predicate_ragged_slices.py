"""Makes slices whose sizes differ from step to step equally wide, and masks the rest.

    predicate_ragged_slices(roots, 4)

A triangular loop reads ``a[i, :j]`` with another ``j`` in each step, and arrays of another size are
other instructions. Here a window is read in place of such a slice, as wide as some quarters of what
is sliced, and where the slice lies in it is a pair of constants, start and size: a contraction or a
reduction takes zeros, or what else changes nothing, for the rest, an update leaves the rest as it
was, and elementwise ops do not care. Of ``pieces`` there may be other numbers than four: with one,
all slices are of one size, but most of what is read is not wanted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tracejit.backends.tvm.analysis.monoids import monoid
from tracejit.graph import Instruction
from tracejit.ops.base import make
from tracejit.ops.comparison import ge, lt
from tracejit.ops.computations import identity_value
from tracejit.ops.constants import CONSTANT, PARAMETER, constant, iota
from tracejit.ops.contraction import DOT_GENERAL
from tracejit.ops.element_types import CONVERT_ELEMENT_TYPE
from tracejit.ops.elementwise import and_, select
from tracejit.ops.layout import (
    BROADCAST_IN_DIM,
    DYNAMIC_UPDATE_SLICE,
    RESHAPE,
    REV,
    SLICE,
    TRANSPOSE,
    broadcast_in_dim,
    concatenate,
    dynamic_update_slice,
    full,
    full_like,
    reshape,
    rev,
    slice_,
    slice_in_dim,
    transpose,
)
from tracejit.ops.reduction import REDUCE
from tracejit.shapes import ElementType, Shape
from tracejit.traversal import in_order, rebuild

# Slices of so many sizes along one dimension are made wide.
LEAST_SIZES = 8


@dataclass(frozen=True)
class Part:
    """What of a window of ``whole`` elements counts: ``size`` of them from ``start`` on."""

    start: int
    size: int
    whole: int


@dataclass(frozen=True, eq=False)
class Wide:
    """An array that stands for the ``parts`` of it, by their dimensions."""

    array: Instruction
    parts: Mapping[int, Part] = field(default_factory=dict)


def predicate_ragged_slices(roots: Sequence[Instruction], pieces: int) -> list[Instruction] | None:
    """Equal ``roots`` with wide slices, if there are such as should be; made anew, in order.

    Windows are of ``pieces`` different sizes. Sums of products may be added up in another order.
    """
    order = in_order(roots)
    ragged = _ragged(order)
    return _Widening(ragged, pieces).rebuilt(roots, order) if ragged else None


def _family(slice_of: Instruction, dimension: int) -> tuple[object, ...]:
    """Equal for slices that differ along one dimension only."""
    sizes = slice_of.array_shape.dimensions
    others = (*sizes[:dimension], *sizes[dimension + 1 :])
    return slice_of.operands[0].shape, dimension, others


def _is_part(slice_of: Instruction, dimension: int) -> bool:
    cut = slice_of.attributes["slice"][dimension]
    whole = slice_of.operands[0].array_shape.dimensions[dimension]
    return bool(cut.stride == 1 < cut.limit - cut.start < whole)


def _ragged(order: Iterable[Instruction]) -> set[tuple[object, ...]]:
    """The families whose slices have many sizes."""
    sizes: dict[tuple[object, ...], set[int]] = {}
    for instruction in order:
        if instruction.op is not SLICE or not instruction.array_shape.size:
            continue
        for dimension, size in enumerate(instruction.array_shape.dimensions):
            if _is_part(instruction, dimension):
                sizes.setdefault(_family(instruction, dimension), set()).add(size)
    return {family for family, found in sizes.items() if len(found) >= LEAST_SIZES}


class _Widening:
    def __init__(self, ragged: set[tuple[object, ...]], pieces: int) -> None:
        self._ragged = ragged
        self._pieces = pieces
        self._wide: dict[Instruction, Wide] = {}
        self._exact: dict[Instruction, Instruction] = {}
        self._numbers: dict[int, Instruction] = {}

    def rebuilt(
        self, roots: Sequence[Instruction], order: Sequence[Instruction]
    ) -> list[Instruction]:
        for instruction in order:
            if instruction.op in (CONSTANT, PARAMETER):
                self._exact[instruction] = instruction
                continue
            wide = self._widened(instruction)
            if wide is not None and wide.parts:
                self._wide[instruction] = wide
            elif wide is not None:
                self._exact[instruction] = wide.array
            else:
                operands = [self._narrow(operand) for operand in instruction.operands]
                self._exact[instruction] = rebuild(instruction, operands)
        return [self._narrow(root) for root in roots]

    def _narrow(self, instruction: Instruction) -> Instruction:
        """What stands for an instruction, of its own shape."""
        if instruction not in self._exact:
            wide = self._wide[instruction]
            starts = [0] * instruction.array_shape.rank
            for dimension, part in wide.parts.items():
                starts[dimension] = part.start
            ends = [s + n for s, n in zip(starts, instruction.array_shape.dimensions, strict=True)]
            self._exact[instruction] = slice_(wide.array, starts, ends)
        return self._exact[instruction]

    def _widened(self, instruction: Instruction) -> Wide | None:
        """What stands for an instruction, if it or its operands are wide."""
        op = instruction.op
        if op is SLICE:
            return self._slice(instruction)
        if not any(operand in self._wide for operand in instruction.operands):
            return None
        if op.is_arithmetic or op is CONVERT_ELEMENT_TYPE:
            return self._pointwise(instruction)
        if op is RESHAPE:
            return self._reshape(instruction)
        if op is TRANSPOSE:
            return self._transpose(instruction)
        if op is REV:
            return self._rev(instruction)
        if op is BROADCAST_IN_DIM:
            return self._broadcast(instruction)
        if op is DOT_GENERAL:
            return self._dot(instruction)
        if op is REDUCE and len(instruction.operands) == 2:
            return self._reduce(instruction)
        if op is DYNAMIC_UPDATE_SLICE:
            return self._update(instruction)
        return None

    def _slice(self, instruction: Instruction) -> Wide | None:
        (operand,) = instruction.operands
        cuts = instruction.attributes["slice"]
        whole = operand.array_shape.dimensions
        starts, ends = [cut.start for cut in cuts], [cut.limit for cut in cuts]
        parts = {}
        for d, cut in enumerate(cuts):
            if instruction.array_shape.size and _is_part(instruction, d):
                if _family(instruction, d) not in self._ragged:
                    continue
                size = self._window(cut.size, whole[d])
                starts[d] = min(cut.start, whole[d] - size)
                ends[d] = starts[d] + size
                parts[d] = Part(cut.start - starts[d], cut.size, size)
        if not parts:
            return None
        strides = [cut.stride for cut in cuts]
        return Wide(slice_(self._narrow(operand), starts, ends, strides), parts)

    def _window(self, size: int, whole: int) -> int:
        """How wide the window is for a slice: equal for slices of equal size."""
        piece = -(-whole // self._pieces)
        return min(-(-size // piece) * piece, whole)

    def _pointwise(self, instruction: Instruction) -> Wide | None:
        found = [self._wide[o].parts for o in instruction.operands if o in self._wide]
        # As many as can be stay where they are; of two, the one that begins first.
        parts = min(found, key=lambda parts: [part.start for part in parts.values()])
        operands = []
        for operand in instruction.operands:
            wide = self._as_wide(operand, parts)
            if wide is None:
                return None
            operands.append(wide)
        return Wide(self._reshaped(instruction, operands, parts), parts)

    def _reshaped(
        self, instruction: Instruction, operands: Sequence[Instruction], parts: Mapping[int, Part]
    ) -> Instruction:
        """An elementwise instruction over wide operands."""
        sizes = _widened_sizes(instruction.array_shape.dimensions, parts)
        shape = Shape(instruction.array_shape.element_type, tuple(sizes))
        attributes = {
            name: shape if isinstance(value, Shape) else value
            for name, value in instruction.attributes.items()
        }
        return Instruction(instruction.op, tuple(operands), shape, attributes, instruction.source)

    def _as_wide(self, operand: Instruction, parts: Mapping[int, Part]) -> Instruction | None:
        """An operand as wide as others are, whatever it has there beyond their parts."""
        if operand in self._wide:
            return _moved_to(self._wide[operand], parts)
        if not operand.array_shape.rank:
            return self._narrow(operand)
        sizes = _widened_sizes(operand.array_shape.dimensions, parts)
        if operand.op is BROADCAST_IN_DIM:
            kept = operand.attributes["dimensions"]
            if not any(d in parts for d in kept):
                return broadcast_in_dim(self._narrow(operand.operands[0]), sizes, kept)
        return None

    def _reshape(self, instruction: Instruction) -> Wide | None:
        (operand,) = instruction.operands
        wide = self._wide[operand]
        old, new = operand.array_shape.dimensions, instruction.array_shape.dimensions
        given = [d for d, size in enumerate(old) if size != 1 or d in wide.parts]
        wanted = [d for d, size in enumerate(new) if size != 1]
        if len(wanted) < len(given) == len(new):
            wanted = list(range(len(new)))
        if [old[d] for d in given] != [new[d] for d in wanted]:
            return None
        parts = {w: wide.parts[g] for g, w in zip(given, wanted, strict=True) if g in wide.parts}
        return Wide(reshape(wide.array, _widened_sizes(new, parts)), parts)

    def _transpose(self, instruction: Instruction) -> Wide:
        wide = self._wide[instruction.operands[0]]
        permutation = instruction.attributes["dimensions"]
        parts = {n: wide.parts[d] for n, d in enumerate(permutation) if d in wide.parts}
        return Wide(transpose(wide.array, permutation), parts)

    def _rev(self, instruction: Instruction) -> Wide:
        wide = self._wide[instruction.operands[0]]
        dimensions = instruction.attributes["dimensions"]
        parts = {
            d: Part(p.whole - p.start - p.size, p.size, p.whole) if d in dimensions else p
            for d, p in wide.parts.items()
        }
        return Wide(rev(wide.array, dimensions), parts)

    def _broadcast(self, instruction: Instruction) -> Wide | None:
        (operand,) = instruction.operands
        wide = self._wide[operand]
        kept = instruction.attributes["dimensions"]
        parts = {kept[d]: part for d, part in wide.parts.items()}
        old, new = operand.array_shape.dimensions, instruction.array_shape.dimensions
        if any(old[d] != new[kept[d]] for d in wide.parts):
            return None
        return Wide(broadcast_in_dim(wide.array, _widened_sizes(new, parts), kept), parts)

    def _dot(self, instruction: Instruction) -> Wide | None:
        attributes = instruction.attributes
        found = [self._wide.get(operand) for operand in instruction.operands]
        sides = [
            side or Wide(self._narrow(o))
            for side, o in zip(found, instruction.operands, strict=True)
        ]
        for kind in ("contracting", "batch"):
            pairs = zip(attributes[f"lhs_{kind}_dims"], attributes[f"rhs_{kind}_dims"], strict=True)
            for a, b in pairs:
                left, right = sides[0].parts.get(a), sides[1].parts.get(b)
                if left is None or right is None:
                    if left is not right:
                        return None
                elif left != right:
                    # The one that begins later is moved to where the other is.
                    late, d, to = (0, a, right) if left.start > right.start else (1, b, left)
                    parts = {**sides[late].parts, d: to}
                    array = _moved_to(sides[late], parts)
                    if array is None:
                        return None
                    sides[late] = Wide(array, parts)
        operands: list[Instruction] = []
        free: dict[int, Part] = {}
        place = len(attributes["lhs_batch_dims"])
        for name, side in zip(("lhs", "rhs"), sides, strict=True):
            summed, batch = attributes[f"{name}_contracting_dims"], attributes[f"{name}_batch_dims"]
            zero = full_like(side.array, 0)
            operands.append(self._masked(side, [d for d in summed if d in side.parts], zero))
            free |= {n: side.parts[d] for n, d in enumerate(batch) if d in side.parts}
            for dimension in range(side.array.array_shape.rank):
                if dimension not in (*summed, *batch):
                    if dimension in side.parts:
                        free[place] = side.parts[dimension]
                    place += 1
        sizes = _widened_sizes(instruction.array_shape.dimensions, free)
        shape = Shape(instruction.array_shape.element_type, tuple(sizes))
        made = make(DOT_GENERAL, *operands, **{**attributes, "shape": shape})
        return Wide(made, free)

    def _reduce(self, instruction: Instruction) -> Wide | None:
        operand, initial = instruction.operands
        op = monoid(instruction.attributes["to_apply"])
        if operand not in self._wide or op is None:
            return None
        wide = self._wide[operand]
        dimensions = instruction.attributes["dimensions"]
        value = identity_value(op.function, operand.array_shape.element_type)
        reduced = [d for d in dimensions if d in wide.parts]
        array = self._masked(wide, reduced, full(wide.array.array_shape, value))
        made = make(REDUCE, array, self._narrow(initial), **instruction.attributes)
        kept = [d for d in range(array.array_shape.rank) if d not in dimensions]
        parts = {n: wide.parts[d] for n, d in enumerate(kept) if d in wide.parts}
        return Wide(made, parts)

    def _update(self, instruction: Instruction) -> Wide | None:
        """Of the whole that is written, what does not count is what was there."""
        operand, update, *starts = instruction.operands
        if update not in self._wide or any(start.op is not CONSTANT for start in starts):
            return None
        wide = self._wide[update]
        whole = operand.array_shape.dimensions
        places = [int(start.attributes["literal"]) for start in starts]
        inside = zip(places, update.array_shape.dimensions, whole, strict=True)
        if any(not 0 <= place <= size - part for place, part, size in inside):
            return None
        firsts, parts = list(places), {}
        for d, part in wide.parts.items():
            if part.whole > whole[d]:
                return None
            firsts[d] = min(max(places[d] - part.start, 0), whole[d] - part.whole)
            parts[d] = Part(places[d] - firsts[d], part.size, part.whole)
        array = _moved_to(wide, parts)
        if array is None:
            return None
        wide = Wide(array, parts)
        base = self._narrow(operand)
        sizes = wide.array.array_shape.dimensions
        ends = [first + size for first, size in zip(firsts, sizes, strict=True)]
        before = slice_(base, firsts, ends)
        new = self._masked(wide, list(wide.parts), before)
        moved = [
            constant(firsts[d], start.array_shape.element_type) if d in wide.parts else start
            for d, start in enumerate(starts)
        ]
        made = dynamic_update_slice(base, new, moved)
        return Wide(made)

    def _masked(self, wide: Wide, dimensions: Sequence[int], other: Instruction) -> Instruction:
        """``wide``'s array, with ``other`` where it does not count along some dimensions."""
        array = wide.array
        sizes = array.array_shape.dimensions
        for dimension in dimensions:
            part = wide.parts[dimension]
            numbers = iota(Shape(ElementType.S32, (sizes[dimension],)), 0)
            counts = and_(
                ge(numbers, self._number(part.start, numbers)),
                lt(numbers, self._number(part.start + part.size, numbers)),
            )
            array = select(broadcast_in_dim(counts, sizes, (dimension,)), array, other)
        return array

    def _number(self, number: int, like: Instruction) -> Instruction:
        scalar = self._numbers.setdefault(number, constant(number, ElementType.S32))
        return broadcast_in_dim(scalar, like.array_shape.dimensions, ())


def _widened_sizes(dimensions: Sequence[int], parts: Mapping[int, Part]) -> list[int]:
    return [parts[d].whole if d in parts else size for d, size in enumerate(dimensions)]


def _moved_to(wide: Wide, parts: Mapping[int, Part]) -> Instruction | None:
    """The array turned round so that its parts lie elsewhere; None where their sizes differ."""
    if wide.parts.keys() != parts.keys():
        return None
    array = wide.array
    for dimension, part in parts.items():
        old = wide.parts[dimension]
        if (old.size, old.whole) != (part.size, part.whole):
            return None
        if old.start != part.start:
            by = (old.start - part.start) % old.whole
            twice = concatenate([array, array], dimension)
            array = slice_in_dim(twice, by, by + old.whole, 1, dimension)
    return array
