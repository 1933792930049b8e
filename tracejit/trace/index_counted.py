"""Slices with unknown bounds: ``x[i : i + 3]``, ``x[:i]`` between counters of a loop, ``x[a:b]``.

Between counters the first has one size in all steps, and is a stretch from an unknown place on.
The size of the others differs: they are the whole dimension, with only the places between the
bounds valid.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracejit.errors import ConcretizationError, StaticIndexError
from tracejit.graph import Instruction
from tracejit.ops import elementwise
from tracejit.ops.comparison import eq, ge, gt, le, lt
from tracejit.ops.constants import constant, iota
from tracejit.ops.element_types import convert_element_type
from tracejit.ops.elementwise import add, and_, clamp, or_, rem, select, sub
from tracejit.ops.elementwise_unary import abs as absolute
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

    None where the bounds are known, or depend on more than counters, and for a step other than 1.
    Raises `ConcretizationError` where they may lie outside of the dimension.
    """
    if isinstance(item.step, Traced) or item.step not in (None, 1):
        return None
    traced = [b for b in (item.start, item.stop) if isinstance(b, Traced)]
    bounds = [to_instruction(bound) for bound in traced]
    if not any(known_value(b) is None and is_counted(b) for b in bounds):
        return None
    start = _place(0 if item.start is None else item.start, size, to_instruction)
    stop = _place(size if item.stop is None else item.stop, size, to_instruction)
    first, last = affine(start), affine(stop)
    if first is not None and last is not None:
        width = last - first
        if not width.terms and width.constant > 0:
            return Stretch(start, width.constant)
    # Of this form masks are bounds where products are compiled.
    numbers = iota(Shape(ElementType.S32, (size,)), 0)
    low, high = (convert_element_type(bound, ElementType.S32) for bound in (start, stop))
    return and_(ge(numbers, low), lt(numbers, high))


def unknown_slice(item: slice, size: int, to_instruction: ToInstruction) -> Instruction | None:
    """The mask of the places of a slice whose bounds are unknown; None where they are known.

    Bounds are clamped to the dimension, and negative ones counted from its end, as Python's are. An
    unknown step of 0, which Python refuses, selects nothing.
    """
    bounds = [bound for bound in (item.start, item.stop, item.step) if isinstance(bound, Traced)]
    if all(known_value(to_instruction(bound)) is not None for bound in bounds):
        return None
    step = 1 if item.step is None else item.step
    if not isinstance(step, Traced):
        slice(None, None, step).indices(size)  # raises what Python does
        return _places(item, size, step, to_instruction)
    stride = _integer(step, to_instruction)
    zero = constant(0, ElementType.S64)
    forward = _places(item, size, stride, to_instruction)
    backward = _places(item, size, stride, to_instruction, is_backward=True)
    is_forward = broadcast_in_dim(gt(stride, zero), (size,), ())
    is_backward = broadcast_in_dim(lt(stride, zero), (size,), ())
    return or_(and_(is_forward, forward), and_(is_backward, backward))


def _places(
    item: slice,
    size: int,
    step: int | Instruction,
    to_instruction: ToInstruction,
    is_backward: bool = False,
) -> Instruction:
    """The mask of the places of a slice; an unknown ``step`` has the sign that is told."""
    if isinstance(step, int):
        is_backward = step < 0
    least, most = (-1, size - 1) if is_backward else (0, size)
    first, last = (most, least) if is_backward else (least, most)

    def bound(given: Any, default: int) -> Instruction:
        if given is None:
            return broadcast_in_dim(constant(default, ElementType.S64), (size,), ())
        return broadcast_in_dim(_clamped(given, size, least, most, to_instruction), (size,), ())

    start, stop = bound(item.start, first), bound(item.stop, last)
    numbers = iota(Shape(ElementType.S64, (size,)), 0)
    if is_backward:
        between = and_(le(numbers, start), gt(numbers, stop))
    else:
        between = and_(ge(numbers, start), lt(numbers, stop))
    if step in (1, -1):
        return between
    one = constant(1, ElementType.S64)
    stride = (
        constant(abs(step), ElementType.S64)
        if isinstance(step, int)
        else elementwise.max(absolute(step), one)
    )
    rest = rem(sub(numbers, start), broadcast_in_dim(stride, (size,), ()))
    return and_(between, eq(rest, broadcast_in_dim(constant(0, ElementType.S64), (size,), ())))


def _integer(bound: Any, to_instruction: ToInstruction) -> Instruction:
    """A bound or a step as s64."""
    place = to_instruction(bound)
    if place.array_shape.rank or not place.array_shape.element_type.is_integral:
        raise StaticIndexError(f"slice: bounds must be integers, not {place.array_shape}")
    return convert_element_type(place, ElementType.S64)


def _clamped(
    bound: Any, size: int, least: int, most: int, to_instruction: ToInstruction
) -> Instruction:
    """A bound as a place from ``least`` to ``most``, as s64."""
    place = _integer(bound, to_instruction)
    place = select(
        lt(place, constant(0, ElementType.S64)),
        add(place, constant(size, ElementType.S64)),
        place,
    )
    return clamp(constant(least, ElementType.S64), place, constant(most, ElementType.S64))


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
