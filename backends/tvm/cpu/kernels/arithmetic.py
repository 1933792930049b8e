"""Sums of products over real numbers, or over complex numbers as pairs.

Kernels keep every number as a tuple of real *parts* (one, or real and imaginary), so that one
schedule serves both. Scratch buffers have the part as their first dimension.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tvm import DataType

from tracejit.backends.tvm.cpu.mathematics import complex as complex_mathematics
from tracejit.backends.tvm.ir.complex import Complex
from tracejit.backends.tvm.ir.tir import Buffer, Expr, Stmt, const, seq, store, tirx

Value = Any
"""The values of accessors: an expression, or a NamedTuple ``(real, imaginary)`` of two."""

Parts = tuple[Expr, ...]


@dataclass(frozen=True)
class Arithmetic:
    """Arithmetic in ``dtype``; ``pair`` is the callers' complex type, None for real numbers."""

    dtype: str
    pair: Callable[..., Value] | None = None

    @staticmethod
    def like(value: Value, dtype: str) -> Arithmetic:
        """The arithmetic of numbers such as ``value``, with each part held in ``dtype``."""
        return Arithmetic(dtype, type(value) if isinstance(value, tuple) else None)

    @property
    def parts(self) -> int:
        return 1 if self.pair is None else 2

    @property
    def itemsize(self) -> int:
        """Bytes of one number, all parts together."""
        return self.parts * int(DataType(self.dtype).itemsize)

    @property
    def zero(self) -> Parts:
        return (const(0, self.dtype),) * self.parts

    def split(self, value: Value) -> Parts:
        """The parts of an accessor's value, converted to ``dtype``."""
        parts = value if isinstance(value, tuple) else (value,)
        return tuple(part.astype(self.dtype) for part in parts)

    def join(self, parts: Sequence[Expr]) -> Value:
        """A value for accessors, from its parts."""
        return parts[0] if self.pair is None else self.pair(*parts)

    def scratch(self, name: str, shape: Sequence[int], scope: str = "global") -> Buffer:
        """A scratch buffer of numbers with aligned rows; the caller allocates it."""
        return tirx.decl_buffer((self.parts, *shape), self.dtype, name=name, scope=scope)

    def load(self, source: Buffer, *index: Expr) -> Parts:
        places = [(part, *index) for part in range(self.parts)]
        return tuple(source[place] for place in places)

    def store(self, target: Buffer, index: Sequence[Expr], value: Parts) -> Stmt:
        return seq([store(target, [p, *index], part) for p, part in enumerate(value)])

    def add(self, x: Parts, y: Parts) -> Parts:
        return tuple(a + b for a, b in zip(x, y, strict=True))

    def multiply_add(self, total: Parts, x: Parts, y: Parts) -> Parts:
        """``total + x * y``, a fused multiply-add for each real product."""
        if self.pair is None:
            return (total[0] + x[0] * y[0],)
        real = total[0] + x[0] * y[0] - x[1] * y[1]
        imaginary = total[1] + x[0] * y[1] + x[1] * y[0]
        return (real, imaginary)

    def multiply_subtract(self, total: Parts, x: Parts, y: Parts) -> Parts:
        """``total - x * y``, a fused multiply-add for each real product."""
        if self.pair is None:
            return (total[0] - x[0] * y[0],)
        real = total[0] - x[0] * y[0] + x[1] * y[1]
        imaginary = total[1] - x[0] * y[1] - x[1] * y[0]
        return (real, imaginary)

    def conjugate(self, x: Parts) -> Parts:
        return (x[0], *(-part for part in x[1:]))

    def size(self, x: Parts) -> Expr:
        """The sum of the parts' magnitudes, by which LAPACK compares numbers."""
        first, *more = (tirx.abs(part) for part in x)
        return first + more[0] if more else first

    def divisor(self, x: Parts) -> Parts:
        """The second argument of `divided`, computed once: the reciprocal of a complex number."""
        if self.pair is None:
            return x
        one = Complex(const(1, self.dtype), const(0, self.dtype))
        return tuple(complex_mathematics.div(one, Complex(*x), self.dtype))

    def divided(self, x: Parts, divisor: Parts) -> Parts:
        """``x`` divided by the number that `divisor` was called with."""
        if self.pair is None:
            return (tirx.div(x[0], divisor[0]),)
        real = x[0] * divisor[0] - x[1] * divisor[1]
        return (real, x[0] * divisor[1] + x[1] * divisor[0])
