"""Python numbers beside arrays: beyond their range, unknown, and where they become arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.numpy_api.compare import check, check_writes, same

I8 = np.array([1, 2, 3], np.int8)
U64 = np.array([1, 2, 2**64 - 1], np.uint64)
F32 = np.array([1, 2, 3], np.float32)
FLAGS = np.array([True, False, True])


def compared(np: Any, x: Any, k: Any) -> Any:
    return x < k, x <= k, x > k, x >= k, x == k, x != k, k < x, k >= x, k == x


@pytest.mark.parametrize("x", [I8, U64, I8.astype(np.uint8), I8.astype(np.int64), FLAGS, F32])
@pytest.mark.parametrize("k", [-1, 2, 300, -(2**40)])
def test_comparisons_are_exact(x: np.ndarray, k: int) -> None:
    check(lambda np, x: compared(np, x, k), x)
    same(tj.jit(lambda x, k: compared(np, x, k))(x, k), compared(np, x, k))


@pytest.mark.parametrize("k", [2**70, -(2**70), 2**64])
def test_comparisons_beyond_every_integer(k: int) -> None:
    check(lambda np, x: compared(np, x, k), U64)
    check(lambda np, x: compared(np, x, k), I8)


def test_where_numpy_makes_arrays_of_numbers() -> None:
    def function(np: Any, f: Any, x: Any, b: Any) -> Any:
        return (
            np.append(f, 0), np.append(x, 2.5), np.append(x[None], [[300, 1, 2]], 0),
            np.dot(f, 2), np.inner(2, f), np.einsum("i,->i", f, 2), np.hstack([f, 2]),
            np.clip(x, -1000, 1000), np.clip(x, None, 2), b**2, f**2,
        )  # fmt: skip

    check(function, F32, I8, FLAGS)


def test_joined_between_brackets() -> None:
    check_writes(lambda np, f: (np.r_[f, 2], np.r_[0.5, f[::-1]], np.c_[f, f]), F32)


def test_limits_beyond_the_range_of_unsigned_integers() -> None:
    check(lambda np, x: (np.clip(x, -5, 2), np.clip(x, None, 2**80), x.clip(-1)), U64)


def test_the_casting_of_joined_arrays() -> None:
    def joined(np: Any, x: Any, casting: str) -> Any:
        return np.concatenate([x, x * 1j], dtype=np.float32, casting=casting)

    with pytest.raises(TypeError, match="cannot cast from complex64 to float32 by the rule 'safe'"):
        tj.jit(lambda x: joined(tj.numpy, x, "safe"))(F32)
    check(lambda np, x: np.concatenate([x, x], dtype=np.float16, casting="unsafe"), F32)


def test_means_are_cast_to_out() -> None:
    def function(np: Any, x: Any) -> Any:
        y = np.zeros((2, 3), int)
        np.mean(x, 0, out=y[0])
        x.var(0, out=y[1])
        return y

    x = np.arange(12).reshape(4, 3) ** 2
    same(tj.jit(lambda x: function(tj.numpy, x))(x), function(np, x))


def test_the_math_module() -> None:
    def function(math: Any, x: Any, k: Any) -> Any:
        return (
            math.gamma(x), math.lgamma(k), math.erfc(x), math.fsum([x, k, 2.5]), math.modf(x),
            math.dist([x, 1], [k, 3]), math.frexp(x), math.ldexp(x, 3), math.gcd(k, 6, 9),
            math.lcm(4, k), math.gcd(),
        )  # fmt: skip

    same(tj.jit(lambda x, k: function(math, x, k))(2.75, 3), function(math, 2.75, 3))


@pytest.mark.parametrize("y", [2.0, -3.0, 0.5, np.inf])
def test_remainders_nearest_to_zero(y: float) -> None:

    found = tj.jit(lambda x, y: math.remainder(x, y))
    for x in (-6.75, -3.0, -1.0, -0.25, 0.0, 1.0, 3.0, 4.5, 5.0, 7.0):
        assert found(x, y) == math.remainder(x, y)
