"""Splits FFTs into transforms that have kernels: along rows, and along columns.

Several axes are transformed one after the other; real inputs are paired to complex ones of half
the length. Kernels support lengths without prime factors above 13, with rows of two columns of
`LONGEST` at most; other lengths become convolutions (`bluestein`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tracejit.backends.tvm.analysis.fft_plan import (
    Column,
    Transform,
    columns,
    halves_factors,
    split,
    tables,
)
from tracejit.backends.tvm.ir.internal_ops import FOURIER, FOURIER_HALVES
from tracejit.backends.tvm.ir.limits import Limits
from tracejit.backends.tvm.passes.legalize.bluestein import (
    SHORT,
    by_chirps,
    by_parts,
    by_sums,
    greatest_prime,
    longer_length,
    of_real_by_parts,
)
from tracejit.backends.tvm.passes.legalize.fft_by_products import by_products
from tracejit.graph import Instruction
from tracejit.ops.base import make
from tracejit.ops.constants import constant
from tracejit.ops.elementwise import complex as complex_
from tracejit.ops.elementwise_unary import conj, imag, real
from tracejit.ops.layout import (
    TRANSPOSE,
    concatenate,
    full_like,
    reshape,
    rev,
    slice_in_dim,
    transpose,
)
from tracejit.shapes import ElementType, Shape

_MANY = 8
"""The least number of rows for moderate prime factors by DFT matrices."""

_COMPLEX = {ElementType.F32: ElementType.C64, ElementType.F64: ElementType.C128}


def expanded(instruction: Instruction, limits: Limits) -> Instruction | None:
    """The transform by kernels, or by matrix products; None if it is left to a library."""
    (operand,) = instruction.operands
    kind, lengths = instruction.attributes["fft_type"], instruction.attributes["fft_length"]
    if not instruction.array_shape.size:
        return None
    if not limits.fourier_kernels:
        return by_products(instruction)
    *others, last = lengths
    points = last // 2 if kind in ("RFFT", "IRFFT") and _is_paired(last) else last
    kernels = _Transforms(limits.vector_bytes, limits.registers)
    if not all(map(kernels.are_able, [points, *others])):
        return None
    rank = instruction.array_shape.rank
    axes = range(rank - len(lengths), rank - 1)
    if kind in ("FFT", "IFFT"):
        return kernels.over(kernels.last(operand, kind == "IFFT"), axes, kind == "IFFT")
    if kind == "RFFT":
        return kernels.over(kernels.of_real(operand, last), axes, False)
    return kernels.to_real(kernels.over(operand, axes, True), last)


def _is_paired(length: int) -> bool:
    """Whether real numbers of this length are paired to complex ones."""
    return length % 2 == 0 and length > 2


@dataclass(frozen=True)
class _Transforms:
    """Writes transforms for a processor with ``registers`` of ``vector_bytes``."""

    vector_bytes: int
    registers: int

    def are_able(self, length: int) -> bool:
        if length == 1 or split(length, self.registers) is not None:
            return True
        return longer_length(length) is not None

    def over(self, value: Instruction, axes: Sequence[int], inverse: bool) -> Instruction:
        """Transforms of complex numbers along several axes before the last."""
        for axis in axes:
            if columns(value.array_shape.dimensions[axis], self.registers):
                value = self.along(value, axis, inverse)
            else:
                order = list(range(value.array_shape.rank))
                order[axis], order[-1] = order[-1], axis
                value = transpose(self.last(transpose(value, order), inverse), order)
        return value

    def last(self, operand: Instruction, inverse: bool) -> Instruction:
        """Transforms of complex numbers along the last axis."""
        length = operand.array_shape.dimensions[-1]
        if length == 1:
            return operand
        if operand.op is TRANSPOSE and columns(length, self.registers):
            (given,) = operand.operands
            order = operand.attributes["dimensions"]
            if order[-1] != len(order) - 1:
                return transpose(self.along(given, order[-1], inverse), order)
        if split(length, self.registers) is not None:
            return self.rows(operand, inverse)
        prime, many = greatest_prime(length), operand.array_shape.size >= _MANY * length
        if many and prime == length <= SHORT:
            return by_sums(operand, inverse)
        if many and prime <= SHORT:
            axis = operand.array_shape.rank - 1
            return by_parts(
                operand, inverse, prime, lambda value: self.over(value, [axis], inverse)
            )
        made = by_chirps(operand, inverse, self.rows)
        assert made is not None
        return made

    def of_real(self, operand: Instruction, length: int) -> Instruction:
        """The first half of the spectrum of real numbers."""
        shape = operand.array_shape
        if not _is_paired(length):
            prime, axis = greatest_prime(length), shape.rank - 1
            if (
                length % 2
                and split(length, self.registers) is None
                and prime <= SHORT
                and shape.size >= _MANY * length
            ):
                whole = of_real_by_parts(
                    operand, prime, lambda value: self.over(value, [axis], False)
                )
            else:
                whole = self.last(complex_(operand, full_like(operand, 0)), False)
            return slice_in_dim(whole, 0, length // 2 + 1, 1, -1)
        points = length // 2
        if split(points, self.registers) is not None:
            return _halves(self.rows(operand, False), points, False)
        pairs = reshape(operand, (*shape.dimensions[:-1], points, 2))
        even, odd = (
            reshape(slice_in_dim(pairs, n, n + 1, 1, -1), (*shape.dimensions[:-1], points))
            for n in range(2)
        )
        return _halves(self.last(complex_(even, odd), False), points, False)

    def to_real(self, value: Instruction, length: int) -> Instruction:
        """The real numbers with this half spectrum."""
        if not _is_paired(length):
            size = length // 2 + 1
            others = conj(rev(slice_in_dim(value, 1, size, 1, -1), (value.array_shape.rank - 1,)))
            return real(self.last(concatenate([value, others], -1) if length > 2 else value, True))
        points = length // 2
        pairs = _halves(value, points, True)
        if split(points, self.registers) is not None:
            return self.rows(pairs, True, real_result=True)
        made = self.last(pairs, True)
        sizes = made.array_shape.dimensions
        parts = [reshape(part, (*sizes, 1)) for part in (real(made), imag(made))]
        return reshape(concatenate(parts, -1), (*sizes[:-1], length))

    def rows(self, operand: Instruction, inverse: bool, real_result: bool = False) -> Instruction:
        """Transforms along the last axis, of complex numbers or of pairs of real ones.

        ``real_result`` splits the results into pairs.
        """
        shape = operand.array_shape
        element_type = shape.element_type
        *outer, length = shape.dimensions
        if not element_type.is_complex:
            length //= 2
        kind = _COMPLEX.get(element_type, element_type)
        result = shape.with_element_type(kind).with_dimensions((*outer, length))
        if real_result:
            result = shape.with_element_type(kind.real).with_dimensions((*outer, 2 * length))
        ways = split(length, self.registers)
        assert ways is not None
        return self.transform(operand, math.prod(outer), 1, ways, inverse, result)

    def along(self, operand: Instruction, axis: int, inverse: bool) -> Instruction:
        """Transforms along an axis before the last."""
        shape = operand.array_shape
        sizes = shape.dimensions
        ways = columns(sizes[axis], self.registers)[:1]
        count, strips = math.prod(sizes[:axis]), math.prod(sizes[axis + 1 :])
        return self.transform(operand, count, strips, ways, inverse, shape)

    def transform(
        self,
        operand: Instruction,
        count: int,
        strips: int,
        ways: Sequence[Column],
        inverse: bool,
        shape: Shape,
    ) -> Instruction:
        part = shape.element_type.real
        plan, table = tables(
            Transform(count, strips, tuple(ways), inverse, part.dtype.itemsize, self.vector_bytes)
        )
        return make(
            FOURIER,
            operand,
            constant(table, part),
            constant(plan, ElementType.S64),
            count=count,
            columns=strips,
            radices=ways[0].radices,
            more_radices=ways[1].radices if len(ways) == 2 else (),
            inverse=inverse,
            vector_bytes=self.vector_bytes,
            shape=shape,
        )


def _halves(value: Instruction, points: int, inverse: bool) -> Instruction:
    """The spectrum of real numbers from that of ``points`` pairs of them, or the inverse."""
    shape = value.array_shape
    *outer, _ = shape.dimensions
    length = points if inverse else points + 1
    table = constant(halves_factors(points, inverse), shape.element_type.real)
    made = shape.with_dimensions((*outer, length))
    return make(FOURIER_HALVES, value, table, inverse=inverse, shape=made)
