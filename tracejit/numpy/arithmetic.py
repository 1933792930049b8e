"""Arithmetic: sums, products, quotients, remainders, powers, roots, absolute values."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracejit.errors import AttributeValueError
from tracejit.graph import Instruction
from tracejit.numpy.building import (
    both_parts,
    constant_value,
    equals,
    fill,
    is_nan,
    is_negative,
    rounded_once,
    where,
    with_sign,
)
from tracejit.numpy.universal import Ufunc
from tracejit.ops import comparison, elementwise, elementwise_unary
from tracejit.shapes import ElementType


def _or_same(kernel: Any) -> Any:
    """A kernel that leaves pred and unsigned integers, which have no sign, as they are."""

    def unsigned_too(x: Instruction) -> Instruction:
        element_type = x.array_shape.element_type
        if element_type is ElementType.PRED or not element_type.is_signed:
            return x
        made: Instruction = kernel(x)
        return made

    return unsigned_too


add = Ufunc(np.add, elementwise.add, "add")
subtract = Ufunc(np.subtract, elementwise.sub)
multiply = Ufunc(np.multiply, elementwise.mul, "mul")
divide = true_divide = Ufunc(np.divide, elementwise.div)
negative = Ufunc(np.negative, elementwise_unary.neg)
positive = Ufunc(np.positive, lambda x: x)
absolute = abs = Ufunc(np.absolute, _or_same(elementwise_unary.abs))
fabs = Ufunc(np.fabs, elementwise_unary.abs)
square = Ufunc(np.square, lambda x: elementwise.mul(x, x))
sqrt = Ufunc(np.sqrt, elementwise_unary.sqrt)
cbrt = Ufunc(np.cbrt, elementwise_unary.cbrt)


def _complex_sign(x: Instruction) -> Instruction:
    """z / |z|, 0 at ±0; an infinite part outweighs the other one, two have no direction."""
    re, im = both_parts(x)
    re_endless = equals(elementwise_unary.abs(re), np.inf)
    im_endless = equals(elementwise_unary.abs(im), np.inf)
    is_endless = elementwise.or_(re_endless, im_endless)
    re_boxed = where(re_endless, elementwise_unary.sign(re), 0)
    im_boxed = where(im_endless, elementwise_unary.sign(im), 0)
    re_boxed = where(elementwise.and_(re_endless, im_endless), fill(re, np.nan), re_boxed)
    near = elementwise.complex(where(is_endless, re_boxed, re), where(is_endless, im_boxed, im))
    return where(equals(x, 0), fill(x, 0), elementwise_unary.sign(near))


def _sign(x: Instruction) -> Instruction:
    if x.array_shape.element_type.is_complex:
        return _complex_sign(x)
    element_type = x.array_shape.element_type
    if not element_type.is_signed:
        return where(equals(x, 0), x, 1)
    made = elementwise_unary.sign(x)
    # XLA keeps the sign of a zero.
    return where(equals(x, 0), fill(x, 0), made) if element_type.is_floating else made


sign = Ufunc(np.sign, _sign)


def _guarded(operation: Any, x: Instruction, y: Instruction) -> Instruction:
    """An integer division or remainder, 0 where the divisor is 0 as in NumPy."""
    divisor = constant_value(y)
    if divisor is not None and divisor != 0:
        made: Instruction = operation(x, y)
        return made
    by_zero = equals(y, 0)
    return where(by_zero, fill(x, 0), operation(x, where(by_zero, fill(y, 1), y)))


def _opposite(x: Instruction, y: Instruction) -> Instruction:
    """Where one of two numbers is negative and the other is not."""
    return comparison.ne(is_negative(x), is_negative(y))


def _floor_divide(x: Instruction, y: Instruction) -> Instruction:
    element_type = x.array_shape.element_type
    if element_type is ElementType.PRED or not element_type.is_signed:
        return _guarded(elementwise.div, x, y)
    if element_type.is_integral:
        return _guarded(_floor_divide_integers, x, y)
    # As NumPy's loop: the remainder first, so that the quotient is a whole number.
    rest = elementwise.rem(x, y)
    quotient = elementwise.div(elementwise.sub(x, rest), y)
    uneven = elementwise.and_(comparison.ne(rest, fill(rest, 0)), _opposite(rest, y))
    quotient = where(uneven, elementwise.sub(quotient, fill(quotient, 1)), quotient)
    whole = elementwise_unary.floor(quotient)
    short = comparison.gt(elementwise.sub(quotient, whole), fill(whole, 0.5))
    whole = where(short, elementwise.add(whole, fill(whole, 1)), whole)
    ratio = elementwise.div(x, y)
    whole = where(equals(quotient, 0), with_sign(fill(whole, 0), ratio), whole)
    return where(equals(y, 0), ratio, whole)


def _floor_divide_integers(x: Instruction, y: Instruction) -> Instruction:
    quotient = elementwise.div(x, y)
    rest = elementwise.rem(x, y)
    uneven = elementwise.and_(comparison.ne(rest, fill(rest, 0)), _opposite(rest, y))
    return where(uneven, elementwise.sub(quotient, fill(quotient, 1)), quotient)


def _remainder(x: Instruction, y: Instruction) -> Instruction:
    element_type = x.array_shape.element_type
    if element_type is ElementType.PRED or not element_type.is_signed:
        return _guarded(elementwise.rem, x, y)
    if element_type.is_integral:
        return _guarded(_remainder_signed, x, y)
    rest = _remainder_signed(x, y)
    # A zero remainder has the divisor's sign; so has NaN none to lose.
    return where(equals(rest, 0), with_sign(fill(rest, 0), y), rest)


def _remainder_signed(x: Instruction, y: Instruction) -> Instruction:
    rest = elementwise.rem(x, y)
    uneven = elementwise.and_(comparison.ne(rest, fill(rest, 0)), _opposite(rest, y))
    return where(uneven, elementwise.add(rest, y), rest)


def _fmod(x: Instruction, y: Instruction) -> Instruction:
    if x.array_shape.element_type.is_floating:
        return elementwise.rem(x, y)
    return _guarded(elementwise.rem, x, y)


floor_divide = Ufunc(np.floor_divide, _floor_divide)
remainder = mod = Ufunc(np.remainder, _remainder)
fmod = Ufunc(np.fmod, _fmod)
divmod = Ufunc(np.divmod, lambda x, y: (_floor_divide(x, y), _remainder(x, y)))


def _reciprocal(x: Instruction) -> Instruction:
    one = fill(x, 1)
    if x.array_shape.element_type.is_integral:
        return _guarded(elementwise.div, one, x)
    return elementwise.div(one, x)


reciprocal = Ufunc(np.reciprocal, _reciprocal)


def _power(x: Instruction, y: Instruction) -> Instruction:
    exponent = constant_value(y)
    if exponent is None:
        return elementwise.pow(x, y)
    if x.array_shape.element_type.is_integral and np.real(exponent) < 0:
        raise AttributeValueError("power: integers to negative integer powers are not allowed")
    return power_by(x, exponent)


def power_by(x: Instruction, exponent: Any) -> Instruction:
    """``x ** exponent``, by products and roots for small exponents."""
    if exponent == 0.5 and x.array_shape.element_type.is_inexact:
        return elementwise_unary.sqrt(x)
    if exponent in (-2, -1, 0, 1, 2, 3, 4):
        return _product_of(x, int(np.real(exponent)))
    return elementwise.pow(x, fill(x, exponent))


@rounded_once
def _product_of(x: Instruction, times: int) -> Instruction:
    if times < 0:
        return elementwise.div(fill(x, 1), _product_of(x, -times))
    if times == 0:
        return fill(x, 1)
    if times == 1:
        return x
    half = _product_of(x, times // 2)
    whole = elementwise.mul(half, half)
    return elementwise.mul(whole, x) if times % 2 else whole


power = pow = Ufunc(np.power, _power)
float_power = Ufunc(np.float_power, _power)


@rounded_once
def _hypot(x: Instruction, y: Instruction) -> Instruction:
    # Scaled by the longer side, so that no square overflows.
    x, y = elementwise_unary.abs(x), elementwise_unary.abs(y)
    first = comparison.ge(x, y)
    longer, shorter = elementwise.select(first, x, y), elementwise.select(first, y, x)
    degenerate = elementwise.or_(equals(longer, 0), equals(longer, np.inf))
    ratio = elementwise.div(shorter, where(degenerate, fill(longer, 1), longer))
    root = elementwise_unary.sqrt(elementwise.add(elementwise.mul(ratio, ratio), fill(ratio, 1)))
    infinite = elementwise.or_(equals(x, np.inf), equals(y, np.inf))
    # At the origin the derivative is zero.
    length = where(equals(longer, 0), fill(longer, 0), elementwise.mul(longer, root))
    return where(infinite, fill(length, np.inf), length)


hypot = Ufunc(np.hypot, _hypot)


def _heaviside(x: Instruction, at_zero: Instruction) -> Instruction:
    step = where(is_negative(x), fill(x, 0), 1)
    return where(is_nan(x), x, where(equals(x, 0), at_zero, step))


heaviside = Ufunc(np.heaviside, _heaviside)
