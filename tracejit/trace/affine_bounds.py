"""What is known of the counters of loops while their bodies are recorded.

with counting(i, Affine(0), Affine(9)):     # i runs from 0 to 9
    is_below(i + 1, 11)                     # True

A loop over a known range is recorded once, its counter a number that is unknown but bounded. Sums
of counters keep their bounds, also where a loop begins or ends at a counter of the loop around
it, so that places that NumPy would check one by one can be checked for all steps at once.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from tracejit.affine import Affine
from tracejit.graph import Instruction
from tracejit.ops.comparison import COMPARE
from tracejit.ops.constants import CONSTANT, PARAMETER
from tracejit.ops.elementwise import ADD, AND, MUL, SUB
from tracejit.ops.elementwise_unary import NEG
from tracejit.shapes import ElementType

FARTHEST = 256
"""The most instructions behind a number that are visited."""
FARTHEST_PLACE = 2**31
"""Places are nearer: the product of two fits into s64."""
_LIMITS = np.iinfo(np.int64)


@dataclass(frozen=True)
class Counter:
    """The least and the greatest value of a counter, in terms of counters around it; None where
    nothing is known."""

    low: Affine | None
    high: Affine | None


class _Known(threading.local):
    def __init__(self) -> None:
        self.counters: dict[Instruction, Counter] = {}
        self.facts: list[Affine] = []
        self.bounds: dict[Instruction, tuple[float, float]] = {}
        self.doubts: list[tuple[set[Instruction], str]] = []
        self.are_places_free = False


_known = _Known()


def are_counted() -> bool:
    """Whether the body of a counted loop is being recorded in this thread."""
    return bool(_known.counters)


@contextmanager
def with_places_free() -> Iterator[None]:
    """Inside, Python's own numbers that are carried may be places outside of an array, as unknown
    ones may be: these are clamped or dropped."""
    before = _known.are_places_free
    _known.are_places_free = True
    try:
        yield
    finally:
        _known.are_places_free = before


def are_places_free() -> bool:
    """Whether Python's own numbers that are carried may be places outside of an array."""
    return _known.are_places_free


def may_be_place(instruction: Instruction, size: int) -> bool:
    """Whether a number may be the place of an element in a dimension of ``size``."""
    if not is_counted(instruction) or is_within(instruction, size):
        return True
    place = affine(instruction)
    ends = [] if place is None else [least(place), least(Affine(size - 1) - place)]
    is_open = None in ends or bool(carried_behind(instruction))
    return _known.are_places_free and is_open


@contextmanager
def counting(
    counter: Instruction | None,
    low: Affine | None,
    high: Affine | None,
    numbers: Sequence[Instruction] = (),
) -> Iterator[None]:
    """Inside, ``counter`` lies between the two, both included, and the body runs at all.

    ``numbers`` are Python's own, without known bounds.
    """
    if counter is not None:
        _known.counters[counter] = Counter(low, high)
    for number in numbers:
        _known.counters[number] = Counter(None, None)
    facts = _known.facts
    _known.facts = [*facts, high - low] if low is not None and high is not None else facts
    try:
        yield
    finally:
        _known.facts = facts
        for made in (*([] if counter is None else [counter]), *numbers):
            del _known.counters[made]
        if not _known.counters:
            _known.bounds.clear()
            _known.doubts.clear()


def remember_bounds(instruction: Instruction, bounds: tuple[float, float]) -> None:
    """Notes between which values a number lies, until the outermost counted loop ends."""
    _known.bounds[instruction] = bounds


def carried_behind(instruction: Instruction) -> set[Instruction]:
    """The loop-carried numbers, initially Python's, that a value depends on."""
    found, _ = _sources(instruction)
    counters = _known.counters
    return {at for at in found if at in counters and counters[at].low is None}


def add_doubt(carried: set[Instruction], message: str) -> None:
    """Notes what is wrong if these numbers stay Python's own."""
    _known.doubts.append((carried, message))


def take_doubts(carried: set[Instruction]) -> list[tuple[set[Instruction], str]]:
    """What was noted of some of these numbers, and is so no more."""
    taken = [doubt for doubt in _known.doubts if doubt[0] & carried]
    _known.doubts = [doubt for doubt in _known.doubts if not doubt[0] & carried]
    return taken


def known_bounds(instruction: Instruction, largest: int) -> tuple[float, float] | None:
    """Between which values a number lies, if that is known.

    An integer of Python's that is carried from step to step is smaller than ``largest``, and than
    `FARTHEST_PLACE` where it may be any place.
    """
    if not _known.counters:
        return None
    if _known.are_places_free:
        largest = min(largest, FARTHEST_PLACE)
    known = _known.counters.get(instruction)
    if known is not None and (known.low is None or known.high is None):
        kind = instruction.array_shape.element_type
        if kind.is_floating:
            return -float("inf"), float("inf")
        if kind.is_integral:
            return (0, 1) if kind is ElementType.PRED else (-largest, largest)
        return None
    sum_of = affine(instruction)
    if sum_of is not None:
        low, below = least(sum_of), least(-sum_of)
        if low is not None and below is not None:
            return low, -below
    return _known.bounds.get(instruction)


@contextmanager
def assuming(truth: Instruction, holds: bool) -> Iterator[None]:
    """Inside, a truth value holds, or does not: of comparisons of counters that is remembered."""
    facts = _known.facts
    _known.facts = [*facts, *_implied(truth, holds)] if _known.counters else facts
    try:
        yield
    finally:
        _known.facts = facts


def _implied(truth: Instruction, holds: bool) -> list[Affine]:
    """Sums of counters that are not negative."""
    if truth.op is AND and holds:
        return [fact for operand in truth.operands for fact in _implied(operand, True)]
    if truth.op is not COMPARE:
        return []
    left, right = (affine(operand) for operand in truth.operands)
    if left is None or right is None:
        return []
    ahead, behind = left - right, right - left
    direction = truth.attributes["direction"]
    if not holds:
        direction = _OPPOSITE[direction]
    found = {
        "GE": [ahead],
        "LE": [behind],
        "GT": [ahead - 1],
        "LT": [behind - 1],
        "EQ": [ahead, behind],
        "NE": [],
    }
    return found[direction]


_OPPOSITE = {"GE": "LT", "LT": "GE", "GT": "LE", "LE": "GT", "EQ": "NE", "NE": "EQ"}


def affine(instruction: Instruction) -> Affine | None:
    """An s64 number as a sum of counters; None where it is none, or may not fit into its type."""
    made = _affine(instruction, 0, {})
    if made is None:
        return None
    low, below = _least(made), _least(-made)
    is_small = low is None or below is None or _LIMITS.min <= low <= -below <= _LIMITS.max
    return made if is_small else None


def _affine(at: Instruction, depth: int, made: dict[Instruction, Affine | None]) -> Affine | None:
    """``made`` caches results: a number may depend on another in many ways."""
    if at not in made:
        made[at] = _combined(at, depth, made)
    return made[at]


def _combined(at: Instruction, depth: int, made: dict[Instruction, Affine | None]) -> Affine | None:
    shape = at.array_shape
    if shape.rank or shape.element_type is not ElementType.S64 or depth > FARTHEST:
        return None
    if at in _known.counters:
        return Affine.of(at)
    if at.op is CONSTANT:
        return Affine(int(at.attributes["literal"]))
    if at.op not in (ADD, SUB, MUL, NEG):
        return None
    parts = [_affine(operand, depth + 1, made) for operand in at.operands]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    if at.op is ADD:
        return known[0] + known[1]
    if at.op is SUB:
        return known[0] - known[1]
    if at.op is NEG:
        return -known[0]
    one, other = known if not known[0].terms else known[::-1]
    return None if one.terms else other * one.constant


def least(value: Affine) -> int | None:
    """A bound from below of a sum of counters, the best that is known; None if there is none."""
    found = [_least(value)]
    for fact in _known.facts:
        # The fact is not negative, so the rest is a bound as well.
        found.append(_least(value - fact))
    bounds = [bound for bound in found if bound is not None]
    return max(bounds) if bounds else None


def _least(value: Affine) -> int | None:
    """The bound that follows from the counters' own, the innermost, known last, first."""
    counters = _known.counters
    if any(leaf not in counters for leaf in value.terms):
        return None
    while value.terms:
        leaf = next(counter for counter in reversed(counters) if counter in value.terms)
        factor, counter = value.terms[leaf], counters[leaf]
        limit = counter.low if factor > 0 else counter.high
        if limit is None:
            return None
        value = value.replace(leaf, limit)
    return value.constant


def is_within(instruction: Instruction, size: int) -> bool:
    """Whether a number is known to lie from 0 up to, not with, ``size``."""
    place = affine(instruction) if _known.counters else None
    if place is None:
        bounds = _known.bounds.get(instruction)
        return bounds is not None and bounds[0] >= 0 and bounds[1] < size
    low, room = least(place), least(Affine(size - 1) - place)
    return low is not None and room is not None and low >= 0 <= room


def are_apart(one: Instruction, other: Instruction, size: int, length: int) -> bool:
    """Whether ``size`` places from ``one`` on are known to be others than ``length`` from the
    other on."""
    if not _known.counters:
        return False
    first, second = affine(one), affine(other)
    if first is None or second is None:
        return False
    behind = least(first - second - length)
    before = least(second - first - size)
    return any(room is not None and room >= 0 for room in (behind, before))


def decided(comparison: Instruction) -> bool | None:
    """What a comparison of counters always gives; None if that differs, or is not known."""
    if not _known.counters or comparison.op is not COMPARE:
        return None
    sides = [affine(operand) for operand in comparison.operands]
    if sides[0] is None or sides[1] is None:
        return None
    ahead = sides[0] - sides[1]
    low, high = least(ahead), least(-ahead)
    return _decided(comparison.attributes["direction"], low, None if high is None else -high)


def _decided(direction: str, low: int | None, high: int | None) -> bool | None:
    """How a difference between ``low`` and ``high`` compares with zero."""
    if direction in ("LT", "GE"):
        below = True if high is not None and high < 0 else None
        below = False if low is not None and low >= 0 else below
        return below if direction == "LT" or below is None else not below
    if direction in ("GT", "LE"):
        above = True if low is not None and low > 0 else None
        above = False if high is not None and high <= 0 else above
        return above if direction == "GT" or above is None else not above
    if (low is not None and low > 0) or (high is not None and high < 0):
        return direction == "NE"
    return direction == "EQ" if low == high == 0 else None


def is_counted(instruction: Instruction) -> bool:
    """Whether a value depends on counters and on Python's own numbers, and on nothing else.

    Were the steps recorded one by one, it would be known while tracing.
    """
    if not _known.counters:
        return False
    seen, is_whole = _sources(instruction)
    return is_whole and any(at in _known.counters for at in seen)


def _sources(instruction: Instruction) -> tuple[set[Instruction], bool]:
    """Leaves of an index expression, and whether all are constants or loop counters."""
    seen: set[Instruction] = set()
    stack = [instruction]
    while stack:
        at = stack.pop()
        if at in seen or at in _known.counters:
            seen.add(at)
            continue
        if at.op is PARAMETER or len(seen) > FARTHEST:
            return seen, False
        seen.add(at)
        stack.extend(at.operands)
    return seen, True
