"""Reads whole dimensions in place of slices whose sizes differ, and masks the rest.

    dot(a[i, :j], b[:j])        dot(where(iota < j, a[i], 0), where(iota < j, b, 0))

A triangular loop reads ``a[i, :j]`` with another ``j`` in each iteration. Arrays of different sizes
make different instructions. Here such a slice becomes an array as long as the whole dimension, and
its first ``j`` elements count. A contraction or a reduction takes zeros, or another identity, for
the rest. An update keeps the old elements there. Elementwise ops ignore the rest. The sizes are
constants, which may differ between iterations.

Runs inside of `reroll`, on graphs whose iterations are not equal otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tracejit.backends.tvm.passes.reroll.static_to_dynamic_slices import is_slice
from tracejit.graph import Instruction
from tracejit.ops.base import make
from tracejit.ops.comparison import ge, lt
from tracejit.ops.computations import identity_value, monoid
from tracejit.ops.constants import CONSTANT, PARAMETER, constant, iota
from tracejit.ops.contraction import DOT_GENERAL
from tracejit.ops.elementwise import and_, select
from tracejit.ops.layout import (
    BROADCAST_IN_DIM,
    DYNAMIC_UPDATE_SLICE,
    RESHAPE,
    REV,
    SLICE,
    TRANSPOSE,
    broadcast_in_dim,
    dynamic_update_slice,
    full,
    full_like,
    pad_in_dim,
    reshape,
    rev,
    scalar_like,
    slice_,
    slice_in_dim,
    transpose,
)
from tracejit.ops.reduction import REDUCE
from tracejit.shapes import ElementType, Shape
from tracejit.traversal import in_order, rebuild

# The number of sizes along one dimension from which slices are masked.
LEAST_SIZES = 8


Family = tuple[object, ...]


@dataclass(frozen=True, eq=False)
class Masked:
    """A longer array in place of another, which is its first ``sizes`` elements by dimension."""

    array: Instruction
    sizes: Mapping[int, int] = field(default_factory=dict)

    @property
    def lengths(self) -> tuple[int, ...]:
        """The dimensions of the longer array."""
        return self.array.array_shape.dimensions


def mask_ragged_slices(roots: Sequence[Instruction]) -> list[Instruction] | None:
    """Equal ``roots`` without slices of many sizes, rebuilt in order; None if there are none.

    Sums may be added up in another order.
    """
    order = in_order(roots)
    ragged = _ragged(order)
    return _Masking(ragged).rebuilt(roots, order) if ragged else None


def _families(cut: Instruction) -> dict[int, Family]:
    """For each of its `_parts` a key, equal for slices that differ in the sizes of parts only."""
    parts = _parts(cut)
    others = tuple([0 if d in parts else n for d, n in enumerate(cut.array_shape.dimensions)])
    return {d: (cut.operands[0].shape, d, others) for d in parts}


def _parts(cut: Instruction) -> list[int]:
    """The dimensions where a slice takes several elements without gaps, but not all."""
    whole = cut.operands[0].array_shape.dimensions
    sliced = cut.attributes["slice"]
    return [d for d, s in enumerate(sliced) if s.stride == 1 < s.limit - s.start < whole[d]]


def _ragged(order: Iterable[Instruction]) -> dict[Family, bool]:
    """The families whose slices have many sizes, and whether any of these begins after 0."""
    sizes: dict[Family, set[int]] = {}
    begins: dict[Family, int] = {}
    for instruction in filter(is_slice, order):
        for d, family in _families(instruction).items():
            cut = instruction.attributes["slice"][d]
            sizes.setdefault(family, set()).add(cut.size)
            begins[family] = begins.get(family, 0) + cut.start
    return {
        family: begins[family] > 0 for family, found in sizes.items() if len(found) >= LEAST_SIZES
    }


class _Masking:
    """Rebuilds a graph; an instruction has a longer array, or an equal one, or both."""

    def __init__(self, ragged: dict[Family, bool]) -> None:
        self._ragged = ragged
        self._masked: dict[Instruction, Masked] = {}
        self._equal: dict[Instruction, Instruction] = {}
        self._rules = {
            SLICE: self._slice,
            RESHAPE: self._reshape,
            TRANSPOSE: self._transpose,
            REV: self._rev,
            BROADCAST_IN_DIM: self._broadcast,
            DOT_GENERAL: self._dot,
            REDUCE: self._reduce,
            DYNAMIC_UPDATE_SLICE: self._update,
        }

    def rebuilt(
        self, roots: Sequence[Instruction], order: Sequence[Instruction]
    ) -> list[Instruction]:
        for instruction in order:
            if instruction.op in (CONSTANT, PARAMETER):
                self._equal[instruction] = instruction
                continue
            made = self._of(instruction)
            if made is None:
                operands = [self._exact(operand) for operand in instruction.operands]
                self._equal[instruction] = rebuild(instruction, operands)
            elif made.sizes:
                self._masked[instruction] = made
            else:
                self._equal[instruction] = made.array
        return [self._exact(root) for root in roots]

    def _exact(self, instruction: Instruction) -> Instruction:
        """The equal array in place of an instruction."""
        if instruction not in self._equal:
            sizes = instruction.array_shape.dimensions
            made = slice_(self._masked[instruction].array, [0] * len(sizes), sizes)
            self._equal[instruction] = made
        return self._equal[instruction]

    def _of(self, instruction: Instruction) -> Masked | None:
        """A longer array, or an equal one; None if no rule applies."""
        rule = self._rules.get(instruction.op)
        if rule is None and instruction.op.is_elementwise:
            rule = self._pointwise
        if rule is None or (
            rule != self._slice and not any(o in self._masked for o in instruction.operands)
        ):
            return None
        return rule(instruction)

    def _slice(self, instruction: Instruction) -> Masked | None:
        if not is_slice(instruction):
            return None
        families = _families(instruction).items()
        parts = {d: self._ragged[family] for d, family in families if family in self._ragged}
        if not parts:
            return None
        (operand,) = instruction.operands
        cuts = instruction.attributes["slice"]
        whole = operand.array_shape.dimensions
        starts = [0 if d in parts else cut.start for d, cut in enumerate(cuts)]
        limits = [whole[d] if d in parts else cut.limit for d, cut in enumerate(cuts)]
        array = slice_(self._exact(operand), starts, limits, [cut.stride for cut in cuts])
        for d, moves in parts.items():
            array = _from(array, d, cuts[d].start) if moves else array
        return Masked(array, {d: instruction.array_shape.dimensions[d] for d in parts})

    def _pointwise(self, instruction: Instruction) -> Masked | None:
        lengths = list(instruction.array_shape.dimensions)
        sizes: dict[int, int] = {}
        for masked in filter(None, map(self._masked.get, instruction.operands)):
            for d, size in masked.sizes.items():
                sizes[d], lengths[d] = size, masked.lengths[d]
        operands: list[Instruction] = []
        for operand in instruction.operands:
            extended = self._extended(operand, sizes, lengths)
            if extended is None:
                return None
            operands.append(extended)
        shape = Shape(instruction.array_shape.element_type, tuple(lengths))
        attributes = {
            name: shape if isinstance(value, Shape) else value
            for name, value in instruction.attributes.items()
        }
        made = Instruction(instruction.op, tuple(operands), shape, attributes, instruction.source)
        return Masked(made, sizes)

    def _extended(
        self, operand: Instruction, sizes: Mapping[int, int], lengths: Sequence[int]
    ) -> Instruction | None:
        """An operand as long as others, with anything beyond the elements that count."""
        masked = self._masked.get(operand)
        if masked is not None and masked.sizes == sizes and masked.lengths == tuple(lengths):
            return masked.array
        if not operand.array_shape.rank:
            return self._exact(operand)
        if operand.op is CONSTANT:
            literal = operand.attributes["literal"]
            room = [(0, n - m) for n, m in zip(lengths, literal.shape, strict=True)]
            return constant(np.pad(literal, room), operand.array_shape.element_type)
        if operand.op is BROADCAST_IN_DIM:
            source = self._longer(operand.operands[0])
            kept = operand.attributes["dimensions"]
            if all(
                source.sizes.get(n) == sizes.get(d) and source.lengths[n] == lengths[d]
                for n, d in enumerate(kept)
            ):
                return broadcast_in_dim(source.array, lengths, kept)
        return None

    def _longer(self, instruction: Instruction) -> Masked:
        """The longer array, or else the equal one."""
        return self._masked.get(instruction) or Masked(self._exact(instruction))

    def _reshape(self, instruction: Instruction) -> Masked | None:
        """Dimensions of one element may come and go."""
        (operand,) = instruction.operands
        masked = self._masked[operand]
        old, new = operand.array_shape.dimensions, instruction.array_shape.dimensions
        given = [d for d, size in enumerate(old) if size != 1]
        wanted = [d for d, size in enumerate(new) if size != 1]
        if [old[d] for d in given] != [new[d] for d in wanted]:
            return None
        place = dict(zip(given, wanted, strict=True))
        dimensions = list(new)
        for d in masked.sizes:
            dimensions[place[d]] = masked.lengths[d]
        sizes = {place[d]: size for d, size in masked.sizes.items()}
        return Masked(reshape(masked.array, dimensions), sizes)

    def _transpose(self, instruction: Instruction) -> Masked:
        masked = self._masked[instruction.operands[0]]
        permutation = instruction.attributes["dimensions"]
        sizes = {n: masked.sizes[d] for n, d in enumerate(permutation) if d in masked.sizes}
        return Masked(transpose(masked.array, permutation), sizes)

    def _rev(self, instruction: Instruction) -> Masked:
        masked = self._masked[instruction.operands[0]]
        dimensions = instruction.attributes["dimensions"]
        array = rev(masked.array, dimensions)
        for d, size in masked.sizes.items():
            if d in dimensions:
                array = _from(array, d, array.array_shape.dimensions[d] - size)
        return Masked(array, masked.sizes)

    def _broadcast(self, instruction: Instruction) -> Masked:
        masked = self._masked[instruction.operands[0]]
        kept = instruction.attributes["dimensions"]
        dimensions = list(instruction.array_shape.dimensions)
        for d in masked.sizes:
            dimensions[kept[d]] = masked.lengths[d]
        sizes = {kept[d]: size for d, size in masked.sizes.items()}
        return Masked(broadcast_in_dim(masked.array, dimensions, kept), sizes)

    def _dot(self, instruction: Instruction) -> Masked | None:
        attributes = instruction.attributes
        sides = [*map(self._longer, instruction.operands)]
        for kind in ("contracting", "batch"):
            pairs = zip(attributes[f"lhs_{kind}_dims"], attributes[f"rhs_{kind}_dims"], strict=True)
            for pair in pairs:
                one, other = [
                    (s.lengths[d], s.sizes.get(d)) for s, d in zip(sides, pair, strict=True)
                ]
                if one != other:
                    return None
        operands = []
        kept = [(sides[0], d) for d in attributes["lhs_batch_dims"]]
        for name, side in zip(("lhs", "rhs"), sides, strict=True):
            summed, batch = attributes[f"{name}_contracting_dims"], attributes[f"{name}_batch_dims"]
            operands.append(_cleared(side, summed, full_like(side.array, 0)))
            kept += [(side, d) for d in range(len(side.lengths)) if d not in (*summed, *batch)]
        lengths = tuple([side.lengths[d] for side, d in kept])
        shape = Shape(instruction.array_shape.element_type, lengths)
        sizes = {n: side.sizes[d] for n, (side, d) in enumerate(kept) if d in side.sizes}
        return Masked(make(DOT_GENERAL, *operands, **{**attributes, "shape": shape}), sizes)

    def _reduce(self, instruction: Instruction) -> Masked | None:
        op = monoid(instruction.attributes["to_apply"])
        if op is None or len(instruction.operands) != 2:
            return None
        operand, initial = instruction.operands
        masked = self._masked.get(operand)
        if masked is None:
            return None
        dimensions = instruction.attributes["dimensions"]
        shape = masked.array.array_shape
        nothing = full(shape, identity_value(op.function, shape.element_type))
        array = _cleared(masked, dimensions, nothing)
        made = make(REDUCE, array, self._exact(initial), **instruction.attributes)
        kept = [d for d in range(shape.rank) if d not in dimensions]
        return Masked(made, {n: masked.sizes[d] for n, d in enumerate(kept) if d in masked.sizes})

    def _update(self, instruction: Instruction) -> Masked | None:
        """Whole dimensions are written, with what was there beyond the elements that count."""
        operand, update, *starts = instruction.operands
        masked = self._masked.get(update)
        if masked is None or any(start.op is not CONSTANT for start in starts):
            return None
        whole = operand.array_shape.dimensions
        lengths = update.array_shape.dimensions
        firsts = [
            min(max(int(start.attributes["literal"]), 0), n - size)  # as XLA clamps them
            for start, n, size in zip(starts, whole, lengths, strict=True)
        ]
        array = masked.array
        for d in masked.sizes:
            array = _from(_of_length(array, d, whole[d]), d, -firsts[d])
        base = self._exact(operand)
        begin = [0 if d in masked.sizes else first for d, first in enumerate(firsts)]
        ends = [first + n for first, n in zip(begin, array.array_shape.dimensions, strict=True)]
        new = _cleared(Masked(array, masked.sizes), masked.sizes, slice_(base, begin, ends), firsts)
        moved = [
            constant(first, start.array_shape.element_type)
            for first, start in zip(begin, starts, strict=True)
        ]
        return Masked(dynamic_update_slice(base, new, moved))


def _from(array: Instruction, dimension: int, start: int) -> Instruction:
    """An array of the same shape that begins at ``start``, which may be negative."""
    length = array.array_shape.dimensions[dimension]
    zero = scalar_like(array, 0)
    if start < 0:
        longer = pad_in_dim(array, zero, dimension, length, 0)
        return slice_in_dim(longer, length + start, 2 * length + start, 1, dimension)
    longer = pad_in_dim(array, zero, dimension, 0, length)
    return slice_in_dim(longer, start, start + length, 1, dimension)


def _of_length(array: Instruction, dimension: int, length: int) -> Instruction:
    """An array that is cut, or padded with zeros, to a length."""
    more = length - array.array_shape.dimensions[dimension]
    return pad_in_dim(array, scalar_like(array, 0), dimension, 0, more) if more else array


def _cleared(
    masked: Masked, dimensions: Iterable[int], other: Instruction, firsts: Sequence[int] = ()
) -> Instruction:
    """A masked array with the elements of ``other`` for those that do not count along dimensions.

    Those that count begin at ``firsts``, or at 0.
    """
    array = masked.array
    lengths = array.array_shape.dimensions
    for d in dimensions:
        if d in masked.sizes:
            numbers = iota(Shape(ElementType.S32, (lengths[d],)), 0)
            first = firsts[d] if firsts else 0
            counts = lt(numbers, full_like(numbers, first + masked.sizes[d]))
            if firsts:
                counts = and_(ge(numbers, full_like(numbers, first)), counts)
            array = select(broadcast_in_dim(counts, lengths, (d,)), array, other)
    return array
