"""Vectors of elements that are not neighbours: strided slices, reversed arrays, complex parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tvm

import tracejit as tj
from tracejit.backends.tvm.cpu.objects.deinterleave_vectors import strided
from tracejit.backends.tvm.ir.tir import AllocBuffer, buffer, i32, seq, tirx

TYPES = [
    np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int8, np.uint8, np.int16, np.int32,
    np.int64, np.bool_, np.complex64, np.complex128,
]  # fmt: skip
COMPLEX = [
    lambda x: x * x[::-1] + 1,
    lambda x: np.conj(x)[::2],
    lambda x: x.real - x.imag,
    lambda x: np.abs(x).sum() + x.sum(),
    lambda x: np.concatenate([x, x[1:7] * 1j]),
    lambda x: np.where(x.real > 0, x, -x),
    lambda x: np.cumsum(x[:50]),
    lambda x: x[: len(x) // 6 * 6].reshape(-1, 6).sum(0),
    lambda x: x[: len(x) // 6 * 6].reshape(6, -1).T.copy(),
]


@pytest.mark.parametrize("size", [5, 64, 97, 1000])
@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: np.dtype(kind).name)
def test_every_step_through_an_array(kind: type, size: int) -> None:
    x: np.ndarray = np.random.default_rng(size).integers(0, 100, size).astype(kind)

    def steps(x: Any) -> list[Any]:
        return [x[first::step] for step in (2, 3, 4, 5, -1, -2, -3) for first in (1, -2, None)]

    for found, expected in zip(tj.jit(steps)(x), steps(x), strict=True):
        assert np.array_equal(found, expected)


@pytest.mark.parametrize("factor", [-1, -3, 2, 5])
@pytest.mark.parametrize("base", [0, 400])
def test_distances_written_as_products(factor: int, base: int) -> None:
    """The lanes' numbers times a factor are evenly spaced numbers."""
    source, target = (buffer(name, (512,), "float32") for name in ("source", "target"))
    first = tirx.Var("first", "int32")
    lanes = tirx.Ramp(first * 16, 1, 16)
    index = tirx.Broadcast(i32(base), 16) + lanes * tirx.Broadcast(i32(factor), 16)
    copy = tirx.BufferStore(target, tirx.BufferLoad(source, [index]), [lanes])
    module = tvm.IRModule(
        {"copy": tirx.PrimFunc([first], seq(AllocBuffer(source), AllocBuffer(target), copy))}
    )
    assert ("Shuffle" in str(strided(module))) == (abs(factor) < 5)


@pytest.mark.parametrize("channels", [2, 3, 4])
def test_channels_next_to_each_other(channels: int) -> None:
    x: np.ndarray = np.random.default_rng(0).integers(0, 255, (37, 41, channels), np.uint8)

    def function(x: Any) -> tuple[Any, ...]:
        apart = [x[..., c] for c in range(channels)]
        return np.transpose(x, (2, 0, 1)), sum(a.astype(np.int32) for a in apart), x[:, ::-1, ::-1]

    for found, expected in zip(tj.jit(function)(x), function(x), strict=True):
        assert np.array_equal(found, expected)


@pytest.mark.parametrize("kind", [np.complex64, np.complex128])
@pytest.mark.parametrize("function", COMPLEX)
def test_complex_numbers(function: Callable[..., Any], kind: type) -> None:
    rng = np.random.default_rng(0)
    for size in (17, 333):
        x: np.ndarray = (rng.normal(size=size) + 1j * rng.normal(size=size)).astype(kind)
        assert np.allclose(tj.jit(function)(x), function(x), rtol=1e-4, atol=1e-4)


def test_complex_numbers_in_place() -> None:
    def function(x: Any, turn: Any) -> Any:
        for _ in range(3):
            x[1:] = x[:-1] * turn
            x[::2] += 1
            x *= 1j
        return x

    x: np.ndarray = np.arange(40) * (1 + 0.5j)
    expected = function(x.copy(), np.complex128(0.6 + 0.8j))
    found = tj.jit(function, donate_argnums=0)(x.copy(), np.complex128(0.6 + 0.8j))
    assert np.allclose(found, expected)


POINTS = [
    lambda x, s: x * s + 1,
    lambda x, s: np.stack([x[:, 0], x[:, 1] * 2, x[:, -1] + s[0]], -1),
    lambda x, s: (x.T + x.T[::-1]).T,
    lambda x, s: (x - s, x[:, ::-1] > s, (x * 7).astype(np.uint8)),
    lambda x, s: np.where(x > s, x, s)[1:],
    lambda x, s: np.concatenate([x, x * s], 1),
]


@pytest.mark.parametrize("width", [2, 3, 4])
@pytest.mark.parametrize("size", [64, 101])
@pytest.mark.parametrize("function", POINTS)
def test_points_of_few_coordinates(function: Callable[..., Any], size: int, width: int) -> None:
    rng = np.random.default_rng(0)
    for kind in (np.float32, np.int16):
        x, s = rng.integers(0, 9, (size, width)).astype(kind), np.arange(width).astype(kind)
        found, expected = tj.jit(function)(x, s), function(x, s)
        if not isinstance(expected, tuple):
            found, expected = (found,), (expected,)
        for each, other in zip(found, expected, strict=True):
            assert np.array_equal(each, other)


def test_points_in_place() -> None:
    def function(x: Any, s: Any) -> Any:
        x *= s
        x += s[::-1]
        return x

    x, s = np.arange(303.0).reshape(101, 3), np.array([1.0, 2.0, 3.0])
    expected = function(x.copy(), s)
    assert np.array_equal(tj.jit(function, donate_argnums=0)(x.copy(), s), expected)
