"""The functions of Python's math module on traced numbers: Python floats in, Python floats out."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.errors import ArgumentError
from tracejit.loading import load
from tracejit.numpy import arithmetic, bits, comparison, exponential, logic, rounding, trigonometric
from tracejit.ops import elementwise_unary
from tracejit.shapes import ElementType
from tracejit.trace.convert import converted, operand
from tracejit.trace.int_overflow import require_domain
from tracejit.trace.public import enter, public
from tracejit.trace.tracer import Tracer, lift

Function = Callable[..., Any]


def _number(function: str, value: Any) -> Tracer:
    """A number as a float64. Raises `ArgumentError` for arrays of more elements."""
    given = operand(value)
    if given.dimensions:
        raise ArgumentError(
            f"math.{function}: takes numbers, not an array {given.dimensions}; use np.{function}"
        )
    return lift(given.to(ElementType.F64))


def _of_floats(original: Function, recorded: Function, finish: Function | None = None) -> None:
    """Enters a function of floats, whose result is a float or what ``finish`` makes of it."""
    name = original.__name__

    def record(*values: Any) -> Any:
        require_domain(name, values)
        made = recorded(*(_number(name, value) for value in values))
        return made.weakened() if finish is None else finish(made)

    record.__name__ = name
    enter(original, public(record, original))


def _whole(made: Tracer) -> Tracer:
    return lift(converted(made.instruction, ElementType.S64)).weakened()


def _truth(made: Tracer) -> Tracer:
    return made


def _erf(x: Tracer) -> Tracer:
    return lift(elementwise_unary.erf(x.instruction))


def _log(x: Tracer, base: Tracer | None = None) -> Any:
    logarithm = exponential.log(x)
    return logarithm if base is None else logarithm / exponential.log(base)


def _special(name: str) -> Function:
    """A function of scipy.special, loaded when it is first called."""
    return lambda x: getattr(load("tracejit.scipy.special"), name)(x)


def _remainder(x: Tracer, y: Tracer) -> Any:
    """``x`` less the whole multiple of ``y`` nearest to it; of two the even one."""
    rest, divisor = abs(arithmetic.fmod(x, y)), abs(y)
    is_odd = abs(arithmetic.fmod(x, 2 * divisor)) >= divisor
    is_over = (2 * rest > divisor) | ((2 * rest == divisor) & is_odd)
    size = np.where(is_over, rest - divisor, rest)
    endless = comparison.isinf(y) & comparison.isfinite(x)
    return np.where(endless, x, np.where(comparison.signbit(x), -size, size))[()]


def _hypot(*sides: Tracer) -> Any:
    made = arithmetic.absolute(sides[0])
    for side in sides[1:]:
        made = arithmetic.hypot(made, side)
    return made


for _original, _recorded in (
    (math.acos, trigonometric.arccos),
    (math.acosh, trigonometric.arccosh),
    (math.asin, trigonometric.arcsin),
    (math.asinh, trigonometric.arcsinh),
    (math.atan, trigonometric.arctan),
    (math.atan2, trigonometric.arctan2),
    (math.atanh, trigonometric.arctanh),
    (math.copysign, rounding.copysign),
    (math.cos, trigonometric.cos),
    (math.cosh, trigonometric.cosh),
    (math.degrees, trigonometric.degrees),
    (math.erf, _erf),
    (math.erfc, _special("erfc")),
    (math.gamma, _special("gamma")),
    (math.lgamma, _special("gammaln")),
    (math.remainder, _remainder),
    (math.exp, exponential.exp),
    (math.expm1, exponential.expm1),
    (math.fabs, arithmetic.fabs),
    (math.fmod, arithmetic.fmod),
    (math.hypot, _hypot),
    (math.log, _log),
    (math.log10, exponential.log10),
    (math.log1p, exponential.log1p),
    (math.log2, exponential.log2),
    (math.nextafter, rounding.nextafter),
    (math.pow, arithmetic.power),
    (math.radians, trigonometric.radians),
    (math.sin, trigonometric.sin),
    (math.sinh, trigonometric.sinh),
    (math.sqrt, arithmetic.sqrt),
    (math.tan, trigonometric.tan),
    (math.tanh, trigonometric.tanh),
):
    _of_floats(_original, _recorded)

_of_floats(math.ceil, rounding.ceil, _whole)
_of_floats(math.floor, rounding.floor, _whole)
_of_floats(math.trunc, rounding.trunc, _whole)
_of_floats(math.isfinite, comparison.isfinite, _truth)
_of_floats(math.isinf, comparison.isinf, _truth)
_of_floats(math.isnan, comparison.isnan, _truth)


def _isclose(a: Any, b: Any, *, rel_tol: float = 1e-09, abs_tol: float = 0.0) -> Any:
    x, y = _number("isclose", a), _number("isclose", b)
    distance = arithmetic.absolute(x - y)
    larger = comparison.maximum(arithmetic.absolute(x), arithmetic.absolute(y))
    near = distance <= comparison.maximum(larger * rel_tol, abs_tol)
    finite = logic.logical_and(comparison.isfinite(x), comparison.isfinite(y))
    return logic.logical_or(x == y, logic.logical_and(near, finite))


enter(math.isclose, public(_isclose, math.isclose))

if sys.version_info >= (3, 11):
    _of_floats(math.cbrt, arithmetic.cbrt)
    _of_floats(math.exp2, exponential.exp2)


def _several(original: Function) -> Callable[[Function], None]:
    """Enters a function whose arguments or results are several numbers."""

    def register(recorded: Function) -> None:
        recorded.__name__ = original.__name__
        enter(original, public(recorded, original))

    return register


@_several(math.frexp)
def _frexp(x: Any, /) -> Any:
    mantissa, exponent = rounding.frexp(_number("frexp", x))
    return mantissa.weakened(), _whole(exponent)


@_several(math.modf)
def _modf(x: Any, /) -> Any:
    fraction, whole = rounding.modf(_number("modf", x))
    return fraction.weakened(), whole.weakened()


@_several(math.ldexp)
def _ldexp(x: Any, i: Any, /) -> Any:
    return rounding.ldexp(_number("ldexp", x), _whole(_number("ldexp", i))).weakened()


@_several(math.fsum)
def _fsum(seq: Any, /) -> Any:
    parts = [_number("fsum", value) for value in seq]
    return np.sum(np.stack(parts)).weakened() if parts else 0.0


@_several(math.dist)
def _dist(p: Any, q: Any, /) -> Any:
    pairs = zip(p, q, strict=True)
    return _hypot(*(_number("dist", x) - _number("dist", y) for x, y in pairs)).weakened()


def _whole_numbers(ufunc: Function) -> Function:
    def record(*integers: Any) -> Any:
        made: Any = lift(operand(0).natural)
        for number, one in enumerate(integers):
            value = lift(operand(one).to(ElementType.S64))
            made = abs(value) if number == 0 else ufunc(made, value)
        return made.weakened()

    return record


_several(math.gcd)(_whole_numbers(bits.gcd))
_several(math.lcm)(_whole_numbers(bits.lcm))
