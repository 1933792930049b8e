"""Fft: the shapes it makes, and what it refuses."""

from __future__ import annotations

import pytest

from tests.evaluation import given
from tracejit import ops
from tracejit.errors import AttributeValueError, ElementTypeError, ShapeError


@pytest.mark.parametrize(
    ("operand", "fft_type", "lengths", "shape"),
    [
        ("c64[2,8]", "FFT", (8,), "c64[2,8]"),
        ("c128[2,8]", "IFFT", (2, 8), "c128[2,8]"),
        ("f32[16]", "RFFT", (16,), "c64[9]"),
        ("f64[17]", "RFFT", (17,), "c128[9]"),
        ("c64[9]", "IRFFT", (16,), "f32[16]"),
        ("c64[9]", "IRFFT", (17,), "f32[17]"),
        ("f32[0]", "RFFT", (0,), "c64[0]"),
        ("c64[0]", "IRFFT", (0,), "f32[0]"),
    ],
)
def test_shapes(operand: str, fft_type: str, lengths: tuple[int, ...], shape: str) -> None:
    assert str(ops.fft(given(operand), fft_type, lengths).shape) == shape


@pytest.mark.parametrize(
    ("operand", "fft_type", "lengths", "error", "message"),
    [
        ("f32[8]", "FFT", (8,), ElementTypeError, "allowed are c64, c128"),
        ("f16[8]", "RFFT", (8,), ElementTypeError, "allowed are f32, f64"),
        ("f32[5]", "IRFFT", (8,), ElementTypeError, "allowed are c64, c128"),
        ("c64[8]", "DCT", (8,), AttributeValueError, "one of FFT, IFFT, RFFT, IRFFT, not 'DCT'"),
        ("c64[8]", "FFT", (), AttributeValueError, "1 to 3 numbers"),
        ("c64[1,1,1,8]", "FFT", (1, 1, 1, 8), AttributeValueError, "1 to 3 numbers"),
        ("c64[8]", "FFT", (-8,), AttributeValueError, "must not be negative"),
        ("c64[8]", "FFT", (1, 8), ShapeError, "fewer axes than fft_length"),
        ("c64[8]", "FFT", (4,), ShapeError, r"needs \[4\] for the last sizes of .* c64\[8\]"),
        ("c64[8]", "IRFFT", (8,), ShapeError, r"needs \[5\] for the last sizes"),
    ],
)
def test_refusals(
    operand: str, fft_type: str, lengths: tuple[int, ...], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        ops.fft(given(operand), fft_type, lengths)
