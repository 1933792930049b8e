"""Constraints on symbols at one point of a kernel, and proofs of inequalities from them.

known = Constraints()
with known.scope():
    known.assume([Linear.of(i).plus(-3)])       # i >= 3
    known.proves(Linear.of(i).plus(-2))         # i >= 2: True
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tracejit.backends.tvm.verification.linear import INFINITY, Linear, Symbol, number

_guards = itertools.count()
_DEPTH = 4
"""The most facts and cases that one proof combines."""
_MOST_WAYS = 16
"""The most ways to replace minima by operands that are tried for one bound."""
_BUDGET = 400
"""The most steps of the search for a proof."""


@dataclass(frozen=True)
class Condition:
    """A condition: the expressions that are >= 0 if it holds, and those if it does not.

    ``is_exact``: it holds if and only if all of ``facts`` are >= 0.
    """

    facts: tuple[Linear, ...] = ()
    contrary: tuple[Linear, ...] = ()
    is_exact: bool = False

    @property
    def key(self) -> Any:
        """A hashable key, equal for equal conditions."""
        parts = (self.facts, self.contrary)
        return *(tuple(fact.key for fact in part) for part in parts), self.is_exact

    def negated(self) -> Condition:
        return Condition(self.contrary, self.facts, self.is_exact and len(self.facts) == 1)

    def both(self, other: Condition) -> Condition:
        for one, rest in ((self, other), (other, self)):
            if one.is_exact and not one.facts:
                return rest
        exact = self.is_exact and other.is_exact
        return Condition((*self.facts, *other.facts), (), exact)


UNKNOWN = Condition()


class Constraints:
    """Bounds of symbols, facts (expressions >= 0), and the symbols created so far.

    Bounds are kept in the symbols; assumptions in a scope are forgotten at its end.
    """

    def __init__(self) -> None:
        self.facts: list[Linear] = []
        self._trail: list[tuple[Symbol, int, int]] = []
        self._derived: dict[Any, Symbol] = {}
        self._made: list[Any] = []
        self._steps = 0
        self.unknown_guards: tuple[int, ...] = ()
        """Numbers of the active conditions whose facts are not known completely."""

    def guard(self) -> None:
        """Enter a condition whose facts are not known completely."""
        self.unknown_guards = (*self.unknown_guards, next(_guards))

    # Scopes

    @contextmanager
    def scope(self) -> Iterator[None]:
        mark = len(self.facts), len(self._trail), len(self._made), self.unknown_guards
        try:
            yield
        finally:
            facts, trail, made, self.unknown_guards = mark
            del self.facts[facts:]
            while len(self._trail) > trail:
                symbol, low, high = self._trail.pop()
                symbol.low, symbol.high = low, high
            while len(self._made) > made:
                del self._derived[self._made.pop()]

    def assume(self, facts: Sequence[Linear]) -> bool:
        """Add facts; False if they contradict the known ones."""
        for fact in facts:
            if not fact.terms:
                if fact.constant < 0:
                    return False
                continue
            self.facts.append(fact)
            if not self._narrow(fact):
                return False
        if len(facts) > 1 or any(len(fact.terms) > 1 for fact in facts):
            return all(self._narrow(fact) for fact in facts if fact.terms)
        return True

    def _narrow(self, fact: Linear) -> bool:
        """Narrow the bounds of the symbols in a fact."""
        _, high = fact.bounds()
        if high < 0:
            return False
        for symbol, coefficient in fact.terms.items():
            # coefficient * symbol >= -(the most that the rest can be)
            most = coefficient * (symbol.high if coefficient > 0 else symbol.low)
            rest = high - most
            low, upper = symbol.low, symbol.high
            if coefficient > 0:
                low = max(low, -(rest // coefficient))
            else:
                upper = min(upper, rest // -coefficient)
            if (low, upper) != (symbol.low, symbol.high):
                self._trail.append((symbol, symbol.low, symbol.high))
                symbol.low, symbol.high = low, upper
                if low > upper:
                    return False
        return True

    # Expressions that are not linear

    def derived(self, kind: str, bounds: tuple[int, int], *operands: Any) -> Symbol:
        """The symbol of an operation: the same for the same operands."""
        key = (kind, *(o if isinstance(o, int) else o.key for o in operands))
        symbol = self._derived.get(key)
        if symbol is None:
            symbol = self._derived[key] = Symbol(kind, *bounds, *operands)
            self._made.append(key)
        return symbol

    def quotient(self, value: Linear, divisor: int) -> Linear:
        """The quotient by a positive number, rounded down."""
        low, high = value.bounds()
        low, high = low // divisor, high // divisor
        if low == high:
            return number(low)
        if value.constant % divisor == 0 and all(c % divisor == 0 for c in value.terms.values()):
            return Linear(
                value.constant // divisor, {s: c // divisor for s, c in value.terms.items()}
            )
        whole = {s: c // divisor for s, c in value.terms.items() if c % divisor == 0}
        if whole:
            rest = Linear(value.constant, {s: c for s, c in value.terms.items() if c % divisor})
            return Linear(0, whole).add(self.quotient(rest, divisor))
        return Linear.of(self.derived("quotient", (low, high), value, divisor))

    def remainder(self, value: Linear, divisor: int) -> Linear:
        """The remainder of the quotient rounded down."""
        low, high = value.bounds()
        if low // divisor == high // divisor:
            return value.plus(-divisor * (low // divisor))
        kept = {s: c for s, c in value.terms.items() if c % divisor}
        if len(kept) < len(value.terms):
            return self.remainder(Linear(value.constant, kept), divisor)
        if not kept:
            return number(value.constant % divisor)
        return Linear.of(self.derived("remainder", (0, divisor - 1), value, divisor))

    def least(self, a: Linear, b: Linear) -> Linear:
        """The minimum of two expressions."""
        low, high = a.add(b, -1).bounds()
        if high <= 0:
            return a
        if low >= 0:
            return b
        (a_low, a_high), (b_low, b_high) = a.bounds(), b.bounds()
        bounds = min(a_low, b_low), min(a_high, b_high)
        return Linear.of(self.derived("min", bounds, a, b))

    def greatest(self, a: Linear, b: Linear) -> Linear:
        return self.least(a.times(-1), b.times(-1)).times(-1)

    def choice(self, condition: Condition, a: Linear, b: Linear) -> Linear:
        """A select between two expressions."""
        if a.key == b.key:
            return a
        possible = []
        for facts, value in ((condition.facts, a), (condition.contrary, b)):
            with self.scope():
                if self.assume(facts):
                    possible.append((value, self.bounds(value)))
        if len(possible) < 2:
            return possible[0][0] if possible else a
        ways = [bounds for _, bounds in possible]
        bounds = min(low for low, _ in ways), max(high for _, high in ways)
        return Linear.of(self.derived("choice", bounds, condition, a, b))

    def bounds(self, value: Linear, depth: int = 3) -> tuple[int, int]:
        """Bounds under the current assumptions, which may be narrower than when symbols were
        created.
        """
        low = high = value.constant
        for symbol, coefficient in value.terms.items():
            least, most = self._symbol_bounds(symbol, depth)
            if coefficient < 0:
                least, most = most, least
            low += coefficient * least
            high += coefficient * most
        if type(value) is not Linear:
            # A value of a scope that has ended keeps its bounds from there.
            own = value.bounds()
            return max(low, own[0]), min(high, own[1])
        return low, high

    def tight(self, value: Linear) -> tuple[int, int]:
        """Bounds that follow from facts as well: of i + j where i + j is at most 9."""
        return tight(value, self.facts, self.bounds)

    def _symbol_bounds(self, symbol: Symbol, depth: int) -> tuple[int, int]:
        low, high = symbol.low, symbol.high
        if depth == 0 or symbol.kind in ("loop", "data"):
            return low, high
        if symbol.kind == "min":
            a, b = (self.bounds(operand, depth - 1) for operand in symbol.operands)
            return max(low, min(a[0], b[0])), min(high, a[1], b[1])
        if symbol.kind == "quotient":
            value, divisor = symbol.operands
            a = self.bounds(value, depth - 1)
            return max(low, a[0] // divisor), min(high, a[1] // divisor)
        if symbol.kind == "choice":
            condition, *values = symbol.operands
            ways = []
            for facts, operand in zip((condition.facts, condition.contrary), values, strict=True):
                with self.scope():
                    if self.assume(facts):
                        ways.append(self.bounds(operand, depth - 1))
            if ways:
                return max(low, min(w[0] for w in ways)), min(high, max(w[1] for w in ways))
        return low, high

    # Proofs

    def proves(self, value: Linear) -> bool:
        """Whether an expression is certainly >= 0."""
        if value.bounds()[0] >= 0:
            return True
        self._steps = _BUDGET
        return self._search(value, _DEPTH)

    def _search(self, value: Linear, depth: int) -> bool:
        self._steps -= 1
        if self.bounds(value)[0] >= 0:
            return True
        if depth == 0 or self._steps < 0 or not value.terms:
            return False
        if any(self._search(less, depth - 1) for less in self._lesser(value)):
            return True
        return self._cases(value, depth)

    def _lesser(self, value: Linear) -> Iterator[Linear]:
        """Expressions with a multiple that is at most a multiple of ``value``."""
        for symbol, coefficient in sorted(value.terms.items(), key=lambda t: -t[0].serial):
            if symbol.kind == "remainder":
                whole, divisor = symbol.operands
                quotient = Linear(0, {})
                for other in value.terms:
                    if other.kind == "quotient" and other.operands[1] == divisor:
                        same = other.operands[0].add(whole, -1)
                        if not any(c % divisor for c in (*same.terms.values(), same.constant)):
                            quotient = Linear(0, {other: 1})
                            # whole = divisor * (quotient - same / divisor) + remainder
                            yield value.replace(symbol, whole.add(same).add(quotient, -divisor))
            elif symbol.kind == "quotient":
                whole, divisor = symbol.operands
                scaled = value.times(divisor)
                rest = Linear(
                    scaled.constant, {s: c for s, c in scaled.terms.items() if s is not symbol}
                )
                if coefficient > 0:
                    yield rest.add(whole.plus(1 - divisor), coefficient)
                else:
                    yield rest.add(whole, coefficient)
            elif symbol.kind == "min" and coefficient < 0:
                for operand in symbol.operands:
                    yield value.replace(symbol, operand)
        for fact in self.facts:
            for symbol, coefficient in fact.terms.items():
                own = value.terms.get(symbol, 0)
                if own and (own > 0) == (coefficient > 0):
                    if own % coefficient == 0:
                        yield value.add(fact, -(own // coefficient))
                    else:
                        yield value.times(abs(coefficient)).add(fact, -abs(own))
                    break

    def _cases(self, value: Linear, depth: int) -> bool:
        """A proof for each operand of a minimum or a select."""
        for symbol, coefficient in value.terms.items():
            if symbol.kind == "min" and coefficient > 0:
                a, b = symbol.operands
                ways = [((b.add(a, -1),), a), ((a.add(b, -1),), b)]
            elif symbol.kind == "choice":
                condition, a, b = symbol.operands
                ways = [(condition.facts, a), (condition.contrary, b)]
            else:
                continue
            proven = True
            for facts, operand in ways:
                with self.scope():
                    if self.assume(facts):
                        proven &= self._search(value.replace(symbol, operand), depth - 1)
                if not proven:
                    break
            if proven:
                return True
        return False


def tight(
    value: Linear, facts: Sequence[Linear], bounds: Callable[[Linear], tuple[int, int]]
) -> tuple[int, int]:
    """The bounds of an expression less multiples of facts, where that gives narrower ones.

    A minimum is at most each of its operands.
    """

    def lowest(value: Linear) -> tuple[int, Linear]:
        if not any(symbol.kind == "min" for symbol in value.terms):
            return bounds(value)[0], value
        ways = ((bounds(way)[0], way) for way in itertools.islice(_ways(value), _MOST_WAYS))
        return max(ways, key=lambda each: each[0])

    def least(value: Linear) -> int:
        low, value = lowest(value)
        for fact in facts:
            for symbol, coefficient in fact.terms.items():
                factor, rest = divmod(value.terms.get(symbol, 0), coefficient)
                if factor <= 0 or rest:
                    continue
                found, less = lowest(value.add(fact, -factor))
                if found > low:
                    value, low = less, found
                    break
        return low

    if not value.terms:
        return value.constant, value.constant
    return least(value), -least(value.times(-1))


def _ways(value: Linear) -> Iterator[Linear]:
    """An expression, and those that are at most it because a minimum is."""
    yield value
    for symbol, coefficient in value.terms.items():
        if symbol.kind == "min" and coefficient < 0:
            for operand in symbol.operands:
                yield from _ways(value.replace(symbol, operand))


def of_type(dtype: str) -> tuple[int, int]:
    """The least and the greatest number of an integer type."""
    if dtype == "bool":
        return 0, 1
    if dtype.startswith("uint"):
        return 0, (1 << int(dtype[4:])) - 1
    if dtype.startswith("int"):
        half = 1 << (int(dtype[3:]) - 1)
        return -half, half - 1
    return -INFINITY, INFINITY
