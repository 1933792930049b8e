"""Where the greatest and the least complex numbers are, in NumPy's order.

By the real parts, and where those are equal by the imaginary parts; the first number with a NaN in
either part comes before all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tracejit.graph import Instruction
from tracejit.numpy.building import both_parts, fill, is_nan, where
from tracejit.ops import comparison, elementwise, layout
from tracejit.ops.computations import scalar_computation
from tracejit.ops.constants import constant, iota
from tracejit.ops.reduction import argmax as first_greatest
from tracejit.ops.reduction import reduce
from tracejit.shapes import ElementType, Shape
from tracejit.trace.views import broadcast


def place_of_extreme(name: str, x: Instruction, axis: int) -> Instruction:
    """The place along ``axis`` of the first extreme element; ``name`` is max or min.

    s64, without the axis.
    """
    re, im = both_parts(x)
    worst = -np.inf if name == "max" else np.inf
    best_re = comparison.eq(re, _extreme(name, re, axis))
    im_there = where(best_re, im, worst)
    best = elementwise.and_(best_re, comparison.eq(im_there, _extreme(name, im_there, axis)))
    missing = is_nan(x)
    best = where(_any(missing, axis), missing, best)
    return first_greatest(where(best, fill(re, 1), 0), axis, ElementType.S64)


def complex_extreme(name: str, x: Instruction, axes: Sequence[int]) -> Instruction:
    """The extreme elements along ``axes``, none of them empty."""
    dimensions = x.array_shape.dimensions
    kept = [d for d in range(len(dimensions)) if d not in axes]
    sizes = [dimensions[d] for d in kept]
    rows = layout.reshape(
        layout.transpose(x, [*kept, *axes]), [*sizes, math.prod(dimensions[a] for a in axes)]
    )
    shape = rows.array_shape
    place = layout.broadcast_in_dim(
        place_of_extreme(name, rows, len(kept)), shape.dimensions, range(len(kept))
    )
    counted = iota(Shape(ElementType.S64, shape.dimensions), len(kept))
    chosen = where(comparison.eq(counted, place), rows, 0)
    element_type = shape.element_type
    add = scalar_computation("add", element_type)
    return reduce(chosen, constant(0, element_type), add, [len(kept)])


def _extreme(name: str, x: Instruction, axis: int) -> Instruction:
    """The extreme along ``axis``, stretched over it."""
    element_type = x.array_shape.element_type
    worst = constant(-np.inf if name == "max" else np.inf, element_type)
    return _over(reduce(x, worst, scalar_computation(name, element_type), [axis]), x, axis)


def _any(mask: Instruction, axis: int) -> Instruction:
    holds = scalar_computation("or", ElementType.PRED)
    return _over(reduce(mask, constant(False, ElementType.PRED), holds, [axis]), mask, axis)


def _over(reduced: Instruction, like: Instruction, axis: int) -> Instruction:
    dimensions = like.array_shape.dimensions
    kept = layout.reshape(reduced, [1 if d == axis else s for d, s in enumerate(dimensions)])
    return broadcast(kept, dimensions)
