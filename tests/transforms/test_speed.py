"""How long tracing and a jitted call take: on a quiet machine, so only with --benchmark."""

from __future__ import annotations

import timeit
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj

pytestmark = pytest.mark.benchmark

X = np.ones((4, 4), np.float32)


def chain(operations: int) -> Callable[[Any], Any]:
    """A function of that many operations as a user writes them."""

    def function(x: Any) -> Any:
        y = x
        for _ in range(operations // 2):
            y = np.tanh(y) + x
        return y

    return function


def seconds_to_trace(operations: int) -> float:
    """The least of three."""
    return min(
        timeit.repeat(lambda: tj.jit(chain(operations)).lower(X), number=1, repeat=3),
    )


def test_ten_thousand_operations_in_a_second() -> None:
    assert seconds_to_trace(10_000) < 1


def test_tracing_is_linear() -> None:
    assert seconds_to_trace(20_000) < 4 * seconds_to_trace(5_000) * 1.5


@pytest.mark.usefixtures("machine_code")
def test_a_call() -> None:
    """A third of what JAX's jitted call of a 10-element add takes, 7 to 12 microseconds."""
    x = np.ones(10, np.float32)
    add = tj.jit(lambda x, y: x + y)
    add(x, x)
    times = timeit.repeat(lambda: add(x, x), number=20_000, repeat=5)
    assert min(times) / 20_000 < 2.5e-6
