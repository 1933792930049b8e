"""Producers of gathers are computed for the gathered elements alone, if these are few."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracejit as tj

RNG = np.random.default_rng(3)
TABLE = RNG.normal(size=(300, 24)).astype(np.float32)
WORDS = RNG.integers(-300, 300, size=(4, 9))


def kernels(function: Any, *args: Any) -> int:
    report = str(tj.jit(function).lower(*args).compile().explain())
    return sum(line[:1] == "k" and line[1:2].isdigit() for line in report.split("\n"))


@pytest.mark.parametrize(
    "function",
    [
        lambda e, w: (e * 3 + 1)[w],
        lambda e, w: np.exp(e)[w % 300, 5],
        lambda e, w: e.T[:, w],
        lambda e, w: np.concatenate([e, e + 1])[w],
        lambda e, w: np.where(e > 0, e, np.float32(0.5))[w] + e[0],
        lambda e, w: (e - e.mean(0))[w],
        lambda e, w: np.tanh(e[::-1])[w[0] ** 2 % 300][:, w[1] % 24],
    ],
)
def test_few_elements_of_what_is_computed(function: Any) -> None:
    found, expected = tj.jit(function)(TABLE, WORDS), function(TABLE, WORDS)
    np.testing.assert_allclose(found, expected, rtol=2e-6, atol=1e-6)


def test_kernels() -> None:
    words = WORDS % 300
    few = kernels(lambda e, w: np.exp(e)[w], TABLE, words)
    assert few < kernels(lambda e, w: np.exp(e)[w], TABLE, np.resize(words, 600))
    # What somebody else wants as well has memory anyway.
    assert few < kernels(lambda e, w: (np.exp(e)[w], np.exp(e)), TABLE, words)


def test_a_donated_table() -> None:
    def step(table: Any, words: Any) -> Any:
        return table * 2, (table * 2)[words].sum(0)

    table = TABLE.copy()
    expected = step(TABLE, WORDS)
    found = tj.jit(step, donate_argnums=0)(table, WORDS)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
