"""Fourier transforms made of those that have a kernel: of rows, and of columns.

Several axes are one after the other; real numbers are taken in pairs for complex ones, half as
many. Lengths have no prime factors above 13, and rows are two columns of `LONGEST` at most.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tracejit.backends.tvm.known import FOURIER, FOURIER_HALVES
from tracejit.backends.tvm.schedule.fourier_halves import halves_factors
from tracejit.backends.tvm.schedule.fourier_plan import Column, Transform, columns, split, told
from tracejit.graph import Instruction
from tracejit.ops.base import make
from tracejit.ops.constants import constant
from tracejit.ops.layout import TRANSPOSE, transpose
from tracejit.shapes import ElementType, Shape

_COMPLEX = {ElementType.F32: ElementType.C64, ElementType.F64: ElementType.C128}


def expanded(instruction: Instruction) -> Instruction | None:
    """The transform by kernels; None where it is left to the library."""
    (operand,) = instruction.operands
    kind, lengths = instruction.attributes["fft_type"], instruction.attributes["fft_length"]
    shape = instruction.array_shape
    if not shape.size:
        return None
    is_real, inverse = kind in ("RFFT", "IRFFT"), kind in ("IFFT", "IRFFT")
    *others, last = lengths
    if is_real and last % 2:
        return None
    points = last // 2 if is_real else last
    if operand.op is TRANSPOSE and kind in ("FFT", "IFFT") and not others:
        (given,) = operand.operands
        order = operand.attributes["dimensions"]
        if order[-1] != shape.rank - 1 and _has_columns(last):
            return transpose(_along(given, order[-1], inverse), order)
    if not (_has_rows(points) and all(map(_has_columns, others))):
        return None
    axes = range(shape.rank - len(lengths), shape.rank - 1)
    value = operand
    if kind == "IRFFT":
        for axis in axes:
            value = _along(value, axis, True)
        return _rows(_halves(value, points, True), True, real_result=True)
    value = _rows(operand, inverse)
    if kind == "RFFT":
        value = _halves(value, points, False)
    for axis in axes:
        value = _along(value, axis, inverse)
    return value


def _has_rows(length: int) -> bool:
    return split(length) is not None


def _has_columns(length: int) -> bool:
    return bool(columns(length))


def _rows(operand: Instruction, inverse: bool, real_result: bool = False) -> Instruction:
    """Transforms along the last axis, of complex numbers or of pairs of real ones.

    ``real_result`` takes the results apart into pairs.
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
    ways = split(length)
    assert ways is not None
    return _transform(operand, math.prod(outer), 1, ways, inverse, result)


def _along(operand: Instruction, axis: int, inverse: bool) -> Instruction:
    """Transforms along an axis before the last."""
    shape = operand.array_shape
    sizes = shape.dimensions
    ways = columns(sizes[axis])[:1]
    count, strips = math.prod(sizes[:axis]), math.prod(sizes[axis + 1 :])
    return _transform(operand, count, strips, ways, inverse, shape)


def _transform(
    operand: Instruction,
    count: int,
    strips: int,
    ways: Sequence[Column],
    inverse: bool,
    shape: Shape,
) -> Instruction:
    part = shape.element_type.real
    plan, table = told(Transform(count, strips, tuple(ways), inverse, part.dtype.itemsize))
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
        shape=shape,
    )


def _halves(value: Instruction, points: int, inverse: bool) -> Instruction:
    """The spectrum of real numbers from that of ``points`` pairs of them, or the other way."""
    shape = value.array_shape
    *outer, _ = shape.dimensions
    length = points if inverse else points + 1
    table = constant(halves_factors(points, inverse), shape.element_type.real)
    made = shape.with_dimensions((*outer, length))
    return make(FOURIER_HALVES, value, table, inverse=inverse, shape=made)
