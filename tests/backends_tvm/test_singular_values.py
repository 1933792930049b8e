"""Compiled singular values: as exact as the greatest of them allows."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracejit as tj
from tests.backends_tvm.kernel_harness import LEVELS, Compiled
from tracejit.backends.tvm.cpu.kernels.linalg.singular_values import Rectangular, singular_values
from tracejit.backends.tvm.ir.tir import buffer, store

values = tj.jit(lambda a: np.linalg.svd(a, compute_uv=False))


def check(found: Any, a: np.ndarray) -> None:
    expected = np.linalg.svd(a.astype(np.float64), compute_uv=False)
    bound = 4 * np.sqrt(sum(a.shape[-2:])) * float(np.finfo(a.dtype).eps)
    largest = expected.max(-1, keepdims=True)
    assert found.dtype == a.dtype
    assert np.all(np.abs(found - expected) <= bound * largest)
    assert np.all(np.diff(found) <= 0)
    assert np.all(found >= 0)


def test_the_kernel_is_ours() -> None:
    explained = values.lower(np.ones((40, 30), np.float32)).compile().explain()
    assert "singular values by bisection" in str(explained)
    explained = values.lower(np.ones((40, 3, 4), np.float32)).compile().explain()
    assert "singular values in lanes" in str(explained)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "shape",
    [(1, 1), (1, 9), (9, 1), (33, 20), (20, 33), (100, 100), (2, 3, 5, 4), (50, 4, 6), (9, 30, 3)],
)
def test_shapes(dtype: Any, shape: tuple[int, ...]) -> None:
    a = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    check(values(a), a)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (2, 0, 4), (0, 3, 3)])
def test_nothing(shape: tuple[int, ...]) -> None:
    found = values(np.zeros(shape))
    assert found.shape == (*shape[:-2], min(shape[-2:]))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_numbers_of_any_size(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from([np.float32, np.float64]))
    shape = data.draw(st.sampled_from([(30, 20), (6, 11), (4, 3)]))
    limit = 36 if dtype is np.float32 else 300
    power = 10.0 ** data.draw(st.integers(-limit, limit))
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    a: Any = rng.standard_normal(shape)
    kind = data.draw(st.sampled_from(["full", "graded", "rank", "diagonal", "columns", "zero"]))
    if kind == "graded":
        a = a * 10.0 ** -np.arange(shape[1])
    elif kind == "rank":
        a = np.ones(shape)
    elif kind == "diagonal":
        a = np.eye(*shape) * rng.integers(0, 5, shape[1])
    elif kind == "columns":
        a[:, 1:3] = a[:, :1]
    elif kind == "zero":
        a = a * 0
    whole = np.ascontiguousarray(a * power, dtype)
    check(values(whole), whole)


def test_of_a_diagonal_matrix_they_are_its_elements() -> None:
    np.testing.assert_array_equal(values(np.eye(30, 20)), np.ones(20))
    np.testing.assert_array_equal(values(np.zeros((4, 7))), np.zeros(4))
    np.testing.assert_allclose(values(np.diag([3.0, -5, 0, 1])), [5, 3, 1, 0], atol=1e-16)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_gives_nan_as_a_whole(value: float) -> None:
    a = np.random.default_rng(0).standard_normal((5, 12, 7))
    expected = np.linalg.svd(a, compute_uv=False)
    a[3, 2, 1] = value
    few = np.array([np.eye(3), np.full((3, 3), value), np.eye(3)])
    assert np.isnan(values(few)).any(1).tolist() == [False, True, False]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = values(a)
    assert np.isnan(found[3]).all()
    np.testing.assert_allclose(np.delete(found, 3, 0), np.delete(expected, 3, 0), atol=1e-12)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("rows", "columns"), [(37, 37), (5, 21), (3, 2)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_narrow_vectors(rows: int, columns: int, dtype: str, level: str) -> None:
    """The same on other processors, of scratch full of NaNs."""
    target, machine = LEVELS[level]
    rank = min(rows, columns)
    a, s = buffer("a", (3, rows, columns), dtype), buffer("s", (3, rank), dtype)
    problem = Rectangular(
        3,
        rows,
        columns,
        dtype,
        matrix=lambda b, i, j: a[b, i, j],
        store=lambda b, i, v: store(s, [b, i], v),
    )
    given = np.random.default_rng(0).standard_normal((3, rows, columns)).astype(dtype)
    made = np.empty((3, rank), dtype)
    Compiled([a, s], singular_values(problem, machine), target)(given, made)
    check(made, given)


def test_derivatives_and_batches() -> None:
    a = np.random.default_rng(0).standard_normal((3, 6, 4))
    loss = tj.jit(lambda x: (np.linalg.svd(x, compute_uv=False) ** 3).sum())
    tj.check_grads(loss, (a[0],), order=1)
    np.testing.assert_array_equal(
        tj.jit(tj.vmap(lambda x: np.linalg.svd(x, compute_uv=False)))(a), values(a)
    )
