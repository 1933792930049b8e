"""Fft, evaluated with NumPy's transforms, which keep single precision."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tracejit.backends.numpy.interpreter import Value, interpret
from tracejit.graph import Instruction
from tracejit.ops.spectra import FFT

_TRANSFORMS: dict[str, Callable[..., Value]] = {
    "FFT": np.fft.fftn,
    "IFFT": np.fft.ifftn,
    "RFFT": np.fft.rfftn,
    "IRFFT": np.fft.irfftn,
}


@interpret.attach(FFT)
def fft(instruction: Instruction, operand: np.ndarray) -> Value:
    shape = instruction.array_shape
    if not shape.size:
        return np.empty(shape.dimensions, shape.dtype)
    lengths = instruction.attributes["fft_length"]
    axes = range(operand.ndim - len(lengths), operand.ndim)
    transform = _TRANSFORMS[instruction.attributes["fft_type"]]
    return transform(operand, lengths, tuple(axes))
