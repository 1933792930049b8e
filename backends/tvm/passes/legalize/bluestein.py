"""Bluestein's algorithm: FFTs of lengths with large prime factors.

A transform is a convolution with a chirp, since the product of index and frequency is half of the
sum of their squares minus the square of their difference (L. I. Bluestein, 1970). For many rows,
moderate factors are products with a DFT matrix instead.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from tracejit.backends.tvm.analysis.fft_plan import circle, smooth, split
from tracejit.graph import Instruction
from tracejit.ops.constants import constant
from tracejit.ops.contraction import DotDimensionNumbers, dot_general
from tracejit.ops.elementwise import complex as complex_
from tracejit.ops.elementwise import mul
from tracejit.ops.elementwise_unary import conj
from tracejit.ops.layout import (
    broadcast_in_dim,
    concatenate,
    full,
    pad_in_dim,
    reshape,
    rev,
    slice_in_dim,
)
from tracejit.shapes import Shape

RowTransform = Callable[[Instruction, bool], Instruction]

SHORT = 64
"""The longest rows, if there are many, for which a product with the DFT matrix is faster."""

_CANDIDATES = 4
_GREATEST_PRIME = 5


def by_sums(operand: Instruction, inverse: bool, axis: int = -1) -> Instruction:
    """The transforms of many short rows of complex numbers, as products with the DFT matrix.

    Rows may be along another ``axis``, which becomes the last.
    """
    shape = operand.array_shape
    axis %= shape.rank
    matrix = _powers(shape.dimensions[axis], shape.dimensions[axis], inverse, None)
    told = constant(matrix, shape.element_type)
    return dot_general(operand, told, DotDimensionNumbers((axis,), (0,)), "highest")


def by_parts(
    operand: Instruction, inverse: bool, prime: int, along: Callable[[Instruction], Instruction]
) -> Instruction:
    """The transforms along the last axis, split into those of ``prime`` numbers and of the rest.

    ``along`` transforms along the axis before the last.
    """
    shape = operand.array_shape
    *outer, length = shape.dimensions
    rest = length // prime
    turns = constant(_powers(rest, prime, inverse, length), shape.element_type)
    first = by_sums(reshape(operand, (*outer, prime, rest)), inverse, -2)
    sizes = (*outer, rest, prime)
    turned = mul(first, broadcast_in_dim(turns, sizes, (len(outer), len(outer) + 1)))
    return reshape(along(turned), shape.dimensions)


def of_real_by_parts(
    operand: Instruction, prime: int, along: Callable[[Instruction], Instruction]
) -> Instruction:
    """The whole spectra of real numbers of odd length, as in `by_parts`; half of it is computed."""
    shape = operand.array_shape
    *outer, length = shape.dimensions
    rest, half, last = length // prime, prime // 2 + 1, shape.rank
    matrix = _powers(prime, half, False, None)
    parts = constant(np.concatenate([matrix.real, matrix.imag], 1), shape.element_type)
    columns = reshape(operand, (*outer, prime, rest))
    numbers = DotDimensionNumbers((last - 1,), (0,))
    products = dot_general(columns, parts, numbers, "highest")
    re, im = (slice_in_dim(products, n * half, n * half + half, 1, -1) for n in range(2))
    first = complex_(re, im)
    turns = constant(_powers(rest, half, False, length), first.array_shape.element_type)
    turned = mul(first, broadcast_in_dim(turns, (*outer, rest, half), (last - 1, last)))
    made = along(turned)
    # Number length - k is the conjugate of number k.
    others = conj(rev(slice_in_dim(made, 1, half, 1, -1), (last - 1, last)))
    return reshape(concatenate([made, others], -1), shape.dimensions)


def _powers(rows: int, columns: int, inverse: bool, size: int | None) -> np.ndarray:
    """Powers of a root of unity, by row times column; for ``rows`` and their transform if None."""
    count = rows if size is None else size
    numbers = np.multiply.outer(np.arange(rows), np.arange(columns)) % count
    made = circle(numbers, count, inverse)
    return made / rows if inverse and size is None else made


def greatest_prime(length: int) -> int:
    """The greatest prime factor; 1 for 1."""
    prime = 2
    while prime * prime <= length:
        if length % prime == 0:
            length //= prime
        else:
            prime += 1
    return length


def by_chirps(operand: Instruction, inverse: bool, rows: RowTransform) -> Instruction | None:
    """The transforms along the last axis of complex numbers; None if they are too long.

    ``rows(x, inverse)`` transforms rows of a length that has kernels.
    """
    shape = operand.array_shape
    length = shape.dimensions[-1]
    longer = longer_length(length)
    if longer is None:
        return None
    chirp, spectrum = chirps(length, longer, inverse)

    def times(value: Instruction, factors: np.ndarray) -> Instruction:
        sizes = value.array_shape.dimensions
        told = constant(factors, shape.element_type)
        return mul(value, broadcast_in_dim(told, sizes, (len(sizes) - 1,)))

    zero = full(Shape(shape.element_type, ()), 0)
    padded = pad_in_dim(times(operand, chirp), zero, -1, 0, longer - length)
    convolved = rows(times(rows(padded, False), spectrum), True)
    last = slice_in_dim(convolved, 0, length, 1, -1)
    return times(last, chirp / length if inverse else chirp)


@functools.lru_cache(maxsize=256)
def longer_length(length: int) -> int | None:
    """The length of the convolution, one of few that are fast to transform."""
    found: list[int] = []
    candidate = 2 * length - 1
    while len(found) < _CANDIDATES and candidate < 4 * length + 8:
        if smooth(candidate, _GREATEST_PRIME) and split(candidate) is not None:
            found.append(candidate)
        candidate += 1
    return min(found, key=_cost, default=None)


def _cost(length: int) -> float:
    ways = split(length)
    assert ways is not None
    return length * sum(way.cost() for way in ways)


@functools.lru_cache(maxsize=32)
def chirps(length: int, longer: int, inverse: bool) -> tuple[np.ndarray, np.ndarray]:
    """The chirp, a factor for inputs and frequencies, and the spectrum of its conjugate."""
    places = np.arange(length)
    chirp = circle(places * places % (2 * length), 2 * length, inverse)
    around = np.zeros(longer, complex)
    around[:length] = chirp.conj()
    around[longer - length + 1 :] = chirp[:0:-1].conj()
    return chirp, np.fft.fft(around)
