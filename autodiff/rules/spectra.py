"""Fourier transforms are linear, and their transposes are Fourier transforms again."""

from __future__ import annotations

import math

import numpy as np

from tracejit.autodiff.reverse import Cotangents, differentiate
from tracejit.graph import Instruction
from tracejit.ops.constants import constant
from tracejit.ops.elementwise import mul
from tracejit.ops.elementwise_unary import conj, real
from tracejit.ops.layout import broadcast_in_dim, full_like, pad_in_dim, scalar_like
from tracejit.ops.spectra import FFT, fft


@differentiate.attach(FFT)
def fft_rule(instruction: Instruction, cotangent: Instruction) -> Cotangents:
    (operand,) = instruction.operands
    kind, lengths = instruction.attributes["fft_type"], instruction.attributes["fft_length"]
    if not (operand.array_shape.size and cotangent.array_shape.size):
        return (full_like(operand, 0),)
    if kind in ("FFT", "IFFT"):  # the matrix of a transform is symmetric
        return (fft(cotangent, kind, lengths),)
    if kind == "RFFT":  # a real operand made complex, transformed, and cut
        axis = cotangent.array_shape.rank - 1
        missing = lengths[-1] - cotangent.array_shape.dimensions[axis]
        whole = pad_in_dim(cotangent, scalar_like(cotangent, 0), axis, 0, missing)
        return (real(fft(whole, "FFT", lengths)),)
    return (_of_spectrum(fft(cotangent, "RFFT", lengths), lengths),)


def _of_spectrum(transformed: Instruction, lengths: tuple[int, ...]) -> Instruction:
    """IRFFT's cotangent: frequencies whose conjugates were left out count twice."""
    shape = transformed.array_shape
    weights = np.full(shape.dimensions[-1], 2 / math.prod(lengths))
    weights[0] /= 2
    if lengths[-1] % 2 == 0:
        weights[-1] /= 2
    row = constant(weights, shape.element_type)
    return conj(mul(transformed, broadcast_in_dim(row, shape.dimensions, (shape.rank - 1,))))
