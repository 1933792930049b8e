"""Evaluates an expression at every iteration of its loops, if the search for a proof failed.

    refuted(value, facts)       # an iteration at which the value is negative, if there is one

Handles loops of up to a million iterations in all, vectorised by NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tracejit.backends.tvm.verification.accesses import Problem
from tracejit.backends.tvm.verification.constraints import Condition, Constraints
from tracejit.backends.tvm.verification.linear import Linear, Symbol

MOST_ITERATIONS = 1 << 20


class UnknownNumbersError(Exception):
    """The value depends on run-time data, or there are too many iterations."""


@dataclass(frozen=True)
class Refutation:
    """Values of loop variables, numbered from the outermost, at which an expression is negative.

    It is certain if all facts were evaluated.
    """

    iteration: tuple[int, ...]
    value: int
    is_certain: bool


class Grid:
    """The iteration space of all loops that some expressions depend on.

    With ``any_data``, integers loaded from memory take every value within their bounds.
    """

    def __init__(self, values: Sequence[Linear], any_data: bool = False) -> None:
        found: dict[Symbol, None] = {}
        for value in values:
            for symbol in value.terms:
                try:
                    _collect(Linear.of(symbol), found)
                except UnknownNumbersError:
                    if not any_data:
                        raise
                    found[symbol] = None
        self.loops = sorted(found, key=lambda s: s.serial)
        self.shape = tuple(s.high - s.low + 1 for s in self.loops)
        if math.prod(self.shape) > MOST_ITERATIONS:
            raise UnknownNumbersError
        self._known: dict[Symbol, Any] = {}
        for axis, symbol in enumerate(self.loops):
            sizes = [1] * len(self.shape)
            sizes[axis] = -1
            numbers = np.arange(symbol.low, symbol.high + 1, dtype=np.int64)
            self._known[symbol] = numbers.reshape(sizes)

    def value(self, expression: Linear) -> Any:
        """The expression at every iteration, broadcast over loops that it does not depend on."""
        total: Any = np.asarray(expression.constant, np.int64)
        for symbol, coefficient in expression.terms.items():
            total = total + coefficient * self._number(symbol)
        return total

    def _number(self, symbol: Symbol) -> Any:
        if symbol not in self._known:
            self._known[symbol] = self._operation(symbol)
        return self._known[symbol]

    def _operation(self, symbol: Symbol) -> Any:
        kind, operands = symbol.kind, symbol.operands
        if kind == "choice":
            condition, a, b = operands
            holds = np.asarray(True)
            for fact in condition.facts:
                holds = holds & (self.value(fact) >= 0)
            return np.where(holds, self.value(a), self.value(b))
        first = self.value(operands[0])
        if kind == "quotient":
            return first // operands[1]
        if kind == "remainder":
            return first % operands[1]
        if kind == "mask":
            return first & operands[1]
        second = self.value(operands[1])
        return np.minimum(first, second) if kind == "min" else first * second


def refuted(value: Linear, facts: Sequence[Linear]) -> Refutation | None:
    """An iteration at which the value is negative and all facts hold; None if there is none.

    Raises `UnknownNumbersError`.
    """
    usable = enumerable(value, facts)
    grid = Grid([value, *usable])
    found = grid.value(value)
    negative = found < 0
    for fact in usable:
        negative = negative & (grid.value(fact) >= 0)
    if not negative.any():
        return None
    negative = np.broadcast_to(negative, grid.shape)
    first = np.unravel_index(int(np.argmax(negative)), grid.shape)
    worst = int(np.broadcast_to(found, grid.shape)[first])
    return Refutation(tuple(int(i) for i in first), worst, len(usable) == len(facts))


def outside(known: Constraints, indices: Sequence[Linear], shape: Sequence[int]) -> Problem | None:
    """The problem with indices into a buffer of this shape, if there is one."""
    for index, extent in zip(indices, shape, strict=True):
        low, high = index.bounds()
        problem = None
        if low < 0:
            problem = _problem(known, index, f"an index below 0 of {extent}")
        if problem is None and high >= extent:
            left = index.times(-1).plus(extent - 1)
            problem = _problem(known, left, f"an index above the last of {extent}")
        if problem is not None:
            return problem
    return None


def _problem(known: Constraints, value: Linear, what: str) -> Problem | None:
    """The problem if an expression may be negative."""
    if known.proves(value):
        return None
    low, _ = known.bounds(value)
    try:
        found = refuted(value, known.facts)
    except UnknownNumbersError:
        return Problem(f"{what}, by up to {-low}", is_certain=False)
    if found is None:
        return None
    certain = found.is_certain and not known.unknown_guards
    return Problem(f"{what}, by {-found.value} in iteration {found.iteration}", certain)


def enumerable(value: Linear, facts: Sequence[Linear]) -> list[Linear]:
    """The facts that can be evaluated together with a value.

    Raises `UnknownNumbersError`.
    """
    Grid([value])
    usable = [fact for fact in facts if is_enumerable([value, fact])]
    while usable and not is_enumerable([value, *usable]):
        usable.pop()
    return usable


def is_enumerable(values: Sequence[Linear], any_data: bool = False) -> bool:
    """Whether values depend on loop variables only, with not too many iterations."""
    try:
        Grid(values, any_data)
    except UnknownNumbersError:
        return False
    return True


def _collect(value: Linear, found: dict[Symbol, None]) -> None:
    """The loop variables that a value depends on."""
    for symbol in value.terms:
        if symbol.kind == "loop":
            found[symbol] = None
        elif symbol.kind == "data":
            raise UnknownNumbersError
        else:
            for operand in symbol.operands:
                if isinstance(operand, Linear):
                    _collect(operand, found)
                elif isinstance(operand, Condition):
                    if not operand.is_exact:
                        raise UnknownNumbersError
                    for fact in operand.facts:
                        _collect(fact, found)
