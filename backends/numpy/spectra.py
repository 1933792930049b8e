"""Fft, evaluated with NumPy's transforms, large ones with SciPy's; both keep single precision."""

from __future__ import annotations

import numpy as np

from tracejit.backends.numpy.interpreter import Value, interpret
from tracejit.graph import Instruction
from tracejit.loading import load
from tracejit.ops.spectra import FFT

_TRANSFORMS = {"FFT": "fftn", "IFFT": "ifftn", "RFFT": "rfftn", "IRFFT": "irfftn"}

# Numbers from which on SciPy's transforms, up to four times as fast, are worth the import.
_LARGE = 1 << 14


@interpret.attach(FFT)
def fft(instruction: Instruction, operand: np.ndarray) -> Value:
    shape = instruction.array_shape
    if not shape.size:
        return np.empty(shape.dimensions, shape.dtype)
    lengths = instruction.attributes["fft_length"]
    axes = range(operand.ndim - len(lengths), operand.ndim)
    library = np.fft if shape.size < _LARGE else load("scipy.fft")
    transform = getattr(library, _TRANSFORMS[instruction.attributes["fft_type"]])
    made: np.ndarray = transform(operand, lengths, tuple(axes))
    return made
