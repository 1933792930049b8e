"""Linear integer expressions over symbols with bounds.

    i = Symbol("loop", 0, 9)
    Linear.of(i).times(8).plus(3)       # 8 i + 3, between 3 and 75

A symbol is a loop variable, a number read from memory, or the result of a nonlinear operation (a
quotient, a minimum, a select), which keeps its operands.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

INFINITY = 1 << 200
"""Greater than every number in a register, and than its product with a coefficient."""

_serials = itertools.count()


class Symbol:
    """An unknown integer between ``low`` and ``high``.

    ``kind`` is "loop", "data", or the operation on ``operands``. Symbols are numbered as they are
    created: one with a greater ``serial`` may depend on one with a lesser.
    """

    __slots__ = ("high", "kind", "low", "operands", "serial")

    def __init__(self, kind: str, low: int, high: int, *operands: Any) -> None:
        self.kind = kind
        self.low = low
        self.high = high
        self.operands = operands
        self.serial = next(_serials)

    def __repr__(self) -> str:
        return f"{self.kind}{self.serial}[{self.low}, {self.high}]"


class Linear:
    """``constant`` plus the sum of coefficients times symbols; immutable."""

    __slots__ = ("_key", "constant", "terms")

    def __init__(self, constant: int, terms: Mapping[Symbol, int]) -> None:
        self.constant = constant
        self.terms = terms
        self._key: Any = None

    @staticmethod
    def of(symbol: Symbol) -> Linear:
        return Linear(0, {symbol: 1})

    @property
    def key(self) -> Any:
        """A hashable key, equal for equal expressions."""
        if self._key is None:
            self._key = (self.constant, frozenset(self.terms.items()))
        return self._key

    def plus(self, number: int) -> Linear:
        return Linear(self.constant + number, self.terms) if number else self

    def times(self, number: int) -> Linear:
        if number == 1:
            return self
        if number == 0:
            return ZERO
        return Linear(self.constant * number, {s: c * number for s, c in self.terms.items()})

    def add(self, other: Linear, factor: int = 1) -> Linear:
        """The sum with ``factor`` times another expression."""
        if not other.terms or not factor:
            return self.plus(factor * other.constant)
        terms = dict(self.terms)
        for symbol, coefficient in other.terms.items():
            total = terms.get(symbol, 0) + factor * coefficient
            if total:
                terms[symbol] = total
            else:
                del terms[symbol]
        return Linear(self.constant + factor * other.constant, terms)

    def replace(self, symbol: Symbol, value: Linear) -> Linear:
        coefficient = self.terms.get(symbol, 0)
        if not coefficient:
            return self
        rest = {s: c for s, c in self.terms.items() if s is not symbol}
        return Linear(self.constant, rest).add(value, coefficient)

    def bounds(self) -> tuple[int, int]:
        low = high = self.constant
        for symbol, coefficient in self.terms.items():
            if coefficient > 0:
                low += coefficient * symbol.low
                high += coefficient * symbol.high
            else:
                low += coefficient * symbol.high
                high += coefficient * symbol.low
        return low, high

    def depends_on(self, serial: int) -> bool:
        """Whether a symbol in it may depend on the symbol with this serial."""
        return any(symbol.serial >= serial for symbol in self.terms)

    def __iter__(self) -> Iterator[Symbol]:
        return iter(self.terms)

    def __repr__(self) -> str:
        parts = [f"{c} {s!r}" for s, c in self.terms.items()]
        return " + ".join([*parts, str(self.constant)])


ZERO = Linear(0, {})


def number(value: int) -> Linear:
    return Linear(value, {})
