"""Uniform and normal numbers, and what other distributions take from them.

Numbers have the given dtype, by default float64. The parameters of a distribution are arrays or
numbers that broadcast to ``shape``; derivatives pass through them.
"""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np

from tracejit.errors import ElementTypeError, ShapeError
from tracejit.graph import Instruction
from tracejit.ops import elementwise
from tracejit.ops.element_types import bitcast_convert_type, convert_element_type
from tracejit.ops.inverse_error import erf_inv
from tracejit.ops.layout import broadcast_in_dim, full, reshape
from tracejit.random.counting import flat_bits, sizes, subkeys
from tracejit.random.keys import drawn
from tracejit.shapes import ElementType, Shape, element_type_of
from tracejit.trace.convert import broadcast_dimensions, operand, stretch
from tracejit.trace.tracer import Tracer, lift

DEFAULT = np.float64


def floating_type(function: str, dtype: Any) -> ElementType:
    """The element type of a floating dtype. Raises `ElementTypeError` for another one."""
    element_type = element_type_of(dtype)
    if not element_type.is_floating:
        raise ElementTypeError(f"{function}: dtype must be a floating one, not {element_type}")
    return element_type


def parameters(
    function: str, element_type: ElementType, shape: Any, *values: Any
) -> tuple[tuple[int, ...], list[Tracer]]:
    """The shape of a result and its parameters, as arrays of the element type and that shape.

    Without a shape it is that of the parameters together. Raises `ShapeError` if they do not fit.
    """
    given = [operand(value) for value in values]
    known = [value.dimensions for value in given]
    if shape is None:
        dimensions = broadcast_dimensions(function, known)
    else:
        dimensions = sizes(shape)
        if broadcast_dimensions(function, [*known, dimensions]) != dimensions:
            raise ShapeError(
                f"{function}: shape {dimensions} is smaller than that of the parameters, "
                f"{broadcast_dimensions(function, known)}"
            )
    made = [stretch(function, value.to(element_type), dimensions) for value in given]
    return dimensions, [lift(value, False) for value in made]


def unit(words: Instruction, count: int, element_type: ElementType) -> Instruction:
    """``count`` numbers in [0, 1): random digits behind a one, less the one."""
    digits = int(ml_dtypes.finfo(element_type.dtype).nmant)  # type: ignore[no-untyped-call]
    width = element_type.bits
    drawn_width = 8 if digits < 8 else width
    unsigned = element_type_of(np.dtype(f"u{width // 8}"))
    bits = convert_element_type(flat_bits(words, count, drawn_width), unsigned)
    one = int(np.array(1, element_type.dtype).view(unsigned.dtype))
    shape = Shape(unsigned, (count,))
    fraction = elementwise.shift_right_logical(bits, full(shape, drawn_width - digits))
    number = bitcast_convert_type(elementwise.or_(fraction, full(shape, one)), element_type)
    return elementwise.sub(number, full(number.array_shape, 1))


def interval(
    words: Instruction,
    dimensions: tuple[int, ...],
    element_type: ElementType,
    low: Any = 0.0,
    high: Any = 1.0,
) -> Instruction:
    """Numbers in [low, high), whose bounds are numbers or arrays that broadcast."""
    numbers = unit(words, math.prod(dimensions), element_type)
    if isinstance(low, float) and isinstance(high, float) and (low, high) == (0.0, 1.0):
        return reshape(numbers, dimensions)
    bounds = [operand(bound).to(element_type) for bound in (low, high)]
    if any(bound.array_shape.rank for bound in bounds):
        numbers = reshape(numbers, dimensions)
        least, most = (stretch("uniform", bound, dimensions) for bound in bounds)
    else:
        least, most = (broadcast_in_dim(b, numbers.array_shape.dimensions, ()) for b in bounds)
    span = elementwise.sub(most, least)
    moved = elementwise.add(elementwise.mul(numbers, span), least)
    return reshape(elementwise.max(least, moved), dimensions)


@drawn
def uniform(
    words: Tracer, shape: Any = (), dtype: Any = DEFAULT, minval: Any = 0.0, maxval: Any = 1.0
) -> Tracer:
    """Numbers uniform in [minval, maxval).

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tj.random.uniform(tj.random.key(0), (2,)).round(4)
    array([0.4185, 0.2163])
    """
    element_type = floating_type("uniform", dtype)
    return lift(interval(words.instruction, sizes(shape), element_type, minval, maxval))


def erf_inverse(x: Instruction) -> Instruction:
    """erf_inv of any floating type; narrow ones are computed in f32."""
    element_type = x.array_shape.element_type
    if element_type.bits >= 32:
        return erf_inv(x)
    return convert_element_type(erf_inv(convert_element_type(x, ElementType.F32)), element_type)


def standard_normal(
    words: Instruction, dimensions: tuple[int, ...], element_type: ElementType
) -> Instruction:
    """Numbers with mean 0 and deviation 1."""
    dtype = element_type.dtype
    low = np.nextafter(np.array(-1, dtype), np.array(0, dtype))
    flat = interval(words, (math.prod(dimensions),), element_type, low, 1.0)
    inverse = erf_inverse(flat)
    scale = full(inverse.array_shape, math.sqrt(2))
    return reshape(elementwise.mul(scale, inverse), dimensions)


@drawn
def normal(words: Tracer, shape: Any = (), dtype: Any = DEFAULT) -> Tracer:
    """Numbers with the standard normal distribution.

    Of a complex dtype, both parts are normal, with half the variance each.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tj.random.normal(tj.random.key(0), (2,)).round(4)
    array([-0.2058, -0.7848])
    """
    element_type = element_type_of(dtype)
    if not element_type.is_complex:
        element_type = floating_type("normal", dtype)
        return lift(standard_normal(words.instruction, sizes(shape), element_type))
    parts = [
        standard_normal(key.instruction, sizes(shape), element_type.real)
        for key in subkeys(words, 2)
    ]
    root = full(parts[0].array_shape, math.sqrt(2))
    real, imag = (elementwise.div(part, root) for part in parts)
    return lift(elementwise.complex(real, imag))
