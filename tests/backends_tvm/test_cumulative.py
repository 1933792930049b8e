"""Cumulative sums, products and extremes along rows, several rows at once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj

TYPES = [np.float32, np.float16, np.int8, np.int64, np.complex64]
PEERS: dict[str, Callable[..., Any]] = {
    "cumsum": np.cumsum,
    "cumprod": np.cumprod,
    "cummax": np.maximum.accumulate,
    "cummin": np.minimum.accumulate,
}


@pytest.mark.parametrize(("rows", "length"), [(7, 11), (8, 11), (13, 11), (8, 67), (13, 64)])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", PEERS)
def test_rows_side_by_side(name: str, reverse: bool, rows: int, length: int) -> None:
    """Rows shorter than a cache line, of whole lines, and with a rest."""
    rng = np.random.default_rng(rows)
    for kind in TYPES:
        x: np.ndarray = rng.integers(-2, 3, (rows, length)).astype(kind)
        if kind is np.float32 and name in ("cummax", "cummin"):
            x[3, 4] = x[0, 0] = np.nan
        found = tj.jit(lambda x, name=name: getattr(tj.lax, name)(x, 1, reverse=reverse))(x)
        step = -1 if reverse else 1
        with np.errstate(all="ignore"):
            expected = PEERS[name](x[:, ::step], 1, dtype=kind)[:, ::step]
        assert np.array_equal(found, expected, equal_nan=True)


def test_rows_in_place() -> None:
    def function(x: Any) -> Any:
        return np.cumsum(x, 1) * 2

    for rows in (16, 19):
        x = np.arange(rows * 9.0).reshape(rows, 9)
        expected = function(x)
        assert np.array_equal(tj.jit(function, donate_argnums=0)(x.copy()), expected)


@pytest.mark.parametrize("shape", [(8192,), (8223, 1), (2, 140_001)], ids=str)
@pytest.mark.parametrize("name", PEERS)
def test_long_rows_in_parts(name: str, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    axis = len(shape) - 1 - (shape[-1] == 1)
    for kind in (np.float64, np.int32):
        x: np.ndarray = rng.integers(-9, 10, shape).astype(kind)
        if name == "cumprod":
            x = np.where(x < 0, -1, 1).astype(kind)
        if kind is np.float64 and name in ("cummax", "cummin"):
            x[5000:5001] = np.nan
        for reverse in (False, True):
            run = functools.partial(getattr(tj.lax, name), axis=axis, reverse=reverse)
            found = tj.jit(run)(x)
            turned = np.flip(x, axis) if reverse else x
            with np.errstate(all="ignore"):
                expected = PEERS[name](turned, axis, dtype=kind)
            expected = np.flip(expected, axis) if reverse else expected
            assert np.array_equal(found, expected, equal_nan=True)


def test_a_long_row_in_place() -> None:
    def function(x: Any) -> Any:
        return np.cumsum(x + 1)

    x = np.arange(9001.0)
    expected = function(x)
    assert np.array_equal(tj.jit(function, donate_argnums=0)(x.copy()), expected)
