"""Compiled eigenvalues of symmetric matrices: as exact as the greatest of them allows."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracejit as tj
from tests.backends_tvm.kernel_harness import LEVELS, Compiled
from tracejit.backends.tvm.cpu.kernels.linalg.symmetric import Symmetric, symmetric_eigenvalues
from tracejit.backends.tvm.ir.tir import buffer, store

values = tj.jit(np.linalg.eigvalsh)
vectors = tj.jit(lambda a: tuple(np.linalg.eigh(a)))


def schedule(a: np.ndarray) -> str:
    return str(values.lower(a).compile().explain())


def check(found: Any, a: np.ndarray) -> None:
    size = a.shape[-1]
    expected = np.linalg.eigvalsh(a.astype(np.float64))
    bound = 8 * np.sqrt(size) * float(np.finfo(a.dtype).eps)
    largest = np.abs(expected).max(-1, keepdims=True)
    assert found.dtype == a.dtype
    assert np.all(np.abs(found - expected) <= bound * largest)
    assert np.all(np.diff(found) >= 0)


def symmetric(rng: np.random.Generator, *shape: int) -> np.ndarray:
    a = rng.standard_normal((*shape, shape[-1]))
    return np.asarray(a + np.swapaxes(a, -1, -2))


def test_the_kernels_are_ours() -> None:
    assert "eigenvalues in lanes" in schedule(np.ones((30, 4, 4), np.float32))
    assert "eigenvalues by bisection" in schedule(np.ones((40, 40), np.float32))
    assert "library" in schedule(np.ones((600, 600), np.float32))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1,), (2,), (33,), (130,), (5, 9), (3, 70, 4), (90, 16)])
def test_shapes(dtype: Any, shape: tuple[int, ...]) -> None:
    a = symmetric(np.random.default_rng(0), *shape).astype(dtype)
    check(values(a), a)


@pytest.mark.parametrize("uplo", ["L", "U"])
@pytest.mark.parametrize("shape", [(40,), (20, 3)])
def test_one_triangle_is_read(uplo: Any, shape: tuple[int, ...]) -> None:
    a = symmetric(np.random.default_rng(0), *shape)
    given = read(a, uplo)
    given[..., 0, -1] += np.nan if uplo == "L" else 0
    given[..., -1, 0] += np.nan if uplo == "U" else 0
    check(tj.jit(lambda x: np.linalg.eigvalsh(x, uplo))(given), a)


def check_vectors(found: Any, a: np.ndarray) -> None:
    w, v = found
    check(w, a)
    size = a.shape[-1]
    bound = 8 * np.sqrt(size) * float(np.finfo(a.dtype).eps)
    largest = np.abs(w.astype(np.float64)).max(-1)[..., None, None]
    left, right = a.astype(np.float64), v.astype(np.float64)
    assert np.all(np.abs(left @ right - right * w[..., None, :]) <= bound * largest)
    unit = np.swapaxes(right, -1, -2) @ right
    assert np.all(np.abs(unit - np.eye(size)) <= bound)


def read(a: np.ndarray, uplo: str) -> np.ndarray:
    """The triangle that is read, and nothing where the other one is."""
    return np.tril(a) if uplo == "L" else np.triu(a)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1,), (8,), (40, 3), (3, 11, 5), (70, 16)])
@pytest.mark.parametrize("uplo", ["L", "U"])
def test_vectors_in_lanes(dtype: Any, shape: tuple[int, ...], uplo: Any) -> None:
    a = symmetric(np.random.default_rng(0), *shape).astype(dtype)
    a.reshape(-1, shape[-1], shape[-1])[0] = np.ones((shape[-1], shape[-1]))
    find = tj.jit(lambda x: tuple(np.linalg.eigh(x, uplo)))
    assert "eigenvalues in lanes" in str(find.lower(a).compile().explain())
    check_vectors(find(read(a, uplo)), a)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(9,), (33,), (130,), (2, 3, 20), (9, 64)])
@pytest.mark.parametrize("uplo", ["L", "U"])
def test_vectors_by_ql(dtype: Any, shape: tuple[int, ...], uplo: Any) -> None:
    a = symmetric(np.random.default_rng(0), *shape).astype(dtype)
    find = tj.jit(lambda x: tuple(np.linalg.eigh(x, uplo)))
    assert "eigenvectors by QL" in str(find.lower(a).compile().explain())
    check_vectors(find(read(a, uplo)), a)


def hard(size: int) -> dict[str, np.ndarray]:
    """Matrices whose eigenvalues are far apart, close together, the same, or none."""
    rng = np.random.default_rng(1)
    unitary, _ = np.linalg.qr(rng.standard_normal((size, size)))
    powers = 10.0 ** -np.arange(size)
    beside = np.diag(np.ones(size - 1), 1)
    spectra = {
        "close": 1 + 1e-9 * np.arange(size),
        "clusters": np.repeat([1.0, 2.0], [size // 2, size - size // 2]),
        "spread": powers,
        "indefinite": np.resize([1.0, -1.0], size),
    }
    return {
        "zero": np.zeros((size, size)),
        "unit": np.eye(size),
        "ones": np.ones((size, size)),
        "graded": np.multiply.outer(powers, powers) * symmetric(rng, size),
        "graded upwards": np.multiply.outer(powers, powers)[::-1, ::-1] * symmetric(rng, size),
        # J. H. Wilkinson's, whose eigenvalues are pairs that agree to all digits.
        "pairs": np.diag(np.abs(np.arange(size) - size // 2.0)) + beside + beside.T,
        "no diagonal": beside + beside.T,
        "huge": symmetric(rng, size) * 1e30,
        "tiny": symmetric(rng, size) * 1e-30,
        **{name: (unitary * values) @ unitary.T for name, values in spectra.items()},
    }


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", hard(2))
def test_vectors_of_hard_matrices(name: str, dtype: Any) -> None:
    a = hard(30)[name]
    a = (np.tril(a) + np.tril(a, -1).T).astype(dtype)
    check_vectors(vectors(a), a)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_vectors_of_one_that_is_not_finite(value: float) -> None:
    a = symmetric(np.random.default_rng(0), 4, 21)
    a[2, 5, 3] = value
    w, v = vectors(a)
    assert np.isnan(w[2]).all()
    assert np.isnan(v[2]).all()
    others = np.delete(a, 2, 0)
    check_vectors((np.delete(w, 2, 0), np.delete(v, 2, 0)), others)


def test_vectors_of_what_is_not_finite() -> None:
    a = np.array([np.eye(3), np.full((3, 3), np.nan), 1e300 * np.eye(3), np.zeros((3, 3))])
    w, v = tj.jit(lambda x: tuple(np.linalg.eigh(x)))(a)
    assert np.isnan(w[1]).all()
    assert np.isnan(v[1]).all()
    for n in (0, 2, 3):
        np.testing.assert_array_equal(np.abs(v[n]), np.eye(3))
        np.testing.assert_array_equal(w[n], np.diag(a[n]))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_numbers_of_any_size(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from([np.float32, np.float64]))
    shape = data.draw(st.sampled_from([(30,), (20, 4)]))
    limit = 36 if dtype is np.float32 else 300
    power = 10.0 ** data.draw(st.integers(-limit, limit))
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    a = symmetric(rng, *shape)
    kind = data.draw(st.sampled_from(["full", "graded", "rank", "diagonal", "equal", "zero"]))
    size = shape[-1]
    if kind == "graded":
        a = a * np.multiply.outer(*[10.0 ** -np.arange(size)] * 2)
    elif kind == "rank":
        a = np.ones_like(a)
    elif kind == "diagonal":
        a = a * np.eye(size)
    elif kind == "equal":
        a = np.broadcast_to(np.eye(size), a.shape)
    elif kind == "zero":
        a = a * 0
    whole = np.ascontiguousarray(a * power, dtype)
    check(values(whole), whole)


@pytest.mark.parametrize("shape", [(30,), (4, 4)])
def test_of_a_diagonal_matrix_they_are_its_elements(shape: tuple[int, ...]) -> None:
    size = shape[-1]
    a: Any = np.broadcast_to(np.diag(np.arange(size) - 2.0), (*shape, size)) + 0
    expected = np.broadcast_to(np.arange(size) - 2.0, shape)
    np.testing.assert_allclose(values(a), expected, rtol=0, atol=1e-16 * size)
    np.testing.assert_array_equal(values(0 * a + np.eye(size)), np.ones(shape))
    np.testing.assert_array_equal(values(0 * a), np.zeros(shape))


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("size", [4, 40])
def test_what_is_not_finite_gives_nan_as_a_whole(value: float, size: int) -> None:
    a = symmetric(np.random.default_rng(0), 5, size)
    expected = np.linalg.eigvalsh(a)
    a[3, 2, 1] = value
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = values(a)
    assert np.isnan(found[3]).all()
    np.testing.assert_allclose(np.delete(found, 3, 0), np.delete(expected, 3, 0), atol=1e-12)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("batch", "size"), [(1, 37), (21, 5)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_narrow_vectors(batch: int, size: int, dtype: str, level: str) -> None:
    """The same on other processors, of scratch full of NaNs."""
    target, machine = LEVELS[level]
    a, w = buffer("a", (batch, size, size), dtype), buffer("w", (batch, size), dtype)
    problem = Symmetric(
        batch,
        size,
        dtype,
        matrix=lambda b, i, j: a[b, i, j],
        store=lambda b, i, v: store(w, [b, i], v),
    )
    given = symmetric(np.random.default_rng(0), batch, size).astype(dtype)
    made = np.empty((batch, size), dtype)
    Compiled([a, w], symmetric_eigenvalues(problem, machine), target)(given, made)
    check(made, given)
    u, found = buffer("u", (batch, size, size), dtype), np.empty_like(given)
    problem = replace(problem, store_vector=lambda b, i, j, v: store(u, [b, i, j], v))
    Compiled([a, w, u], symmetric_eigenvalues(problem, machine), target)(given, made, found)
    check_vectors((made, found), given)


def test_derivatives_and_batches() -> None:
    a = symmetric(np.random.default_rng(0), 3, 6)
    loss = tj.jit(lambda x: (np.linalg.eigvalsh(x) ** 3).sum())
    tj.check_grads(loss, (a[0],), order=1)
    np.testing.assert_array_equal(tj.jit(tj.vmap(np.linalg.eigvalsh))(a), values(a))
