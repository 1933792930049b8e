"""Maxima and minima of many floats: exact in NaN and in the sign of zero, in every kind of loop."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tracejit as tj
from tests.backends_tvm.mathematics_harness import TARGETS, evaluate
from tracejit.backends.tvm.cpu import mathematics

SPECIAL = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-45, 3e38, -3e38, 1.0, -1.0]

RANKS = {
    "max": (mathematics.rank_for_maximum, mathematics.maximum_of_rank),
    "min": (mathematics.rank_for_minimum, mathematics.minimum_of_rank),
}


def exact(name: str, x: np.ndarray, axis: int | None) -> np.ndarray:
    """By definition: NaN if there is one; of zeros that of the sign which is greater or less."""
    largest = np.max(x, axis) if name == "max" else np.min(x, axis)
    signs = np.where(x == 0, np.signbit(x), name == "max")
    negative = signs.all(axis) if name == "max" else signs.any(axis)
    zero = np.where(negative, -0.0, 0.0).astype(x.dtype)
    return np.where(largest == 0, zero, largest)


def assert_same(made: Any, expected: Any) -> None:
    np.testing.assert_array_equal(made, expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(made)[numbers], np.signbit(expected)[numbers])


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS.keys())
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", RANKS)
def test_the_higher_rank_is_that_of_the_extreme(name: str, dtype: str, target: Any) -> None:
    pairs = np.array(list(itertools.product(SPECIAL, repeat=2))).astype(dtype).T.copy()
    rank, value = RANKS[name]

    def formula(x: Any, y: Any) -> Any:
        higher = mathematics.higher_rank(rank(x, dtype), rank(y, dtype), dtype)
        return value(higher, dtype)

    made = evaluate(formula, pairs[0], pairs[1], target=target)
    assert_same(made, exact(name, pairs, 0))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("name", RANKS)
def test_reductions_of_special_numbers(name: str, dtype: str) -> None:
    kind = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    rng = np.random.default_rng(0)
    reduce: Callable[..., Any] = getattr(tj.numpy, name)
    for shape, axis in (((40, 67), 1), ((67, 40), 0), ((64, 1024), 0), ((9000,), None)):
        drawn = rng.choice([0.0, -0.0, -1.0, 1.0, np.inf, -np.inf], shape)
        x = np.where(rng.random(shape) < 0.01, np.nan, drawn)
        # Whole rows and columns of numbers on one side of zero, so that the other rarely wins.
        side = 1 if name == "max" else -1
        x = np.where(
            np.arange(shape[0]).reshape(-1, *[1] * (len(shape) - 1)) % 2, x, -side * abs(x)
        )
        x = np.where(np.arange(shape[-1]) % 3, x, -side * 0.0 * np.ones(shape))
        made = tj.jit(lambda x, axis=axis: reduce(x, axis=axis))(x.astype(kind))
        wide = x.astype(kind).astype(np.float64)
        assert_same(np.asarray(made, np.float64), exact(name, wide, axis))


def test_an_initial_value_takes_part() -> None:
    x = np.full((3, 50), -5, np.float32)
    for initial in (-7.0, 4.0, np.nan, np.inf):
        made = tj.jit(lambda x, i=initial: tj.numpy.max(x, axis=1, initial=i))(x)
        np.testing.assert_array_equal(made, np.full(3, np.maximum(-5, initial), np.float32))
