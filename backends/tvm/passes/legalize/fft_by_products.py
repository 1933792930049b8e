"""Breaks Fourier transforms into matrix products, for targets without kernels of their own.

A length is split into factors up to 16, each one product with a small matrix (J. W. Cooley and
J. W. Tukey, 1965); lengths with a large prime are a convolution (see `bluestein`). Before: FFT
c64[8,48]. After: DotGeneral with c64[16,16], Mul by the twiddle factors, DotGeneral with c64[3,3].
"""

from __future__ import annotations

from tracejit.backends.tvm.passes.legalize.bluestein import (
    SHORT,
    by_chirps,
    by_parts,
    by_sums,
    greatest_prime,
)
from tracejit.graph import Instruction
from tracejit.ops.elementwise import complex as complex_
from tracejit.ops.elementwise_unary import conj, real
from tracejit.ops.layout import concatenate, full_like, rev, slice_in_dim, transpose

WIDEST = 16
"""A product of 16 numbers reads and writes as much as one of two, and replaces four of them."""


def by_products(instruction: Instruction) -> Instruction | None:
    """The transform without an FFT; None where it is too long."""
    (operand,) = instruction.operands
    kind, lengths = instruction.attributes["fft_type"], instruction.attributes["fft_length"]
    *others, last = range(operand.array_shape.rank - len(lengths), operand.array_shape.rank)
    inverse = kind in ("IFFT", "IRFFT")
    value: Instruction | None = operand
    if kind == "RFFT":
        value = _along(complex_(operand, full_like(operand, 0)), last, inverse)
        value = value and slice_in_dim(value, 0, lengths[-1] // 2 + 1, 1, -1)
    for axis in others:
        value = value and _along(value, axis, inverse)
    if kind == "IRFFT" and value is not None:
        size = value.array_shape.dimensions[-1]
        half = slice_in_dim(value, 1, lengths[-1] - size + 1, 1, -1)
        mirrored = conj(rev(half, (last,)))
        value = _rows(concatenate([value, mirrored], -1), inverse)
        return value and real(value)
    return value if kind == "RFFT" or value is None else _along(value, last, inverse)


def _along(value: Instruction, axis: int, inverse: bool) -> Instruction | None:
    order = list(range(value.array_shape.rank))
    order[axis], order[-1] = order[-1], axis
    if axis == order[axis]:
        return _rows(value, inverse)
    made = _rows(transpose(value, order), inverse)
    return made and transpose(made, order)


def _rows(value: Instruction, inverse: bool) -> Instruction | None:
    """Transforms of complex numbers along the last axis."""
    length = value.array_shape.dimensions[-1]
    prime = greatest_prime(length)
    if length == 1:
        return value
    if prime > SHORT:
        return by_chirps(value, inverse, _smooth)
    return _smooth(value, inverse)


def _smooth(value: Instruction, inverse: bool) -> Instruction:
    """The same, of a length without large prime factors."""
    length, axis = value.array_shape.dimensions[-1], value.array_shape.rank - 1
    factor = _factor(length)
    if factor == length:
        return by_sums(value, inverse)

    def rest(part: Instruction) -> Instruction:
        order = list(range(part.array_shape.rank))
        order[axis], order[-1] = order[-1], axis
        return transpose(_smooth(transpose(part, order), inverse), order)

    return by_parts(value, inverse, factor, rest)


def _factor(length: int) -> int:
    """The length of one product: the greatest factor up to `WIDEST`, or the greatest prime."""
    fitting = (n for n in range(WIDEST, 1, -1) if length % n == 0)
    return max(next(fitting, 1), greatest_prime(length))
