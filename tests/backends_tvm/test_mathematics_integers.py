"""Functions of integers of every width, against Python's own."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.backends_tvm.mathematics_harness import evaluate
from tracejit import lax
from tracejit.backends.tvm.cpu import mathematics

INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]


def edges(dtype: str) -> list[int]:
    info = np.iinfo(dtype)
    near = [info.min, info.min + 1, info.max, info.max - 1, info.max // 2, 0, 1, 2, 3, 7, 10, 100]
    return [*near, -1, -2, -3, -7, -100] if info.min else near


def numbers(dtype: str, count: int = 400) -> np.ndarray:
    generator = np.random.default_rng(1)
    info = np.iinfo(dtype)
    drawn = generator.integers(info.min, info.max, count, dtype, endpoint=True)
    small = drawn >> generator.integers(0, info.bits, count).astype(dtype)
    return np.concatenate([np.array(edges(dtype), dtype), drawn, small])


def arguments(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    x, y = zip(*itertools.product(edges(dtype), repeat=2), strict=True)
    drawn = numbers(dtype)
    return (
        np.concatenate([np.array(x, dtype), drawn]),
        np.concatenate([np.array(y, dtype), drawn[::-1]]),
    )


def wrapped(value: int, dtype: str) -> int:
    bits, is_signed = np.iinfo(dtype).bits, np.iinfo(dtype).min < 0
    value %= 1 << bits
    return value - (1 << bits) if is_signed and value >> (bits - 1) else value


def quotient(x: int, y: int) -> int:
    """Truncated; -1 for a zero divisor."""
    if y == 0:
        return -1
    return -(-x // y) if (x < 0) != (y < 0) else x // y


def remainder(x: int, y: int) -> int:
    return x if y == 0 else x - y * quotient(x, y)


def power(dtype: str) -> Callable[[int, int], int]:
    def apply(x: int, y: int) -> int:
        if y < 0:
            return {1: 1, -1: 1 if y % 2 == 0 else -1}.get(x, 0)
        return pow(x, y, 1 << np.iinfo(dtype).bits)

    return apply


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", ["div", "rem", "pow", "max", "min"])
def test_functions_of_two(name: str, dtype: str) -> None:
    expected: dict[str, Callable[[int, int], int]] = {
        **{"div": quotient, "rem": remainder, "pow": power(dtype)},
        **{"max": lambda x, y: max(x, y), "min": lambda x, y: min(x, y)},
    }
    x, y = arguments(dtype)
    function = getattr(mathematics, name)
    actual = evaluate(lambda a, b: function(a, b, dtype), x, y)
    wanted = [
        wrapped(expected[name](a, b), dtype) for a, b in zip(x.tolist(), y.tolist(), strict=True)
    ]
    assert actual.tolist() == wanted


@pytest.mark.parametrize("dtype", INTEGERS)
def test_functions_of_bits(dtype: str) -> None:
    x = numbers(dtype)
    bits = np.iinfo(dtype).bits
    codes = [value % (1 << bits) for value in x.tolist()]
    count = evaluate(lambda v: mathematics.population_count(v, dtype), x)
    leading = evaluate(lambda v: mathematics.clz(v, dtype), x)
    assert count.tolist() == [bin(code).count("1") for code in codes]
    assert leading.tolist() == [bits - code.bit_length() for code in codes]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_sign(dtype: str) -> None:
    x = numbers(dtype)
    actual = evaluate(lambda v: mathematics.sign(v, dtype), x)
    assert actual.tolist() == [(v > 0) - (v < 0) for v in x.tolist()]


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("name", ["div", "rem", "pow"])
def test_every_pair_of_bytes(name: str, dtype: str) -> None:
    expected = {"div": quotient, "rem": remainder, "pow": power(dtype)}[name]
    every = np.arange(256, dtype=np.uint8).view(dtype)
    x, y = np.repeat(every, 256), np.tile(every, 256)
    function = getattr(mathematics, name)
    actual = evaluate(lambda a, b: function(a, b, dtype), x, y, lanes=16)
    table = {(a, b): wrapped(expected(a, b), dtype) for a in every.tolist() for b in every.tolist()}
    assert actual.tolist() == [table[pair] for pair in zip(x.tolist(), y.tolist(), strict=True)]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16])
def test_known_quotients(dtype: type) -> None:
    """Of all numbers; by a product, which divisors below 2 are not."""
    info = np.iinfo(dtype)
    x: np.ndarray = np.arange(info.min, info.max + 1).astype(dtype)
    known = [2, 3, 7, 10, 64, 100, 127, info.max // 2 + 1, info.max - 1, info.max]
    for divisor in [*known, 0, 1, -1, -7] if info.min else [*known, 0, 1]:
        by = dtype(divisor)

        def both(x: Any, by: Any = by) -> Any:
            return lax.div(x, np.full(x.shape, by)), lax.rem(x, np.full(x.shape, by))

        found = tj.jit(both)(x)
        for result, formula in zip(found, (quotient, remainder), strict=True):
            wanted = [wrapped(formula(each, divisor), np.dtype(dtype).name) for each in x.tolist()]
            assert result.tolist() == wanted, divisor
