"""Long traces without source: a warning, an error for very long ones, and loops found again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit.backends.numpy.interpreter import evaluate
from tracejit.backends.tvm.pipeline import applied
from tracejit.errors import UnsupportedError
from tracejit.graph import Computation
from tracejit.ops.constants import tuple_
from tracejit.transforms.jit import trace_limit
from tracejit.traversal import in_order

RAGGED = """
def forward_substitution(a, b):
    x = np.zeros(len(b))
    for i in range(len(b)):
        x[i] = (b[i] - a[i, :i] @ x[:i]) / a[i, i]
    return x

def back_substitution(a, b):
    x = np.zeros(len(b))
    for i in range(len(b) - 1, -1, -1):
        x[i] = (b[i] - a[i, i + 1:] @ x[i + 1:]) / a[i, i]
    return x

def cholesky(a, b):
    factor = np.zeros_like(a)
    for i in range(len(b)):
        for j in range(i + 1):
            rest = a[i, j] - factor[i, :j] @ factor[j, :j]
            factor[i, j] = np.sqrt(rest) if i == j else rest / factor[j, j]
    return factor

def lu(a, b):
    a = a.copy()
    for k in range(len(b) - 1):
        a[k + 1:, k] /= a[k, k]
        a[k + 1:, k + 1:] -= np.outer(a[k + 1:, k], a[k, k + 1:])
    return a

def levinson(a, b):
    r, y = b * 0.01, np.zeros(len(b))
    y[0] = alpha = -r[0]
    beta = 1.0
    for k in range(1, len(b)):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + np.flip(r[:k]) @ y[:k]) / beta
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha
    return y

def gram_schmidt(a, b):
    q = np.zeros_like(a)
    for k in range(len(b)):
        v = a[:, k] - q[:, :k] @ (q[:, :k].T @ a[:, k])
        q[:, k] = v / np.sqrt(np.sum(v * v))
    return q

def prefix_sums(a, b):
    sums = np.zeros(len(b))
    for i in range(len(b)):
        sums[i] = b[:i + 1].sum() - b[i:].max() * np.prod(0.9 + 0.01 * b[:i + 1])
    return sums

def covariance(a, b):
    c = np.zeros_like(a)
    for i in range(len(b)):
        c[i:, i] = c[i, i:] = a[:, i] @ a[:, i:] / 23.0
    return c

def ranges_of_numbers(a, b):
    x = b.copy()
    for i in range(2, len(b)):
        x[:i] = np.sin(x[:i]) * np.arange(1.0, i + 1) - np.cos(b[:i]) * a[i, :i] + x[i]
    return x
"""
SIZE = 48
WITHOUT_SOURCE: dict[str, Any] = {"np": np}
exec(RAGGED, WITHOUT_SOURCE)
FUNCTIONS = [name for name in WITHOUT_SOURCE if name not in ("np", "__builtins__")]
VALUES = np.random.default_rng(0)
ROOT = VALUES.normal(size=(SIZE, SIZE))
MATRIX = ROOT @ ROOT.T + SIZE * np.eye(SIZE)
VECTOR = VALUES.normal(size=SIZE)


@pytest.mark.filterwarnings("ignore:.*source of:RuntimeWarning")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_ragged_loops_are_found_again(name: str) -> None:
    function: Callable[..., Any] = WITHOUT_SOURCE[name]
    entry = tj.jit(function).lower(MATRIX, VECTOR).module.entry
    made = applied("reroll", [entry.root])
    assert len(in_order(made)) < 450
    (ours,) = evaluate(Computation("r", entry.parameters, tuple_(made)), [MATRIX, VECTOR])
    np.testing.assert_allclose(ours, function(MATRIX, VECTOR), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["lu", "levinson", "back_substitution", "prefix_sums"])
def test_compiled(name: str) -> None:
    function: Callable[..., Any] = WITHOUT_SOURCE[name]
    made = tj.jit(function)(MATRIX, VECTOR)
    np.testing.assert_allclose(made, function(MATRIX, VECTOR), rtol=1e-9, atol=1e-12)


def test_a_long_trace_without_source_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_limit, "LONGEST_WITHOUT_SOURCE", 2048)
    expected = "jit of cholesky: 2,048 operations are recorded so far.*cannot be read; define it"
    with pytest.warns(RuntimeWarning, match=expected):
        tj.jit(WITHOUT_SOURCE["cholesky"]).lower(MATRIX, VECTOR)


def test_a_trace_without_source_that_is_too_long_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(trace_limit, "LONGEST_WITHOUT_SOURCE", 2048)
    monkeypatch.setattr(trace_limit, "MOST_WITHOUT_SOURCE", 4096)
    expected = r"jit of cholesky: more than 4,096 operations are recorded.*define it in a file.*:\d"
    with pytest.warns(RuntimeWarning), pytest.raises(UnsupportedError, match=expected):
        tj.jit(WITHOUT_SOURCE["cholesky"])(MATRIX, VECTOR)
