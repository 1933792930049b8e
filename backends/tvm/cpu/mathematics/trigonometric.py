"""Vector formulas of sin, cos and tan.

An angle is reduced to ``n pi/2 + r`` with |r| <= pi/4: by fused multiply-adds with pi/2 in three
parts where it is not large, otherwise by a product with the bits of 2/pi that matter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tracejit.backends.tvm.cpu.llvm.builder import Value
from tracejit.backends.tvm.cpu.llvm.kinds import FLOAT64, INT64, KINDS
from tracejit.backends.tvm.cpu.mathematics.vocabulary import (
    absolute,
    convert,
    exact_difference,
    exact_product,
    fma,
    polynomial,
    reinterpret,
    select,
    to_bits,
    unlikely_in_pieces,
)

# pi/2 as a sum of three floats.
HALF_PI = {
    "float32": (1.5707964, -4.371139e-08, -1.7151245e-15),
    "float64": (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33),
}

# The first reduction serves up to here.
_LARGE = {"float32": 131072.0, "float64": 2.0**30}

# (sin(r) / r - 1) / r**2 in powers of r**2; the error relative to sin(r) is below 2**-27, 2**-57.
SIN_TAIL = {
    "float32": (-0.16666654, 0.008332098, -0.00019506023),
    "float64": (
        -0.1666666666666663,
        0.008333333333321785,
        -0.00019841269829279132,
        2.7557313500893515e-06,
        -2.505072714881444e-08,
        1.5894945347135946e-10,
    ),
}
# (cos(r) - 1 + r**2 / 2) / r**4 in powers of r**2; below 2**-32, 2**-63.
COS_TAIL = {
    "float32": (0.04166664, -0.0013887142, 2.4414254e-05),
    "float64": (
        0.04166666666666659,
        -0.0013888888888872167,
        2.4801587288274803e-05,
        -2.7557314007383616e-07,
        2.087567684412113e-09,
        -1.1357264636979451e-11,
    ),
}
# (tan(r) / r - 1) / r**2 in powers of r**2; below 2**-28, 2**-59.
TAN_TAIL = {
    "float32": (
        0.33333355,
        0.13332477,
        0.054081257,
        0.021170175,
        0.01113111,
        -0.00029084727,
        0.0045666643,
    ),
    "float64": (
        0.33333333333333387,
        0.13333333333324532,
        0.05396825397333325,
        0.02186948838761281,
        0.008863238112272399,
        0.0035920988838460213,
        0.001456059878155881,
        0.0005887922117248934,
        0.00024401260467485548,
        8.28801594679006e-05,
        6.847600599174731e-05,
        -2.7242821995874654e-05,
        4.999786024175335e-05,
        -2.4957529003780984e-05,
        9.953111648418547e-06,
    ),
}

# The first 1216 bits of 2/pi after the point.
TWO_OVER_PI = int(
    "a2f9836e4e441529fc2757d1f534ddc0db6295993c439041fe5163abdebbc561b7246e3a424dd2e006492eea"
    "09d1921cfe1deb1cb129a73ee88235f52ebb4484e99c7026b45f7e413991d639835339f49c845f8bbdf9283b"
    "1ff897ffde05980fef2f118b5a0a6d1f6d367ecf27cb09b74f463f669e5fea2d7527bac7ebe5f17b3d0739f7"
    "8a5292ea6bfb5fb11f8d5d0856033046fc7b6bab",
    16,
)
TWO_OVER_PI_BITS = 1216


@dataclass(frozen=True)
class Angle:
    """``n pi/2 + r``: n as an integer (only its low bits are right), r, and its rounding error
    ``low``.
    """

    n: Value
    r: Value
    low: Value | None

    def sin_cos(self) -> tuple[Value, Value]:
        """sin and cos of r."""
        r, name = self.r, self.r.kind.name
        square = r * r
        sin_tail = polynomial(square, SIN_TAIL[name])
        cos_tail = polynomial(square, COS_TAIL[name])
        if self.low is None:
            sin = fma(r * square, sin_tail, r)
            return sin, fma(square, fma(square, cos_tail, -0.5), 1.0)
        half = square * 0.5
        sin = fma(r * square, sin_tail, fma(-half, self.low, self.low)) + r
        first = 1.0 - half
        rest = ((1.0 - first) - half) + fma(square * square, cos_tail, -(r * self.low))
        return sin, first + rest


def reduced(x: Value, compensated: bool) -> Angle:
    """The reduction of x >= 0, with ``low`` if ``compensated``; infinity and NaN give NaN."""
    kind = x.kind
    first, second, third = HALF_PI[kind.name]
    magic = 1.5 * 2.0**kind.fraction  # the sum's low bits are the nearest integer
    shifted = fma(x, 2.0 / math.pi, magic)
    n = shifted - magic
    partly = fma(n, -first, x)  # exact
    if compensated:
        product, product_low = exact_product(n, second)
        r, low = exact_difference(partly, product)
        parts = [r, fma(n, -third, low - product_low)]
    else:
        parts = [fma(n, -third, fma(n, -second, partly))]
    of_large = _reduced_f32 if kind.bits == 32 else _reduced_f64
    rare = ~(x < _LARGE[kind.name])
    count, *parts = unlikely_in_pieces(
        rare, lambda y: of_large(y)[: 1 + len(parts)], [x], [to_bits(shifted), *parts]
    )
    return Angle(count, parts[0], parts[1] if compensated else None)


def _reduced_f32(x: Value) -> list[Value]:
    """n, r and its low part for a large f32, from 96 bits of 2/pi and a product of integers."""
    mantissa, position = _mantissa(x)
    words = [convert(w, KINDS["uint64"]) for w in _window(position, 32)]
    m = convert(mantissa, KINDS["uint64"])
    # Quarter turns modulo 4, in units of 2**-62.
    turns = m * ((words[0] << 32) | words[1]) + ((m * words[2]) >> 32)
    n = convert(_nearest_quarter(turns), INT64)
    angle = convert(reinterpret(turns << 2, INT64), FLOAT64) * (math.pi * 2.0**-65)
    r = convert(_or_nan(angle, x), x.kind)
    low = convert(angle - convert(r, FLOAT64), x.kind)
    return [convert(n, x.kind.integer), r, low]


def _reduced_f64(x: Value) -> list[Value]:
    """n, r and its low part for a large f64, from 192 bits of 2/pi and a product of integers."""
    m, position = _mantissa(x)
    words = _window(position, 64)
    middle = m * words[1]
    low = middle + _high_product(m, words[2])
    carry = convert(low < middle, low.kind)
    # Quarter turns modulo 4, in units of 2**-62 and, below those, of 2**-126.
    turns = m * words[0] + _high_product(m, words[1]) + carry
    n = reinterpret(_nearest_quarter(turns), INT64)
    fraction = reinterpret((turns << 2) | (low >> 62), INT64)
    # In two parts, because 64 bits do not fit a float.
    large = convert(fraction & ~0x7FF, FLOAT64)
    small = fma(convert(low << 2, FLOAT64), 2.0**-64, convert(fraction & 0x7FF, FLOAT64))
    high, next_ = (part * 2.0**-64 for part in HALF_PI["float64"][:2])
    product = large * high
    rest = fma(large, next_, fma(small, high, fma(large, high, -product)))
    r = product + rest
    return [n, _or_nan(r, x), (product - r) + rest]


def _mantissa(x: Value) -> tuple[Value, Value]:
    """The significand of x as an unsigned integer m, and where in 2/pi its window begins.

    Bits of 2/pi whose product with x is a multiple of 4 do not matter. Positions count from one
    word of zeros before the binary point, a word being as wide as x.
    """
    kind = x.kind
    unsigned = KINDS[f"uint{kind.bits}"]
    bits = reinterpret(x, unsigned)
    mantissa = (bits & ((1 << kind.fraction) - 1)) | (1 << kind.fraction)
    return mantissa, (bits >> kind.fraction) - (kind.bias + kind.fraction + 2 - kind.bits)


def _window(position: Value, width: int) -> list[Value]:
    """Three words of 2/pi from a bit position on."""
    padded = TWO_OVER_PI_BITS // width
    mask = (1 << width) - 1
    words = [0] + [
        (TWO_OVER_PI >> (TWO_OVER_PI_BITS - width * (i + 1))) & mask for i in range(padded)
    ]
    shift = position & (width - 1)
    index = position >> (width.bit_length() - 1)
    a, b, c, d = _choose([position.like(word) for word in words], index, 4)
    return [_shifted_left(high, low, shift) for high, low in ((a, b), (b, c), (c, d))]


def _choose(words: Sequence[Value], index: Value, count: int) -> list[Value]:
    """``words[index : index + count]``, by halving."""
    last = len(words) - count
    chosen = list(words)
    for bit in reversed(range(last.bit_length())):
        step = 1 << bit
        is_set = (index & step).differs(0)
        length = min(len(chosen), count + step - 1)
        chosen = [
            select(is_set, chosen[i + step], chosen[i]) if i + step < len(chosen) else chosen[i]
            for i in range(length)
        ]
    return chosen


def _shifted_left(high: Value, low: Value, shift: Value) -> Value:
    """The upper word of two words shifted left together."""
    function = high.function
    return function.call(high.kind, f"fshl.{function.suffix(high.kind)}", high, low, shift)


def _high_product(m: Value, word: Value) -> Value:
    """The upper 64 bits of a product of unsigned integers, the first below 2**53."""
    mask = (1 << 32) - 1
    m_high, m_low = m >> 32, m & mask
    w_high, w_low = word >> 32, word & mask
    first = m_low * w_high + ((m_low * w_low) >> 32)
    second = m_high * w_low + (first & mask)
    return m_high * w_high + (first >> 32) + (second >> 32)


def _nearest_quarter(turns: Value) -> Value:
    return (turns + (1 << 61)) >> 62


def _or_nan(r: Value, x: Value) -> Value:
    return select(x < math.inf, r, math.nan)


def _with_sign(value: Value, *signs: Value) -> Value:
    """``value`` negated by the top bit of each of ``signs``."""
    lowest = -1 << (value.kind.bits - 1)
    flips = signs[0]
    for sign in signs[1:]:
        flips = flips ^ sign
    return reinterpret(to_bits(value) ^ (flips & lowest), value.kind)


def sin(x: Value) -> Value:
    """The sine, within 2 ulp in f32 and 1 ulp in f64 for every finite number."""
    kind = x.kind
    angle = reduced(absolute(x), compensated=kind.bits == 64)
    sine, cosine = angle.sin_cos()
    value = select((angle.n & 1).differs(0), cosine, sine)
    return _with_sign(value, angle.n << (kind.bits - 2), to_bits(x))


def cos(x: Value) -> Value:
    """The cosine, within 2 ulp in f32 and 1 ulp in f64 for every finite number."""
    kind = x.kind
    angle = reduced(absolute(x), compensated=kind.bits == 64)
    sine, cosine = angle.sin_cos()
    value = select((angle.n & 1).differs(0), sine, cosine)
    return _with_sign(value, (angle.n + 1) << (kind.bits - 2))


def tan(x: Value) -> Value:
    """The tangent, within 2 ulp for every finite number."""
    kind = x.kind
    angle = reduced(absolute(x), compensated=True)
    r, low = angle.r, angle.low
    assert low is not None
    square = r * r
    rest = r * square * polynomial(square, TAN_TAIL[kind.name])
    slope = fma(r + rest, r + rest, 1.0)
    tangent = r + fma(low, slope, rest)
    value = select((angle.n & 1).differs(0), 1.0 / tangent, tangent)
    return _with_sign(value, angle.n << (kind.bits - 1), to_bits(x))
