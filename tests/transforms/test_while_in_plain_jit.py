"""A ``while`` that traced values decide, in plain `jit`: one loop, as in long traces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit.errors import ConcretizationError
from tracejit.transforms.jit.trace_limit import is_test_of_while

X = np.array([1.0, -2.0, 3.0, -4.0, 5.0])
log: list[int] = []


def halved(x: Any) -> Any:
    count = 0
    while np.abs(x).max() > 1e-3 and count < 50:
        x = x * 0.5
        count += 1
    return x, count


def relaxed(x: Any) -> Any:
    change, steps = 1.0, 0
    while change > 0.01:
        before = x.copy()
        for _ in range(3):
            x[1:-1] = 0.5 * (before[2:] + before[:-2])
        change = np.abs(x - before).sum() / np.abs(x).sum()
        steps += 1
    if steps > 2:
        x = x * 2
    return x, steps


def root(x: Any) -> Any:
    guess = x / 2
    while (
        abs(guess * guess - x)
        > 1e-12
    ):  # fmt: skip
        guess = 0.5 * (guess + x / guess)
    return guess


@pytest.mark.parametrize("function", [halved, relaxed])
def test_as_numpy(function: Callable[..., Any]) -> None:
    made, steps = tj.jit(function)(X)
    expected, count = function(X.copy())
    np.testing.assert_allclose(made, expected, rtol=1e-12)
    assert steps == count


def test_through_transformations() -> None:
    assert abs(tj.jit(root)(2.0) - 2**0.5) < 1e-12
    assert abs(tj.jit(tj.grad(root))(2.0) - 0.5 / 2**0.5) < 1e-9
    np.testing.assert_allclose(tj.jit(tj.vmap(root))(np.array([2.0, 3.0])), [2**0.5, 3**0.5])
    assert tj.jit(lambda x: root(x) + root(4 * x))(1.0) == pytest.approx(3)


def test_what_would_be_done_twice_is_refused() -> None:
    def logged(x: Any) -> Any:
        log.append(1)
        while x < 10:
            x = x + 1
        return x

    with pytest.raises(ConcretizationError, match="autograph=True"):
        tj.jit(logged)(1.0)
    assert log == [1]
    assert tj.jit(logged, autograph=True)(1.0) == 10


def test_an_if_wants_autograph() -> None:
    with pytest.raises(ConcretizationError, match="autograph=True"):
        tj.jit(lambda x: x if x > 0 else -x)(1.0)


def test_without_a_source() -> None:
    known: dict[str, Any] = {}
    exec("def f(x):\n    while x < 3: x = x + 1\n    return x", known)
    with pytest.raises(ConcretizationError, match="bool: the value"):
        tj.jit(known["f"])(1.0)
    assert not is_test_of_while(None)
