"""Cotangents of dynamic arrays and of static ones that meet them.

Where x is f32[5] and y f32[<=5], the cotangent of x in x + y counts only as far as y does.
"""

from __future__ import annotations

from tracejit.graph import Instruction
from tracejit.ops.bounds import flags_of
from tracejit.ops.comparison import lt
from tracejit.ops.constants import constant, iota
from tracejit.ops.dynamic_sizes import get_dimension_size, set_dimension_size
from tracejit.ops.elementwise import select
from tracejit.ops.layout import broadcast_in_dim, full
from tracejit.shapes import ElementType, Shape


def dynamic(cotangent: Instruction, target: Instruction) -> bool:
    """Whether a cotangent and its target differ in nothing but which dimensions are dynamic."""
    given, wanted = cotangent.array_shape, target.array_shape
    return given.with_dynamic(()) == wanted.with_dynamic(())


def fitted(cotangent: Instruction, target: Instruction) -> Instruction:
    """``cotangent`` with the dynamic dimensions of ``target``; zeros take the place of no element.

    Both have the same bounds.
    """
    wanted, given = flags_of(target.array_shape), flags_of(cotangent.array_shape)
    bounds = cotangent.array_shape.dimensions
    sizes = {d: get_dimension_size(cotangent, d) for d, flag in enumerate(given) if flag}
    whole = cotangent
    for dimension in sizes:
        bound = constant(bounds[dimension], ElementType.S32)
        whole = set_dimension_size(whole, bound, dimension)
    if whole.array_shape.is_dynamic:
        return cotangent
    for dimension, size in sizes.items():
        whole = masked(whole, size, dimension)
    for dimension, flag in enumerate(wanted):
        if flag:
            whole = set_dimension_size(whole, get_dimension_size(target, dimension), dimension)
    return whole


def masked(array: Instruction, size: Instruction, dimension: int) -> Instruction:
    """Zeros in place of a static array's elements from ``size`` on along a dimension."""
    shape = array.array_shape
    places = iota(Shape(ElementType.S32, shape.dimensions), dimension)
    inside = lt(places, broadcast_in_dim(size, shape.dimensions, ()))
    return select(inside, array, full(shape, 0))
