"""Trip counts of while loops, from their induction variables.

    counted = TripCounts(known, registers, run, condition).of(statement, stored)
    counted.trips           # the number of iterations
    counted.counters        # the integers that grow by a constant, at the beginning of iteration t

An induction variable begins at a constant, and an iteration that is followed by another adds a
constant to it. The loop goes on after iteration t exactly if ``a - b * t >= 0``, where b > 0:

    at = 0; while at < 7: at += 1                                   # trips: 7
    at, flag = 0, 1; while flag: flag = at < 7; if flag: at += 1    # trips: 8

In the second form the last statement's condition decides whether the loop goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tracejit.backends.tvm.ir.tir import Expr, IfThenElse, SeqStmt, Stmt
from tracejit.backends.tvm.verification.constraints import Condition, Constraints, of_type
from tracejit.backends.tvm.verification.linear import Linear, Symbol
from tracejit.backends.tvm.verification.registers import RegisterElements, Registers

ENDLESS = 1 << 62
"""A bound on the iterations of any loop."""


@dataclass(frozen=True)
class Counted:
    """A loop of known trip count: ``symbol`` is its iteration, from 0 to ``trips - 1``."""

    symbol: Symbol
    trips: int
    counters: Mapping[RegisterElements, Linear]


@dataclass(frozen=True)
class _Next:
    """The condition under which an iteration is followed by another, and what it then adds to each
    integer, if that is a constant.
    """

    condition: Condition
    steps: Mapping[RegisterElements, int]


class TripCounts:
    """Runs the bodies of loops on symbolic integers, without any effect on ``registers``."""

    def __init__(
        self,
        known: Constraints,
        registers: Registers,
        run: Callable[[Stmt], None],
        condition: Callable[[Expr], Condition],
    ) -> None:
        self._known = known
        self._registers = registers
        self._run = run
        self._condition = condition

    def of(self, loop: Any, stored: Mapping[int, int]) -> Counted | None:
        """The trip count of a while loop, if it is found.

        ``stored`` has the number of stores to each buffer in the body; an induction variable has
        one.
        """
        once = [memory for memory, count in stored.items() if count == 1]
        starts = {p: v for p, v in self._registers.numbers(once).items() if not v.terms}
        if not starts or not self._is_certain(self._condition(loop.condition)):
            return None
        for leading, last in _divisions(loop.body):
            made = self._counted(loop, stored, starts, leading, last)
            if made is not None:
                return made
        return None

    def _counted(
        self,
        loop: Any,
        stored: Mapping[int, int],
        starts: Mapping[RegisterElements, Linear],
        leading: Sequence[Stmt],
        last: Any,
    ) -> Counted | None:
        anything = {place: Linear.of(Symbol("data", *of_type(place[2]))) for place in starts}
        found = self._next(loop, stored, anything, leading, last)
        steps = {} if found is None else {p: step for p, step in found.steps.items() if step}
        if not steps:
            return None
        iteration = Linear.of(Symbol("loop", 0, ENDLESS))
        found = self._next(loop, stored, _after(starts, steps, iteration), leading, last)
        if found is None or not found.condition.is_exact or len(found.condition.facts) != 1:
            return None
        (fact,) = found.condition.facts
        coefficient = sum(fact.terms.values())
        if set(fact.terms) != set(iteration.terms) or coefficient >= 0:
            return None
        # The first iteration t with constant + coefficient * t < 0 is the last one.
        trips = max(fact.constant // -coefficient + 1, 0) + 1
        symbol = Symbol("loop", 0, trips - 1)
        return Counted(symbol, trips, _after(starts, steps, Linear.of(symbol)))

    def _next(
        self,
        loop: Any,
        stored: Mapping[int, int],
        values: Mapping[RegisterElements, Linear],
        leading: Sequence[Stmt],
        last: Any,
    ) -> _Next | None:
        """What follows an iteration that begins with ``values``, and anything in other buffers that
        the loop stores to.
        """
        before = self._registers.state()
        self._registers.forget(stored)
        self._registers.suppose(values, {})
        made = None
        with self._known.scope():
            if self._known.assume(self._condition(loop.condition).facts):
                for each in leading:
                    self._run(each)
                if last is None:
                    made = self._after_all(loop, values)
                else:
                    made = self._after_condition(loop, values, last)
        self._registers.reset(before)
        return made

    def _after_all(self, loop: Any, values: Mapping[RegisterElements, Linear]) -> _Next:
        return _Next(self._condition(loop.condition), self._steps(values))

    def _after_condition(
        self, loop: Any, values: Mapping[RegisterElements, Linear], last: Any
    ) -> _Next | None:
        """None unless the loop goes on exactly if the condition of its last statement holds."""
        condition = self._condition(last.condition)
        before = self._registers.state()
        with self._known.scope():
            if not self._known.assume(condition.facts):
                return None
            self._run(last.then_case)
            if not self._is_certain(self._condition(loop.condition)):
                return None
            steps = self._steps(values)
        self._registers.reset(before)
        with self._known.scope():
            is_possible = self._known.assume(condition.contrary)
            if is_possible and self._known.assume(self._condition(loop.condition).facts):
                return None
        return _Next(condition, steps)

    def _steps(self, values: Mapping[RegisterElements, Linear]) -> dict[RegisterElements, int]:
        made = {}
        for place, value in values.items():
            low, high = self._known.bounds(self._registers.number_at(place).add(value, -1))
            if low == high:
                made[place] = low
        return made

    def _is_certain(self, condition: Condition) -> bool:
        """Whether the facts that hold if the condition does not are contradictory."""
        with self._known.scope():
            return not self._known.assume(condition.contrary)


def _divisions(body: Any) -> list[tuple[Sequence[Stmt], Any]]:
    """The statements of a body: with a conditional last one by itself, if there is one, and all."""
    whole: list[tuple[Sequence[Stmt], Any]] = [([body], None)]
    if isinstance(body, SeqStmt):
        *leading, last = body.seq
        if isinstance(last, IfThenElse) and last.else_case is None:
            return [(leading, last), *whole]
    return whole


def _after(
    starts: Mapping[RegisterElements, Linear],
    steps: Mapping[RegisterElements, int],
    iterations: Linear,
) -> dict[RegisterElements, Linear]:
    """The induction variables after some iterations."""
    return {place: starts[place].add(iterations, step) for place, step in steps.items()}
