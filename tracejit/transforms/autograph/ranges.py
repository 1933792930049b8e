"""``range`` of a rewritten function where the graph says how often a loop runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tracejit.affine import Affine
from tracejit.errors import ArgumentError, ConcretizationError, ElementTypeError
from tracejit.ops.constants import CONSTANT
from tracejit.trace.affine_bounds import affine, is_counted, known_bounds
from tracejit.trace.body import Abstract
from tracejit.trace.convert import operand
from tracejit.trace.int_overflow import LARGEST
from tracejit.trace.table import call as numpy_call
from tracejit.trace.tracer import Tracer
from tracejit.transforms.autograph.values import dtype_kind, is_numeric


class TracedRange:
    """``range`` of limits that are known only when the graph runs; ``known`` if they are."""

    def __init__(self, start: Any, stop: Any, step: Any, known: range | None = None) -> None:
        for limit in (start, stop, step):
            if dtype_kind(limit) not in ("b", "i", "u"):
                shown = Abstract.of(limit).shape if is_numeric(limit) else type(limit).__name__
                raise ElementTypeError(f"range: its limits must be integers, not {shown}")
        self.start, self.stop, self.step, self.known = start, stop, step, known
        self.peeled = 0

    def rest(self) -> TracedRange:
        """The range behind its first number, which is recorded in front of the loop."""
        made = TracedRange(self.start + self.step, self.stop, self.step)
        made.peeled = self.peeled + 1
        return made

    @staticmethod
    def of(first: Any, *others: Any) -> TracedRange:
        """As ``range(first, ...)`` takes its arguments."""
        if not others:
            return TracedRange(0, first, 1)
        return TracedRange(first, others[0], others[1] if len(others) > 1 else 1)

    def __iter__(self) -> Iterator[Any]:
        raise ConcretizationError(
            "range: its length depends on a traced value; only `for i in range(...)` itself can "
            "go over it"
        )

    def has_at_most(self, count: int) -> bool:
        """Whether it surely has no more than ``count`` numbers."""
        limits = self.start, self.stop, self.step
        return all(type(limit) is int for limit in limits) and len(range(*limits)) <= count

    def goes_on(self, counter: Any) -> Any:
        """Whether ``counter`` is in front of the end."""
        direction = self._direction()
        if direction:
            return counter < self.stop if direction > 0 else counter > self.stop
        if not isinstance(self.step, Tracer):
            raise ArgumentError("range: its step must not be zero")
        forwards = numpy_call(np.logical_and, self.step > 0, counter < self.stop)
        backwards = numpy_call(np.logical_and, self.step < 0, counter > self.stop)
        return numpy_call(np.logical_or, forwards, backwards)

    def bounds(self) -> tuple[Affine | None, Affine | None]:
        """The least and the greatest number of a step, as far as counters tell."""
        if self.known is not None:
            low, high = sorted((self.known[0], self.known[-1]))
            return Affine(low), Affine(high)
        direction = self._direction()
        if not direction:
            return None, None
        least_start, greatest_start = _limits(self.start)
        least_stop, greatest_stop = _limits(self.stop)
        if direction > 0:
            return least_start, greatest_stop and greatest_stop - 1
        return least_stop and least_stop + 1, greatest_start

    def depends_on_data(self) -> bool:
        """Whether a limit depends on anything besides counters and Python's own numbers."""
        limits = [operand(limit).natural for limit in (self.start, self.stop, self.step)]
        return not all(limit.op is CONSTANT or is_counted(limit) for limit in limits)

    def _direction(self) -> int:
        """Whether numbers go up (1) or down (-1); 0 where that is not known."""
        if not isinstance(self.step, Tracer):
            return int(self.step > 0) - int(self.step < 0)
        low, high = known_bounds(operand(self.step).natural, LARGEST) or (0, 0)
        return (low > 0) - (high < 0)


def _limits(limit: Any) -> tuple[Affine | None, Affine | None]:
    """What a limit of a range is not less and not greater than, as far as counters tell."""
    number = operand(limit).natural
    exact = affine(number)
    if exact is not None:
        return exact, exact
    known = known_bounds(number, LARGEST)
    if known is None or not all(-LARGEST < bound < LARGEST for bound in known):
        return None, None
    return Affine(int(known[0])), Affine(int(known[1]))
