"""While loops whose number of steps can be told from their text, as Scans.

A counter begins at a constant, grows by a constant and is compared with a constant: as
`fori_loop` makes them. The derivative of such a loop keeps what the way back needs of every step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tracejit.autodiff.intervals import counted, range_of
from tracejit.autodiff.leaves import assembled, leaves
from tracejit.graph import Computation, Instruction
from tracejit.ops.comparison import COMPARE
from tracejit.ops.constants import CONSTANT, TUPLE, parameter, tuple_
from tracejit.ops.scanning import scan
from tracejit.shapes import Shape
from tracejit.traversal import substitute

_SWAPPED = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE", "NE": "NE", "EQ": "EQ"}


@dataclass(frozen=True)
class Counter:
    """What a loop counts: it goes on while ``start``, grown by ``step`` each time, compares so with
    ``stop``. ``place`` is the counter's in the state."""

    place: int
    direction: str
    start: Instruction
    stop: Instruction
    step: int

    @property
    def is_upwards(self) -> bool:
        return self.step > 0


@dataclass(frozen=True)
class CountedWhile:
    """The parts of a counted loop: parameters for the leaves of its state, their next and initial
    values.
    """

    name: str
    state: list[Instruction]
    following: list[Instruction]
    init: list[Instruction]
    test: Instruction
    counter: Counter

    @property
    def moving_bytes(self) -> int:
        """The bytes of the state that a step changes."""
        pairs = zip(self.state, self.following, strict=True)
        return sum(s.array_shape.nbytes for s, after in pairs if s is not after)

    def scan(self, count: int) -> Instruction:
        """A Scan of ``count`` steps that returns the leaves of the state."""
        step = Computation(self.name, tuple(self.state), tuple_(self.following))
        return scan([], self.init, step, length=count)


def as_counted(loop: Instruction) -> CountedWhile | None:
    """The loop taken apart; None for one with side effects, or that does not count."""
    condition, body = loop.computations
    if condition.root.reaches_effect or body.root.reaches_effect:
        return None
    (operand,) = loop.operands
    if operand.op is not TUPLE:
        return None
    init = leaves(operand)
    if not all(isinstance(leaf.shape, Shape) and not leaf.shape.is_dynamic for leaf in init):
        return None
    state = [parameter(n, leaf.shape) for n, leaf in enumerate(init)]
    whole = assembled(loop.shape, iter(state))
    (test,) = substitute([condition.root], {condition.parameters[0]: whole})
    (root,) = substitute([body.root], {body.parameters[0]: whole})
    following = leaves(root)
    counter = _counter(test, state, following, init)
    if counter is None:
        return None
    return CountedWhile(body.name, state, following, init, test, counter)


def as_scan(loop: CountedWhile, nbytes: int) -> Instruction | None:
    """A Scan without outputs that makes the leaves of the loop's result.

    None where the number of steps is not known, is zero, or so great that keeping all states takes
    more than ``nbytes``.
    """
    count = _count(loop.counter, loop.init)
    if not count or count * loop.moving_bytes > nbytes:
        return None
    return loop.scan(count)


def _counter(
    test: Instruction,
    state: list[Instruction],
    following: list[Instruction],
    init: list[Instruction],
) -> Counter | None:
    """What the loop counts while ``test`` holds."""
    pairs = zip(state, following, init, strict=True)
    fixed = {s: value for s, new, value in pairs if s is new}
    if test.op is not COMPARE:
        return None
    direction = test.attributes["direction"]
    counter, end = test.operands
    if counter not in state or counter in fixed:
        counter, end, direction = end, counter, _SWAPPED[direction]
    if counter not in state or counter in fixed or counter.array_shape.rank:
        return None
    place = state.index(counter)
    step = counted(counter, following[place])
    stop = fixed.get(end, end)
    if not step or (stop is end and end.op is not CONSTANT):
        return None
    return Counter(place, direction, init[place], stop, step)


def _count(counter: Counter, init: list[Instruction]) -> int | None:
    """How often the test holds."""

    def known(number: Instruction) -> int | None:
        if number.op is not CONSTANT or not number.array_shape.element_type.is_integral:
            return None
        return int(number.attributes["literal"]) if not number.array_shape.rank else None

    start, stop = known(counter.start), known(counter.stop)
    if start is None or stop is None:
        return None
    count = _steps(counter.direction, start, stop, counter.step)
    return count if _fits(counter, start, count) else None


def most_steps(counter: Counter) -> int | None:
    """An upper bound of the trip count from the loops around; None if they give none."""
    start, stop = range_of(counter.start), range_of(counter.stop)
    if start is None or stop is None or counter.direction not in _ORDERED[counter.is_upwards]:
        return None
    first, last = (start[0], stop[1]) if counter.is_upwards else (start[1], stop[0])
    count = _steps(counter.direction, first, last, counter.step)
    return count if _fits(counter, first, count) else None


_ORDERED = {True: ("LT", "LE"), False: ("GT", "GE")}


def _fits(counter: Counter, start: int, count: int | None) -> bool:
    """Whether the counter does not wrap."""
    limits = np.iinfo(counter.start.array_shape.dtype)
    return count is not None and limits.min <= start + count * counter.step <= limits.max


def _steps(direction: str, start: int, stop: int, step: int) -> int | None:
    """How many numbers there are from ``start`` on that compare so with ``stop``."""
    if direction == "NE":
        apart = stop - start
        return apart // step if apart % step == 0 and apart // step >= 0 else None
    if direction in ("LE", "GE"):
        stop += int(math.copysign(1, step))
    forwards = direction in ("LT", "LE")
    return len(range(start, stop, step)) if direction != "EQ" and forwards == (step > 0) else None
