"""Rounding, and functions that look at the parts of floating numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracejit.graph import Instruction
from tracejit.numpy.building import (
    SIGNED_BITS,
    equals,
    fill,
    has_sign,
    is_nan,
    is_negative,
    scaled,
    signed_bits,
    where,
    with_sign,
)
from tracejit.numpy.storing import finish
from tracejit.numpy.universal import Ufunc
from tracejit.ops import comparison, elementwise, elementwise_unary
from tracejit.ops.element_types import bitcast_convert_type, convert_element_type
from tracejit.shapes import ElementType
from tracejit.trace.convert import operand
from tracejit.trace.public import implements


def _floats_only(kernel: Any) -> Any:
    """A kernel that leaves integers and truth values as they are."""

    def integers_too(x: Instruction) -> Instruction:
        made: Instruction = kernel(x) if x.array_shape.element_type.is_floating else x
        return made

    return integers_too


def _trunc(x: Instruction) -> Instruction:
    down, up = elementwise_unary.floor(x), elementwise_unary.ceil(x)
    return where(is_negative(x), up, down)


def rint_of(x: Instruction) -> Instruction:
    """To the nearest whole number, halves to even; complex numbers part by part."""
    if x.array_shape.element_type.is_complex:
        return elementwise.complex(
            elementwise_unary.round_nearest_even(elementwise_unary.real(x)),
            elementwise_unary.round_nearest_even(elementwise_unary.imag(x)),
        )
    return elementwise_unary.round_nearest_even(x)


floor = Ufunc(np.floor, _floats_only(elementwise_unary.floor))
ceil = Ufunc(np.ceil, _floats_only(elementwise_unary.ceil))
trunc = Ufunc(np.trunc, _floats_only(_trunc))
rint = Ufunc(np.rint, rint_of)


@implements(np.round, np.around)
def round(a: Any, decimals: int = 0, out: Any = None) -> Any:
    """To ``decimals`` places, halves to even; negative places round before the point.

    Raises `ArgumentError` for what is no array of numbers and `ConcretizationError` for an
    option that is unknown while tracing.

    >>> tnp.around([1.25, 2.675], 1)
    array([1.2, 2.7])
    """
    x = operand(a).natural
    element_type = x.array_shape.element_type
    if element_type.is_inexact:
        return finish("round", _round(x, decimals), out)
    if decimals >= 0:
        whole = converted_bool(x) if element_type is ElementType.PRED else x
        return finish("round", whole, out)
    wide = convert_element_type(x, ElementType.F64)
    return finish("round", convert_element_type(_round(wide, decimals), element_type), out)


around = round


def converted_bool(x: Instruction) -> Instruction:
    """Truth values as NumPy rounds them: to float16."""
    return convert_element_type(x, ElementType.F16)


def _round(x: Instruction, decimals: int) -> Instruction:
    if decimals == 0:
        return rint_of(x)
    power = fill(x, 10.0 ** np.abs(decimals))
    if decimals > 0:
        return elementwise.div(rint_of(elementwise.mul(x, power)), power)
    return elementwise.mul(rint_of(elementwise.div(x, power)), power)


@implements(np.fix)
def fix(x: Any, out: Any = None) -> Any:
    """Towards zero.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.fix([-1.5, 1.5])
    array([-1.,  1.])
    """
    return trunc(x, out=out)


copysign = Ufunc(np.copysign, with_sign)


def _modf(x: Instruction) -> tuple[Instruction, Instruction]:
    whole = _trunc(x)
    infinite = equals(elementwise_unary.abs(x), np.inf)
    rest = where(infinite, fill(x, 0), elementwise.sub(x, whole))
    return with_sign(rest, x), with_sign(whole, x)


modf = Ufunc(np.modf, _modf)


def _next_after(x: Instruction, y: Instruction) -> Instruction:
    # Floating numbers of one sign are ordered as their bits are.
    element_type = x.array_shape.element_type
    bits = signed_bits(x)
    away = comparison.eq(comparison.gt(y, x), comparison.gt(x, fill(x, 0)))
    stepped = elementwise.add(bits, where(away, fill(bits, 1), -1))
    smallest = bitcast_convert_type(fill(bits, 1), element_type)
    made = bitcast_convert_type(stepped, element_type)
    made = where(equals(x, 0), with_sign(smallest, y), made)
    made = where(comparison.eq(x, y), y, made)
    unordered = elementwise.or_(is_nan(x), is_nan(y))
    return where(unordered, elementwise.add(x, y), made)


nextafter = Ufunc(np.nextafter, _next_after)


def _spacing(x: Instruction) -> Instruction:
    infinity = with_sign(fill(x, np.inf), x)
    made = elementwise.sub(_next_after(x, infinity), x)
    return where(equals(elementwise_unary.abs(x), np.inf), fill(x, np.nan), made)


spacing = Ufunc(np.spacing, _spacing)

# Bits of the mantissa, and the exponent of 1.0, of each type that has loops of its own.
_MANTISSA = {ElementType.F16: 10, ElementType.BF16: 7, ElementType.F32: 23, ElementType.F64: 52}
_BIAS = {ElementType.F16: 15, ElementType.BF16: 127, ElementType.F32: 127, ElementType.F64: 1023}


def _frexp(x: Instruction) -> tuple[Instruction, Instruction]:
    element_type = x.array_shape.element_type
    mantissa, bias = _MANTISSA[element_type], _BIAS[element_type]
    tiny = comparison.lt(elementwise_unary.abs(x), fill(x, 2.0 ** (1 - bias)))
    normal = where(tiny, scaled(x, 2.0 ** (mantissa + 1)), x)
    bits = signed_bits(normal)
    field = elementwise.and_(
        elementwise.shift_right_logical(bits, fill(bits, mantissa)), fill(bits, 2 * bias + 1)
    )
    exponent = elementwise.sub(field, fill(field, bias - 1))
    exponent = elementwise.sub(exponent, where(tiny, fill(exponent, mantissa + 1), 0))
    # The same bits with the exponent of 1/2.
    kept = elementwise.and_(bits, fill(bits, ~((2 * bias + 1) << mantissa)))
    half = elementwise.or_(kept, fill(bits, (bias - 1) << mantissa))
    fraction = bitcast_convert_type(half, element_type)
    special = elementwise.or_(equals(x, 0), comparison.eq(field, fill(field, 2 * bias + 1)))
    fraction = where(special, x, fraction)
    exponent = where(special, fill(exponent, 0), exponent)
    return fraction, convert_element_type(exponent, ElementType.S32)


frexp = Ufunc(np.frexp, _frexp)


def _ldexp(x: Instruction, exponent: Instruction) -> Instruction:
    # In three steps, each within the range of powers of two that the type has.
    element_type = x.array_shape.element_type
    step = _BIAS[element_type] - 1
    wide = convert_element_type(exponent, ElementType.S64)
    wide = elementwise.clamp(fill(wide, -3 * step), wide, fill(wide, 3 * step))
    made = x
    for _ in range(3):
        part = elementwise.clamp(fill(wide, -step), wide, fill(wide, step))
        made = elementwise.mul(made, _power_of_two(part, element_type))
        wide = elementwise.sub(wide, part)
    return made


def _power_of_two(exponent: Instruction, element_type: ElementType) -> Instruction:
    bits = convert_element_type(exponent, SIGNED_BITS[element_type.bits])
    field = elementwise.add(bits, fill(bits, _BIAS[element_type]))
    mantissa = fill(field, _MANTISSA[element_type])
    return bitcast_convert_type(elementwise.shift_left(field, mantissa), element_type)


ldexp = Ufunc(np.ldexp, _ldexp)

__all__ = [
    "around",
    "ceil",
    "copysign",
    "fix",
    "floor",
    "frexp",
    "has_sign",
    "ldexp",
    "modf",
    "nextafter",
    "rint",
    "round",
    "spacing",
    "trunc",
]
