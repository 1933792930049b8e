"""Conversions between memory and registers for element types that are narrower in memory.

Integers of fewer than eight bits are in the low bits of a byte whose high bits are clear. bf16 and
the small floats are decoded to f32 exactly and encoded with one rounding, to nearest even (but of
f8e8m0fnu, ties up). A NaN keeps its sign and the top of its payload where there is an infinity.
Overflow gives what the type's `FloatFormat` says.
"""

from __future__ import annotations

from typing import Any

from tvm.ir import Call, Op
from tvm_ffi import structural_equal

from tracejit.backends.tvm.ir.dtypes import memory_dtype
from tracejit.backends.tvm.ir.tir import Expr, const, reinterpret, tirx
from tracejit.shapes import ElementType

_REINTERPRET = Op.get("tirx.reinterpret")
_FIRST = ("condition", "value", "a")


def _u32(value: int) -> Expr:
    return const(value, "uint32")


def _bits(value: Expr) -> Expr:
    return reinterpret("uint32", value)


def decode(memory: Expr, element_type: ElementType) -> Expr:
    """The register value of a value in a buffer of ``element_type``."""
    if element_type is ElementType.PRED:
        return memory != const(0, "uint8")
    if element_type is ElementType.F16:
        return tirx.Cast("float32", memory)
    if element_type is ElementType.BF16:
        return reinterpret("float32", tirx.Cast("uint32", memory) << _u32(16))
    if element_type is ElementType.F8E5M2:
        half = tirx.Cast("uint16", memory) << const(8, "uint16")
        number = tirx.Cast("float32", reinterpret("float16", half))
        # The conversion instruction would make every NaN quiet.
        code = tirx.Cast("uint32", memory)
        sign = (code & _u32(0x80)) << _u32(24)
        nan = reinterpret("float32", sign | _u32(0x7F800000) | ((code & _u32(3)) << _u32(21)))
        return tirx.Select((code & _u32(0x7F)) > _u32(0x7C), nan, number)
    if element_type.is_small_float:
        return _decode_small_float(tirx.Cast("uint32", memory), element_type)
    if element_type.is_integral and element_type.bits < 8:
        dtype = memory_dtype(element_type)
        if not element_type.is_signed:
            return memory & const((1 << element_type.bits) - 1, dtype)
        unused = const(8 - element_type.bits, dtype)
        return (memory << unused) >> unused
    return memory


def _decode_small_float(code: Expr, element_type: ElementType) -> Expr:
    form, mantissa = element_type.float_format, element_type.float_format.mantissa_bits
    quiet = _u32(0x7FC00000)
    if not element_type.is_signed:  # a power of two; the least is a subnormal f32
        power = tirx.Select(code == _u32(0), _u32(1 << 22), code << _u32(23))
        return reinterpret("float32", tirx.Select(code == _u32(form.nan), quiet, power))
    high = 1 << (element_type.bits - 1)
    sign = (code & _u32(high)) << _u32(32 - element_type.bits)
    magnitude = code & _u32(high - 1)
    shifted = magnitude << _u32(23 - mantissa)
    normal = reinterpret("float32", sign | (shifted + _u32((127 - form.bias) << 23)))
    small = tirx.Cast("float32", magnitude) * const(2.0 ** (1 - form.bias - mantissa), "float32")
    subnormal = reinterpret("float32", _bits(small) | sign)
    number = tirx.Select(magnitude < _u32(1 << mantissa), subnormal, normal)
    if not form.has_nan:
        return number
    if not form.has_negative_zero:
        return tirx.Select(code == _u32(form.nan), reinterpret("float32", quiet), number)
    if form.has_infinity:  # and NaN beyond it, with their payloads
        payload = (magnitude & _u32((1 << mantissa) - 1)) << _u32(23 - mantissa)
        special = reinterpret("float32", sign | _u32(0x7F800000) | payload)
        return tirx.Select(magnitude >= _u32(form.overflow), special, number)
    return tirx.Select(magnitude == _u32(form.nan), reinterpret("float32", sign | quiet), number)


def only_widened(value: Expr, element_type: ElementType = ElementType.F16) -> Expr | None:
    """The memory value behind a register value of f16 or bf16, if that is only its conversion.

    A conversion makes every NaN of f16 quiet; where bits matter, the f16 itself is to be used.
    """
    if element_type is ElementType.F16 and isinstance(value, tirx.Cast):
        return value.value if "float16" in str(value.value.ty) else None
    if element_type is ElementType.BF16 and isinstance(value, Call):
        shifted = value.args[0] if value.op.same_as(_REINTERPRET) else None
        if isinstance(shifted, tirx.LShift) and isinstance(shifted.a, tirx.Cast):
            return shifted.a.value if str(shifted.a.value.ty) == "uint16" else None
    return None


def _decoded_from(value: Expr, element_type: ElementType) -> Expr | None:
    """The memory value that a register value of a small float is decoded from, if it is.

    Both expressions are trees without sharing: one of the other would be as large as their product.
    """
    code: Any = value
    while code is not None:
        if isinstance(code, tirx.Cast) and str(code.value.ty) == "uint8":
            same = structural_equal(decode(code.value, element_type), value)
            return code.value if same else None
        if isinstance(code, Call):
            code = code.args[0] if code.op.same_as(_REINTERPRET) else None
        else:
            # The first operand of any other operation.
            code = next((getattr(code, n) for n in _FIRST if hasattr(code, n)), None)
    return None


def with_own_nan(value: Expr) -> Expr:
    """A register value of f16 that keeps signalling NaN of memory."""
    half = only_widened(value)
    if half is None:
        return value
    code = tirx.Cast("uint32", reinterpret("uint16", half))
    sign = (code & _u32(0x8000)) << _u32(16)
    nan = reinterpret("float32", sign | _u32(0x7F800000) | ((code & _u32(0x3FF)) << _u32(13)))
    return tirx.Select((code & _u32(0x7FFF)) > _u32(0x7C00), nan, value)


def encode(value: Expr, element_type: ElementType) -> Expr:
    """The value in a buffer of ``element_type`` for a register value, rounded once."""
    if element_type is ElementType.PRED:
        return tirx.Select(value, const(1, "uint8"), const(0, "uint8"))
    if element_type is ElementType.F16:
        half = only_widened(value)
        return tirx.Cast("float16", value) if half is None else half
    if element_type is ElementType.BF16:
        code = only_widened(value, element_type)
        if code is not None:
            return code
        bits = _bits(value)
        rounded = (bits + _u32(0x7FFF) + ((bits >> _u32(16)) & _u32(1))) >> _u32(16)
        # A NaN keeps the part of its payload that fits; if that is zero, it gets one.
        high = bits >> _u32(16)
        nan = tirx.Select((high & _u32(0x7F)) == _u32(0), high | _u32(0x40), high)
        return tirx.Cast("uint16", tirx.Select(_is_nan(bits), nan, rounded))
    if element_type.is_small_float:
        code = _decoded_from(value, element_type)
        return _encode_small_float(value, element_type) if code is None else code
    if element_type.is_integral and element_type.bits < 8:
        return value & const((1 << element_type.bits) - 1, memory_dtype(element_type))
    return value


def _is_nan(bits: Expr) -> Expr:
    return (bits & _u32(0x7FFFFFFF)) > _u32(0x7F800000)


def _encode_small_float(value: Expr, element_type: ElementType) -> Expr:
    bits = _bits(value)
    if not element_type.is_signed:
        return tirx.Cast("uint8", _encode_power_of_two(bits))
    form, mantissa = element_type.float_format, element_type.float_format.mantissa_bits
    high = 1 << (element_type.bits - 1)
    sign = (bits >> _u32(32 - element_type.bits)) & _u32(high)
    magnitude = bits & _u32(0x7FFFFFFF)
    dropped = 23 - mantissa
    lowest = (magnitude >> _u32(dropped)) & _u32(1)
    nearest = (magnitude + _u32((1 << (dropped - 1)) - 1) + lowest) >> _u32(dropped)
    normal = nearest - _u32((127 - form.bias) << mantissa)
    # Below the smallest normal number codes count multiples of 2**(1 - bias - mantissa); adding
    # 2**23 rounds to that grid, and a carry gives the smallest normal's code.
    scale = const(2.0 ** (form.bias - 1 + mantissa), "float32")
    grid = reinterpret("float32", magnitude) * scale + const(2.0**23, "float32")
    subnormal = _bits(grid) - _u32(0x4B000000)
    is_small = magnitude < _u32((128 - form.bias) << 23)
    overflow = _u32(form.overflow)
    code = tirx.Select(is_small, subnormal, tirx.min(normal, overflow))
    code = tirx.Select(magnitude >= _u32(0x7F800000), overflow, code)
    nan = _u32(form.nan)
    if form.has_infinity:
        kept = (magnitude >> _u32(dropped)) & _u32((1 << mantissa) - 1)
        nan = tirx.Select(kept == _u32(0), nan, overflow | kept)
    code = tirx.Select(_is_nan(bits), nan, code)
    if not form.has_negative_zero:
        # The sum carries into the sign's bit unless the code is 0.
        sign = sign & (code + _u32(high - 1))
    return tirx.Cast("uint8", code | sign)


def _encode_power_of_two(bits: Expr) -> Expr:
    """The exponent of the nearest power of two, or the greater of two; else 255, which is NaN.

    The least power, 2**-127, is half of the smallest normal f32; all below it become it.
    """
    half = _u32(1 << 22)
    exponent = tirx.min((bits + half) >> _u32(23), _u32(255))
    code = tirx.Select(bits <= half, _u32(0), exponent)
    is_positive = tirx.And(bits > _u32(0), bits < _u32(1 << 31))
    return tirx.Select(is_positive, code, _u32(255))


def rounded(value: Expr, element_type: ElementType) -> Expr:
    """A register value rounded to the precision (or wrapped to the width) of memory."""
    return decode(encode(value, element_type), element_type)
