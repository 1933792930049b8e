"""Compiled determinants, which are products of pivots that neither overflow nor vanish."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracejit as tj

det = tj.jit(lambda a: np.linalg.det(a))
slogdet = tj.jit(lambda a: tuple(np.linalg.slogdet(a)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1,), (2,), (70, 4), (2, 3, 33), (49,), (3, 100)])
def test_shapes(dtype: Any, shape: tuple[int, ...]) -> None:
    size = shape[-1]
    a = np.random.default_rng(0).standard_normal((*shape, size))
    a = (a / np.sqrt(size)).astype(dtype)
    assert "determinants" in str(det.lower(a).compile().explain())
    sign, logarithm = np.linalg.slogdet(a.astype(np.float64))
    found, (own_sign, own_logarithm) = det(a), slogdet(a)
    assert found.dtype == own_sign.dtype == own_logarithm.dtype == dtype
    bound = 2000 * size * float(np.finfo(dtype).eps)
    np.testing.assert_array_equal(own_sign, sign)
    np.testing.assert_allclose(own_logarithm, logarithm, rtol=0, atol=bound)
    np.testing.assert_allclose(found, sign * np.exp(logarithm), rtol=bound)


@pytest.mark.parametrize(
    ("diagonal", "expected"),
    [
        ([1e200, 1e200, 1e-200, 1e-200], 1.0),
        ([1e-160, 1e-160], 1e-320),
        ([1e-200] * 4, 0.0),
        ([-1e200] * 3, -np.inf),
        ([5e-324, 1e300, 1e20], 5e-324 * 1e300 * 1e20),
        ([2.0, 0.0, 3.0], 0.0),
        ([1.0, np.inf], np.inf),
        ([1.0, np.nan], np.nan),
    ],
)
@pytest.mark.parametrize("size", [4, 60])
def test_numbers_of_any_size(diagonal: list[float], expected: float, size: int) -> None:
    a = np.diag(diagonal + [1.0] * (size - len(diagonal)))
    np.testing.assert_allclose(det(a), expected, rtol=1e-14)
    sign, logarithm = slogdet(a)
    if not np.isnan(expected):
        with np.errstate(divide="ignore"):
            np.testing.assert_allclose(logarithm, np.log(np.abs(diagonal)).sum(), rtol=1e-14)
        assert sign == (0 if 0.0 in diagonal else np.prod(np.sign(diagonal)))


def test_logarithms_of_what_is_nearly_one() -> None:
    for value in (1 + 1e-9, 1 - 1e-9, 0.75, 1.4, 1.5):
        np.testing.assert_allclose(slogdet(np.diag([value, 1.0]))[1], np.log(value), rtol=1e-15)


def test_exchanges_change_the_sign() -> None:
    for size in (5, 64):
        order = np.random.default_rng(1).permutation(size)
        expected = np.linalg.det(np.eye(size)[order])
        assert det(np.eye(size)[order]) == expected
        assert slogdet(np.eye(size)[order]) == (expected, 0.0)


def test_singular_matrices_have_none_also_among_others() -> None:
    a = np.stack([np.eye(3), np.ones((3, 3)), np.diag([1.0, 2.0, 3.0])])
    np.testing.assert_array_equal(det(a), [1.0, 0.0, 6.0])
    np.testing.assert_array_equal(slogdet(a)[0], [1.0, 0.0, 1.0])


def test_derivatives() -> None:
    a = np.random.default_rng(0).standard_normal((4, 4))
    tj.check_grads(det, (a,), order=2)
    tj.check_grads(lambda a: slogdet(a)[1], (a,), order=2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1, 2, 7, 60])
def test_gradients_of_determinants_are_compiled(dtype: Any, size: int) -> None:
    a = np.random.default_rng(size).standard_normal((2, size, size)) / np.sqrt(size)
    a = a.astype(dtype)
    function = tj.jit(tj.grad(lambda a: np.linalg.det(a).sum()))
    wide = a.astype(np.float64)
    wanted = np.linalg.det(wide)[:, None, None] * np.swapaxes(np.linalg.inv(wide), 1, 2)
    scale = np.max(np.abs(wanted), (1, 2), keepdims=True)
    np.testing.assert_allclose(function(a) / scale, wanted / scale, atol=2000 * np.finfo(dtype).eps)


def test_a_singular_matrix_s_determinant_has_a_gradient() -> None:
    """All of a batch goes the other way for it; nothing of the regular ones is lost."""
    function = tj.jit(tj.grad(lambda a: np.linalg.det(a).sum()))
    a = np.stack([np.diag([2.0, 0, 5]), np.diag([1.0, 2, 3]), np.zeros((3, 3))])
    wanted = np.stack([np.diag([0.0, 10, 0]), np.diag([6.0, 3, 2]), np.zeros((3, 3))])
    np.testing.assert_allclose(function(a), wanted, atol=1e-14)
    np.testing.assert_array_equal(function(a[1:2]), wanted[1:2])
