"""Argmax and argmin of contiguous rows: the first of the best, NaN before all, in blocks or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj

LENGTHS = [64, 100, 129, 1024, 4096, 4097, 9001, 50_003]


def found(x: Any) -> list[Any]:
    return [np.argmax(x, axis=-1), np.argmin(x, axis=-1), np.argmax(x)]


def constant(x: np.ndarray, rng: np.random.Generator) -> None:
    x[...] = rng.choice([-1, 0, 1])


def ties(x: np.ndarray, rng: np.random.Generator) -> None:
    x[...] = rng.integers(-3, 3, x.shape)


def worst(x: np.ndarray, rng: np.random.Generator) -> None:
    x[...] = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min


def zeros(x: np.ndarray, rng: np.random.Generator) -> None:
    x[...] = rng.choice(np.array([0.0, -0.0], x.dtype), x.shape)


def nan(x: np.ndarray, rng: np.random.Generator) -> None:
    x[...] = rng.choice(np.array([np.inf, -np.inf, 1.0]), x.shape)
    x[rng.random(x.shape) < 2 / x.shape[-1]] = np.nan


def first_and_last(x: np.ndarray, rng: np.random.Generator) -> None:
    x[..., [0, -1]] = rng.choice([100, -100])


SPOILED: list[Callable[..., None]] = [constant, ties, worst, zeros, nan, first_and_last]


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8"])
@pytest.mark.parametrize("length", LENGTHS)
def test_the_first_of_the_best(length: int, dtype: str) -> None:
    rng = np.random.default_rng(length)
    compiled = tj.jit(found)
    for spoil in SPOILED:
        if spoil is nan and dtype[0] != "f":
            continue
        x = (100 * rng.standard_normal((3, length))).astype(dtype)
        spoil(x, rng)
        for made, expected in zip(compiled(x), found(x), strict=True):
            np.testing.assert_array_equal(made, expected, spoil.__name__)


def test_the_number_comes_with_its_index() -> None:
    x = np.random.default_rng(0).standard_normal((5, 700)).astype(np.float32)

    def both(x: Any) -> Any:
        at = tj.numpy.argmax(x, axis=1)
        return tj.numpy.take_along_axis(x, at[:, None], 1)[:, 0], tj.numpy.max(x, axis=1), at

    taken, most, at = tj.jit(both)(x)
    np.testing.assert_array_equal(taken, x.max(1))
    np.testing.assert_array_equal(most, x.max(1))
    np.testing.assert_array_equal(at, x.argmax(1))
