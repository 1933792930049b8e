"""Unrolled Python loops are compiled as loops, and give what the long graph gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit.backends.tvm.kernels.machine import Machine
from tracejit.backends.tvm.lower import lower
from tracejit.backends.tvm.rolling import rolled
from tracejit.backends.tvm.simplify import simplify
from tracejit.graph import Instruction
from tracejit.ops.constants import elements_of
from tracejit.ops.control import WHILE
from tracejit.traversal import in_order

X = np.random.default_rng(0).normal(size=(12, 12))


def stencil(x: Any) -> Any:
    a, b = x.copy(), x * 2
    for _ in range(60):
        b[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[:-2, 1:-1] + a[2:, 1:-1])
        a[1:-1, 1:-1] = 0.2 * (b[1:-1, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:])
    return a, b


def fibonacci(x: Any) -> Any:
    """Every step needs the two before it."""
    one, two = x, np.cos(x)
    for _ in range(300):
        one, two = two, np.sin(one) * 0.5 + two * 0.4
    return two


def with_fixed_arrays(x: Any) -> Any:
    w, bias, y = np.tanh(x), np.arange(12.0), x
    for _ in range(200):
        y = np.tanh(y @ w + bias) * 0.5 + x
    return y, w


def with_a_tail(x: Any) -> Any:
    for _ in range(200):
        y = np.sin(x)
        x = y * 0.9 + 0.1
    return np.exp(x), y.sum(), x + y


def several(x: Any) -> Any:
    for _ in range(200):
        x = np.sin(x) + 0.1
        x = x * 0.9
    for _ in range(200):
        x = np.cos(x) * 0.9
        x = x - 0.1
        x = np.abs(x)
    return x


ROLLED = [stencil, fibonacci, with_fixed_arrays, with_a_tail, several]


def every_step_is_needed(x: Any) -> Any:
    total = []
    for _ in range(200):
        x = np.sin(x) * 0.9 + 0.1
        total.append(x[0, 0])
    return np.stack(total)


def every_step_is_different(x: Any) -> Any:
    for i in range(200):
        x = np.sin(x) * (0.9 + i) + x[i % 12]
    return x


def few_steps(x: Any) -> Any:
    for _ in range(10):
        x = np.sin(x) * 0.9
    return x


STRAIGHT = [every_step_is_needed, every_step_is_different, few_steps]


def loops(function: Callable[..., Any]) -> tuple[int, list[Instruction]]:
    module = tj.jit(function).lower(X).module
    roots: Sequence[Instruction] = simplify(elements_of(module.entry.root))
    made = rolled(roots)
    return sum(i.op is WHILE for i in in_order(made)), made


@pytest.mark.parametrize("function", ROLLED, ids=lambda f: f.__name__)
def test_equal_steps_become_a_loop(function: Callable[..., Any]) -> None:
    count, made = loops(function)
    assert count == (2 if function is several else 1)
    assert len(in_order(made)) < 150


@pytest.mark.parametrize("function", STRAIGHT, ids=lambda f: f.__name__)
def test_steps_that_a_loop_cannot_take_stay(function: Callable[..., Any]) -> None:
    count, made = loops(function)
    assert count == 0
    assert len(in_order(made)) > 20


@pytest.mark.parametrize("function", ROLLED, ids=lambda f: f.__name__)
def test_same_result(function: Callable[..., Any]) -> None:
    expected, actual = function(X), tj.jit(function)(X)
    pairs = (
        zip(expected, actual, strict=True) if isinstance(expected, tuple) else [(expected, actual)]
    )
    for theirs, ours in pairs:
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


def test_as_many_kernels_as_one_step_has() -> None:
    def kernels(steps: int) -> int:
        def function(x: Any) -> Any:
            for _ in range(steps):
                x = np.sin(np.cumsum(x, 0)) * 0.9
                x = x @ x.T * 0.01
            return x

        return len(lower(tj.jit(function).lower(X).module.entry, Machine(64, 2)).kernels)

    assert kernels(1000) < 30
