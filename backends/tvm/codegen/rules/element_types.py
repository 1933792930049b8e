"""Conversions between element types, on register values."""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.affine import Affine
from tracejit.backends.tvm.analysis.element_rules import (
    Scope,
    Value,
    indexed,
    on_scalars,
    pointwise,
)
from tracejit.backends.tvm.codegen.rules.elementwise import (
    element_type_of,
    low_bits,
    not_equal,
    unsigned,
)
from tracejit.backends.tvm.ir.affine import Index
from tracejit.backends.tvm.ir.complex import Complex
from tracejit.backends.tvm.ir.dtypes import memory_dtype, register_dtype
from tracejit.backends.tvm.ir.narrow_types import decode, encode
from tracejit.backends.tvm.ir.tir import Expr, const, real, reinterpret, tirx
from tracejit.graph import Instruction
from tracejit.ops.element_types import BITCAST_CONVERT_TYPE, CONVERT_ELEMENT_TYPE, REDUCE_PRECISION
from tracejit.shapes import ElementType


@pointwise.attach(CONVERT_ELEMENT_TYPE)
def convert_element_type(instruction: Instruction, operand: Value) -> Value:
    return converted(operand, element_type_of(instruction), instruction.array_shape.element_type)


def converted(value: Value, source: ElementType, target: ElementType) -> Value:
    """``value`` converted to the nearest value of another type, as specified for Convert."""
    if target.is_complex:
        part = register_dtype(target.real)
        if isinstance(value, Complex):
            return Complex(tirx.Cast(part, value.re), tirx.Cast(part, value.im))
        return Complex(converted(value, source, target.real), real(0, part))
    dtype = register_dtype(target)
    if target is ElementType.PRED:
        return value if source is target else not_equal(value, const(0, register_dtype(source)))
    if source is ElementType.PRED:
        return tirx.Select(value, const(1, dtype), const(0, dtype))
    if source.is_floating and target.is_integral:
        return _saturated(value, register_dtype(source), target)
    if source.is_integral and target.is_floating and target.bits < 32:
        # Integers of more than 24 bits would be rounded twice through f32.
        return _narrow_from_integer(value, source)
    return tirx.Cast(dtype, value)


def _narrow_from_integer(value: Expr, source: ElementType) -> Expr:
    """An f32 that rounds to the same narrow float as the integer: the low bits made sticky.

    A double keeps 53 bits; rounding it to odd keeps the second rounding right.
    """
    if source.bits <= 16:
        return tirx.Cast("float32", value)
    wide = tirx.Cast("float64", value)
    bits = reinterpret("uint64", wide)
    dropped = const((1 << 29) - 1, "uint64")
    some = (bits & dropped) != const(0, "uint64")
    sticky = tirx.Select(some, const(1 << 29, "uint64"), const(0, "uint64"))
    odd = (bits & const(((1 << 64) - 1) ^ ((1 << 29) - 1), "uint64")) | sticky
    return tirx.Cast("float32", reinterpret("float64", odd))


def _saturated(value: Expr, dtype: str, target: ElementType) -> Expr:
    """Truncated, and clamped to the integers of ``target``; NaN becomes 0."""
    low = -(1 << (target.bits - 1)) if target.is_signed else 0
    high = (1 << (target.bits - target.is_signed)) - 1
    integer = register_dtype(target)
    if target.bits <= 16:
        # Both bounds are floats, and a processor converts a float to 32 bits in one instruction.
        lowest, highest = const(float(low), dtype), const(float(high), dtype)
        nan_or_low = tirx.Select(value <= lowest, lowest, const(0.0, dtype))
        raised = tirx.Select(value > lowest, value, nan_or_low if low else lowest)
        return tirx.Cast(
            integer, tirx.Cast("int32", tirx.Select(raised < highest, raised, highest))
        )
    below = value <= const(float(low), dtype)
    above = value >= const(float(high + 1), dtype)
    # The comparisons are false for NaN.
    inside = tirx.And(value > const(float(low), dtype), value < const(float(high + 1), dtype))
    whole = tirx.Cast(integer, tirx.Select(inside, value, const(0, dtype)))
    return tirx.Select(below, const(low, integer), tirx.Select(above, const(high, integer), whole))


@pointwise.attach(REDUCE_PRECISION)
def reduce_precision(instruction: Instruction, operand: Value) -> Value:
    """Rounds the mantissa in the bits, then replaces values out of the exponent's range by inf or
    0.

    A small float is rounded within a type that holds all its values and an infinity.
    """
    held = element_type_of(instruction).embedding
    width, dtype = held.bits, unsigned(held)
    mantissa = held.float_format.mantissa_bits
    bias = (1 << (width - 2 - mantissa)) - 1
    exponent_bits = instruction.attributes["exponent_bits"]
    mantissa_bits = instruction.attributes["mantissa_bits"]

    def u(value: int) -> Expr:
        return const(value, dtype)

    bits = memory_bits(operand, held)
    sign = bits & u(1 << (width - 1))
    magnitude = bits & u((1 << (width - 1)) - 1)
    infinity = u(((1 << (width - 1 - mantissa)) - 1) << mantissa)
    is_nan = magnitude > infinity
    if mantissa_bits < mantissa:
        dropped = mantissa - mantissa_bits
        last = (magnitude >> u(dropped)) & u(1)
        magnitude = magnitude + u((1 << (dropped - 1)) - 1) + last
        magnitude = magnitude & u(((1 << width) - 1) ^ ((1 << dropped) - 1))
    reduced_bias = (1 << (exponent_bits - 1)) - 1
    if reduced_bias < bias:
        exponent = magnitude >> u(mantissa)
        magnitude = tirx.Select(exponent > u(bias + reduced_bias), infinity, magnitude)
        magnitude = tirx.Select(exponent <= u(bias - reduced_bias), u(0), magnitude)
    return tirx.Select(is_nan, operand, from_memory_bits(magnitude | sign, held))


@on_scalars.attach(BITCAST_CONVERT_TYPE)
def bitcast_convert_scalar(instruction: Instruction, operand: Value) -> Value:
    """Between types of one width: scalars have no dimension for parts."""
    old = element_type_of(instruction)
    return from_memory_bits(memory_bits(operand, old), instruction.array_shape.element_type)


@indexed.attach(BITCAST_CONVERT_TYPE)
def bitcast_convert_type(scope: Scope, instruction: Instruction, indices: Sequence[Index]) -> Value:
    """Through unsigned integers; the parts of a wide element are its low bits first."""
    (operand,) = instruction.operands
    old, new = operand.array_shape.element_type, instruction.array_shape.element_type
    if old is new:
        return scope.value(operand, indices)
    if old.bits == new.bits:

        def same_width(value: Value) -> Value:
            return from_memory_bits(memory_bits(value, old), new)

        return scope.map(same_width, scope.value(operand, indices))
    wide = unsigned(max(old, new, key=lambda element_type: element_type.bits))
    if old.bits > new.bits:

        def part(value: Value, number: Value) -> Value:
            shift = tirx.Cast(wide, number) * const(new.bits, wide)
            low = tirx.Cast(unsigned(new), memory_bits(value, old) >> shift)
            return from_memory_bits(low_bits(low, new), new)

        number = scope.number(indices[-1], ElementType.U32)
        return scope.map(part, scope.value(operand, indices[:-1]), number)

    def joined(*values: Value) -> Value:
        total = const(0, wide)
        for position, value in enumerate(values):
            bits = tirx.Cast(wide, memory_bits(value, old))
            total = total | (bits << const(position * old.bits, wide))
        return from_memory_bits(total, new)

    count = new.bits // old.bits
    return scope.map(joined, *(scope.value(operand, [*indices, Affine(n)]) for n in range(count)))


def memory_bits(value: Value, element_type: ElementType) -> Expr:
    """The bits of the value in memory, as an unsigned integer; those it lacks are clear."""
    return reinterpret(unsigned(element_type), encode(value, element_type))


def from_memory_bits(bits: Expr, element_type: ElementType) -> Value:
    """The register value of the bits of a value in memory."""
    return decode(reinterpret(memory_dtype(element_type), bits), element_type)
