"""Determinants: products of pivots with a separate exponent, without overflow or underflow."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from tracejit.backends.tvm.cpu import mathematics
from tracejit.backends.tvm.cpu.kernels.linalg.power_of_two_scaling import Powers
from tracejit.backends.tvm.ir.tir import (
    AllocBuffer,
    Buffer,
    Expr,
    Stmt,
    buffer,
    const,
    i32,
    real,
    seq,
    store,
    tirx,
)

_BIAS = {"float32": 127, "float64": 1023}

_LN2 = {
    "float32": (0.6931472, -1.9046542e-09),
    "float64": (0.6931471805599453, 2.3190468138462996e-17),
}
"""ln 2 as the sum of two floats."""


@dataclass(frozen=True)
class Product:
    """A running product: a factor near 1 times a power of two.

    ``give(b, determinant, sign, logarithm)`` receives, for each matrix, the product, its sign and
    the logarithm of its magnitude.
    """

    dtype: str
    give: Callable[[Expr, Expr, Expr, Expr], Stmt]
    factor: Buffer
    exponent: Buffer

    @classmethod
    def of(cls, dtype: str, give: Callable[[Expr, Expr, Expr, Expr], Stmt]) -> Product:
        integer = Powers(dtype).bits
        return cls(
            dtype,
            give,
            buffer("factor", (1,), dtype, scope="local"),
            buffer("exponent", (1,), integer, scope="local"),
        )

    def begin(self) -> list[Stmt]:
        """Start with the product 1."""
        return [
            AllocBuffer(self.factor),
            AllocBuffer(self.exponent),
            store(self.factor, i32(0), const(1.0, self.dtype)),
            store(self.exponent, i32(0), const(0, Powers(self.dtype).bits)),
        ]

    def multiply(self, value: Expr, negative: Expr) -> list[Stmt]:
        """Multiply by ``value``, negated if ``negative``; a zero product stays zero."""
        zero = real(0.0, self.dtype)
        factor = self.factor[i32(0)]
        signed = tirx.Select(negative, zero - factor, factor)
        return [
            store(self.factor, i32(0), signed * self._moved(value)),
            store(self.exponent, i32(0), self.exponent[i32(0)] + self._exponent(value)),
            *self._normal(),
        ]

    def _exponent(self, value: Expr) -> Expr:
        """The exponent of the power of two that brings a number near 1."""
        powers = Powers(self.dtype)
        return powers.exponent(tirx.abs(value)) - const(_BIAS[self.dtype], powers.bits)

    def _moved(self, value: Expr) -> Expr:
        powers = Powers(self.dtype)
        return value * powers.reciprocal(powers.exponent(tirx.abs(value)))

    def _normal(self) -> list[Stmt]:
        factor, exponent = self.factor[i32(0)], self.exponent[i32(0)]
        return [
            store(self.exponent, i32(0), exponent + self._exponent(factor)),
            store(self.factor, i32(0), self._moved(factor)),
        ]

    def end(self, b: Expr, fails: Expr) -> Stmt:
        """Hand over the product, which is zero if ``fails``."""
        dtype, bits = self.dtype, Powers(self.dtype).bits
        zero, half = real(0.0, dtype), const(0.5, dtype)
        factor, exponent = self.factor[i32(0)], self.exponent[i32(0)]
        # The factor is scaled to between sqrt(1/2) and sqrt(2), so that logarithms near 0 are
        # exact.
        is_large = tirx.abs(factor) > const(math.sqrt(2), dtype)
        return seq(
            store(self.factor, i32(0), tirx.Select(fails, zero, factor)),
            store(self.exponent, i32(0), exponent + tirx.Cast(bits, is_large)),
            store(self.factor, i32(0), tirx.Select(is_large, factor * half, factor)),
            self.give(b, self._whole(), self._sign(), self._logarithm()),
        )

    def _whole(self) -> Expr:
        powers, factor, exponent = Powers(self.dtype), self.factor[i32(0)], self.exponent[i32(0)]
        bias, most = (const(n, powers.bits) for n in (_BIAS[self.dtype], 2 * _BIAS[self.dtype] - 4))
        # In two steps; the first is exact.
        clamped = tirx.max(tirx.min(exponent, most), const(0, powers.bits) - most)
        half = clamped >> const(1, powers.bits)
        return factor * powers.power(half + bias) * powers.power(clamped - half + bias)

    def _sign(self) -> Expr:
        zero, one, factor = real(0.0, self.dtype), const(1.0, self.dtype), self.factor[i32(0)]
        below = tirx.Select(factor < zero, const(-1.0, self.dtype), factor)
        return tirx.Select(factor > zero, one, below)

    def _logarithm(self) -> Expr:
        high, low = (const(part, self.dtype) for part in _LN2[self.dtype])
        count = tirx.Cast(self.dtype, self.exponent[i32(0)])
        near = mathematics.log(tirx.abs(self.factor[i32(0)]), self.dtype)
        return near + count * low + count * high
