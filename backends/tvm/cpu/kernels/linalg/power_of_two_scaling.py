"""Exact scaling: powers of two computed from the exponents of numbers."""

from __future__ import annotations

from tvm import DataType

from tracejit.backends.tvm.ir.tir import Expr, const, reinterpret, tirx

# The integer type of a float's bits, the position of the exponent in it, and the greatest exponent
# whose reciprocal is a normal number.
_LAYOUT = {"float32": ("int32", 23, 253), "float64": ("int64", 52, 2045)}


class Powers:
    """Powers of two of ``dtype``, float32 or float64."""

    def __init__(self, dtype: str) -> None:
        self._dtype = dtype
        self.bits, self._shift, self._greatest = _LAYOUT[dtype]

    def _const(self, value: int) -> Expr:
        return const(value, self.bits)

    def exponent(self, value: Expr) -> Expr:
        """The biased exponent of ``value``, which is not negative; the exponent of 1 if it is not
        finite.
        """
        found = reinterpret(self.bits, value) >> self._const(self._shift)
        found = tirx.Select(
            found > self._const(self._greatest + 1), self._const((self._greatest + 1) // 2), found
        )
        return tirx.max(tirx.min(found, self._const(self._greatest)), self._const(1))

    def magnitude(self, value: Expr) -> Expr:
        """The bits of the absolute value, in the order of the numbers, NaN last."""
        most = (1 << (8 * int(DataType(self.bits).itemsize) - 1)) - 1
        return reinterpret(self.bits, value) & self._const(most)

    def is_finite(self, value: Expr) -> Expr:
        """Whether ``value``, not negative, is neither infinite nor NaN."""
        return reinterpret(self.bits, value) >> self._const(self._shift) <= self._const(
            self._greatest + 1
        )

    def power(self, exponent: Expr) -> Expr:
        """The number with that exponent."""
        return reinterpret(self._dtype, exponent << self._const(self._shift))

    def reciprocal(self, exponent: Expr) -> Expr:
        """One over the number with that exponent."""
        return self.power(self._const(self._greatest + 1) - exponent)

    def is_negative(self, value: Expr) -> Expr:
        """Whether the sign is, of zeros too."""
        return reinterpret(self.bits, value) < self._const(0)
