"""Turns products of masked operands into loops over the range that the mask leaves.

Where slices change their size from step to step, vectorised loops read the longest and mask it:

    dot(select(first <= iota and iota < end, a, 0), select(the same, b, 0))

sums zeros for the rest, which is as much work as the whole. Here the mask becomes the loop's
bounds: nothing is read outside of them, and nothing is masked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tracejit.backends.tvm.ir.internal_ops import BOUNDED_DOT
from tracejit.graph import Instruction
from tracejit.ops.base import make
from tracejit.ops.comparison import COMPARE
from tracejit.ops.constants import CONSTANT, IOTA, constant
from tracejit.ops.contraction import DOT_GENERAL
from tracejit.ops.elementwise import AND, SELECT
from tracejit.ops.layout import BROADCAST_IN_DIM
from tracejit.shapes import ElementType
from tracejit.traversal import transform

_COUNTERS = (ElementType.S32, ElementType.S64)


@dataclass(frozen=True)
class Bounds:
    """The places from ``first`` up to, not with, ``end`` along a dimension; from or to its end."""

    dimension: int
    first: Instruction | None
    end: Instruction | None


def convert_masks_to_bounds(roots: Sequence[Instruction]) -> list[Instruction]:
    """Equal ``roots`` whose masked products of vectors with others have bounds instead."""
    return transform(roots, _bounded)


def _bounded(dot: Instruction, operands: tuple[Instruction, ...]) -> Instruction | None:
    if dot.op is not DOT_GENERAL or dot.array_shape.element_type is ElementType.PRED:
        return None
    attributes = dot.attributes
    sums = attributes["lhs_contracting_dims"], attributes["rhs_contracting_dims"]
    if attributes["lhs_batch_dims"] or len(sums[0]) != 1:
        return None
    pairs = zip(operands, sums, strict=True)
    if all(o.array_shape.size > o.array_shape.dimensions[d] for o, (d,) in pairs):
        # Products of matrices have kernels of their own.
        return None
    masked = [side for side in map(_masked, operands) if side is not None]
    if len(masked) < 2:
        return None
    (a, left), (b, right) = masked
    if (left.dimension, right.dimension) != (sums[0][0], sums[1][0]):
        return None
    if left.first is not right.first or left.end is not right.end:
        return None
    size = a.array_shape.dimensions[left.dimension]
    first = left.first or constant(0, ElementType.S32)
    end = left.end or constant(size, ElementType.S32)
    return make(BOUNDED_DOT, a, b, first, end, **attributes)


def _masked(value: Instruction) -> tuple[Instruction, Bounds] | None:
    """What is zero but within bounds, without its mask."""
    if value.op is not SELECT or not _is_zero(value.operands[2]):
        return None
    mask, inner, _ = value.operands
    if mask.array_shape.dimensions != value.array_shape.dimensions:
        return None
    bounds = bounds_of(mask)
    return None if bounds is None else (inner, bounds)


def bounds_of(mask: Instruction) -> Bounds | None:
    """The part of an array along one dimension that a mask is true for."""
    if mask.op is BROADCAST_IN_DIM:
        (operand,) = mask.operands
        inner = bounds_of(operand)
        if inner is None:
            return None
        dimension = mask.attributes["dimensions"][inner.dimension]
        sizes = operand.array_shape.dimensions[inner.dimension]
        if mask.array_shape.dimensions[dimension] != sizes:
            return None
        return Bounds(dimension, inner.first, inner.end)
    found: dict[str, Instruction] = {}
    dimensions = set()
    tests = mask.operands if mask.op is AND else (mask,)
    for test in tests:
        if test.op is not COMPARE:
            return None
        number, bound = test.operands
        if number.op is not IOTA or number.array_shape.element_type not in _COUNTERS:
            return None
        if bound.op is not BROADCAST_IN_DIM or bound.operands[0].array_shape.rank:
            return None
        found[test.attributes["direction"]] = bound.operands[0]
        dimensions.add(number.attributes["iota_dimension"])
    if len(dimensions) != 1 or len(found) != len(tests) or not found.keys() <= {"GE", "LT"}:
        return None
    (dimension,) = dimensions
    if mask.array_shape.dimensions[dimension] >= 1 << 31:
        return None
    return Bounds(dimension, found.get("GE"), found.get("LT"))


def _is_zero(value: Instruction) -> bool:
    while value.op is BROADCAST_IN_DIM:
        (value,) = value.operands
    return value.op is CONSTANT and not value.attributes["literal"].any()
