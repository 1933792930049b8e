"""lax.linalg, lax.fft and the contractions in groups against JAX."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracejit as tj

jax = pytest.importorskip("jax", reason="compares with JAX")

RNG = np.random.default_rng(3)
A = (RNG.normal(size=(2, 3, 3)) + 3 * np.eye(3)).astype(np.float32)
B = RNG.normal(size=(2, 3, 2)).astype(np.float32)
C = (A + 1j * RNG.normal(size=A.shape)).astype(np.complex64)


def same(function: Any, *arrays: np.ndarray) -> None:
    """At once and recorded, as JAX does it."""
    expected = jax.tree.leaves(function(jax.lax, *arrays))
    for run in (function, tj.jit(function, static_argnums=0)):
        made = tj.tree.leaves(run(tj.lax, *arrays))
        assert len(made) == len(expected)
        for one, other in zip(made, expected, strict=True):
            assert (one.dtype, one.shape) == (other.dtype, other.shape)
            np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("transpose", [True, False])
@pytest.mark.parametrize("conjugate", [True, False])
def test_triangular_solve(left: bool, lower: bool, transpose: bool, conjugate: bool) -> None:
    flags = {
        "left_side": left, "lower": lower, "transpose_a": transpose, "conjugate_a": conjugate,
    }  # fmt: skip
    right = C[:, :, :2] if left else C[:, :2]
    same(lambda lax, a, b: lax.linalg.triangular_solve(a, b, **flags), C, right)
    vector = right[..., 0] if left else right[:, 0]
    same(lambda lax, a, b: lax.linalg.triangular_solve(a, b, **flags), C, vector)


def test_factorizations() -> None:
    hermitian = A @ np.swapaxes(A, -1, -2)
    same(lambda lax, a: lax.linalg.cholesky(a), hermitian)
    same(lambda lax, a: lax.linalg.cholesky(a), C @ np.swapaxes(C, -1, -2).conj())
    same(lambda lax, a: [abs(x) for x in lax.linalg.eigh(a)], hermitian)
    same(lambda lax, a: [abs(x) for x in lax.linalg.eigh(a, lower=False)], hermitian)
    for full in (True, False):
        same(lambda lax, a, f=full: [abs(x) for x in lax.linalg.qr(a, full_matrices=f)], B)
        same(lambda lax, a, f=full: [abs(x) for x in lax.linalg.svd(a, full_matrices=f)][:2], B)
    same(lambda lax, a: lax.linalg.svd(a, compute_uv=False), B)


def test_fft() -> None:
    x = RNG.normal(size=(2, 4, 5)).astype(np.float32)
    same(lambda lax, x: lax.fft(x, "RFFT", (4, 5)), x)
    same(lambda lax, x: lax.fft(x, "irfft", (8,)), (x + 1j).astype(np.complex64))
    same(lambda lax, x: lax.fft(x, jax.lax.FftType.FFT, (4, 5)), x.astype(np.complex64))


SIZES = np.array([2, 0, 3], np.int32)


def test_ragged_dot() -> None:
    lhs = RNG.normal(size=(6, 4)).astype(np.float32)
    rhs = RNG.normal(size=(3, 4, 5)).astype(np.float32)
    same(lambda lax, x, y, g: lax.ragged_dot(x, y, g), lhs, rhs, SIZES)

    def sums(lax: Any, x: Any, y: Any, g: Any) -> Any:
        numbers = lax.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), [0], [])
        return lax.ragged_dot_general(x, y, g, numbers)

    same(sums, lhs, RNG.normal(size=(6, 2)).astype(np.float32), SIZES)

    def gradient(library: Any, lax: Any) -> Any:
        return library.grad(lambda x, y: (lax.ragged_dot(x, y, SIZES) ** 2).sum(), argnums=(0, 1))

    ours, theirs = gradient(tj, tj.lax)(lhs, rhs), gradient(jax, jax.lax)(lhs, rhs)
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


def test_scaled_dot() -> None:
    lhs = RNG.normal(size=(2, 8)).astype(np.float32)
    rhs = RNG.normal(size=(8, 3)).astype(np.float32)
    scales = np.array([[0.5, 2.0], [1.0, 4.0]], np.float32)
    made = tj.lax.scaled_dot(lhs, rhs, lhs_scale=scales)
    np.testing.assert_allclose(made, (lhs * np.repeat(scales, 4, 1)) @ rhs, rtol=1e-5)
    assert tj.lax.scaled_dot(lhs, rhs).dtype == np.float32
