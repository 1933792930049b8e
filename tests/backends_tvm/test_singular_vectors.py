"""Compiled singular vectors: orthogonal, and as exact as the greatest value allows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracejit as tj
from tests.backends_tvm.kernel_harness import LEVELS, Compiled
from tracejit.backends.tvm.cpu.kernels.linalg.singular_values import Rectangular, singular_values
from tracejit.backends.tvm.ir.tir import buffer, store

vectors = tj.jit(lambda a: tuple(np.linalg.svd(a, full_matrices=False)))


def check(found: Any, a: np.ndarray) -> None:
    u, s, vh = found
    assert u.dtype == s.dtype == vh.dtype == a.dtype
    left, values, right, whole = (x.astype(np.float64) for x in (u, s, vh, a))
    expected = np.linalg.svd(whole, compute_uv=False)
    bound = 6 * np.sqrt(sum(a.shape[-2:])) * float(np.finfo(a.dtype).eps)
    largest = expected.max(-1, keepdims=True)
    assert np.all(np.abs(values - expected) <= bound * largest)
    assert np.all(np.diff(values) <= 0)
    assert np.all(values >= 0)
    assert np.all(np.abs(left * values[..., None, :] @ right - whole) <= bound * largest[..., None])
    unit = np.eye(values.shape[-1])
    assert np.all(np.abs(np.swapaxes(left, -1, -2) @ left - unit) <= bound)
    assert np.all(np.abs(right @ np.swapaxes(right, -1, -2) - unit) <= bound)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "shape",
    [(1, 1), (1, 9), (9, 1), (2, 2), (33, 20), (20, 33), (120, 115), (2, 3, 5, 4), (50, 4, 6)],
)
def test_shapes(dtype: Any, shape: tuple[int, ...]) -> None:
    a = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    assert "singular vectors by QR" in str(vectors.lower(a).compile().explain())
    check(vectors(a), a)


def hard(size: int) -> dict[str, np.ndarray]:
    """Matrices whose singular values are far apart, close together, the same, or none."""
    rng = np.random.default_rng(1)
    left, right = (np.linalg.qr(rng.standard_normal((size, size)))[0] for _ in range(2))
    normal = rng.standard_normal((size, size))
    powers, beside = 10.0 ** -np.arange(size), np.diag(np.ones(size - 1), 1)
    middle = np.arange(size) != size // 2
    spectra = {
        "close": 1 + 1e-9 * np.arange(size),
        "clusters": np.repeat([1.0, 2.0], [size // 2, size - size // 2]),
        "spread": powers,
    }
    return {
        "zero": np.zeros((size, size)),
        "unit": -np.eye(size),
        "ones": np.ones((size, size)),
        "graded": np.multiply.outer(powers, powers) * normal,
        "graded upwards": np.multiply.outer(powers, powers)[::-1, ::-1] * normal,
        "few": normal[:, :3] @ normal[:3],
        "beside": beside,
        "a zero on the diagonal": np.diag(middle + 0.0) + beside,
        "the last one zero": np.diag(np.arange(size) != size - 1) + beside,
        "empty columns": normal * middle,
        "empty rows": normal * middle[:, None],
        "triangle": np.triu(np.ones((size, size))),
        "huge": normal * 1e30,
        "tiny": normal * 1e-30,
        **{name: (left * values) @ right for name, values in spectra.items()},
    }


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", hard(2))
def test_hard_matrices(name: str, dtype: Any) -> None:
    a = hard(30)[name].astype(dtype)
    check(vectors(a), a)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_matrices_of_small_integers(data: st.DataObject) -> None:
    shape = data.draw(st.sampled_from([(5, 5), (7, 4), (4, 7)]))
    seed = data.draw(st.integers(0, 9999))
    a = np.random.default_rng(seed).integers(-1, 2, shape).astype(np.float64)
    check(vectors(a), a)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_gives_nan_as_a_whole(value: float) -> None:
    a = np.random.default_rng(0).standard_normal((5, 12, 7))
    a[3, 2, 1] = value
    found = vectors(a)
    assert all(np.isnan(part[3]).all() for part in found)
    check([np.delete(part, 3, 0) for part in found], np.delete(a, 3, 0))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("rows", "columns"), [(37, 37), (5, 21), (21, 5)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_narrow_vectors(rows: int, columns: int, dtype: str, level: str) -> None:
    """The same on other processors, of scratch full of NaNs."""
    target, machine = LEVELS[level]
    rank = min(rows, columns)
    shapes = {"a": (rows, columns), "u": (rows, rank), "s": (rank,), "v": (rank, columns)}
    a, u, s, v = (buffer(name, (3, *shape), dtype) for name, shape in shapes.items())
    problem = Rectangular(
        3,
        rows,
        columns,
        dtype,
        matrix=lambda b, i, j: a[b, i, j],
        store=lambda b, i, value: store(s, [b, i], value),
        store_left=lambda b, i, j, value: store(u, [b, i, j], value),
        store_right=lambda b, i, j, value: store(v, [b, j, i], value),
    )
    given = np.random.default_rng(0).standard_normal((3, rows, columns)).astype(dtype)
    made = [np.empty((3, *shape), dtype) for shape in list(shapes.values())[1:]]
    Compiled([a, u, s, v], singular_values(problem, machine), target)(given, *made)
    check(made, given)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
@pytest.mark.parametrize("shape", [(6, 6), (9, 4), (3, 8), (3, 2, 5, 4)])
def test_pseudo_inverses_and_least_squares(dtype: Any, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    a: Any = rng.standard_normal(shape)
    a = (a + 1j * a[::-1] if dtype is np.complex64 else a).astype(dtype)
    a[..., -1] = a[..., 0]
    bound = 500 * float(np.finfo(dtype).eps)
    invert = tj.jit(lambda a: np.linalg.pinv(a, rcond=1e-5))
    expected = np.linalg.pinv(a, rcond=1e-5)
    assert invert(a).dtype == dtype
    np.testing.assert_allclose(invert(a), expected, atol=bound * np.abs(expected).max())
    if a.ndim > 2:
        return
    solve = tj.jit(lambda a, b: np.linalg.lstsq(a, b, rcond=1e-5))
    b = a[:, :2] + 1
    # One factorisation has it all; of complex matrices LAPACK's least squares.
    factorised = "linalg.lstsq" if dtype is np.complex64 else "linalg.svd"
    kernels = solve.lower(a, b).compile().explain().kernels
    assert sum(kernel.ops.count(factorised) for kernel in kernels) == 1
    for made, wanted in zip(solve(a, b)[::3], np.linalg.lstsq(a, b, rcond=1e-5)[::3], strict=True):
        np.testing.assert_allclose(made, wanted, atol=bound * max(1, np.abs(wanted).max()))
    assert solve(a, b)[2] == min(shape[0], shape[1] - 1)


def test_shares_of_the_greatest_value() -> None:
    a = np.stack([np.diag([1.0, 0.1])] * 2)
    shares = np.array([0.01, 0.5])
    made = tj.jit(lambda a: np.linalg.pinv(a, rcond=shares))(a)
    np.testing.assert_allclose(made, [np.diag([1.0, 10.0]), np.diag([1.0, 0.0])], atol=1e-15)
    assert np.isnan(tj.jit(lambda a: np.linalg.pinv(a))(np.full((3, 3), np.nan))).all()
