"""Fourier transforms.

fft(x, "FFT", (8,))             complex to complex, over the last axis
fft(x, "RFFT", (4, 6))          real to the half of the spectrum that is not redundant
fft(x, "IRFFT", (4, 6))         and back
"""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.attributes import Attribute, Kind
from tracejit.errors import AttributeValueError, ShapeError
from tracejit.graph import Instruction
from tracejit.ops.base import COMPLEX, define, make, require_array, require_element_type
from tracejit.shapes import AnyShape, ElementType, Shape

FFT_TYPES = ("FFT", "IFFT", "RFFT", "IRFFT")

_COMPLEX_OF = {ElementType.F32: ElementType.C64, ElementType.F64: ElementType.C128}


@define("Fft", "fft", Attribute("fft_type", Kind.NAME), Attribute("fft_length", Kind.INTS))
def FFT(operand: AnyShape, *, fft_type: str, fft_length: tuple[int, ...]) -> Shape:
    shape = require_array("fft", "operand", operand)
    if fft_type not in FFT_TYPES:
        raise AttributeValueError(
            f"fft: fft_type must be one of {', '.join(FFT_TYPES)}, not {fft_type!r}"
        )
    is_real = fft_type == "RFFT"
    require_element_type("fft", "operand", shape, _COMPLEX_OF if is_real else COMPLEX)
    count = len(fft_length)
    if not 1 <= count <= 3:
        raise AttributeValueError(f"fft: fft_length must have 1 to 3 numbers, not {fft_length}")
    if count > shape.rank:
        raise ShapeError(f"fft: operand {shape} has fewer axes than fft_length {fft_length}")
    if min(fft_length) < 0:
        raise AttributeValueError(f"fft: fft_length must not be negative, not {fft_length}")
    half = fft_length[-1] // 2 + 1
    wanted = list(fft_length)
    if fft_type == "IRFFT" and shape.dimensions[-1]:
        wanted[-1] = half
    if list(shape.dimensions[-count:]) != wanted:
        raise ShapeError(
            f"fft: {fft_type} of fft_length {fft_length} needs {wanted} for the last sizes of "
            f"operand, which is {shape}"
        )
    last = shape.dimensions[-1]
    if is_real:
        return Shape(_COMPLEX_OF[shape.element_type], (*shape.dimensions[:-1], half if last else 0))
    if fft_type == "IRFFT":
        return Shape(shape.element_type.real, (*shape.dimensions[:-1], fft_length[-1]))
    return shape.with_dimensions(shape.dimensions)


def fft(operand: Instruction, fft_type: str, fft_length: Sequence[int]) -> Instruction:
    """Discrete Fourier transforms over the last one to three axes (XLA: Fft).

    ``fft_type`` is FFT or IFFT (c64 or c128, shape unchanged), RFFT (f32 or f64, whose last axis
    keeps ``fft_length[-1] // 2 + 1`` elements) or IRFFT (its inverse, which ignores the imaginary
    part of numbers that must be real). ``fft_length`` are the sizes of the axes on the side of the
    time, and inverse transforms divide by their product. Raises `ShapeError` when the sizes
    differ.
    """
    return make(FFT, operand, fft_type=fft_type, fft_length=tuple(fft_length))
