"""Formulas over instructions: arithmetic that reads as such, loops, and known derivatives.

def logit(x): return log(x / (1 - x))

A Term is an instruction with Python's operators; numbers become constants of its shape and element
type.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracejit.graph import Computation, Instruction
from tracejit.numpy import building
from tracejit.ops import comparison, elementwise, elementwise_unary, layout
from tracejit.ops.computations import scalar_computation
from tracejit.ops.constants import constant, elements_of, parameter, tuple_
from tracejit.ops.control import PointwiseDerivative, call, while_
from tracejit.ops.reduction import reduce
from tracejit.shapes import ElementType

Value = Any
"""A Term or a number."""


class Term:
    """An instruction with operators; both sides have equal shapes, or one is a number."""

    __hash__ = None  # type: ignore[assignment]
    __slots__ = ("value",)

    def __init__(self, value: Instruction) -> None:
        self.value = value

    def of(self, other: Value) -> Instruction:
        """Another Term's instruction, or a number as a constant like this one."""
        return other.value if isinstance(other, Term) else building.fill(self.value, other)

    def __add__(self, other: Value) -> Term:
        return Term(elementwise.add(self.value, self.of(other)))

    def __radd__(self, other: Value) -> Term:
        return Term(elementwise.add(self.of(other), self.value))

    def __sub__(self, other: Value) -> Term:
        return Term(elementwise.sub(self.value, self.of(other)))

    def __rsub__(self, other: Value) -> Term:
        return Term(elementwise.sub(self.of(other), self.value))

    def __mul__(self, other: Value) -> Term:
        return Term(elementwise.mul(self.value, self.of(other)))

    def __rmul__(self, other: Value) -> Term:
        return Term(elementwise.mul(self.of(other), self.value))

    def __truediv__(self, other: Value) -> Term:
        return Term(elementwise.div(self.value, self.of(other)))

    def __rtruediv__(self, other: Value) -> Term:
        return Term(elementwise.div(self.of(other), self.value))

    def __pow__(self, other: Value) -> Term:
        return Term(elementwise.pow(self.value, self.of(other)))

    def __rpow__(self, other: Value) -> Term:
        return Term(elementwise.pow(self.of(other), self.value))

    def __neg__(self) -> Term:
        return Term(elementwise_unary.neg(self.value))

    def __lt__(self, other: Value) -> Term:
        return Term(comparison.lt(self.value, self.of(other)))

    def __le__(self, other: Value) -> Term:
        return Term(comparison.le(self.value, self.of(other)))

    def __gt__(self, other: Value) -> Term:
        return Term(comparison.gt(self.value, self.of(other)))

    def __ge__(self, other: Value) -> Term:
        return Term(comparison.ge(self.value, self.of(other)))

    def __eq__(self, other: object) -> Term:  # type: ignore[override]
        return Term(comparison.eq(self.value, self.of(other)))

    def __ne__(self, other: object) -> Term:  # type: ignore[override]
        return Term(comparison.ne(self.value, self.of(other)))

    def __and__(self, other: Term) -> Term:
        return Term(elementwise.and_(self.value, other.value))

    def __or__(self, other: Term) -> Term:
        return Term(elementwise.or_(self.value, other.value))

    def __invert__(self) -> Term:
        return Term(elementwise_unary.not_(self.value))

    @property
    def is_single(self) -> bool:
        """Whether the elements have single precision."""
        return self.value.array_shape.element_type is ElementType.F32


def _unary(function: Callable[[Instruction], Instruction]) -> Callable[[Term], Term]:
    return lambda x: Term(function(x.value))


exp = _unary(elementwise_unary.exp)
expm1 = _unary(elementwise_unary.expm1)
log = _unary(elementwise_unary.log)
log1p = _unary(elementwise_unary.log1p)
sqrt = _unary(elementwise_unary.sqrt)
sin = _unary(elementwise_unary.sin)
cos = _unary(elementwise_unary.cos)
tan = _unary(elementwise_unary.tan)
floor = _unary(elementwise_unary.floor)
nearest = _unary(elementwise_unary.round_nearest_even)
sign = _unary(elementwise_unary.sign)
magnitude = _unary(elementwise_unary.abs)
erf = _unary(elementwise_unary.erf)
logistic = _unary(elementwise_unary.logistic)


def atan2(y: Term, x: Term) -> Term:
    """The angle of the point (x, y), from -pi to pi."""
    return Term(elementwise.atan2(y.value, x.value))


def arcsin(x: Term) -> Term:
    """The arc sine, accurate up to 1."""
    return atan2(x, sqrt((1 - x) * (1 + x)))


def sine_of_pi(x: Term) -> Term:
    """sin(pi x), with its sign; 0 at whole numbers."""
    whole = nearest(x)
    odd = whole - floor(whole * 0.5) * 2
    return sin((x - whole) * math.pi) * (1 - odd * 2)


def cosine_of_pi(x: Term) -> Term:
    """cos(pi x); 0 half-way between whole numbers."""
    turn = magnitude(x) - 2 * floor(magnitude(x) * 0.5)
    return sine_of_pi(where(turn > 1, turn - 1.5, 0.5 - turn))


def hyperbolic_sine(x: Term) -> Term:
    """sinh(x), accurate near 0."""
    half = expm1(x)
    return 0.5 * (half + half / (half + 1))


def no_slope(*arguments: Term) -> Term:
    """The derivative in an order or parameter, which is not known here: NaN."""
    return where(arguments[-1] == arguments[-1], np.nan, arguments[-1])


def is_nan(x: Term) -> Term:
    """Which elements are NaN."""
    return Term(building.is_nan(x.value))


def where(condition: Term, x: Value, y: Value) -> Term:
    """``x`` where the condition holds, else ``y``; at least one is a Term."""
    like = x if isinstance(x, Term) else y
    return Term(elementwise.select(condition.value, like.of(x), like.of(y)))


def larger(x: Term, y: Value) -> Term:
    """The greater one; NaN if one is."""
    return Term(elementwise.max(x.value, x.of(y)))


def smaller(x: Term, y: Value) -> Term:
    """The lesser one; NaN if one is."""
    return Term(elementwise.min(x.value, x.of(y)))


def polynomial(x: Term, coefficients: Sequence[float]) -> Term:
    """The polynomial in ``x``, the constant coefficient first, by Horner's rule."""
    made: Value = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        made = made * x + coefficient
    return made if isinstance(made, Term) else x * 0 + made


def any_of(condition: Term) -> Instruction:
    """Whether a condition holds anywhere, as pred[]."""
    axes = range(condition.value.array_shape.rank)
    start = constant(False, ElementType.PRED)
    return reduce(condition.value, start, scalar_computation("or", ElementType.PRED), tuple(axes))


def repeat(
    step: Callable[..., Sequence[Term]], go_on: Callable[..., Term], state: Sequence[Term]
) -> list[Term]:
    """``state`` replaced by ``step`` of it while ``go_on`` of it holds anywhere: a While.

    ``step`` and ``go_on`` must use nothing but what they are given.
    """
    first = tuple_([term.value for term in state])

    def loop(name: str, function: Callable[[list[Term]], Instruction]) -> Computation:
        argument = parameter(0, first.shape)
        return Computation(name, (argument,), function([*map(Term, elements_of(argument))]))

    condition = loop("go_on", lambda terms: any_of(go_on(*terms)))
    body = loop("step", lambda terms: tuple_([term.value for term in step(*terms)]))
    return [Term(value) for value in elements_of(while_(condition, body, first))]


def known_derivative(
    name: str,
    function: Callable[..., Term],
    partials: Sequence[Callable[..., Term] | None],
    arguments: Sequence[Term],
) -> Term:
    """``function`` of the arguments as a Call, whose derivative in each of them is given.

    None is a derivative that is zero or is not used. The derivatives are ordinary formulas, so
    that they have derivatives in turn.
    """
    parameters = tuple(parameter(n, x.value.shape) for n, x in enumerate(arguments))
    made = function(*map(Term, parameters)).value

    def derivative(instruction: Instruction, cotangent: Any) -> list[Instruction | None]:
        given = [Term(operand) for operand in instruction.operands]
        return [
            None if partial is None else (Term(cotangent) * partial(*given)).value
            for partial in partials
        ]

    computation = Computation(name, parameters, made)
    values = [x.value for x in arguments]
    return Term(call(computation, values, PointwiseDerivative(derivative)))


def constant_like(x: Term, number: float) -> Term:
    """A number in every element."""
    return Term(layout.full_like(x.value, number))
