"""Unknown masks, as graphs: whether two are the same, and which of them are slices."""

from __future__ import annotations

import numpy as np

from tracejit.graph import Instruction
from tracejit.ops import comparison, elementwise, layout
from tracejit.ops.constants import IOTA


def is_same_mask(one: Instruction, other: Instruction) -> bool:
    """Whether two masks are the same value, or the same expression of the same values."""
    if one is other:
        return True
    if one.op is IOTA:
        return other.op is IOTA and one.shape == other.shape
    return (
        one.op is other.op
        and bool(one.operands)
        and len(one.operands) == len(other.operands)
        and dict(one.attributes) == dict(other.attributes)
        and all(
            is_same_mask(a, b) or _are_equal_constants(a, b)
            for a, b in zip(one.operands, other.operands, strict=True)
        )
    )


def _are_equal_constants(one: Instruction, other: Instruction) -> bool:
    first, second = one.attributes.get("literal"), other.attributes.get("literal")
    if first is None or second is None or one.shape != other.shape:
        return False
    return bool(np.array_equal(first, second))


def bounds_of(mask: Instruction) -> tuple[Instruction, Instruction] | None:
    """The numbers between which the places lie, if this is the mask of a slice between counters."""
    tests = mask.operands if mask.op is elementwise.AND else ()
    if [test.op for test in tests] != [comparison.COMPARE] * 2 or mask.array_shape.rank != 1:
        return None
    directions = [test.attributes["direction"] for test in tests]
    bounds = [test.operands[1] for test in tests]
    if directions != ["GE", "LT"] or any(test.operands[0].op is not IOTA for test in tests):
        return None
    if any(bound.op is not layout.BROADCAST_IN_DIM for bound in bounds):
        return None
    first, end = (bound.operands[0] for bound in bounds)
    return None if first.array_shape.rank or end.array_shape.rank else (first, end)
