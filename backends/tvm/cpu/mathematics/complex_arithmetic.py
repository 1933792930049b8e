"""Arithmetic of complex numbers: products, quotients, magnitudes, square roots.

Numbers are scaled by powers of two where squares would overflow or vanish. Zeros, infinities and
NaN give what C's annex G and NumPy give.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from tracejit.backends.tvm.cpu.llvm.builder import Value
from tracejit.backends.tvm.cpu.llvm.kinds import Kind
from tracejit.backends.tvm.cpu.mathematics.vocabulary import (
    absolute,
    copy_sign,
    exact_product,
    exact_sum,
    fma,
    product,
    select,
    sqrt,
)


class Pair(NamedTuple):
    """A complex number."""

    re: Value
    im: Value

    def scaled(self, factor: Value | float) -> Pair:
        return Pair(self.re * factor, self.im * factor)

    @property
    def is_nan(self) -> Value:
        return self.re.is_nan | self.im.is_nan

    @property
    def is_infinite(self) -> Value:
        return absolute(self.re).equals(math.inf) | absolute(self.im).equals(math.inf)

    @property
    def is_finite(self) -> Value:
        return (absolute(self.re) < math.inf) & (absolute(self.im) < math.inf)


def choose(condition: Value, if_true: Pair, if_false: Pair) -> Pair:
    """`select` of both parts."""
    return Pair(
        select(condition, if_true.re, if_false.re), select(condition, if_true.im, if_false.im)
    )


def larger(z: Pair) -> Value:
    """The larger magnitude of the two parts."""
    re, im = absolute(z.re), absolute(z.im)
    return select(re > im, re, im)


def exponent_step(kind: Kind) -> int:
    """An even number of binary places by which `normaliser` moves a number."""
    return (kind.bias * 3 // 4) & ~1


def normaliser(z: Pair) -> tuple[Value, Value]:
    """A power of two that brings z to where its squares are normal numbers, and its inverse."""
    kind = z.re.kind
    size = larger(z)
    up = 2.0 ** exponent_step(kind)
    is_small = size < 2.0 ** -(kind.bias * 2 // 5)
    is_large = size > 2.0 ** (kind.bias // 2 - 2)
    factor = select(is_small, size.like(up), select(is_large, size.like(1.0 / up), 1.0))
    inverse = select(is_small, size.like(1.0 / up), select(is_large, size.like(up), 1.0))
    return factor, inverse


def add(z: Pair, w: Pair) -> Pair:
    """The sum."""
    return Pair(z.re + w.re, z.im + w.im)


def sub(z: Pair, w: Pair) -> Pair:
    """The difference."""
    return Pair(z.re - w.re, z.im - w.im)


def mul(z: Pair, w: Pair) -> Pair:
    """The product by its four products, each rounded, as NumPy's."""
    return Pair(
        product(z.re, w.re) - product(z.im, w.im), product(z.re, w.im) + product(z.im, w.re)
    )


def sum_of_products(a: Value, b: Value, c: Value, d: Value) -> Value:
    """``a b + c d`` within 1.5 ulp, where the products neither overflow nor vanish."""
    second, second_low = exact_product(c, d)
    # What is lost is often nothing: -0 then, which keeps the sign of a sum that is zero.
    return fma(a, b, second) + select(absolute(second_low) > 0.0, second_low, -0.0)


def magnitude(z: Pair) -> Value:
    """sqrt(re**2 + im**2), within 1.5 ulp; infinite if either part is."""
    factor, inverse = normaliser(z)
    size = _magnitude(z.scaled(factor)) * inverse
    return select(z.is_infinite, math.inf, size)


def _magnitude(z: Pair) -> Value:
    return sqrt(sum_of_products(z.re, z.re, z.im, z.im))


def square_magnitude(z: Pair) -> tuple[Value, Value]:
    """``re**2 + im**2`` as the sum of two floats."""
    re, re_low = exact_product(z.re, z.re)
    im, im_low = exact_product(z.im, z.im)
    total, lost = exact_sum(re, im)
    return total, lost + (re_low + im_low)


def sign(z: Pair) -> Pair:
    """z / |z|, 0 for 0."""
    kind, size = z.re.kind, larger(z)
    up = 2.0 ** exponent_step(kind)
    near = select(size < 1.0 / up, size.like(up), 1.0)
    scaled = z.scaled(select(size > up, 0.5, near))
    length = magnitude(scaled)
    quotient = Pair(scaled.re / length, scaled.im / length)
    is_zero = z.re.equals(0.0) & z.im.equals(0.0)
    return choose(is_zero, z, quotient)


def div(z: Pair, w: Pair) -> Pair:
    """The quotient; infinities and zeros as in C's annex G and in R. L. Smith's formula.

    That divides by the larger part of w first, whose sign counts in a numerator that is zero:
    here it is made positive, and the quotient's sign put right at the end.
    """
    positive = _sign_of_larger(w)
    w = w.scaled(positive)
    up, down = normaliser(z)
    w_factor, _ = normaliser(w)
    a, b = z.scaled(up)
    c, d = w.scaled(w_factor)
    size = sum_of_products(c, c, d, d)
    # Opposite factors cancel; the others are applied one by one.
    cancel = ((w_factor > 1.0) & (down < 1.0)) | ((w_factor < 1.0) & (down > 1.0))
    first, second = select(cancel, 1.0, w_factor), select(cancel, 1.0, down)
    quotient = Pair(
        sum_of_products(a, c, b, d) / size * first * second,
        sum_of_products(b, c, -a, d) / size * first * second,
    )
    both_nan = z.re.is_nan & z.im.is_nan
    by_zero = larger(w).equals(0.0) & ~w.is_nan & ~both_nan
    infinity = copy_sign(z.re.like(math.inf), w.re)
    value = choose(both_nan | ~by_zero, quotient, z.scaled(infinity))
    lost = value.re.is_nan & value.im.is_nan
    from_infinity = mul(_boxed(z), Pair(w.re, -w.im)).scaled(math.inf)
    to_zero = mul(z, _boxed(Pair(w.re, -w.im))).scaled(0.0)
    value = choose(lost & z.is_infinite & w.is_finite, from_infinity, value)
    value = choose(lost & z.is_finite & w.is_infinite, to_zero, value)
    return value.scaled(positive)


def _sign_of_larger(w: Pair) -> Value:
    """1 or -1 for the sign of the larger part; 1 if neither is: both infinite, or one NaN."""
    re, im = absolute(w.re), absolute(w.im)
    one = w.re.like(1.0)
    sign = select(re < im, copy_sign(one, w.im), copy_sign(one, w.re))
    return select((re.equals(math.inf) & im.equals(math.inf)) | w.is_nan, one, sign)


def _boxed(z: Pair) -> Pair:
    """Each part 1 where it is infinite and 0 elsewhere, with its sign."""
    one = z.re.like(1.0)
    parts = (
        copy_sign(select(absolute(part).equals(math.inf), one, 0.0), part) for part in (z.re, z.im)
    )
    return Pair(*parts)


def reciprocal(z: Pair) -> Pair:
    """1 / z."""
    return div(Pair(z.re.like(1.0), z.re.like(0.0)), z)


def sqrt_(z: Pair) -> Pair:
    """The square root with the larger real part, within 3 ulp of its magnitude."""
    factor, inverse = normaliser(z)
    longer = _longer(z.scaled(factor)) * _root_of_power(inverse)
    shorter = absolute(z.im) * 0.5 / longer
    is_right = z.re > 0.0
    root = Pair(
        select(is_right, longer, shorter), copy_sign(select(is_right, shorter, longer), z.im)
    )
    infinity = z.re.like(math.inf)
    # Infinities: upwards, to the right and to the left.
    is_right = z.re.equals(math.inf)
    is_left = z.re.equals(-math.inf)
    flat = copy_sign(z.re.like(0.0), z.im)
    right = Pair(infinity, select(z.im.is_nan, z.im, flat))
    left = Pair(select(z.im.is_nan, z.im, 0.0), copy_sign(infinity, z.im))
    root = choose(is_right, right, choose(is_left, left, root))
    root = choose(absolute(z.im).equals(math.inf), Pair(infinity, z.im), root)
    is_zero = z.re.equals(0.0) & z.im.equals(0.0)
    return choose(is_zero, Pair(absolute(z.re), z.im), root)


def _longer(z: Pair) -> Value:
    """The longer part of the square root of a number whose squares are normal."""
    return sqrt((absolute(z.re) + _magnitude(z)) * 0.5)


def _root_of_power(power: Value) -> Value:
    """The square root of one of `normaliser`'s powers of two."""
    half = 2.0 ** (exponent_step(power.kind) // 2)
    smaller = select(power < 1.0, power.like(1.0 / half), 1.0)
    return select(power > 1.0, half, smaller)


def rsqrt(z: Pair) -> Pair:
    """1 / sqrt(z); 0 at infinity, inf + nan i at 0."""
    factor, _ = normaliser(z)
    scaled = z.scaled(factor)
    longer = _longer(scaled)
    shorter = absolute(scaled.im) * 0.5 / longer
    # 1 / sqrt(z) = conj(sqrt(z)) / |z|
    scale = _root_of_power(factor) / _magnitude(scaled)
    is_right = z.re > 0.0
    value = Pair(
        select(is_right, longer, shorter) * scale,
        copy_sign(select(is_right, shorter, longer) * scale, -z.im),
    )
    zero = z.re.like(0.0)
    value = choose(z.is_infinite, Pair(zero, copy_sign(zero, -z.im)), value)
    is_zero = z.re.equals(0.0) & z.im.equals(0.0)
    return choose(is_zero, Pair(z.re.like(math.inf), z.re.like(math.nan)), value)
