"""`jit(..., memory_budget=)`: less memory, the same numbers, or an error before anything runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit.backends.target import CPU
from tracejit.errors import MemoryBudgetError
from tracejit.transforms.jit.hooks import planned_bytes

RNG = np.random.default_rng(0)
W = RNG.normal(size=(8, 32, 32)) / 6
X = RNG.normal(size=(256, 32))


def loss(w: Any, x: Any) -> Any:
    for layer in w:
        x = np.tanh(x @ layer)
    return np.sum(x**2)


GRADIENT = tj.grad(loss)


def taken(lowered: Any) -> int:
    """The bytes that the compiled program will take."""
    return planned_bytes(lowered.module, CPU)


def test_a_deep_network() -> None:
    plain = tj.jit(GRADIENT)
    whole = taken(plain.lower(W, X))
    budget = whole * 7 // 10
    saving = tj.jit(GRADIENT, memory_budget=budget)
    lowered = saving.lower(W, X)
    assert whole // 2 < taken(lowered) <= budget
    assert lowered.memory_report().peak_bytes < plain.lower(W, X).memory_report().peak_bytes
    before = plain.lower(W, X).cost_analysis()["flops"]
    assert before < lowered.cost_analysis()["flops"] <= 2 * before
    np.testing.assert_allclose(saving(W, X), plain(W, X), 1e-12, 1e-12)
    np.testing.assert_allclose(saving(W, X), GRADIENT(W, X), 1e-9, 1e-12)


def test_cheap_values_go_first() -> None:
    """Of exp(sin(...)) and a product, both kept for later, the product is not computed twice."""

    def f(x: Any, w: Any) -> Any:
        for _ in range(3):
            x = np.sin(x @ w) * x
        return x.sum()

    given = X, W[0]
    whole = tj.jit(tj.grad(f)).lower(*given)
    budget = taken(whole) - X.nbytes
    saving = tj.jit(tj.grad(f), memory_budget=budget).lower(*given)
    assert taken(saving) <= budget
    ops = [lowered.cost_analysis()["ops"]["DotGeneral"]["count"] for lowered in (whole, saving)]
    assert ops[0] == ops[1]


def test_a_budget_that_is_no_limit_changes_nothing() -> None:
    text = tj.jit(GRADIENT).lower(W, X).as_text()
    assert tj.jit(GRADIENT, memory_budget=1 << 30).lower(W, X).as_text().count("\n") == text.count(
        "\n"
    )


def test_too_small() -> None:
    with pytest.raises(MemoryBudgetError, match=r"budget is 1000 bytes, and the least .* is \d+"):
        tj.jit(GRADIENT, memory_budget=1000)(W, X)
