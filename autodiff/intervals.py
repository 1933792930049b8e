"""Between which bounds the integers of a loop lie, where its text tells.

with knowing({counter: (0, 29)}, times=30):
    range_of(add(counter, one))             (1, 30)

Counters of loops begin at known numbers and grow by constants. What is known of them while the body
of their loop is differentiated bounds how often loops inside turn.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

import numpy as np

from tracejit.graph import Instruction, Op
from tracejit.ops.constants import CONSTANT, IOTA
from tracejit.ops.element_types import CONVERT_ELEMENT_TYPE
from tracejit.ops.elementwise import ADD, DIV, MAX, MIN, MUL, REM, SELECT, SUB
from tracejit.ops.layout import BROADCAST_IN_DIM, RESHAPE
from tracejit.shapes import Shape
from tracejit.traversal import in_order

Range = tuple[int, int]
"""The least and the greatest number, both included."""

_DEEPEST = 32
_NOTHING: Mapping[Instruction, Range] = MappingProxyType({})
_known = contextvars.ContextVar("ranges", default=_NOTHING)
_moving: contextvars.ContextVar[frozenset[Instruction]] = contextvars.ContextVar(
    "moving", default=frozenset()
)
_times: contextvars.ContextVar[int] = contextvars.ContextVar("times", default=1)


@contextmanager
def knowing(
    ranges: Mapping[Instruction, Range], times: int = 1, moving: Iterable[Instruction] = ()
) -> Iterator[None]:
    """A context in which these are known as well; values made inside are kept ``times`` times.

    The values ``moving`` are others each time.
    """
    known = _known.set({**_known.get(), **ranges})
    often = _times.set(times)
    others = _moving.set(_moving.get().union(moving))
    try:
        yield
    finally:
        _known.reset(known)
        _times.reset(often)
        _moving.reset(others)


def is_moving(value: Instruction) -> bool:
    """Whether a value may be another one in each step of a loop around."""
    moving = _moving.get()
    return bool(moving) and not moving.isdisjoint(in_order([value]))


def times() -> int:
    """The number of copies of a value that the loops around keep for differentiation."""
    return _times.get()


def range_of(number: Instruction, depth: int = 0) -> Range | None:
    """The range of an array of integers; None where it is not known, or may wrap."""
    known = _known.get().get(number)
    shape = number.shape
    if known is not None or not isinstance(shape, Shape) or not shape.element_type.is_integral:
        return known
    if number.op is CONSTANT:
        literal = number.attributes["literal"]
        return (int(literal.min()), int(literal.max())) if literal.size else None
    if number.op is IOTA:
        return 0, max(shape.dimensions[number.attributes["iota_dimension"]] - 1, 0)
    if depth == _DEEPEST or number.op not in _EXTREMES:
        return None
    # The range of a select includes both values.
    values = number.operands[1:] if number.op is SELECT else number.operands
    ranges = [range_of(value, depth + 1) for value in values]
    found = [one for one in ranges if one is not None]
    if len(found) < len(ranges):
        return None
    made = _EXTREMES[number.op](*found)
    if made is None:
        return None
    low, high = made
    return (low, high) if _fits(number, low, high) else None


def _product(x: Range, y: Range) -> Range:
    corners = [a * b for a in x for b in y]
    return min(corners), max(corners)


def _quotient(x: Range, y: Range) -> Range | None:
    """The range of a division that rounds towards zero, by a positive number."""
    if y[0] <= 0:
        return None
    corners = [abs(a) // b * (1 if a > 0 else -1) for a in x for b in y]
    return min(corners), max(corners)


def _remainder(x: Range, y: Range) -> Range | None:
    """The range of that division's remainder, which has the sign of the dividend."""
    if y[0] <= 0:
        return None
    most = y[1] - 1
    return max(min(x[0], 0), -most), min(max(x[1], 0), most)


_EXTREMES: dict[Op, Callable[..., Range | None]] = {
    ADD: lambda x, y: (x[0] + y[0], x[1] + y[1]),
    SUB: lambda x, y: (x[0] - y[1], x[1] - y[0]),
    MUL: _product,
    MIN: lambda x, y: (min(x[0], y[0]), min(x[1], y[1])),
    MAX: lambda x, y: (max(x[0], y[0]), max(x[1], y[1])),
    DIV: _quotient,
    REM: _remainder,
    SELECT: lambda x, y: (min(x[0], y[0]), max(x[1], y[1])),
    BROADCAST_IN_DIM: lambda x: x,
    CONVERT_ELEMENT_TYPE: lambda x: x,
    RESHAPE: lambda x: x,
}


def counted(number: Instruction, following: Instruction) -> int | None:
    """By how much a number of a loop's state grows in each step, if that is a constant."""
    if following is number:
        return 0
    if following.op not in (ADD, SUB) or number not in following.operands:
        return None
    (other,) = [o for o in following.operands if o is not number] or [number]
    if other.op is not CONSTANT or other.array_shape.rank:
        return None
    if not other.array_shape.element_type.is_integral:
        return None
    step = int(other.attributes["literal"])
    if following.op is SUB:
        return -step if following.operands[0] is number else None
    return step


def ranges_of_state(
    state: tuple[Instruction, ...] | list[Instruction],
    following: tuple[Instruction, ...] | list[Instruction],
    init: tuple[Instruction, ...] | list[Instruction],
    count: int,
) -> dict[Instruction, Range]:
    """What is known of the numbers of a loop's state while it takes ``count`` steps at most."""
    found = {}
    for number, after, begin in zip(state, following, init, strict=True):
        step = counted(number, after)
        first = None if step is None else range_of(begin)
        if step is not None and first is not None:
            grown = step * max(count - 1, 0)
            low, high = first[0] + min(grown, 0), first[1] + max(grown, 0)
            if _fits(number, low, high):
                found[number] = low, high
    return found


def _fits(number: Instruction, low: int, high: int) -> bool:
    """Whether numbers of this type do not wrap in between."""
    dtype = number.array_shape.dtype
    if dtype.kind not in "iu":
        return False
    limits = np.iinfo(dtype)
    return bool(limits.min <= low <= high <= limits.max)
