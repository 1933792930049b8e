"""Ops that change the element type, or how much of it is used."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tracejit.backends.numpy.interpreter import Value, interpret
from tracejit.backends.numpy.precision import bits_of, from_bits, narrowed, widened
from tracejit.graph import Instruction
from tracejit.ops.element_types import BITCAST_CONVERT_TYPE, CONVERT_ELEMENT_TYPE, REDUCE_PRECISION
from tracejit.shapes import ElementType, element_type_of


@interpret.attach(CONVERT_ELEMENT_TYPE)
def convert_element_type(instruction: Instruction, operand: np.ndarray) -> Value:
    target = instruction.array_shape.element_type
    values = widened(operand)
    if target is ElementType.PRED:
        return values != 0
    if target.is_integral and values.dtype.kind == "f":
        return saturated(values, target)
    return narrowed(values, target)


def saturated(values: np.ndarray, target: ElementType) -> Value:
    """Floating values towards zero, kept within the integers of ``target``; NaN becomes 0."""
    low, high = integer_limits(target)
    # float(high + 1) is a power of two, so it is exact where float(high) would not be.
    below, above = values <= float(low), values >= float(high + 1)
    inside = ~(below | above | np.isnan(values))
    holder = np.int8 if target.bits < 8 else target.dtype
    whole = np.where(inside, values, 0).astype(holder)
    limits = np.where(below, np.array(low, holder), np.array(high, holder))
    return np.where(below | above, limits, whole).astype(target.dtype)


def integer_limits(element_type: ElementType) -> tuple[int, int]:
    """The smallest and the greatest value of an integer type."""
    bits = element_type.bits
    return (
        (-(1 << bits - 1), (1 << bits - 1) - 1) if element_type.is_signed else (0, (1 << bits) - 1)
    )


@interpret.attach(BITCAST_CONVERT_TYPE)
def bitcast_convert_type(instruction: Instruction, operand: np.ndarray) -> Value:
    """Everything goes through unsigned integers; the parts of a wide one are its low bits first."""
    shape = instruction.array_shape
    if operand.dtype == shape.dtype:
        return operand  # a complex number, too, which has no bits to speak of
    old, new = element_type_of(operand.dtype).bits, shape.element_type.bits
    bits = bits_of(operand).astype(np.uint64)
    if old > new:
        offsets = np.arange(0, old, new, dtype=np.uint64)
        bits = (bits[..., None] >> offsets) & np.uint64((1 << new) - 1)
    elif old < new:
        offsets = np.arange(0, new, old, dtype=np.uint64)
        bits = np.bitwise_or.reduce(bits << offsets, axis=-1)
    return from_bits(np.asarray(bits), shape.dtype)


@interpret.attach(REDUCE_PRECISION)
def reduce_precision(instruction: Instruction, operand: np.ndarray) -> Value:
    """Rounds the mantissa in the bits themselves, then sends what the exponent cannot reach to
    infinity or zero. A small float is rounded within a type that holds its values and an infinity.
    """
    element_type = element_type_of(operand.dtype)
    if element_type.is_small_float:
        held = widened(operand).astype(element_type.embedding.dtype)
        return narrowed(widened(reduce_precision(instruction, held)), element_type)
    exponent_bits = instruction.attributes["exponent_bits"]
    mantissa_bits = instruction.attributes["mantissa_bits"]
    info = ml_dtypes.finfo(operand.dtype)  # type: ignore[no-untyped-call]
    bits = bits_of(operand)
    one = bits.dtype.type(1)
    if mantissa_bits < info.nmant:
        dropped = info.nmant - mantissa_bits
        # Adding half of the last kept bit, less one unless that bit is odd, rounds to even.
        last = (bits >> dropped) & one
        bits = bits + (one << (dropped - 1)) - one + last
        bits &= ~((one << dropped) - one)
    if exponent_bits < info.nexp:
        sign_mask = one << (bits.dtype.itemsize * 8 - 1)
        magnitude, signs = bits & ~sign_mask, bits & sign_mask
        bias = (1 << (info.nexp - 1)) - 1
        reduced_bias = (1 << (exponent_bits - 1)) - 1
        exponent = (magnitude >> info.nmant).astype(np.int64)
        infinity = bits.dtype.type(((1 << info.nexp) - 1) << info.nmant)
        magnitude = np.where(exponent > bias + reduced_bias, infinity, magnitude)
        magnitude = np.where(exponent <= bias - reduced_bias, 0, magnitude)
        bits = signs | magnitude
    return np.where(np.isnan(operand), operand, from_bits(bits, operand.dtype))
