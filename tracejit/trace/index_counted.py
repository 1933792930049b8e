"""Slices between counters of loops: ``x[i : i + 3]`` and ``x[:i]`` while a loop is recorded once.

The first has one size in all steps, and is a stretch from an unknown place on. The size of the
second differs from step to step: it is all of the dimension, of which the places between the
bounds count.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracejit.errors import ConcretizationError
from tracejit.graph import Instruction
from tracejit.ops.comparison import ge, lt
from tracejit.ops.constants import iota
from tracejit.ops.element_types import convert_element_type
from tracejit.ops.elementwise import and_
from tracejit.shapes import ElementType, Shape
from tracejit.trace.counters import affine, is_counted, is_within
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
