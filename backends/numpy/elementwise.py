"""Elementwise ops of two and three operands."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tracejit.backends.numpy.elementwise_unary import exp, normalised
from tracejit.backends.numpy.interpreter import Value, interpret
from tracejit.backends.numpy.precision import arithmetic, bits_of, from_bits, wide
from tracejit.graph import Instruction, Op
from tracejit.ops.elementwise import (
    ADD,
    AND,
    ATAN2,
    CLAMP,
    COMPLEX,
    DIV,
    MAX,
    MIN,
    MUL,
    OR,
    POW,
    REM,
    SELECT,
    SHIFT_LEFT,
    SHIFT_RIGHT_ARITHMETIC,
    SHIFT_RIGHT_LOGICAL,
    SUB,
    XOR,
)
from tracejit.shapes import element_type_of


def atan2(lhs: np.ndarray, rhs: np.ndarray) -> Value:
    if lhs.dtype.kind != "c":
        return np.arctan2(lhs, rhs)
    # -i log((x + i y) / sqrt(x**2 + y**2)), by parts: i y is (-im y, re y), not 1j * y. A quotient
    # on the cut, whose imaginary part is a zero of either sign, counts as above it.
    y, x = lhs.astype(np.complex128), rhs.astype(np.complex128)
    along = complex(x.real - y.imag, x.imag + y.real)
    quotient = _complex_div(along, np.sqrt(mul(x, x) + mul(y, y)))
    value = np.log(complex(quotient.real, quotient.imag + 0.0))
    return complex(value.imag, -value.real).astype(lhs.dtype)


def complex(lhs: np.ndarray, rhs: np.ndarray) -> Value:
    value = np.empty(lhs.shape, np.result_type(lhs, np.complex64))
    value.real, value.imag = lhs, rhs
    return value


def mul(lhs: np.ndarray, rhs: np.ndarray) -> Value:
    """np.multiply; of complex numbers by four products that are each rounded."""
    if lhs.dtype.kind != "c":
        return np.multiply(lhs, rhs)
    return complex(
        lhs.real * rhs.real - lhs.imag * rhs.imag, lhs.real * rhs.imag + lhs.imag * rhs.real
    )


def div(lhs: np.ndarray, rhs: np.ndarray) -> Value:
    if lhs.dtype.kind == "c":
        return _complex_div(lhs, rhs)
    if lhs.dtype.kind == "f":
        return np.divide(lhs, rhs)
    divisor = np.where(rhs == 0, rhs.dtype.type(1), rhs)
    quotient = (lhs - np.fmod(lhs, divisor)) // divisor
    return np.where(rhs == 0, ~np.zeros_like(rhs), quotient)


def _complex_div(lhs: np.ndarray, rhs: np.ndarray) -> Value:
    """The quotient, with the infinities and zeros of C99's annex G where the formula makes NaN."""
    (near, up), (by, down) = normalised(lhs), normalised(rhs)
    quotient = np.divide(near, by)
    quotient = complex(np.ldexp(quotient.real, up - down), np.ldexp(quotient.imag, up - down))
    lost = np.isnan(quotient.real) & np.isnan(quotient.imag)
    by_zero = (rhs == 0) & ~(np.isnan(lhs.real) & np.isnan(lhs.imag))
    infinite = lost & np.isinf(lhs) & np.isfinite(rhs)
    vanishing = lost & np.isfinite(lhs) & np.isinf(rhs)
    signed = np.copysign(np.inf, rhs.real)
    large, small = _boxed(lhs) * np.conj(rhs), lhs * np.conj(_boxed(rhs))
    cases = (by_zero, infinite, vanishing)
    value = np.empty_like(quotient)
    value.real = np.select(
        cases, (signed * lhs.real, np.inf * large.real, 0 * small.real), quotient.real
    )
    value.imag = np.select(
        cases, (signed * lhs.imag, np.inf * large.imag, 0 * small.imag), quotient.imag
    )
    return value


def _boxed(operand: np.ndarray) -> Value:
    """Each part as a signed one where it is infinite, as a signed zero elsewhere."""
    value = np.empty_like(operand)
    value.real = np.copysign(np.isinf(operand.real), operand.real)
    value.imag = np.copysign(np.isinf(operand.imag), operand.imag)
    return value


def rem(lhs: np.ndarray, rhs: np.ndarray) -> Value:
    if lhs.dtype.kind not in "iu":
        return np.fmod(lhs, rhs)
    divisor = np.where(rhs == 0, rhs.dtype.type(1), rhs)
    return np.where(rhs == 0, lhs, np.fmod(lhs, divisor))


def max(lhs: np.ndarray, rhs: np.ndarray) -> Value:
    """np.maximum, except that +0 is larger than -0 in either order."""
    greater = np.maximum(lhs, rhs)
    return np.where((lhs == 0) & (rhs == 0), lhs + rhs, greater) if _signed_zero(lhs) else greater


def min(lhs: np.ndarray, rhs: np.ndarray) -> Value:
    """np.minimum, except that -0 is smaller than +0 in either order."""
    less = np.minimum(lhs, rhs)
    return np.where((lhs == 0) & (rhs == 0), -(-lhs - rhs), less) if _signed_zero(lhs) else less


def _signed_zero(array: np.ndarray) -> bool:
    return array.dtype.kind == "f"


def pow_integer(lhs: np.ndarray, rhs: np.ndarray) -> Value:
    """By squaring, wrapping; of negative exponents only 1 and -1 leave something."""
    result, square, exponent = np.ones_like(lhs), lhs, np.where(rhs < 0, 0, rhs)
    while exponent.any():
        result = np.where(exponent & 1, result * square, result)
        square, exponent = square * square, exponent >> 1
    odd = np.where(rhs & 1, lhs, lhs * lhs)
    return np.where(rhs < 0, np.where(abs(lhs) == 1, odd, 0), result)


def pow_float(lhs: np.ndarray, rhs: np.ndarray) -> Value:
    """Of complex numbers e**(w log z), also for whole w; 0**w is 1 for 0, 0 for positive re w."""
    if lhs.dtype.kind != "c":
        return np.power(lhs, rhs)
    z, w = lhs.astype(np.complex128), rhs.astype(np.complex128)
    value = exp(mul(w, np.log(z)))
    value = np.where(z == 0, np.where(w.real > 0, 0, np.complex128(np.nan + 1j * np.nan)), value)
    return np.where(w == 0, 1, value).astype(lhs.dtype)


_pow_float, _pow_integer = wide(pow_float), arithmetic(pow_integer)


@interpret.attach(POW)
def pow(instruction: Instruction, lhs: np.ndarray, rhs: np.ndarray) -> Value:
    is_integral = instruction.array_shape.element_type.is_integral
    return (_pow_integer if is_integral else _pow_float)(instruction, lhs, rhs)


def _shift(instruction: Instruction, lhs: np.ndarray, rhs: np.ndarray, function: np.ufunc) -> Value:
    """The bits shifted; none are left where rhs, as an unsigned number, reaches the width."""
    width = element_type_of(lhs.dtype).bits
    bits, amount = bits_of(lhs), bits_of(rhs)
    shifted = function(bits, np.minimum(amount, width - 1).astype(bits.dtype))
    return from_bits(np.where(amount < width, shifted, 0), lhs.dtype)


@interpret.attach(SHIFT_LEFT)
def shift_left(instruction: Instruction, lhs: np.ndarray, rhs: np.ndarray) -> Value:
    return _shift(instruction, lhs, rhs, np.left_shift)


@interpret.attach(SHIFT_RIGHT_LOGICAL)
def shift_right_logical(instruction: Instruction, lhs: np.ndarray, rhs: np.ndarray) -> Value:
    return _shift(instruction, lhs, rhs, np.right_shift)


@interpret.attach(SHIFT_RIGHT_ARITHMETIC)
def shift_right_arithmetic(instruction: Instruction, lhs: np.ndarray, rhs: np.ndarray) -> Value:
    """Shifted by the width - 1 at most: then every bit is the sign."""
    width = element_type_of(lhs.dtype).bits
    unused = 8 * lhs.dtype.itemsize - width
    bits = bits_of(lhs)
    # The sign stands in the highest bit of the signed integer that holds the element.
    signed = np.left_shift(bits, unused).astype(bits.dtype).view(f"i{bits.dtype.itemsize}")
    amount = np.minimum(bits_of(rhs), width - 1).astype(signed.dtype)
    return from_bits((signed >> unused >> amount).view(bits.dtype), lhs.dtype)


def clamp(low: np.ndarray, operand: np.ndarray, high: np.ndarray) -> Value:
    return min(max(operand, low), high)


@interpret.attach(SELECT)
def select(
    instruction: Instruction, pred: np.ndarray, on_true: np.ndarray, on_false: np.ndarray
) -> Value:
    return np.where(pred, on_true, on_false)


_ARITHMETIC: dict[Op, Callable[..., Value]] = {
    ADD: np.add,
    AND: np.bitwise_and,
    CLAMP: clamp,
    COMPLEX: complex,
    DIV: div,
    MAX: max,
    MIN: min,
    MUL: mul,
    OR: np.bitwise_or,
    REM: rem,
    SUB: np.subtract,
    XOR: np.bitwise_xor,
}
for _op, _function in _ARITHMETIC.items():
    interpret.attach(_op)(arithmetic(_function))

interpret.attach(ATAN2)(wide(atan2))
