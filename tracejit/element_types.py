"""Element types: one row each, whose facts follow from NumPy's dtype.

ElementType("f8e5m2") is ElementType.F8E5M2
ElementType.F8E5M2.dtype, .bits, .is_signed         float8_e5m2, 8, True
ElementType.F8E5M2.float_format.mantissa_bits       2
element_type_of(np.float32)                         ElementType.F32

A new element type is a row of `ElementType`. Elements of fewer than eight bits take a byte each, in
the low bits of it, and the high bits are clear, as in `ml_dtypes`.
"""

from __future__ import annotations

import enum
import functools
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from tracejit.errors import ArgumentError


class ElementType(enum.Enum):
    """XLA's element types; the value is the name in HLO text."""

    PRED = "pred", np.bool_
    S1 = "s1", ml_dtypes.int1
    S2 = "s2", ml_dtypes.int2
    S4 = "s4", ml_dtypes.int4
    S8 = "s8", np.int8
    S16 = "s16", np.int16
    S32 = "s32", np.int32
    S64 = "s64", np.int64
    U1 = "u1", ml_dtypes.uint1
    U2 = "u2", ml_dtypes.uint2
    U4 = "u4", ml_dtypes.uint4
    U8 = "u8", np.uint8
    U16 = "u16", np.uint16
    U32 = "u32", np.uint32
    U64 = "u64", np.uint64
    F4E2M1FN = "f4e2m1fn", ml_dtypes.float4_e2m1fn
    F8E3M4 = "f8e3m4", ml_dtypes.float8_e3m4
    F8E4M3 = "f8e4m3", ml_dtypes.float8_e4m3
    F8E4M3B11FNUZ = "f8e4m3b11fnuz", ml_dtypes.float8_e4m3b11fnuz
    F8E4M3FN = "f8e4m3fn", ml_dtypes.float8_e4m3fn
    F8E4M3FNUZ = "f8e4m3fnuz", ml_dtypes.float8_e4m3fnuz
    F8E5M2 = "f8e5m2", ml_dtypes.float8_e5m2
    F8E5M2FNUZ = "f8e5m2fnuz", ml_dtypes.float8_e5m2fnuz
    F8E8M0FNU = "f8e8m0fnu", ml_dtypes.float8_e8m0fnu
    BF16 = "bf16", ml_dtypes.bfloat16
    F16 = "f16", np.float16
    F32 = "f32", np.float32
    F64 = "f64", np.float64
    C64 = "c64", np.complex64
    C128 = "c128", np.complex128

    dtype: np.dtype
    bits: int
    is_signed: bool
    is_integral: bool
    is_floating: bool
    is_complex: bool

    def __new__(cls, name: str, dtype: type = object) -> ElementType:
        made = object.__new__(cls)
        made._value_ = name
        made.dtype = np.dtype(dtype)
        made.is_integral = name[0] in "su"
        made.is_floating = name[0] in "fb"
        made.is_complex = name[0] == "c"
        made.bits = made.dtype.itemsize * 8
        made.is_signed = name[0] == "s" or made.is_complex
        if made.is_integral:
            made.bits = int(name[1:])
        elif made.is_floating:
            limits = ml_dtypes.finfo(made.dtype)  # type: ignore[no-untyped-call]
            made.bits, made.is_signed = int(limits.bits), bool(limits.min < 0)
        return made

    def __str__(self) -> str:
        return str(self.value)

    __hash__ = object.__hash__

    @property
    def real(self) -> ElementType:
        """The element type of the real part: f32 for c64, itself for a real type."""
        return {ElementType.C64: ElementType.F32, ElementType.C128: ElementType.F64}.get(self, self)

    @property
    def is_numeric(self) -> bool:
        """Everything but pred."""
        return self is not ElementType.PRED

    @property
    def is_inexact(self) -> bool:
        """Floating or complex."""
        return self.is_floating or self.is_complex

    @property
    def has_zero(self) -> bool:
        """Everything but f8e8m0fnu, which has powers of two only."""
        return not self.is_floating or self.is_signed

    @property
    def is_differentiable(self) -> bool:
        """Whether cotangents can be of this type: they are zero or negative as well."""
        return self.is_inexact and self.has_zero

    @property
    def is_small_float(self) -> bool:
        """A floating type of eight bits or less."""
        return self.is_floating and self.bits <= 8

    @property
    def embedding(self) -> ElementType:
        """The type itself; for a small float a wider one with all its values and an infinity."""
        if not self.is_small_float:
            return self
        return ElementType.F16 if self.is_signed else ElementType.BF16

    @functools.cached_property
    def float_format(self) -> FloatFormat:
        """How the bits of a floating type are read."""
        return _float_format(self)


@dataclass(frozen=True)
class FloatFormat:
    """The bits of a floating type: from the highest the sign, the exponent, the mantissa.

    Numbers above the largest become the code ``overflow``, sign aside: infinity, NaN, or the
    largest itself. A NaN without a payload becomes the code ``nan``: a zero where there is no NaN.
    """

    mantissa_bits: int
    bias: int
    overflow: int
    nan: int
    has_infinity: bool
    has_nan: bool
    has_negative_zero: bool
    highest: float
    lowest: float


def _float_format(element_type: ElementType) -> FloatFormat:
    dtype = element_type.dtype
    limits = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    with np.errstate(all="ignore"):
        endless, nan, zero = np.array([np.inf, np.nan, -0.0]).astype(dtype)
        overflow, nothing = np.array([np.inf, np.nan]).astype(dtype).view(f"u{dtype.itemsize}")
    return FloatFormat(
        mantissa_bits=int(limits.nmant),
        # Without a sign there is no zero, and no exponent is kept for it.
        bias=1 - int(limits.minexp) if element_type.is_signed else -int(limits.minexp),
        overflow=int(overflow),
        nan=int(nothing),
        has_infinity=bool(np.isinf(endless)),
        has_nan=bool(np.isnan(nan)),
        has_negative_zero=bool(np.signbit(zero.astype(np.float64)) and not np.isnan(zero)),
        highest=float(limits.max),
        lowest=float(limits.min),
    )


_ELEMENT_TYPES: dict[np.dtype, ElementType] = {t.dtype: t for t in ElementType}


def element_type_of(dtype: object) -> ElementType:
    """The element type for anything that names a NumPy dtype, in either byte order.

    Raises `ArgumentError` for dtypes that have no XLA counterpart (object, str, datetime,
    longdouble, structured).
    """
    if isinstance(dtype, ElementType):
        return dtype
    try:
        given = np.dtype(dtype)  # type: ignore[call-overload]
    except TypeError as error:
        raise ArgumentError(f"{dtype!r} names no element type and no dtype of NumPy's") from error
    known = _ELEMENT_TYPES.get(given) or _ELEMENT_TYPES.get(given.newbyteorder("="))
    if known is None:
        raise ArgumentError(
            f"arrays of dtype {given} cannot be traced; supported are "
            f"{', '.join(str(t.dtype) for t in ElementType)}"
        )
    return known
