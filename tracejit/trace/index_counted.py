"""Slices with unknown bounds: ``x[i : i + 3]``, ``x[:i]`` between counters of a loop, ``x[a:b]``.

Between counters the first has one size in all steps, and is a stretch from an unknown place on.
The size of the others differs: they are all of the dimension, of which the places between the
bounds count.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracejit.errors import ConcretizationError, StaticIndexError
from tracejit.graph import Instruction
from tracejit.ops.comparison import ge, lt
from tracejit.ops.constants import constant, iota
from tracejit.ops.element_types import convert_element_type
from tracejit.ops.elementwise import add, and_, clamp, select
from tracejit.ops.layout import broadcast_in_dim
from tracejit.shapes import ElementType, Shape
from tracejit.trace.affine_bounds import affine, is_counted, is_within
from tracejit.trace.evaluation import known_value
from tracejit.trace.index_basic import Stretch
from tracejit.trace.table import Traced

ToInstruction = Callable[[Any], Instruction]


def counted_slice(
    item: slice, size: int, to_instruction: ToInstruction
) -> Stretch | Instruction | None:
    """A stretch of a dimension of ``size``, or the mask of the places of the slice.

    None where the bounds are known, or depend on more than counters. Raises `ConcretizationError`
    where they may lie outside of the dimension.
    """
    traced = [b for b in (item.start, item.stop) if isinstance(b, Traced)]
    bounds = [to_instruction(bound) for bound in traced]
    if not any(known_value(b) is None and is_counted(b) for b in bounds):
        return None
    if item.step not in (None, 1):
        raise ConcretizationError("slice: a step is not supported between counters of loops")
    start = _place(0 if item.start is None else item.start, size, to_instruction)
    stop = _place(size if item.stop is None else item.stop, size, to_instruction)
    first, last = affine(start), affine(stop)
    if first is not None and last is not None:
        width = last.plus(first, -1)
        if not width.terms and width.constant > 0:
            return Stretch(start, width.constant)
    # Of this form masks are bounds where products are compiled.
    numbers = iota(Shape(ElementType.S32, (size,)), 0)
    low, high = (convert_element_type(bound, ElementType.S32) for bound in (start, stop))
    return and_(ge(numbers, low), lt(numbers, high))


def unknown_slice(item: slice, size: int, to_instruction: ToInstruction) -> Instruction | None:
    """The mask of the places of a slice whose bounds are unknown; None where they are known.

    Bounds are clamped to the dimension, and negative ones counted from its end, as Python's are.
    Raises `ConcretizationError` for a step other than 1.
    """
    bounds = [bound for bound in (item.start, item.stop, item.step) if isinstance(bound, Traced)]
    if all(known_value(to_instruction(bound)) is not None for bound in bounds):
        return None
    if item.step not in (None, 1):
        raise ConcretizationError("slice: a step is not supported between bounds that are unknown")
    numbers = iota(Shape(ElementType.S64, (size,)), 0)
    low = _clamped(0 if item.start is None else item.start, size, to_instruction)
    high = _clamped(size if item.stop is None else item.stop, size, to_instruction)
    low, high = (broadcast_in_dim(bound, (size,), ()) for bound in (low, high))
    return and_(ge(numbers, low), lt(numbers, high))


def _clamped(bound: Any, size: int, to_instruction: ToInstruction) -> Instruction:
    """A bound as a place from 0 to the dimension's end, as s64."""
    place = to_instruction(bound)
    if place.array_shape.rank or not place.array_shape.element_type.is_integral:
        raise StaticIndexError(f"slice: bounds must be integers, not {place.array_shape}")
    place = convert_element_type(place, ElementType.S64)
    nothing, end = constant(0, ElementType.S64), constant(size, ElementType.S64)
    place = select(lt(place, nothing), add(place, end), place)
    return clamp(nothing, place, end)


def _place(bound: Any, size: int, to_instruction: ToInstruction) -> Instruction:
    """A bound as a place from 0 to the dimension's end."""
    if isinstance(bound, Traced):
        place = to_instruction(bound)
        known = known_value(place)
        if known is None:
            if not is_within(place, size + 1):
                raise ConcretizationError(
                    f"slice: it is not known for all steps of a loop at once that its bounds lie "
                    f"within the axis, of size {size}"
                )
            return place
        bound = int(known)
    return to_instruction(slice(bound, None).indices(size)[0])
