"""np.fft against NumPy, in every way to call it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.numpy_api.compare import check, same

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 6, 5))
C = X + 1j * RNG.normal(size=X.shape)


def test_along_one_axis() -> None:
    def of_complex(np: Any, a: Any) -> Any:
        return [
            np.fft.fft(a),
            np.fft.fft(a, 3, 1, "forward"),
            np.fft.ifft(a, 8, 0, "ortho"),
            np.fft.irfft(a, 7, 1, "forward"),
            np.fft.irfft(a),
            np.fft.hfft(a, 9),
            np.fft.hfft(a, norm="ortho"),
        ]

    def of_real(np: Any, a: Any) -> Any:
        return [
            np.fft.rfft(a),
            np.fft.rfft(a, 4, 0, "ortho"),
            np.fft.ihfft(a, 7, 1, "forward"),
            np.fft.ihfft(a),
            np.fft.fft(a),
        ]

    check(of_complex, C)
    check(of_real, X)
    check(of_real, X.astype(np.float32))
    check(of_real, np.arange(24).reshape(2, 3, 4))


def test_over_several_axes() -> None:
    def of_complex(np: Any, a: Any) -> Any:
        return [
            np.fft.fftn(a),
            np.fft.ifftn(a, (3, 7), axes=(0, 1)),
            np.fft.irfftn(a, axes=(0, 1)),
            np.fft.irfftn(a, norm="forward"),
            np.fft.fft2(a),
            np.fft.irfft2(a, (4, 4), norm="ortho"),
            np.fft.ifft2(a, axes=(0, 2)),
        ]

    def of_real(np: Any, a: Any) -> Any:
        return [np.fft.rfftn(a), np.fft.rfftn(a, (3, 7), (0, 1)), np.fft.rfft2(a)]

    check(of_complex, C)
    check(of_real, X)
    # More axes than the op takes, and one axis twice.
    check(lambda np, a: [np.fft.fftn(a), np.fft.rfftn(a), np.fft.irfftn(a)], X[None, :2, :, None])
    check(lambda np, a: np.fft.fftn(a, axes=(0, 0)), X)


def test_frequencies_and_shifts() -> None:
    check(lambda np, a: [np.fft.fftshift(a), np.fft.ifftshift(a, 1), np.fft.fftshift(a, (0, 2))], X)
    check(lambda np, a: [a * np.fft.fftfreq(5, 0.1), a[..., :3] * np.fft.rfftfreq(5, 2)], X)
    assert tj.numpy.fft.fftfreq(4, dtype=np.float32).dtype == np.float32


def test_derivative() -> None:
    """Parseval: the spectrum's square is n times the signal's."""
    function = tj.jit(tj.grad(lambda v: (np.abs(np.fft.fft(v)) ** 2).sum()))
    same(function(np.arange(4.0)), 8 * np.arange(4.0))


def test_refusals() -> None:
    for wrong, text in (
        (lambda a: tj.numpy.fft.fft(a, norm="what"), "norm must be"),
        (lambda a: np.fft.fft(a, 0), "invalid number of data points"),
        (lambda a: np.fft.rfft(a * 1j), "takes real numbers"),
        (lambda a: np.fft.fftn(a, (2, 2), (0,)), "differ in length"),
    ):
        with pytest.raises((ValueError, TypeError), match=text):
            tj.jit(wrong)(X)
