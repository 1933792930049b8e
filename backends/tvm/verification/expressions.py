"""Symbolic evaluation of TIR's integer and boolean expressions.

A value is `Linear`, `Condition`, or None if only its type is known. Every load in an expression is
passed to `load`, each time it is evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import tirx
from tvm.ir import Call, Op, StringImm, TensorLoad

from tracejit.backends.tvm.ir.tir import Buffer, Expr
from tracejit.backends.tvm.verification.constraints import (
    UNKNOWN,
    Condition,
    Constraints,
    of_type,
)
from tracejit.backends.tvm.verification.linear import Linear, Symbol, number

Value = Linear | Condition | None
Indices = tuple[Linear, ...]

_ONE, _NO = number(1), number(0)
# The greatest number that every integer type holds.
_SAFE = 127
_IDENTITIES = frozenset(f"tirx.tracejit.{name}" for name in ("opaque", "kept", "once"))
_OFFSET = "tirx.tracejit.offset"
_CHOSEN = str(Op.get("prim.if_then_else").name)
_ADDRESSES = frozenset(("tirx.address_of", "tirx.buffer_data"))


class NotModelledError(Exception):
    """A construct that the verifier does not support."""


class Expressions:
    """Evaluates expressions under the constraints ``known``; subclasses define `load`
    and `call`.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.known = Constraints()
        self.variables: dict[int, Linear] = {}
        self.nodes = 0
        self._constants: dict[int, Linear] = {}
        self._types: dict[int, str] = {}
        self._operations: dict[int, str] = {}
        self._methods: dict[type, Callable[[Any], Value]] = {
            tirx.IntImm: self._integer,
            tirx.FloatImm: lambda e: None,
            StringImm: lambda e: None,
            tirx.Var: self._variable,
            tirx.Add: self._add,
            tirx.Sub: self._subtract,
            tirx.Mul: self._multiply,
            tirx.FloorDiv: self._quotient,
            tirx.FloorMod: self._remainder,
            tirx.Div: self._quotient,
            tirx.Mod: self._remainder,
            tirx.Min: self._least,
            tirx.Max: self._greatest,
            tirx.Select: self._select,
            tirx.Cast: self._cast,
            tirx.LT: self._less,
            tirx.LE: self._at_most,
            tirx.GT: self._greater,
            tirx.GE: self._at_least,
            tirx.EQ: self._equal,
            tirx.NE: self._differs,
            tirx.And: self._and,
            tirx.Or: self._or,
            tirx.Not: self._not,
            tirx.BitwiseAnd: self._masked,
            tirx.RShift: self._shifted,
            tirx.LShift: self._shifted_up,
            tirx.BitwiseOr: self._united,
            tirx.BitwiseXor: self._both_operands,
            tirx.BitwiseNot: self._operand,
            tirx.Ramp: self._ramp,
            tirx.Broadcast: lambda e: self.value(e.value),
            tirx.Shuffle: self._shuffle,
            Call: self._call,
            TensorLoad: self._load,
        }

    def value(self, e: Expr) -> Value:
        """The symbolic value of an expression."""
        self.nodes += 1
        if self.nodes > self._most:
            raise NotModelledError(f"more than {self._most} steps")
        method = self._methods.get(type(e))
        if method is None:
            raise NotModelledError(f"expression {type(e).__name__}")
        return method(e)

    def integer(self, e: Expr) -> Linear:
        """The value of an integer expression; a fresh symbol of its type if nothing is known."""
        value = self.value(e)
        if isinstance(value, Linear):
            return value
        if isinstance(value, Condition):
            return self.known.choice(value, _ONE, _NO)
        return unknown(str(e.ty))

    def condition(self, e: Expr) -> Condition:
        return _truth(self.value(e))

    # For subclasses

    def load(self, memory: Buffer, indices: Indices, node: Any) -> Value:
        raise NotImplementedError

    def call(self, node: Any, name: str) -> Value:
        raise NotImplementedError

    # Leaves

    def _integer(self, e: Any) -> Value:
        value = int(e.value)
        made = self._constants.get(value)
        if made is None:
            made = self._constants[value] = number(value)
        return made

    def _variable(self, e: Any) -> Value:
        return self.variables.get(hash(e))

    def _load(self, e: Any) -> Value:
        return self.load(e.source, self.places(e.indices), e)

    def places(self, indices: Sequence[Expr]) -> Indices:
        """The indices of a load or a store."""
        return tuple([self.integer(index) for index in indices])

    # Arithmetic

    def _fitting(self, e: Any, value: Linear) -> Value:
        """A number that wraps if its type cannot hold it."""
        low, high = value.bounds()
        if low >= 0 and high <= _SAFE:
            return value
        low, high = self.known.bounds(value)
        least, most = of_type(str(e.ty).partition("x")[0])
        return value if least <= low and high <= most else None

    def _add(self, e: Any) -> Value:
        a, b = self.value(e.a), self.value(e.b)
        if isinstance(a, Linear) and isinstance(b, Linear):
            return self._fitting(e, a.add(b))
        return None

    def _subtract(self, e: Any) -> Value:
        a, b = self.value(e.a), self.value(e.b)
        if isinstance(a, Linear) and isinstance(b, Linear):
            return self._fitting(e, a.add(b, -1))
        return None

    def _multiply(self, e: Any) -> Value:
        a, b = self.value(e.a), self.value(e.b)
        if isinstance(a, Linear) and isinstance(b, Linear):
            if not b.terms:
                return self._fitting(e, a.times(b.constant))
            if not a.terms:
                return self._fitting(e, b.times(a.constant))
            (a_low, a_high), (b_low, b_high) = a.bounds(), b.bounds()
            corners = [x * y for x in (a_low, a_high) for y in (b_low, b_high)]
            bounds = min(corners), max(corners)
            return self._fitting(e, Linear.of(self.known.derived("product", bounds, a, b)))
        return None

    def _quotient(self, e: Any) -> Value:
        a, b = self.value(e.a), self.value(e.b)
        if not isinstance(a, Linear) or not isinstance(b, Linear) or b.terms or b.constant <= 0:
            return None
        if not isinstance(e, tirx.FloorDiv) and self.known.bounds(a)[0] < 0:
            return None
        return self.known.quotient(a, b.constant)

    def _remainder(self, e: Any) -> Value:
        a, b = self.value(e.a), self.value(e.b)
        if not isinstance(a, Linear) or not isinstance(b, Linear) or b.terms or b.constant <= 0:
            return None
        if not isinstance(e, tirx.FloorMod) and self.known.bounds(a)[0] < 0:
            return None
        return self.known.remainder(a, b.constant)

    def _least(self, e: Any) -> Value:
        a, b = self.value(e.a), self.value(e.b)
        if isinstance(a, Linear) and isinstance(b, Linear):
            return self.known.least(a, b)
        return self._between(e, a, b, is_least=True)

    def _greatest(self, e: Any) -> Value:
        a, b = self.value(e.a), self.value(e.b)
        if isinstance(a, Linear) and isinstance(b, Linear):
            return self.known.greatest(a, b)
        return self._between(e, a, b, is_least=False)

    def _between(self, e: Any, a: Value, b: Value, is_least: bool) -> Value:
        """A minimum or maximum with a number that is unknown."""
        other = a if isinstance(a, Linear) else b
        if not isinstance(other, Linear):
            return None
        made = unknown(str(e.ty).partition("x")[0])
        return (self.known.least if is_least else self.known.greatest)(made, other)

    def _masked(self, e: Any) -> Value:
        a, b = self.value(e.a), self.value(e.b)
        for mask, other in ((a, b), (b, a)):
            if isinstance(mask, Linear) and not mask.terms and mask.constant >= 0:
                most = mask.constant
                if not isinstance(other, Linear):
                    return Linear.of(Symbol("data", 0, most))
                if most & (most + 1) == 0:
                    return self.known.remainder(other, most + 1)
                return Linear.of(self.known.derived("mask", (0, most), other, most))
        return None

    def _shifted(self, e: Any) -> Value:
        a, b = self.value(e.a), self.value(e.b)
        if isinstance(a, Linear) and isinstance(b, Linear) and not b.terms:
            if 0 <= b.constant < 64 and self.known.bounds(a)[0] >= 0:
                return self.known.quotient(a, 1 << b.constant)
        elif isinstance(b, Linear) and not b.terms:
            kind = str(e.ty).partition("x")[0]
            if kind.startswith(("int", "uint")):
                low, high = of_type(kind)
                if 0 <= b.constant <= high.bit_length():
                    return Linear.of(Symbol("data", low >> b.constant, high >> b.constant))
        return None

    def _shifted_up(self, e: Any) -> Value:
        a, b = self.value(e.a), self.value(e.b)
        if isinstance(a, Linear) and isinstance(b, Linear) and not b.terms:
            if 0 <= b.constant < 64:
                return self._fitting(e, a.times(1 << b.constant))
        return None

    def _united(self, e: Any) -> Value:
        """Multiples of a power of two and what is less than that have no bits in common."""
        a, b = self.value(e.a), self.value(e.b)
        if isinstance(a, Linear) and isinstance(b, Linear):
            for upper, lower in ((a, b), (b, a)):
                low, high = self.known.bounds(lower)
                step = 1 << high.bit_length()
                if low >= 0 and not any(c % step for c in (upper.constant, *upper.terms.values())):
                    return upper.add(lower)
        return None

    def _both_operands(self, e: Any) -> Value:
        self.value(e.a)
        self.value(e.b)
        return None

    def _operand(self, e: Any) -> Value:
        self.value(e.a)
        return None

    # Conversions and choices

    def _cast(self, e: Any) -> Value:
        value = self.value(e.value)
        target = str(e.ty).partition("x")[0]
        if target == "bool":
            return _truth(value)
        if not target.startswith(("int", "uint")):
            return None
        if isinstance(value, Condition):
            return self.known.choice(value, _ONE, _NO)
        least, most = of_type(target)
        if isinstance(value, Linear):
            low, high = self.known.bounds(value)
            return value if least <= low and high <= most else None
        source = str(e.value.ty).partition("x")[0]
        if source.startswith(("int", "uint")):
            low, high = of_type(source)
            if least <= low and high <= most:
                return Linear.of(Symbol("data", low, high))
        return None

    def _select(self, e: Any) -> Value:
        condition = self.condition(e.condition)
        a, b = self.value(e.true_value), self.value(e.false_value)
        return self._chosen(e, condition, a, b)

    def _chosen(self, e: Any, condition: Condition, a: Value, b: Value) -> Value:
        if isinstance(a, Condition) or isinstance(b, Condition):
            return UNKNOWN
        if a is None and b is None:
            return None
        if a is None or b is None:
            kind = str(e.ty).partition("x")[0]
            a, b = a or unknown(kind), b or unknown(kind)
        return self.known.choice(condition, a, b)

    def _ramp(self, e: Any) -> Value:
        base, stride, lanes = self.value(e.base), self.value(e.stride), self.value(e.lanes)
        if isinstance(base, Linear) and isinstance(stride, Linear) and isinstance(lanes, Linear):
            lane = Symbol("loop", 0, lanes.constant - 1)
            if not stride.terms and not lanes.terms:
                return base.add(Linear.of(lane), stride.constant)
        return None

    def _shuffle(self, e: Any) -> Value:
        for vector in e.vectors:
            self.value(vector)
        return None

    # Truth

    def _compared(self, e: Any, difference: int, swapped: bool) -> Value:
        a, b = self.value(e.a), self.value(e.b)
        if not isinstance(a, Linear) or not isinstance(b, Linear):
            return UNKNOWN
        if swapped:
            a, b = b, a
        # a < b, or a <= b
        fact = b.add(a, -1).plus(-difference)
        return Condition((fact,), (fact.times(-1).plus(-1),), True)

    def _less(self, e: Any) -> Value:
        return self._compared(e, 1, swapped=False)

    def _at_most(self, e: Any) -> Value:
        return self._compared(e, 0, swapped=False)

    def _greater(self, e: Any) -> Value:
        return self._compared(e, 1, swapped=True)

    def _at_least(self, e: Any) -> Value:
        return self._compared(e, 0, swapped=True)

    def _equal(self, e: Any) -> Value:
        a, b = self.value(e.a), self.value(e.b)
        flag = _comparison_of_flag(a, b)
        return self._equality(a, b) if flag is None else flag

    def _differs(self, e: Any) -> Value:
        a, b = self.value(e.a), self.value(e.b)
        flag = _comparison_of_flag(a, b, is_equal=False)
        return self._equality(a, b).negated() if flag is None else flag

    def _equality(self, a: Value, b: Value) -> Condition:
        if not isinstance(a, Linear) or not isinstance(b, Linear):
            return UNKNOWN
        difference = a.add(b, -1)
        return Condition((difference, difference.times(-1)), self._other(difference), True)

    def _other(self, difference: Linear) -> tuple[Linear, ...]:
        """The facts that hold if a difference is not zero."""
        low, high = self.known.bounds(difference)
        if low >= 0:
            return (difference.plus(-1),)
        if high <= 0:
            return (difference.times(-1).plus(-1),)
        return ()

    def _and(self, e: Any) -> Value:
        a, b = self.condition(e.a), self.condition(e.b)
        return a.both(b)

    def _or(self, e: Any) -> Value:
        a, b = self.condition(e.a), self.condition(e.b)
        return a.negated().both(b.negated()).negated()

    def _not(self, e: Any) -> Value:
        return self.condition(e.a).negated()

    # Calls

    def _call(self, e: Any) -> Value:
        name = self._operations.get(hash(e.op))
        if name is None:
            name = str(e.op.name) if isinstance(e.op, Op) else str(e.op)
            self._operations[hash(e.op)] = name
        if name in _IDENTITIES:
            return self.value(e.args[0])
        if name == _OFFSET:
            a, b = self.value(e.args[0]), self.value(e.args[1])
            if isinstance(a, Linear) and isinstance(b, Linear):
                return self._fitting(e, a.add(b))
            return None
        if name == _CHOSEN:
            condition = self.condition(e.args[0])
            ways = []
            for facts, each in zip((condition.facts, condition.contrary), e.args[1:], strict=True):
                with self.known.scope():
                    if not condition.is_exact:
                        self.known.guard()
                    ways.append(self.value(each) if self.known.assume(facts) else None)
            return self._chosen(e, condition, *ways)
        if name in _ADDRESSES:
            return None
        return self.call(e, name)


def unknown(dtype: str) -> Linear:
    """An unknown number of a type."""
    return Linear.of(Symbol("data", *of_type(dtype)))


def _truth(value: Value) -> Condition:
    if isinstance(value, Condition):
        return value
    if isinstance(value, Linear):
        if not value.terms:
            return _ALWAYS if value.constant else _NEVER
        for symbol, coefficient in value.terms.items():
            if symbol.kind != "choice" or len(value.terms) > 1 or value.constant:
                break
            condition, one, none = symbol.operands
            if coefficient == 1 and one.key == _ONE.key and none.key == _NO.key:
                known: Condition = condition
                return known
    return UNKNOWN


def _comparison_of_flag(a: Value, b: Value, is_equal: bool = True) -> Condition | None:
    """The condition that ``a == b``, or that it is not, if one of them is an exact condition or
    1 where that holds and 0 elsewhere, and the other is the constant 0 or 1.
    """
    for flag, other in ((a, b), (b, a)):
        if isinstance(other, Linear) and not other.terms and other.constant in (0, 1):
            condition = _truth(flag)
            if isinstance(flag, Condition) or (condition.is_exact and flag is not other):
                return condition if bool(other.constant) is is_equal else condition.negated()
    return None


_ALWAYS = Condition((), (number(-1),), True)
_NEVER = Condition((number(-1),), (), True)


__all__ = ["Expressions", "Indices", "NotModelledError", "Value", "unknown"]
