"""Factorisations and solutions of linear systems: one large matrix, and many small ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from tests.benchmarks.case import Case

Inputs = Callable[..., tuple[numpy.ndarray, ...]]


def positive(*, columns: bool = False) -> Inputs:
    """Positive definite matrices, well conditioned, in batches; with right sides if asked."""

    def inputs(rng: numpy.random.Generator, *size: int) -> tuple[numpy.ndarray, ...]:
        n = size[-1]
        root = rng.standard_normal(size, dtype=numpy.float32)
        matrices = root @ numpy.swapaxes(root, -1, -2) / n + numpy.eye(n, dtype=numpy.float32)
        sides = rng.standard_normal((*size[:-1], 4), dtype=numpy.float32)
        return (matrices, sides) if columns else (matrices,)

    return inputs


def cholesky(lib: Any, x: Any) -> Any:
    return lib.numpy.linalg.cholesky(x)


def solve(lib: Any, x: Any, y: Any) -> Any:
    return lib.numpy.linalg.solve(x, y)


def inverse(lib: Any, x: Any) -> Any:
    return lib.numpy.linalg.inv(x)


def eigenvalues(lib: Any, x: Any) -> Any:
    return lib.numpy.linalg.eigvalsh(x)


def singular_values(lib: Any, x: Any) -> Any:
    return lib.numpy.linalg.svd(x, compute_uv=False)


def singular_values_torch(torch: Any, x: Any) -> Any:
    return torch.linalg.svdvals(x)


def triangle(lib: Any, x: Any) -> Any:
    """The triangular factor of QR, whose signs are a matter of taste: they are left out."""
    return lib.numpy.abs(lib.numpy.linalg.qr(x)[1])


def triangle_torch(torch: Any, x: Any) -> Any:
    return torch.linalg.qr(x).R.abs()


def case(
    name: str,
    size: tuple[int, ...],
    tiny: tuple[int, ...],
    compute: Any,
    torch: Any = None,
    **more: Any,
) -> Case:
    return Case(
        name,
        size,
        tiny=tiny,
        inputs=positive(**more),
        tracejit=compute,
        numpy=compute,
        jax=compute,
        torch=torch or (lambda torch, *x: compute(_Torch(torch), *x)),
        tolerance=1e-3,
    )


class _Torch:
    """PyTorch under NumPy's names."""

    def __init__(self, torch: Any) -> None:
        self.numpy = torch


CASES = [
    case("Cholesky, 512x512", (512, 512), (9, 9), cholesky),
    case("Cholesky, 128x128", (128, 128), (10, 10), cholesky),
    case("Cholesky, 16x16", (16, 16), (5, 5), cholesky),
    case("Cholesky, 1000 of 8x8", (1000, 8, 8), (3, 4, 4), cholesky),
    case("solve, 512x512", (512, 512), (9, 9), solve, columns=True),
    case("solve, 128x128", (128, 128), (10, 10), solve, columns=True),
    case("solve, 16x16", (16, 16), (5, 5), solve, columns=True),
    case("solve, 1000 of 8x8", (1000, 8, 8), (3, 4, 4), solve, columns=True),
    case("inverse, 256x256", (256, 256), (9, 9), inverse),
    case("singular values, 128x128", (128, 128), (9, 9), singular_values, singular_values_torch),
    case("QR, 256x256", (256, 256), (9, 9), triangle, triangle_torch),
    case("eigenvalues, symmetric 128x128", (128, 128), (9, 9), eigenvalues),
    case("eigenvalues, 1000 symmetric 4x4", (1000, 4, 4), (3, 3, 3), eigenvalues),
]
