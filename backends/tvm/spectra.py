"""Fourier transforms made of those that have a kernel: of rows, and of columns.

Several axes are one after the other; what is too long for the kernel of rows is two transforms of
columns; real numbers are taken in pairs for complex ones, half as many. Lengths are powers of two.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np

from tracejit.backends.tvm.known import FOURIER
from tracejit.backends.tvm.schedule.fourier_plan import Column, Transform, columns, split, told
from tracejit.graph import Instruction
from tracejit.ops.base import make
from tracejit.ops.constants import constant
from tracejit.ops.elementwise import add, mul, sub
from tracejit.ops.elementwise import complex as complex_
from tracejit.ops.elementwise_unary import imag, neg, real
from tracejit.ops.layout import (
    TRANSPOSE,
    broadcast_in_dim,
    concatenate,
    full_like,
    reshape,
    rev,
    slice_in_dim,
    transpose,
)
from tracejit.shapes import ElementType, Shape

_COMPLEX = {ElementType.F32: ElementType.C64, ElementType.F64: ElementType.C128}

_TABLE = 4096
"""Factors of the halves of a real transform: more are products of two."""


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
        return _rows(_packed(value, points), True, real_result=True)
    value = _rows(operand, inverse)
    if kind == "RFFT":
        value = _unpacked(value)
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


@functools.lru_cache(maxsize=64)
def _turns(points: int, start: int, count: int, step: int) -> np.ndarray:
    """Of numbers start, start + step …: by which they turn where ``points`` are half a turn."""
    return np.asarray(np.exp(-1j * np.pi * (start + step * np.arange(count)) / points))


def _halves(length: int) -> tuple[int, int]:
    """Two lengths, as equal as may be, whose product is ``length``."""
    first = next(n for n in range(math.isqrt(length), 0, -1) if length % n == 0)
    return first, length // first


def _factors(points: int, like: Instruction) -> tuple[Instruction, Instruction]:
    """Real and imaginary parts of the factors of numbers 1 to points - 1, as wide as ``like``."""
    shape = like.array_shape
    kind = shape.element_type

    def table(start: int, count: int, step: int) -> tuple[Instruction, Instruction]:
        turns = _turns(points, start, count, step)
        return constant(turns.real, kind), constant(turns.imag, kind)

    if points <= _TABLE:
        re, im = table(1, points - 1, 1)
    else:
        first, second = _halves(points)
        sizes = (first, second)
        a, b = (broadcast_in_dim(t, sizes, (0,)) for t in table(0, first, second))
        c, d = (broadcast_in_dim(t, sizes, (1,)) for t in table(0, second, 1))
        parts = sub(mul(a, c), mul(b, d)), add(mul(a, d), mul(b, c))
        re, im = (_part(reshape(p, (points,)), 1, points) for p in parts)
    last = (shape.rank - 1,)
    return tuple(broadcast_in_dim(t, shape.dimensions, last) for t in (re, im))  # type: ignore[return-value]


def _part(value: Instruction, start: int, limit: int) -> Instruction:
    return slice_in_dim(value, start, limit, 1, value.array_shape.rank - 1)


def _reversed(value: Instruction) -> Instruction:
    return rev(value, (value.array_shape.rank - 1,))


def _half(value: Instruction) -> Instruction:
    return mul(value, full_like(value, 0.5))


def _unpacked(value: Instruction) -> Instruction:
    """The spectrum of real numbers from that of pairs of them: one number more."""
    points = value.array_shape.dimensions[-1]
    inner = _part(value, 1, points)
    here, there = inner, _reversed(inner)
    hr, hi, tr, ti = real(here), imag(here), real(there), imag(there)
    even = _half(add(hr, tr)), _half(sub(hi, ti))
    odd = _half(add(hi, ti)), _half(sub(tr, hr))
    re, im = _factors(points, hr)
    middle = complex_(
        add(even[0], sub(mul(odd[0], re), mul(odd[1], im))),
        add(even[1], add(mul(odd[0], im), mul(odd[1], re))),
    )
    first = _part(value, 0, 1)
    a, b = real(first), imag(first)
    zero = full_like(a, 0.0)
    ends = complex_(add(a, b), zero), complex_(sub(a, b), zero)
    return concatenate([ends[0], middle, ends[1]], value.array_shape.rank - 1)


def _packed(value: Instruction, points: int) -> Instruction:
    """The spectrum of pairs from that of real numbers, of whose ends only real parts count."""
    inner = _part(value, 1, points)
    here, there = inner, _reversed(inner)
    hr, hi, tr, ti = real(here), imag(here), real(there), imag(there)
    even = _half(add(hr, tr)), _half(sub(hi, ti))
    odd = _half(sub(hr, tr)), _half(add(hi, ti))
    re, im = _factors(points, hr)
    im = neg(im)
    # even + i odd factor
    middle = complex_(
        sub(even[0], add(mul(odd[0], im), mul(odd[1], re))),
        add(even[1], sub(mul(odd[0], re), mul(odd[1], im))),
    )
    a, b = real(_part(value, 0, 1)), real(_part(value, points, points + 1))
    first = complex_(_half(add(a, b)), _half(sub(a, b)))
    return concatenate([first, middle], value.array_shape.rank - 1)
