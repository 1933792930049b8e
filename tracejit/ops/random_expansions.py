"""Rng as a composition of other ops: a piece of the program's stream, made into a distribution."""

from __future__ import annotations

import math

from tracejit.graph import Instruction
from tracejit.ops.comparison import gt, lt
from tracejit.ops.constants import constant, get_tuple_element
from tracejit.ops.element_types import bitcast_convert_type, convert_element_type
from tracejit.ops.elementwise import add, max, mul, rem, select, shift_right_logical, sub
from tracejit.ops.elementwise_unary import cos, log1p, neg, sqrt
from tracejit.ops.layout import broadcast_in_dim, concatenate, full_like, reshape, slice_
from tracejit.ops.random import (
    PHILOX,
    UNIFORM,
    counters,
    rng_bit_generator,
    rng_get_and_update_state,
)
from tracejit.shapes import ElementType, Shape

# The key of all streams; they differ in where their counters start.
KEY = 0x9B05688C2B3E6C1F


def expanded_rng(a: Instruction, b: Instruction, distribution: str, shape: Shape) -> Instruction:
    """What an Rng with these operands and attributes draws."""
    low, high = (broadcast_in_dim(operand, shape.dimensions, ()) for operand in (a, b))
    if distribution == UNIFORM:
        floating = shape.element_type.is_floating
        return _floating(low, high) if floating else _integral(low, high)
    return _normal(low, high)


def drawn(element_type: ElementType, dimensions: tuple[int, ...]) -> Instruction:
    """Random bits from the program's stream."""
    shape = Shape(element_type, dimensions)
    state = rng_get_and_update_state(counters(PHILOX, shape))
    keyed = concatenate([constant([KEY], ElementType.U64), state], 0)
    return get_tuple_element(rng_bit_generator(PHILOX, keyed, shape), 1)


def _computed_in(element_type: ElementType) -> ElementType:
    return ElementType.F64 if element_type is ElementType.F64 else ElementType.F32


def unit_interval(bits: Instruction) -> Instruction:
    """Floating numbers in [0, 1) whose digits are the upper ones of random words."""
    wide = bits.array_shape.element_type is ElementType.U64
    digits = 52 if wide else 23
    element_type = ElementType.F64 if wide else ElementType.F32
    shift = full_like(bits, bits.array_shape.element_type.bits - digits)
    fraction = convert_element_type(shift_right_logical(bits, shift), element_type)
    return mul(fraction, full_like(fraction, 2.0**-digits))


def _bits_for(element_type: ElementType) -> ElementType:
    return ElementType.U64 if element_type is ElementType.F64 else ElementType.U32


def _floating(low: Instruction, high: Instruction) -> Instruction:
    shape = low.array_shape
    wide = _computed_in(shape.element_type)
    unit = unit_interval(drawn(_bits_for(wide), shape.dimensions))
    rest = sub(full_like(unit, 1), unit)
    # a (1 - u) + b u, which no difference of the bounds can make infinite
    made = add(
        mul(convert_element_type(low, wide), rest), mul(convert_element_type(high, wide), unit)
    )
    narrow = convert_element_type(made, shape.element_type)
    return select(lt(narrow, high), max(narrow, low), low)


def _integral(low: Instruction, high: Instruction) -> Instruction:
    shape = low.array_shape
    wide = ElementType.S64 if shape.element_type.is_signed else ElementType.U64
    start, end = convert_element_type(low, wide), convert_element_type(high, wide)
    some = gt(end, start)
    width = bitcast_convert_type(sub(end, start), ElementType.U64)
    width = select(some, width, full_like(width, 1))
    offset = rem(drawn(ElementType.U64, shape.dimensions), width)
    made = add(start, bitcast_convert_type(offset, wide))
    return convert_element_type(select(some, made, start), shape.element_type)


def _normal(mean: Instruction, deviation: Instruction) -> Instruction:
    """Box and Muller's: the length and the angle of a vector of two normal numbers."""
    shape = mean.array_shape
    wide = _computed_in(shape.element_type)
    pair = unit_interval(drawn(_bits_for(wide), (2, *shape.dimensions)))
    first, second = (
        reshape(
            slice_(pair, (n, *(0 for _ in shape.dimensions)), (n + 1, *shape.dimensions)),
            shape.dimensions,
        )
        for n in range(2)
    )
    length = sqrt(mul(full_like(first, -2), log1p(neg(first))))
    made = mul(length, cos(mul(second, full_like(second, 2 * math.pi))))
    scaled = mul(convert_element_type(deviation, wide), made)
    return convert_element_type(add(convert_element_type(mean, wide), scaled), shape.element_type)
