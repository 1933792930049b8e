"""log, log1p, log2 and log10, and the logarithm of a double-float that other functions use.

Each begins with ``u = 2**e m`` for m between sqrt(1/2) and sqrt(2), and f = m - 1.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from tracejit.backends.tvm.cpu.llvm.builder import Operand, Value
from tracejit.backends.tvm.cpu.llvm.kinds import KINDS
from tracejit.backends.tvm.cpu.mathematics.exponential import LN2
from tracejit.backends.tvm.cpu.mathematics.vocabulary import (
    convert,
    copy_sign,
    fma,
    polynomial,
    reinterpret,
    select,
    to_bits,
    unlikely,
)

# f32: (log1p(f) - f + f**2 / 2) / f**3, with an error relative to log1p(f) below 2**-30.
# f64: (log1p(f) / s - 2) / s**2 in powers of s**2, where s = f / (2 + f); below 2**-59.
LOG1P_TAIL = {
    "float32": (
        0.33333313,
        -0.2500002,
        0.20002067,
        -0.16667324,
        0.14220017,
        -0.12417631,
        0.11896953,
        -0.116082005,
        0.06645696,
    ),
    "float64": (
        0.6666666666666734,
        0.39999999999417124,
        0.28571428741864646,
        0.22222198625218192,
        0.18183561693315844,
        0.15314116294876173,
        0.14795306567772457,
    ),
}

# To the bases 2 and 10: the logarithms of e and of 2, each the sum of two floats.
_BASES = {
    ("float32", 2): ((1.442695, 1.925963e-08), (1.0, 0.0)),
    ("float32", 10): ((0.4342945, -1.010305e-08), (0.30103, -1.4320989e-08)),
    ("float64", 2): ((1.4426950408889634, 2.0355273740931033e-17), (1.0, 0.0)),
    ("float64", 10): (
        (0.4342944819032518, 1.098319650216765e-17),
        (0.3010299956639812, -2.8037281277851704e-18),
    ),
}

_SQRT_HALF = {"float32": 0x3F3504F3, "float64": 0x3FE6A09E667F3BCD}


def split(u: Value) -> tuple[Value, Value]:
    """e, shifted to where floats keep their exponent, and m; ``u`` is a positive normal number."""
    kind = u.kind
    bits = to_bits(u)
    exponent = (bits - _SQRT_HALF[kind.name]) & (-1 << kind.fraction)
    return exponent, reinterpret(bits - exponent, kind)


def exponent_as_float(exponent: Value, like: Value) -> Value:
    """e, from what `split` gave, as a float of the same kind as ``like``."""
    kind = like.kind
    if kind.bits == 32:
        return convert(exponent >> kind.fraction, kind)
    # AVX2 has no conversion from i64; a positive integer in the low bits of 2**52 is one.
    offset = 2 * kind.bias
    unsigned = KINDS["uint64"]
    field = reinterpret(exponent + (offset << kind.fraction), unsigned) >> kind.fraction
    base = 2.0**kind.fraction
    shifted = reinterpret(field, kind.integer) | to_bits(like.like(base))
    return reinterpret(shifted, kind) - (base + offset)


def power_of_minus(exponent: Value, like: Value) -> Value:
    """2**-e, from what `split` gave; 0 where that is not a normal number."""
    return reinterpret((like.kind.bias << like.kind.fraction) - exponent, like.kind)


def log_of_parts(e: Value, f: Value, f_low: Operand = 0.0) -> Value:
    """``e ln 2 + log1p(f + f_low)``: ``f`` as `split` gives it, ``f_low`` its rounding error."""
    kind = f.kind
    high, low = LN2[kind.name]
    tail = LOG1P_TAIL[kind.name]
    if kind.bits == 32:
        square = f * f
        small = fma(square * f, polynomial(f, tail), fma(e, low, f_low))
        return fma(e, high, fma(square, -0.5, small) + f)
    s = f / (f + 2.0)
    square = s * s
    half = f * 0.5 * f
    # log1p(f) = f - f**2/2 + s (f**2/2 + s**2 tail(s**2))
    small = fma(s, fma(square, polynomial(square, tail), half), fma(e, low, f_low))
    return fma(e, high, (small - half) + f)


def log_of(u: Value, low: Value | None = None, doublings: Operand = 0.0) -> Value:
    """log(u), or log((u + low) 2**doublings) where ``low`` is below an ulp of u.

    ``u`` is a positive normal number, and below the largest power of two if ``low`` is given.
    Elsewhere the result is arbitrary, but a NaN in ``low`` gives NaN.
    """
    exponent, m = split(u)
    e = exponent_as_float(exponent, m)
    if isinstance(doublings, Value) or doublings != 0.0:
        e = e + doublings
    f = m - 1.0
    if low is None:
        return log_of_parts(e, f)
    return log_of_parts(e, *_fused(low, power_of_minus(exponent, m), f))


def _fused(a: Value, b: Value, c: Value) -> tuple[Value, Value]:
    """``a b + c`` and, approximately, its rounding error."""
    total = fma(a, b, c)
    return total, fma(a, b, c - total)


def is_unusual(x: Value) -> Value:
    """Whether x is anything but a positive normal number."""
    kind = x.kind
    lowest = 1 << kind.fraction
    # One signed comparison tests a range that starts at the smallest integer.
    start = -1 << (kind.bits - 1)
    return (to_bits(x) + (start - lowest)) >= start + kind.infinity - lowest


def log(x: Value) -> Value:
    """The natural logarithm, within 1 ulp; NaN below 0, -inf at 0."""
    return _everywhere(x, log_of_parts)


def log2(x: Value) -> Value:
    """The logarithm to the base 2, within 1 ulp, right at powers of 2; NaN below 0, -inf at 0."""
    return _everywhere(x, functools.partial(_of_parts, 2))


def log10(x: Value) -> Value:
    """The logarithm to the base 10, within 1 ulp, right at powers of 10; NaN below 0, -inf at 0."""
    return _everywhere(x, functools.partial(_of_parts, 10))


def _everywhere(x: Value, of_parts: Callable[[Value, Value], Value]) -> Value:
    """A logarithm of any number, given the logarithm as a function of e and f."""

    def usual(x: Value, doublings: float = 0.0) -> Value:
        exponent, m = split(x)
        e = exponent_as_float(exponent, m)
        return of_parts(e + doublings if doublings else e, m - 1.0)

    def special() -> list[Value]:
        up = x.kind.fraction + 2
        value = usual(x * 2.0**up, -up)  # a subnormal number, made normal
        value = select(x < math.inf, value, x)
        value = select(x > 0.0, value, -math.inf)
        return [select(x >= 0.0, value, math.nan)]

    return unlikely(is_unusual(x), special, [usual(x)])[0]


def _of_parts(base: int, e: Value, f: Value) -> Value:
    """The logarithm of ``2**e (1 + f)``; only the last sum rounds noticeably."""
    kind = f.kind
    tail = LOG1P_TAIL[kind.name]
    (factor, factor_low), (two, two_low) = _BASES[kind.name, base]
    # log1p(f) = f - f**2/2 + rest
    square = f * f
    if kind.bits == 32:
        rest = square * f * polynomial(f, tail)
    else:
        s = f / (f + 2.0)
        rest = s * fma(s * s, polynomial(s * s, tail), square * 0.5)
    small = fma(square, -0.5 * factor, fma(rest, factor, f * factor_low))
    if two == 1.0:
        return e + fma(f, factor, small)
    return fma(e, two, fma(f, factor, fma(e, two_low, small)))


def log1p(x: Value) -> Value:
    """log(1 + x), within 1 ulp; NaN below -1, -inf at -1."""
    large = 2.0**100
    exponent, m = split(x + 1.0)
    scale = power_of_minus(exponent, m)
    f = _fused(x, scale, scale - 1.0)  # (1 + x) 2**-e - 1 without the rounding of 1 + x
    usual = log_of_parts(exponent_as_float(exponent, m), *f)

    def special() -> list[Value]:
        value = select(x < math.inf, log_of(x), x)
        value = select(x > -1.0, value, -math.inf)
        return [select(x >= -1.0, value, math.nan)]

    rare = ~((x > -1.0) & (x < large))
    return copy_sign(unlikely(rare, special, [usual])[0], x)
