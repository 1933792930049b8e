"""Affine integer expressions: a constant plus variables, each times a factor.

    i, j = LoopVariable("i", 8), LoopVariable("j", 4)   # 0 to 7, 0 to 3
    address = Affine.of(i) * 4 + Affine.of(j) + 3       # 4 i + j + 3
    address.bounds()                                    # (3, 34)

A variable is a loop counter of a graph that is recorded (`trace.affine_bounds`), a loop of a kernel
(`backends.tvm.ir.affine`), or a number in a kernel that is verified
(`backends.tvm.verification.linear`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Generic

from typing_extensions import TypeVar

V = TypeVar("V", default=Any)
_NO_TERMS: Mapping[Any, int] = {}


class Affine(Generic[V]):
    """``constant`` plus the sum of ``terms``, variables by their coefficients; immutable.

    No coefficient is zero.
    """

    __slots__ = ("_key", "constant", "terms")

    def __init__(self, constant: int = 0, terms: Mapping[V, int] = _NO_TERMS) -> None:
        self.constant = constant
        self.terms = terms
        self._key: Any = None

    @staticmethod
    def of(variable: V) -> Affine[V]:
        """The variable itself."""
        return Affine(0, {variable: 1})

    @property
    def key(self) -> Any:
        """A hashable key, equal for equal expressions."""
        if self._key is None:
            self._key = (self.constant, frozenset(self.terms.items()))
        return self._key

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Affine):
            return NotImplemented
        return self.constant == other.constant and self.terms == other.terms

    def __hash__(self) -> int:
        return hash(self.key)

    def plus(self, number: int) -> Affine[V]:
        return Affine(self.constant + number, self.terms) if number else self

    def add(self, other: Affine[V], factor: int = 1) -> Affine[V]:
        """The sum with ``factor`` times another expression."""
        if not other.terms or not factor:
            return self.plus(factor * other.constant)
        terms = dict(self.terms)
        for variable, coefficient in other.terms.items():
            total = terms.get(variable, 0) + factor * coefficient
            if total:
                terms[variable] = total
            else:
                del terms[variable]
        return Affine(self.constant + factor * other.constant, terms)

    def times(self, number: int) -> Affine[V]:
        if number == 1:
            return self
        if number == 0:
            return Affine()
        return Affine(self.constant * number, {v: c * number for v, c in self.terms.items()})

    def __add__(self, other: Affine[V] | int) -> Affine[V]:
        return self.add(other) if isinstance(other, Affine) else self.plus(other)

    def __sub__(self, other: Affine[V] | int) -> Affine[V]:
        return self.add(other, -1) if isinstance(other, Affine) else self.plus(-other)

    def __neg__(self) -> Affine[V]:
        return self.times(-1)

    def __mul__(self, number: int) -> Affine[V]:
        return self.times(number)

    def replace(self, variable: V, value: Affine[V]) -> Affine[V]:
        """The expression with ``value`` for a variable."""
        coefficient = self.coefficient(variable)
        return self.without(variable).add(value, coefficient) if coefficient else self

    def without(self, variable: V) -> Affine[V]:
        """The expression where a variable is 0."""
        return Affine(self.constant, {v: c for v, c in self.terms.items() if v is not variable})

    def coefficient(self, variable: V) -> int:
        return self.terms.get(variable, 0)

    @property
    def variables(self) -> frozenset[V]:
        return frozenset(self.terms)

    def bounds(self: Affine[Any]) -> tuple[int, int]:
        """The least and the greatest value, for variables that have a ``low`` and a ``high``."""
        low = high = self.constant
        for variable, coefficient in self.terms.items():
            ends = variable.low, variable.high
            at_least, at_most = ends if coefficient > 0 else ends[::-1]
            low, high = low + coefficient * at_least, high + coefficient * at_most
        return low, high

    def __iter__(self) -> Iterator[V]:
        return iter(self.terms)

    def __repr__(self) -> str:
        parts = [f"{c} {v!r}" for v, c in self.terms.items()]
        return " + ".join([*parts, str(self.constant)])
