"""Elementwise operations, spelled as in `jax.lax`.

Arrays must agree in element type and in shape, or be numbers; nothing is promoted. Python numbers
take the arrays' type.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.graph import Instruction
from tracejit.ops import comparison, elementwise, elementwise_unary, layout
from tracejit.ops.element_types import (
    bitcast_convert_type as bitcast_convert_type_op,
)
from tracejit.ops.element_types import (
    reduce_precision as reduce_precision_op,
)
from tracejit.shapes import element_type_of
from tracejit.trace.convert import converted, operand
from tracejit.trace.examples import documented
from tracejit.trace.promotion import common_element_type
from tracejit.trace.public import public
from tracejit.trace.tracer import lift

Function = Callable[..., Any]


def operands(*values: Any) -> list[Instruction]:
    """Values as instructions: Python numbers in the element type of the arrays among them."""
    given = [operand(value) for value in values]
    strong = [o.type for o in given if not o.is_weak]
    weak_type = common_element_type(strong or [o.type for o in given])
    return [o.to(weak_type if o.is_weak else o.element_type) for o in given]


def _op(name: str, builder: Callable[..., Instruction]) -> Function:
    """The operation as a public function of arrays, elementwise and without promotion."""

    def record(*values: Any, **attributes: Any) -> Any:
        return lift(builder(*operands(*values), **attributes))

    record.__name__ = record.__qualname__ = name
    record.__doc__ = documented(str(builder.__doc__), f"lax.{name}")
    return public(record)


abs = _op("abs", elementwise_unary.abs)
acos = _op("acos", elementwise_unary.acos)
acosh = _op("acosh", elementwise_unary.acosh)
add = _op("add", elementwise.add)
asin = _op("asin", elementwise_unary.asin)
asinh = _op("asinh", elementwise_unary.asinh)
atan = _op("atan", elementwise_unary.atan)
atan2 = _op("atan2", elementwise.atan2)
atanh = _op("atanh", elementwise_unary.atanh)
bitwise_and = _op("bitwise_and", elementwise.and_)
bitwise_not = _op("bitwise_not", elementwise_unary.not_)
bitwise_or = _op("bitwise_or", elementwise.or_)
bitwise_xor = _op("bitwise_xor", elementwise.xor)
cbrt = _op("cbrt", elementwise_unary.cbrt)
ceil = _op("ceil", elementwise_unary.ceil)
clamp = _op("clamp", elementwise.clamp)
clz = _op("clz", elementwise_unary.clz)
complex = _op("complex", elementwise.complex)
conj = _op("conj", elementwise_unary.conj)
cos = _op("cos", elementwise_unary.cos)
cosh = _op("cosh", elementwise_unary.cosh)
div = _op("div", elementwise.div)
eq = _op("eq", comparison.eq)
erf = _op("erf", elementwise_unary.erf)
exp = _op("exp", elementwise_unary.exp)
expm1 = _op("expm1", elementwise_unary.expm1)
floor = _op("floor", elementwise_unary.floor)
ge = _op("ge", comparison.ge)
gt = _op("gt", comparison.gt)
imag = _op("imag", elementwise_unary.imag)
is_finite = _op("is_finite", elementwise_unary.is_finite)
le = _op("le", comparison.le)
log = _op("log", elementwise_unary.log)
log1p = _op("log1p", elementwise_unary.log1p)
logistic = _op("logistic", elementwise_unary.logistic)
lt = _op("lt", comparison.lt)
max = _op("max", elementwise.max)
min = _op("min", elementwise.min)
mul = _op("mul", elementwise.mul)
ne = _op("ne", comparison.ne)
neg = _op("neg", elementwise_unary.neg)
population_count = _op("population_count", elementwise_unary.population_count)
pow = _op("pow", elementwise.pow)
real = _op("real", elementwise_unary.real)
rem = _op("rem", elementwise.rem)
round_nearest_afz = _op("round_nearest_afz", elementwise_unary.round_nearest_afz)
round_nearest_even = _op("round_nearest_even", elementwise_unary.round_nearest_even)
rsqrt = _op("rsqrt", elementwise_unary.rsqrt)
shift_left = _op("shift_left", elementwise.shift_left)
shift_right_arithmetic = _op("shift_right_arithmetic", elementwise.shift_right_arithmetic)
shift_right_logical = _op("shift_right_logical", elementwise.shift_right_logical)
sign = _op("sign", elementwise_unary.sign)
sin = _op("sin", elementwise_unary.sin)
sinh = _op("sinh", elementwise_unary.sinh)
sqrt = _op("sqrt", elementwise_unary.sqrt)
sub = _op("sub", elementwise.sub)
tan = _op("tan", elementwise_unary.tan)
tanh = _op("tanh", elementwise_unary.tanh)


@public
def square(x: Any) -> Any:
    """``x * x``.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tj.lax.square(np.array([-1.5, 0.5]))
    array([2.25, 0.25])
    """
    value = operand(x).natural
    return lift(elementwise.mul(value, value))


@public
def reciprocal(x: Any) -> Any:
    """``1 / x``.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tj.lax.reciprocal(np.array([-1.5, 0.5])).round(4)
    array([-0.6667,  2.    ])
    """
    value = operand(x).natural
    return lift(elementwise.div(layout.full_like(value, 1), value))


@public
def integer_pow(x: Any, y: int) -> Any:
    """``x`` to a known integer power, by products.

    Raises `ArgumentError` for what is no array of numbers and `ConcretizationError` for an
    option that is unknown while tracing.

    >>> tj.lax.integer_pow(np.array([2.0, 3.0]), 3)
    array([ 8., 27.])
    """
    value = operand(x).natural
    made = layout.full_like(value, 1)
    base, exponent = value, np.abs(y)
    while exponent:
        if exponent % 2:
            made = elementwise.mul(made, base)
        base, exponent = elementwise.mul(base, base), exponent // 2
    return lift(elementwise.div(layout.full_like(made, 1), made) if y < 0 else made)


@public
def select(pred: Any, on_true: Any, on_false: Any) -> Any:
    """``on_true`` where ``pred`` holds, else ``on_false``; a single ``pred`` chooses all.

    An integer ``pred`` holds where it is above zero, as in `jax.lax`. Raises `ElementTypeError` for
    other predicates, `ShapeError` for other shapes than those of the cases.

    >>> tj.lax.select(np.array([True, False]), np.array([1, 2]), np.array([3, 4]))
    array([1, 4])
    """
    chosen = operands(on_true, on_false)
    holds = operand(pred).natural
    if holds.array_shape.element_type.is_integral:
        holds = comparison.gt(holds, layout.full_like(holds, 0))
    return lift(elementwise.select(holds, chosen[0], chosen[1]))


@public
def select_n(which: Any, *cases: Any) -> Any:
    """The case that ``which``, truth values or s32, numbers for each element.

    Raises `ArgumentError` for what is no array of numbers, `ElementTypeError` for an element
    type that it does not take and `ShapeError` for shapes that do not fit.

    >>> tj.lax.select_n(np.array([True, False]), np.array([1, 2]), np.array([3, 4]))
    array([3, 2])
    """
    arrays = operands(*cases)
    index = operand(which).natural
    made = arrays[-1]
    for number, case in reversed(list(enumerate(arrays[:-1]))):
        chosen = comparison.eq(index, layout.full_like(index, number))
        made = elementwise.select(chosen, case, made)
    return lift(made)


@public
def convert_element_type(operand_: Any, new_dtype: Any) -> Any:
    """The elements as another dtype.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tj.lax.convert_element_type(np.array([1.7]), np.int32)
    array([1], dtype=int32)
    """
    return lift(converted(operand(operand_).natural, element_type_of(new_dtype)))


@public
def bitcast_convert_type(operand_: Any, new_dtype: Any) -> Any:
    """The bits as another dtype; to a narrower one a last dimension appears.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tj.lax.bitcast_convert_type(np.float32([1.0]), np.uint32)
    array([1065353216], dtype=uint32)
    """
    return lift(bitcast_convert_type_op(operand(operand_).natural, element_type_of(new_dtype)))


@public
def reduce_precision(operand_: Any, exponent_bits: int, mantissa_bits: int) -> Any:
    """Rounded to what a floating format of these widths can hold.

    Raises `ArgumentError` for what is no array of numbers, `AttributeValueError` for an option
    or a size out of range and `ConcretizationError` for an option that is unknown while
    tracing.

    >>> tj.lax.reduce_precision(np.array([1.23456789]), 8, 7)
    array([1.234375])
    """
    value = operand(operand_).natural
    return lift(reduce_precision_op(value, exponent_bits, mantissa_bits))


class RoundingMethod(enum.IntEnum):
    """Where `round` takes numbers that lie midway between two integers."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


@public
def round(x: Any, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Any:
    """The nearest integers, of the elements' own floating type; midway as ``rounding_method`` says.

    Raises `ElementTypeError` for elements that are not floating.

    >>> tj.lax.round(np.array([0.5, 1.5]))
    array([1., 2.])
    """
    is_even = RoundingMethod(rounding_method) is RoundingMethod.TO_NEAREST_EVEN
    nearest = elementwise_unary.round_nearest_even if is_even else None
    return lift((nearest or elementwise_unary.round_nearest_afz)(operand(x).natural))


@public
def exp2(x: Any) -> Any:
    """2 ** x, for floating elements.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tj.lax.exp2(np.array([3.0, -1.0]))
    array([8. , 0.5])
    """
    value = operand(x).natural
    return lift(elementwise.pow(layout.full_like(value, 2), value))


def dtype(x: Any) -> np.dtype:
    """The NumPy dtype that an array or a number has as an operand.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tj.lax.dtype(np.float32(1))
    dtype('float32')
    """
    return operand(x).element_type.dtype
