"""Fourier transforms: short, long, in batches and in two dimensions."""

from __future__ import annotations

from typing import Any

import numpy

from tests.benchmarks.case import Case, normal, same


def complex_normal(rng: numpy.random.Generator, *size: int) -> tuple[numpy.ndarray, ...]:
    real = rng.standard_normal((*size, 2), dtype=numpy.float32)
    return (real.view(numpy.complex64)[..., 0],)


def forwards(lib: Any, x: Any) -> Any:
    return lib.numpy.fft.fft(x)


def forwards_real(lib: Any, x: Any) -> Any:
    return lib.numpy.fft.rfft(x)


def forwards_plane(lib: Any, x: Any) -> Any:
    return lib.numpy.fft.fft2(x)


def case(name: str, size: tuple[int, ...], tiny: tuple[int, ...]) -> Case:
    return Case(
        name,
        size,
        tiny=tiny,
        inputs=complex_normal,
        tracejit=forwards,
        numpy=forwards,
        jax=forwards,
        torch=lambda torch, x: torch.fft.fft(x),
    )


CASES = [
    case("FFT, 64", (64,), (8,)),
    case("FFT, 1024", (1024,), (16,)),
    case("FFT, 1M", (1 << 20,), (32,)),
    case("FFT, 100,000", (100_000,), (30,)),
    case("FFT of rows, 1024x256", (1024, 256), (3, 8)),
    Case(
        "FFT of real numbers, 65536",
        (1 << 16,),
        tiny=(16,),
        inputs=normal(same),
        tracejit=forwards_real,
        numpy=forwards_real,
        jax=forwards_real,
        torch=lambda torch, x: torch.fft.rfft(x),
    ),
    Case(
        "FFT in two dimensions, 512x512",
        (512, 512),
        tiny=(4, 6),
        inputs=complex_normal,
        tracejit=forwards_plane,
        numpy=forwards_plane,
        jax=forwards_plane,
        torch=lambda torch, x: torch.fft.fft2(x),
    ),
]
