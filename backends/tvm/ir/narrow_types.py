"""Conversions between memory and registers for element types that are narrower in memory.

Four-bit integers are in the low half of a byte whose high half is clear. bf16 and the 8-bit floats
are decoded to f32 exactly and encoded with one rounding to nearest even, a NaN keeping its sign
and the top of its payload; overflow gives infinity (f8e5m2, bf16) or NaN (f8e4m3fn, which has no
infinity).
"""

from __future__ import annotations

from tvm.ir import Call, Op

from tracejit.backends.tvm.ir.tir import Expr, const, reinterpret, tirx
from tracejit.shapes import ElementType

_REINTERPRET = Op.get("tirx.reinterpret")


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
    if element_type is ElementType.F8E4M3FN:
        return _decode_f8e4m3fn(tirx.Cast("uint32", memory))
    if element_type is ElementType.S4:
        return (memory << const(4, "int8")) >> const(4, "int8")
    if element_type is ElementType.U4:
        return memory & const(15, "uint8")
    return memory


def _decode_f8e4m3fn(code: Expr) -> Expr:
    sign = (code & _u32(0x80)) << _u32(24)
    magnitude = code & _u32(0x7F)
    normal = reinterpret("float32", sign | ((magnitude << _u32(20)) + _u32(120 << 23)))
    # Subnormals are multiples of 2**-9.
    small = tirx.Cast("float32", magnitude) * const(2.0**-9, "float32")
    subnormal = reinterpret("float32", _bits(small) | sign)
    nan = reinterpret("float32", sign | _u32(0x7FC00000))
    return tirx.Select(
        magnitude == _u32(0x7F), nan, tirx.Select(magnitude < _u32(8), subnormal, normal)
    )


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
    if element_type is ElementType.F8E5M2:
        return _encode_f8(value, mantissa=2, bias=15, overflow=0x7C, nan=0x7E)
    if element_type is ElementType.F8E4M3FN:
        return _encode_f8(value, mantissa=3, bias=7, overflow=0x7F, nan=0x7F)
    if element_type is ElementType.S4:
        return value & const(15, "int8")
    if element_type is ElementType.U4:
        return value & const(15, "uint8")
    return value


def _is_nan(bits: Expr) -> Expr:
    return (bits & _u32(0x7FFFFFFF)) > _u32(0x7F800000)


def _encode_f8(value: Expr, *, mantissa: int, bias: int, overflow: int, nan: int) -> Expr:
    bits = _bits(value)
    sign = (bits >> _u32(24)) & _u32(0x80)
    magnitude = bits & _u32(0x7FFFFFFF)
    dropped = 23 - mantissa
    lowest = (magnitude >> _u32(dropped)) & _u32(1)
    nearest = (magnitude + _u32((1 << (dropped - 1)) - 1) + lowest) >> _u32(dropped)
    normal = nearest - _u32((127 - bias) << mantissa)
    # Below the smallest normal number codes count multiples of 2**(1 - bias - mantissa); adding
    # 2**23 rounds to that grid, and a carry gives the smallest normal's code.
    scale = const(2.0 ** (bias - 1 + mantissa), "float32")
    grid = reinterpret("float32", magnitude) * scale + const(2.0**23, "float32")
    subnormal = _bits(grid) - _u32(0x4B000000)
    is_small = magnitude < _u32((128 - bias) << 23)
    code = tirx.Select(is_small, subnormal, tirx.min(normal, _u32(overflow)))
    code = tirx.Select(magnitude >= _u32(0x7F800000), _u32(overflow), code)
    kept = (magnitude >> _u32(dropped)) & _u32((1 << mantissa) - 1)
    payload = tirx.Select(kept == _u32(0), _u32(nan), _u32(overflow) | kept)
    code = tirx.Select(_is_nan(bits), payload, code)
    return tirx.Cast("uint8", code | sign)


def rounded(value: Expr, element_type: ElementType) -> Expr:
    """A register value rounded to the precision (or wrapped to the width) of memory."""
    return decode(encode(value, element_type), element_type)
