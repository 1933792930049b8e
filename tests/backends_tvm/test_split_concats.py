"""Concatenations computed box by box: values, kernels, and arrays that stay whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit.backends.tvm.ir.limits import Limits
from tracejit.backends.tvm.passes.tile.split_concats import split_concats as in_boxes
from tracejit.graph import Computation, Module
from tracejit.ops.control import OPTIMIZATION_BARRIER
from tracejit.traversal import in_order

X = np.random.default_rng(0).standard_normal((120, 90)).astype(np.float32)


def laplacian(x: Any) -> Any:
    around = np.roll(x, 1, 0) + np.roll(x, -1, 0) + np.roll(x, 1, 1) + np.roll(x, -1, 1)
    return around - 4 * x


def padded_stencil(x: Any) -> Any:
    p = np.pad(x, 1)
    return p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * x


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "laplacian": laplacian,
    "padded stencil": padded_stencil,
    "rolled along both": lambda x: np.roll(x, (3, 5), (0, 1)),
    "rolled twice": lambda x: np.roll(np.roll(x, 1, 0), 1, 1) - x,
    "shifted": lambda x: np.fft.fftshift(x),
    "edge": lambda x: np.pad(x, 2, mode="edge"),
    "reflect": lambda x: np.pad(x, 2, mode="reflect"),
    "wrap": lambda x: np.pad(x, 2, mode="wrap"),
    "blocks": lambda x: np.block([[x, x + 1], [x * 2, x]]),
    "rolled sums": lambda x: np.roll(np.roll(x, 1, 0) + x, 1, 0) + np.roll(x, 1, 1),
    "broadcast": lambda x: np.roll(x, 1, 0)[:, :1] * np.roll(x, 2, 1) + np.roll(x, 1, 0),
    "turned round": lambda x: np.concatenate([x, x[::-1]])[:, ::-1] * np.concatenate([x, x]),
    "clipped": lambda x: np.clip(np.roll(x, 1, 0), -1, 1) + np.roll(x, 1, 1),
    "cheap before": lambda x: np.roll(x + 1, 1, 0) + np.roll(x + 1, -1, 1),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_kernel_reads_what_was_joined(name: str) -> None:
    function = FUNCTIONS[name]
    compiled = tj.jit(function).lower(X).compile()
    np.testing.assert_allclose(compiled(X), function(X), rtol=1e-5, atol=1e-6)
    assert len(compiled.explain().kernels) == 1


def test_what_costs_much_is_stored_once() -> None:
    compiled = tj.jit(lambda x: laplacian(np.tanh(x) * x)).lower(X).compile()
    np.testing.assert_allclose(compiled(X), laplacian(np.tanh(X) * X), rtol=1e-5, atol=1e-5)
    assert len(compiled.explain().kernels) == 2
    padded = tj.jit(lambda x: padded_stencil(np.exp(x))).lower(X).compile()
    np.testing.assert_allclose(padded(X), padded_stencil(np.exp(X)), rtol=1e-5, atol=1e-5)
    assert len(padded.explain().kernels) == 2


def test_what_stays() -> None:
    def roots(function: Callable[[Any], Any], x: np.ndarray) -> list[Any]:
        return [tj.jit(function).lower(x).module.entry.root]

    small = roots(laplacian, X[:20, :20].copy())
    assert in_boxes(small, Limits()) == small
    single = roots(lambda x: np.roll(x, 1, 0) * 2, X)
    assert in_boxes(single, Limits()) == single
    many = roots(lambda x: np.concatenate([x] * 12)[5:1205] * 2, X)
    assert in_boxes(many, Limits()) == many


def drawn(choices: list[int], x: Any, depth: int) -> Any:
    """A random array as large as ``x``; takes ``choices`` away."""
    n, m = x.shape
    if depth == 0:
        return x
    first = drawn(choices, x, depth - 1)
    choice, a, b = choices.pop() % 9, choices.pop() % 3, choices.pop() % 3
    if choice == 0:
        return np.roll(first, 2 * a - b, a % 2)
    if choice == 1:
        padded = np.pad(first, ((a, b), (b, a)), constant_values=2.0)
        return padded[b : b + n, :m]
    if choice == 2:
        return np.concatenate([first[3:], drawn(choices, x, depth - 1)[:3]])
    if choice == 3:
        return np.pad(first, 2, mode="reflect")[1 : n + 1, 3 : m + 3]
    if choice == 4:
        return first[::-1, ::-1]
    if choice == 5:
        return first + drawn(choices, x, depth - 1)
    if choice == 6:
        return first[:1] * drawn(choices, x, depth - 1) + first[:, 2:3]
    if choice == 7:
        return np.where(first > 0, np.concatenate([first[:, :2], first[:, 2:]], 1), x)
    return np.concatenate([first, drawn(choices, x, depth - 1)], 1)[:, 5 : m + 5]


@pytest.mark.parametrize("seed", range(60))
def test_random_arrays(seed: int) -> None:
    """The graph in boxes gives the very numbers of the graph that was recorded."""
    limits = Limits(split_from=1, most_boxes=200)
    rng = np.random.default_rng(seed)
    x, numbers = (
        rng.standard_normal((11, 13)).astype(np.float32),
        rng.integers(99, size=99).tolist(),
    )

    def function(x: Any) -> Any:
        return drawn(list(numbers), x, 4) * 2

    entry = tj.jit(function).lower(x).module.entry
    (root,) = in_boxes([entry.root], limits)
    made = Module("boxes", Computation("boxes", entry.parameters, root))
    np.testing.assert_array_equal(tj.interpret(made, x), function(x))
    if seed % 6 == 0:
        np.testing.assert_allclose(tj.compile(made)(x), function(x), rtol=1e-5, atol=1e-6)


def test_barriers_are_only_before_what_is_stored() -> None:
    entry = tj.jit(lambda x: laplacian(np.tanh(x) * x)).lower(X).module.entry
    made = in_order(in_boxes([entry.root], Limits()))
    assert sum(i.op is OPTIMIZATION_BARRIER for i in made) == 1
