"""Elementwise ops of one operand."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tracejit.backends.numpy.interpreter import Value, interpret
from tracejit.backends.numpy.precision import arithmetic, bits_of, wide
from tracejit.graph import Instruction, Op
from tracejit.ops.elementwise_unary import (
    ABS,
    ACOS,
    ACOSH,
    ASIN,
    ASINH,
    ATANH,
    CBRT,
    CEIL,
    CLZ,
    COS,
    COSH,
    ERF,
    EXP,
    EXPM1,
    FLOOR,
    IMAG,
    IS_FINITE,
    LOG,
    LOG1P,
    LOGISTIC,
    NEG,
    NOT,
    POPULATION_COUNT,
    REAL,
    ROUND_NEAREST_AFZ,
    ROUND_NEAREST_EVEN,
    RSQRT,
    SIGN,
    SIN,
    SINH,
    SQRT,
    TAN,
    TANH,
)
from tracejit.shapes import element_type_of

erf = np.vectorize(math.erf, otypes=[np.float64])


@interpret.attach(CLZ)
def clz(instruction: Instruction, operand: np.ndarray) -> Value:
    """The width less the number of bits from the highest one on, which are all set first."""
    bits = bits_of(operand)
    width = element_type_of(operand.dtype).bits
    for distance in (1, 2, 4, 8, 16, 32):
        if distance < width:
            bits = bits | (bits >> distance)
    return (width - np.bitwise_count(bits)).astype(operand.dtype)


@interpret.attach(POPULATION_COUNT)
def population_count(instruction: Instruction, operand: np.ndarray) -> Value:
    return np.bitwise_count(bits_of(operand)).astype(operand.dtype)


def log1p(operand: np.ndarray) -> Value:
    """log|1 + x + iy| = log1p(x (x + 2) + y²) / 2, which is exact where |x + iy| is small."""
    if operand.dtype.kind != "c":
        return np.log1p(operand)
    x, y = operand.real, operand.imag
    small = np.log1p(x * (x + 2) + y * y) / 2
    far = np.log(_complex(1 + x, y)).real
    return _complex(np.where(np.abs(operand) < 0.5, small, far), np.arctan2(y, 1 + x))


def expm1(operand: np.ndarray) -> Value:
    """e^(x + iy) - 1, with the real part expm1(x) cos y - 2 sin²(y/2), exact near 0."""
    if operand.dtype.kind != "c":
        return np.expm1(operand)
    x, y, power = operand.real, operand.imag, exp(operand)
    near = np.expm1(x) * np.cos(y) - 2 * np.sin(y / 2) ** 2
    re = np.where(y == 0, np.expm1(x), np.where(x < 1, near, power.real - 1))
    return _complex(np.where(x == -np.inf, -1, re), power.imag)


def _complex(re: np.ndarray, im: np.ndarray) -> np.ndarray:
    """The numbers of these parts; re + 1j * im would lose zeros' signs and infinities."""
    made = np.empty(re.shape, np.result_type(re.dtype, np.complex64))
    made.real, made.imag = re, im
    return made


def exp(operand: np.ndarray) -> Value:
    """np.exp, but zero is positive for -inf + i nan, where C leaves its signs to the library."""
    value = np.exp(operand)
    if operand.dtype.kind != "c":
        return value
    return np.where((operand.real == -np.inf) & np.isnan(operand.imag), 0, value)


def cosh(operand: np.ndarray) -> Value:
    """np.cosh, but where C leaves the sign of an imaginary zero open it is that of sinh x sin y."""
    value = np.cosh(operand)
    if operand.dtype.kind != "c":
        return value
    x, y = operand.real, operand.imag
    signs = np.where(np.isnan(x), 1, np.copysign(1, x)) * np.where(
        np.isnan(y), 1, np.copysign(1, y)
    )
    is_open = np.isnan(value.real) & (value.imag == 0)
    return _complex(value.real, np.where(is_open, 0.0 * signs, value.imag))


def cos(operand: np.ndarray) -> Value:
    """cosh(i x)."""
    if operand.dtype.kind != "c":
        return np.cos(operand)
    return cosh(_complex(-operand.imag, operand.real))


def normalised(operand: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Complex numbers by the power of two that makes extreme ones ordinary, and its exponent."""
    size = np.maximum(abs(operand.real), abs(operand.imag))
    _, exponent = np.frexp(size)
    is_extreme = np.isfinite(size) & (size != 0)
    is_extreme &= abs(exponent) > np.finfo(operand.dtype).maxexp - 30
    exponent = np.where(is_extreme, exponent, 0)
    return _complex(np.ldexp(operand.real, -exponent), np.ldexp(operand.imag, -exponent)), exponent


def logistic(operand: np.ndarray) -> Value:
    """1 / (1 + exp(-x)) = exp(x) / (1 + exp(x)), whichever exponential is small."""
    tail = exp(np.where(operand.real < 0, operand, -operand))
    value = np.where(operand.real < 0, tail, 1) / (1 + tail)
    if operand.dtype.kind != "c":
        return value
    # The imaginary part has the sign of the small exponential's, turned for 1 / (1 + t).
    sign = np.where(operand.real < 0, tail.imag, -tail.imag)
    zero = np.copysign(0.0, sign)
    return _complex(
        np.where(value.real == 0, 0.0, value.real), np.where(value.imag == 0, zero, value.imag)
    )


def round_nearest_afz(operand: np.ndarray) -> Value:
    whole = np.trunc(operand)
    away = np.abs(operand - whole) >= 0.5
    return np.where(away, whole + np.copysign(1, operand), whole).astype(operand.dtype)


def sign(operand: np.ndarray) -> Value:
    if operand.dtype.kind == "c":
        near, _ = normalised(operand)
        size = np.abs(near)
        direction = _complex(near.real / size, near.imag / size)
        return np.where(operand == 0, operand, direction).astype(operand.dtype)
    signs = np.sign(operand)
    # np.sign drops the sign of a zero.
    return np.where(operand == 0, operand, signs)


_ARITHMETIC: dict[Op, Callable[..., Value]] = {
    ABS: np.abs,
    CEIL: np.ceil,
    FLOOR: np.floor,
    IMAG: np.imag,
    IS_FINITE: np.isfinite,
    NEG: np.negative,
    NOT: np.invert,
    REAL: np.real,
    ROUND_NEAREST_AFZ: round_nearest_afz,
    ROUND_NEAREST_EVEN: np.rint,
    SIGN: sign,
    SQRT: np.sqrt,
}


def rsqrt(operand: np.ndarray) -> Value:
    """Zero at every infinity, where the reciprocal of a complex infinity would be NaN."""
    if operand.dtype.kind != "c":
        return 1 / np.sqrt(operand)
    root = np.sqrt(operand)
    value = np.where(np.isinf(operand), 0, 1 / root)
    # 1 / w is conj(w) / |w|^2, also where a part is zero.
    zero = np.copysign(0.0, -root.imag)
    re = np.where(value.real == 0, 0.0, value.real)
    return _complex(re, np.where(value.imag == 0, zero, value.imag))


def cbrt(operand: np.ndarray) -> Value:
    """Newton's step after NumPy's root, which is 3 units off on processors without AVX-512.

    y - (y^3 - m) / 3 y^2 for x = m 8^k, m in [1/8, 1): neither powers nor the remainder of y^3,
    found as y's products in two parts, leave the normal numbers.
    """
    mantissa, exponent = np.frexp(operand)
    thirds = -(-exponent // 3)
    m = np.ldexp(mantissa, exponent - 3 * thirds)
    y = np.cbrt(m)
    square, square_rest = _product(y, y)
    cube, cube_rest = _product(square, y)
    remainder = (cube - m) + (cube_rest + square_rest * y)
    with np.errstate(invalid="ignore", divide="ignore"):
        root = np.ldexp(y - remainder / (3 * square), thirds)
    return np.where((operand == 0) | ~np.isfinite(operand), np.cbrt(operand), root)


def _product(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A product of float64, and what its rounding left out (T. J. Dekker, 1971)."""
    (x_high, x_low), (y_high, y_low) = _halves(x), _halves(y)
    product = x * y
    rest = ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low
    return product, rest


def _halves(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two numbers of at most 26 bits whose sum is x."""
    moved = 134217729.0 * x
    high = moved - (moved - x)
    return high, x - high


for _op, _function in _ARITHMETIC.items():
    interpret.attach(_op)(arithmetic(_function))

_WIDE: dict[Op, Callable[..., Value]] = {
    ACOS: np.arccos,
    ACOSH: np.arccosh,
    ASIN: np.arcsin,
    ASINH: np.arcsinh,
    ATANH: np.arctanh,
    CBRT: cbrt,
    COS: cos,
    COSH: cosh,
    ERF: erf,
    EXP: exp,
    EXPM1: expm1,
    LOG: np.log,
    LOG1P: log1p,
    LOGISTIC: logistic,
    RSQRT: rsqrt,
    SIN: np.sin,
    SINH: np.sinh,
    TAN: np.tan,
    TANH: np.tanh,
}
for _op, _function in _WIDE.items():
    interpret.attach(_op)(wide(_function))
