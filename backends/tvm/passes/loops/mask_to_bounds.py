"""Turns products of masked operands into products over the range that the mask leaves.

    dot(select(first <= iota and iota < end, a, 0),        bounded_dot(a, b, first, end)
        select(the same, b, 0))

Vectorised loops whose slices vary in size read the longest slice and mask it, which costs as much
as the whole. Here the mask becomes the loop's bounds: nothing outside is read, and nothing is
masked.
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
class MaskBounds:
    """The range of indices from ``first`` up to ``end`` along a dimension; None for no bound."""

    dimension: int
    first: Instruction | None
    end: Instruction | None


def convert_masks_to_bounds(roots: Sequence[Instruction]) -> list[Instruction]:
    """Equal ``roots`` in which masked matrix-vector products have bounds instead."""
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
        # Products of two matrices have kernels of their own.
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


def _masked(value: Instruction) -> tuple[Instruction, MaskBounds] | None:
    """An array that is masked to zero outside of bounds, without its mask, and the bounds."""
    if value.op is not SELECT or not _is_zero(value.operands[2]):
        return None
    mask, inner, _ = value.operands
    if mask.array_shape.dimensions != value.array_shape.dimensions:
        return None
    bounds = bounds_of(mask)
    return None if bounds is None else (inner, bounds)


def bounds_of(mask: Instruction) -> MaskBounds | None:
    """The range along one dimension in which a mask is true."""
    if mask.op is BROADCAST_IN_DIM:
        (operand,) = mask.operands
        inner = bounds_of(operand)
        if inner is None:
            return None
        dimension = mask.attributes["dimensions"][inner.dimension]
        sizes = operand.array_shape.dimensions[inner.dimension]
        if mask.array_shape.dimensions[dimension] != sizes:
            return None
        return MaskBounds(dimension, inner.first, inner.end)
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
    return MaskBounds(dimension, found.get("GE"), found.get("LT"))


def _is_zero(value: Instruction) -> bool:
    while value.op is BROADCAST_IN_DIM:
        (value,) = value.operands
    return value.op is CONSTANT and not value.attributes["literal"].any()
