"""Linear integer expressions over symbols with bounds.

    i = Symbol("loop", 0, 9)
    Linear.of(i).times(8).plus(3)       # 8 i + 3, between 3 and 75

A symbol is a loop variable, a number read from memory, or the result of a nonlinear operation (a
quotient, a minimum, a select), which keeps its operands.
"""

from __future__ import annotations

import itertools
from typing import Any

from tracejit.affine import Affine

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


Linear = Affine
"""A number in a kernel, over symbols."""


def depends_on(value: Linear, serial: int) -> bool:
    """Whether a symbol of ``value`` may depend on the symbol with this serial."""
    return any(symbol.serial >= serial for symbol in value)


def number(value: int) -> Linear:
    return Affine(value)
