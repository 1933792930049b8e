"""exp, exp2, expm1, and the functions of a single exponential: logistic, tanh, sinh, cosh.

Each begins with ``x = n ln 2 + r`` for an integer n and |r| <= ln(2)/2; e**x is then 2**n (1 +
expm1(r)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tracejit.backends.tvm.cpu.llvm.builder import Value
from tracejit.backends.tvm.cpu.llvm.kinds import Kind
from tracejit.backends.tvm.cpu.mathematics.vocabulary import (
    absolute,
    copy_sign,
    fma,
    polynomial,
    reinterpret,
    select,
    to_bits,
    unlikely,
)

LOG2E = math.log2(math.e)

# ln 2 as the sum of two floats.
LN2 = {
    "float32": (0.6931472, -1.9046542e-09),
    "float64": (0.6931471805599453, 2.3190468138462996e-17),
}

# (expm1(r) - r) / r**2; the error relative to expm1(r) is below 2**-30 and 2**-61.
EXPM1_TAIL = {
    "float32": (0.5, 0.16666666, 0.041666478, 0.0083335675, 0.0013933697, 0.00019742487),
    "float64": (
        0.5,
        0.16666666666666677,
        0.0416666666666666,
        0.008333333333321457,
        0.0013888888888928335,
        0.0001984126988650898,
        2.4801587227582338e-05,
        2.7557243859914046e-06,
        2.755736187845215e-07,
        2.5109150342499663e-08,
        2.0886628566207633e-09,
    ),
}

# (sinh(x) / x - 1) / x**2 in powers of x**2, |x| <= 1; the error relative to sinh(x) is below
# 2**-31 and 2**-61.
SINH_TAIL = {
    "float32": (0.16666667, 0.008333315, 0.00019841664, 2.7899996e-06),
    "float64": (
        0.16666666666666669,
        0.00833333333333297,
        0.00019841269841531245,
        2.755731913035257e-06,
        2.50521268619708e-08,
        1.605699996759979e-10,
        7.765916529955538e-13,
    ),
}

# Within this distance of 0 both 2**n and e**x are normal numbers.
NORMAL = {"float32": 87.0, "float64": 708.0}


@dataclass(frozen=True)
class Exponent:
    """``x`` reduced: ``n`` as an integer (only its low bits are right), and expm1(r)."""

    n: Value
    expm1_r: Value

    @property
    def kind(self) -> Kind:
        return self.expm1_r.kind

    def power(self, n: Value | None = None) -> Value:
        """2**n, which must be a normal number."""
        kind = self.kind
        bits = ((self.n if n is None else n) << kind.fraction) + (kind.bias << kind.fraction)
        return reinterpret(bits, kind)

    def exp(self) -> Value:
        """e**x where that is a normal number."""
        scale = self.power()
        return fma(scale, self.expm1_r, scale)

    def expm1(self) -> Value:
        """e**x - 1 where 2**n is a normal number."""
        scale = self.power()
        return fma(scale, self.expm1_r, scale - 1.0)

    def half_expm1(self) -> Value:
        """(e**x - 1) / 2 where 2**(n - 1) is a normal number."""
        half = self.power(self.n - 1)
        return fma(half, self.expm1_r, half - 0.5)

    def one_plus_exp(self) -> Value:
        """1 + e**x where 2**n is a normal number."""
        scale = self.power()
        # The order of the sum matters: 1 + 2**n is exact only while n is small.
        is_large = scale > 2.0**self.kind.fraction
        first, second = select(is_large, 1.0, scale + 1.0), select(is_large, scale, 0.0)
        return fma(scale, self.expm1_r, first) + second

    def factors(self, x: Value) -> tuple[Value, Value]:
        """Two numbers whose product is e**x, for all x; the second is a power of two.

        Both are normal up to twice as far out as e**x is.
        """
        shift = self.kind.bits - self.kind.fraction + 1  # a copy of the sign above n's own bits
        n = (self.n << shift) >> shift
        half = n >> 1
        scale = self.power(half)
        value = fma(scale, self.expm1_r, scale)
        limit = 2.0 * NORMAL[self.kind.name]
        value = select(x > limit, math.inf, select(x < -limit, 0.0, value))
        return value, select(absolute(x) > limit, 1.0, self.power(n - half))

    def exp_anywhere(self, x: Value, factor: float = 1.0) -> Value:
        """``factor * e**x`` for all x."""
        value, scale = self.factors(x)
        return value * (scale * factor)


def reduced(x: Value, low: Value | None = None) -> Exponent:
    """The reduction of ``x``, or of ``x + low`` where ``low`` is below an ulp of x."""
    kind = x.kind
    ln2_high, ln2_low = LN2[kind.name]
    magic = 1.5 * 2.0**kind.fraction  # the sum's low bits are the nearest integer
    shifted = fma(x, LOG2E, magic)
    n = shifted - magic
    r = fma(n, -ln2_low, fma(n, -ln2_high, x))
    if low is not None:
        r = r + low
    return Exponent(to_bits(shifted), fma(r * r, polynomial(r, EXPM1_TAIL[kind.name]), r))


def exp(x: Value) -> Value:
    """e**x, within 1 ulp; subnormal results too."""
    e = reduced(x)
    rare = ~(absolute(x) < NORMAL[x.kind.name])
    return unlikely(rare, lambda: [e.exp_anywhere(x)], [e.exp()])[0]


def exp2(x: Value) -> Value:
    """2**x, within 1 ulp, right at integers; subnormal results too."""
    kind = x.kind
    high, low = LN2[kind.name]
    magic = 1.5 * 2.0**kind.fraction
    shifted = x + magic
    part = x - (shifted - magic)
    r = part * high
    r_low = fma(part, low, fma(part, high, -r))
    e = Exponent(to_bits(shifted), fma(r * r, polynomial(r, EXPM1_TAIL[kind.name]), r_low) + r)
    size = x * high
    rare = ~(absolute(size) < NORMAL[kind.name])
    return unlikely(rare, lambda: [e.exp_anywhere(size)], [e.exp()])[0]


def expm1(x: Value) -> Value:
    """e**x - 1, within 2 ulp."""
    e = reduced(x)
    rare = ~(absolute(x) < NORMAL[x.kind.name])

    def extreme() -> list[Value]:
        return [select(x < 0.0, -1.0, e.exp_anywhere(x))]

    return copy_sign(unlikely(rare, extreme, [e.expm1()])[0], x)


def logistic(x: Value) -> Value:
    """1 / (1 + e**-x), within 2 ulp; subnormal results too."""
    usual = 1.0 / reduced(-x).one_plus_exp()

    def extreme() -> list[Value]:
        return [select(x > 0.0, 1.0, reduced(x).exp_anywhere(x))]

    rare = ~(absolute(x) < NORMAL[x.kind.name])
    return unlikely(rare, extreme, [usual])[0]


def tanh(x: Value) -> Value:
    """h / (h + 1) with 2 h = e**2|x| - 1; within 2 ulp."""
    twice = absolute(x) * 2.0
    # Above this the quotient is 1; the comparison lets NaN through.
    h = reduced(select(twice > 40.0, 40.0, twice)).half_expm1()
    quotient = h / (h + 1.0)
    # Near 0 the rounding of the quotient counts less in h - h * quotient, which is the same.
    return copy_sign(select(h < 0.5, fma(-h, quotient, h), quotient), x)


def sinh(x: Value) -> Value:
    """(e**x - e**-x) / 2, within 2 ulp."""
    size = absolute(x)
    square = size * size
    near = fma(size * square, polynomial(square, SINH_TAIL[x.kind.name]), size)
    e = reduced(size)
    power = e.exp()
    usual = select(size < 1.0, near, fma(power, 0.5, -0.5 / power))
    rare = ~(size < NORMAL[x.kind.name])
    return copy_sign(unlikely(rare, lambda: [e.exp_anywhere(size, 0.5)], [usual])[0], x)


def cosh(x: Value) -> Value:
    """(e**x + e**-x) / 2, within 2 ulp."""
    size = absolute(x)
    e = reduced(size)
    power = e.exp()
    usual = fma(power, 0.5, 0.5 / power)
    rare = ~(size < NORMAL[x.kind.name])
    return unlikely(rare, lambda: [e.exp_anywhere(size, 0.5)], [usual])[0]
