"""Samples of Fft."""

from __future__ import annotations

from tests.samples.base import Operand, Sample
from tests.samples.domains import uniform
from tracejit import ops
from tracejit.ops.base import COMPLEX
from tracejit.shapes import ElementType

REAL = {ElementType.F32, ElementType.F64}

# Errors grow with the largest of the terms, which is not the result.
TOLERANCE = {
    ElementType.F32: 1e-4,
    ElementType.F64: 1e-12,
    ElementType.C64: 1e-4,
    ElementType.C128: 1e-12,
}


def _fft(fft_type: str, dimensions: tuple[int, ...], lengths: tuple[int, ...]) -> Sample:
    return Sample(
        "Fft",
        lambda x: ops.fft(x, fft_type, lengths),
        (Operand(dimensions, domain=uniform(-2, 2)),),
        REAL if fft_type == "RFFT" else COMPLEX,
        f"{fft_type} {list(lengths)} of {list(dimensions)}",
        TOLERANCE,
    )


SAMPLES = [
    _fft("FFT", (8,), (8,)),
    _fft("FFT", (2, 7), (7,)),
    _fft("FFT", (2, 3, 4), (3, 4)),
    _fft("FFT", (2, 3, 2, 4), (3, 2, 4)),
    _fft("FFT", (1,), (1,)),
    _fft("FFT", (2, 0), (0,)),
    _fft("IFFT", (5,), (5,)),
    _fft("IFFT", (2, 3, 4), (3, 4)),
    _fft("IFFT", (2, 3, 2), (2, 3, 2)),
    _fft("RFFT", (8,), (8,)),
    _fft("RFFT", (2, 7), (7,)),
    _fft("RFFT", (2, 3, 4), (3, 4)),
    _fft("RFFT", (2, 3, 5), (2, 3, 5)),
    _fft("RFFT", (3, 1), (1,)),
    _fft("RFFT", (0, 4), (4,)),
    _fft("RFFT", (2, 0), (0,)),
    _fft("IRFFT", (5,), (8,)),
    _fft("IRFFT", (2, 4), (7,)),
    _fft("IRFFT", (2, 3, 3), (3, 4)),
    _fft("IRFFT", (2, 3, 3), (2, 3, 5)),
    _fft("IRFFT", (3, 1), (1,)),
    _fft("IRFFT", (2, 1), (0,)),
]
