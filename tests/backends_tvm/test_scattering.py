"""Scatters of many updates, in parts, in several copies, by columns; indices of many numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj

UPDATES = [
    (7, 3000, "int32"),
    (1000, 40_000, "float32"),
    (1000, 40_003, "float64"),
    (5000, 44_000, "int8"),
    (300, 40_000, "uint16"),
    (1, 33_000, "int64"),
    (20_000, 30_000, "float32"),
]


def combined(name: str) -> Callable[..., Any]:
    def function(table: Any, indices: Any, updates: Any) -> Any:
        result = table.copy()
        getattr(np, name).at(result, indices, updates)
        return result

    return function


def inputs(
    size: tuple[int, ...], count: int, dtype: str, updates: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(count)
    table = rng.integers(-9, 9, size).astype(dtype)
    indices = rng.integers(-size[0], size[0], count)
    indices[: count // 3] = size[0] // 2
    return table, indices, rng.integers(-3, 4, updates).astype(dtype)


@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "minimum"])
@pytest.mark.parametrize(("size", "count", "dtype"), UPDATES)
def test_many_updates_of_few_places(name: str, size: int, count: int, dtype: str) -> None:
    table, indices, updates = inputs((size,), count, dtype, (count,))
    if name == "multiply" and dtype.startswith("float"):
        updates = np.where(updates < 0, -1, 1).astype(dtype)  # else infinite
    function = combined(name)
    expected = function(table, indices, updates)
    assert np.array_equal(tj.jit(function)(table, indices, updates), expected)


def test_copies_leave_what_is_not_updated_as_it_is() -> None:
    table = np.array([-0.0, np.nan, -np.inf, 1, -0.0], np.float32)
    indices, updates = np.full(4000, 3), np.ones(4000, np.float32)
    found = tj.jit(combined("add"))(table, indices, updates)
    expected = np.array([-0.0, np.nan, -np.inf, 4001, -0.0], np.float32)
    assert np.array_equal(found, expected, equal_nan=True)
    assert np.array_equal(np.signbit(found), np.signbit(expected))


def test_maxima_in_copies_keep_nan() -> None:
    table, indices, updates = inputs((50,), 40_000, "float64", (40_000,))
    updates[39_999] = np.nan
    function = combined("maximum")
    expected = table.copy()
    with np.errstate(invalid="ignore"):
        np.maximum.at(expected, indices, updates)
    assert np.array_equal(tj.jit(function)(table, indices, updates), expected, equal_nan=True)


@pytest.mark.parametrize("width", [1, 8, 31, 32, 70])
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_windows_are_shared_by_columns_or_in_parts(width: int, dtype: str) -> None:
    table, indices, updates = inputs((40, width), 9000, dtype, (9000, width))
    function = combined("add")
    expected = function(table, indices, updates)
    assert np.array_equal(tj.jit(function)(table, indices, updates), expected)


def test_the_last_of_several_rows_stays() -> None:
    table, indices, updates = inputs((40, 64), 9000, "float32", (9000, 64))

    def function(table: Any, indices: Any, updates: Any) -> Any:
        result = table.copy()
        result[indices] = updates
        return result

    expected = function(table, indices, updates)
    assert np.array_equal(tj.jit(function)(table, indices, updates), expected)


def test_updates_that_lie_outside_are_left_out_of_copies() -> None:
    module = tj.hlo.parse("""
HloModule outside

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT sum = f32[] add(a, b)
}

ENTRY main {
  table = f32[3,2] parameter(0)
  indices = s32[20000,2] parameter(1)
  updates = f32[20000] parameter(2)
  ROOT made = f32[3,2] scatter(table, indices, updates), update_window_dims={},
    inserted_window_dims={0,1}, scatter_dims_to_operand_dims={0,1}, index_vector_dim=1,
    to_apply=add
}
""")
    rng = np.random.default_rng(0)
    arrays = (
        np.zeros((3, 2), np.float32),
        rng.integers(-2, 5, (20_000, 2)).astype(np.int32),
        rng.integers(-3, 4, 20_000).astype(np.float32),
    )
    assert np.array_equal(tj.compile(module)(*arrays), tj.interpret(module, *arrays))


def test_indices_are_computed_where_they_are_used() -> None:
    table, indices, updates = inputs((100_000,), 1000, "float32", (1000,))
    report = tj.jit(combined("add")).lower(table, indices, updates).compile().explain()
    assert len(report.kernels) == 1


def test_updates_made_of_what_they_update() -> None:
    def function(x: Any, indices: Any) -> Any:
        for _ in range(3):
            result = x.copy()
            np.add.at(result, indices + 1, x[::-1][: len(indices)] * 2)
            x = result
        return x

    x, indices = np.arange(50.0), np.arange(40) % 7
    assert np.array_equal(tj.jit(function)(x, indices), function(x, indices))


PAIRS = [
    lambda x, i, j: x[i, j],
    lambda x, i, j: np.take_along_axis(x, np.reshape(i, (30, 10)) % 20, 1),
    lambda x, i, j: x[i, j, None] + x[j % 20, i % 7],
    lambda x, i, j: np.cos(x)[np.abs(i) * 2 % 30, -j % 20],
]


@pytest.mark.parametrize("function", PAIRS)
def test_pairs_of_indices_are_not_stored(function: Callable[..., Any]) -> None:
    rng = np.random.default_rng(0)
    x, i, j = rng.normal(size=(30, 20)), rng.integers(0, 20, 300), rng.integers(-20, 20, 300)
    assert np.allclose(tj.jit(function)(x, i, j), function(x, i, j))
    report = tj.jit(PAIRS[0]).lower(x, i, j).compile().explain()
    assert len(report.kernels) == 1


def test_scatters_into_pairs_of_indices() -> None:
    def function(x: Any, i: Any, j: Any) -> Any:
        result = x.copy()
        np.add.at(result, (i, j), x[j, i])
        result[i, j + 1] = 1.0
        return result

    rng = np.random.default_rng(0)
    x, i, j = rng.normal(size=(20, 20)), rng.integers(0, 20, 50), rng.integers(-20, 19, 50)
    assert np.allclose(tj.jit(function)(x, i, j), function(x, i, j))


def test_indices_that_are_expensive_are_stored() -> None:
    def function(x: Any, i: Any) -> Any:
        places = (np.sin(x[:, 0] * i) * 9).astype(np.int64)
        return x[places, places % 3]

    rng = np.random.default_rng(0)
    x, i = rng.normal(size=(20, 20)), rng.integers(0, 20, 20)
    assert np.allclose(tj.jit(function)(x, i), function(x, i))
