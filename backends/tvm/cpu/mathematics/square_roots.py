"""Vector formulas of sqrt, rsqrt and cbrt."""

from __future__ import annotations

import math

from tracejit.backends.tvm.cpu.llvm.builder import Value
from tracejit.backends.tvm.cpu.llvm.kinds import FLOAT32, KINDS
from tracejit.backends.tvm.cpu.mathematics.vocabulary import (
    absolute,
    convert,
    copy_sign,
    fma,
    reinterpret,
    select,
    to_bits,
)
from tracejit.backends.tvm.cpu.mathematics.vocabulary import sqrt as _sqrt


def sqrt(x: Value) -> Value:
    """The square root, correctly rounded; NaN below 0."""
    return _sqrt(x)


def rsqrt(x: Value) -> Value:
    """1 / sqrt(x), within 1.5 ulp; NaN below 0, inf of the zero's sign at 0."""
    return 1.0 / _sqrt(x)


def cbrt(x: Value) -> Value:
    """The cube root, within 1 ulp."""
    kind = x.kind
    size = absolute(x)
    # Subnormal numbers are scaled by a cube.
    up = (kind.fraction + 4) // 3
    is_subnormal = size < kind.smallest_normal
    a = select(is_subnormal, size * 2.0 ** (3 * up), size)
    w = _inverse_cube_root(a)
    for _ in range(2):
        # Halley's step for 1 / cbrt(a): w + w (h/3 + 2/9 h**2) with h = 1 - a w**3
        h = fma(-(a * w * w), w, 1.0)
        w = fma(w * h, fma(h, 2.0 / 9.0, 1.0 / 3.0), w)
    root = a * w * w
    # One step of Newton's for the cube root itself, with an exact remainder.
    square = root * root
    square_low = fma(root, root, -square)
    remainder = fma(-root, square_low, fma(-root, square, a))
    root = fma(remainder, w * w * (1.0 / 3.0), root)
    root = select(is_subnormal, root * 2.0**-up, root)
    return copy_sign(select((size > 0.0) & (size < math.inf), root, x), x)


def _inverse_cube_root(a: Value) -> Value:
    """1 / cbrt(a) within 4 %, by dividing the bits of ``a`` by -3."""
    kind = a.kind
    if kind is FLOAT32:
        third = convert(convert(to_bits(a), kind) * (1.0 / 3.0), kind.integer)
        return reinterpret(0x54A1F600 - third, kind)
    # The upper half of the bits; the low bits of 2**52 convert to and from integers.
    base = 2.0**52
    upper = reinterpret(a, KINDS["uint64"]) >> 32
    number = reinterpret(reinterpret(upper, kind.integer) | to_bits(a.like(base)), kind) - base
    third = to_bits(fma(number, 1.0 / 3.0, base))
    return reinterpret((0x553EE800 - third) << 32, kind)
