"""Loops that multiply Python's integers warn that these wrap around; others are quiet."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import tracejit as tj
from tracejit.errors import IntegerOverflowError


def factorial(n: int) -> Any:
    r = 1
    for i in range(1, n + 1):
        r = r * i
    return r


def fibonacci(n: int) -> Any:
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


def doubled(n: int) -> Any:
    k, left = 1, n * 1.0
    while left > 0:
        k = k + k
        left = left - 1
    return k


def shifted(n: int) -> Any:
    k = 1
    for _ in range(n):
        k <<= 1
    return k


def hashed(n: int) -> Any:
    h = 5381
    for i in range(n):
        h = h * 33 + i
    return h


def series(n: int) -> Any:
    """The factorial is used as a float: that does not keep it small."""
    total, below = 0.0, 1
    for i in range(1, n + 1):
        below = below * i
        total = total + 1 / below
    return total


def until(n: int) -> Any:
    k = 1
    while k < n:
        k = k * 2
    return k


def broken(n: int) -> Any:
    k = 1
    for _ in range(n):
        k = 2 * k + 1
        if k > 100:
            break
    return k


def masked(n: int) -> Any:
    h = 5381
    for i in range(n):
        h = (h * 33 + i) & 0xFFFFFFFF
    return h


def reduced(n: int) -> Any:
    h = 1
    for _ in range(n):
        h = (h * 1103515245 + 12345) % 2**31
    return h


def summed(n: int) -> Any:
    s, t, step = 0, 0, 1
    for i in range(n):
        s += i * i
        t = t + step
        step = step + 2
    return s + t


def signs(n: int) -> Any:
    sign, total = 1, 0
    for i in range(n):
        total += sign * i
        sign = -1 * sign
    return total


def floats(n: int) -> Any:
    r = 1.0
    for i in range(1, n + 1):
        r = r * i
    return r


@pytest.mark.parametrize("function", [factorial, fibonacci, doubled, shifted, hashed, series])
def test_warns(function: Callable[[int], Any]) -> None:
    with pytest.warns(RuntimeWarning, match="grows by a factor in each step") as caught:
        assert tj.jit(function, autograph=True)(9) == pytest.approx(function(9))
    assert all(one.filename == __file__ for one in caught)


@pytest.mark.parametrize(
    "function", [until, broken, masked, reduced, summed, signs, floats], ids=lambda f: f.__name__
)
def test_is_quiet(function: Callable[[int], Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tj.jit(function, autograph=True)(9) == pytest.approx(function(9))


@pytest.mark.filterwarnings("ignore:for. the integer r grows")
def test_is_found_by_check() -> None:
    with pytest.raises(IntegerOverflowError, match="leaves 64 bits"):
        tj.jit(factorial, autograph=True, check=True)(25)


def test_short_known_loops_are_quiet() -> None:
    def f(x: Any) -> Any:
        k = 1
        for _ in range(20):
            k = k * 2
            if x < 0:
                break
        return k

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tj.jit(f, autograph=True)(1.0) == 2**20
