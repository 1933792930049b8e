"""Chains of matrix products computed block by block: values, kernels and memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import tracejit as tj
from tests.backends_tvm.block_graphs import defined, simple
from tracejit.api import interpret
from tracejit.graph import Computation, Instruction, Module
from tracejit.ops.control import WHILE
from tracejit.runtime import importing_tvm
from tracejit.traversal import in_order

with importing_tvm():
    from tracejit.backends.tvm.cpu.machine import Machine
    from tracejit.backends.tvm.passes.canonicalize.canonicalize import canonicalize
    from tracejit.backends.tvm.passes.tile.tile_and_fuse import tile_and_fuse

# Two threads with caches of 256 bytes each: blocks have 512 bytes, of arrays of at least 2048.
SMALL = Machine(64, 2, l2=256)
RNG = np.random.default_rng(0)


def drawn(*dimensions: int, dtype: Any = np.float32) -> np.ndarray:
    return RNG.standard_normal(dimensions).astype(dtype)


def softmax(x: Any, axis: int = -1) -> Any:
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def attention(q: Any, k: Any, v: Any) -> Any:
    return softmax(q @ np.swapaxes(k, -1, -2) * 0.25) @ v


def causal(q: Any, k: Any, v: Any) -> Any:
    scores = q @ np.swapaxes(k, -1, -2)
    rows, columns = np.arange(scores.shape[-2]), np.arange(scores.shape[-1])
    return softmax(np.where(rows[:, None] >= columns, scores, -1e9)) @ v


def masked(q: Any, k: Any, v: Any, mask: Any) -> Any:
    scores = np.einsum("bnhd,bmhd->bhnm", q, k) + np.tanh(mask)
    return np.einsum("bhnm,bmhd->bnhd", softmax(scores), v)


def distances(x: Any, y: Any, w: Any) -> Any:
    """Weights by distance, with what depends on the row alone, and on the column alone."""
    apart = (x**2).sum(1)[:, None] + (y**2).sum(1) - 2 * x @ y.T
    weights = np.exp(-0.1 * apart)
    return (weights / weights.sum(1, keepdims=True)) @ w


def from_the_right(q: Any, k: Any, v: Any) -> Any:
    return v.T @ softmax(k @ q.T, 0)


def two_kinds(q: Any, k: Any, v: Any, r: Any) -> Any:
    """Two products meet in the scores."""
    return softmax(q @ k.T + q @ r.T) @ v


def reshaped(q: Any, k: Any, v: Any) -> Any:
    scores = (q @ k.T).reshape(q.shape[0], 3, -1)
    return softmax(scores).reshape(q.shape[0], -1) @ v


def itself(x: Any) -> Any:
    return softmax(x @ x.T) @ x


BLOCKED: dict[str, tuple[Callable[..., Any], Sequence[np.ndarray], int]] = {
    "attention": (attention, [drawn(40, 4), drawn(30, 4), drawn(30, 3)], 1),
    "rows left over": (attention, [drawn(41, 4), drawn(29, 4), drawn(29, 3)], 1),
    "batch": (attention, [drawn(9, 10, 4), drawn(9, 12, 4), drawn(9, 12, 3)], 1),
    "large matrices": (attention, [drawn(3, 40, 4), drawn(3, 41, 4), drawn(3, 41, 3)], 2),
    "causal": (causal, [drawn(40, 4), drawn(40, 4), drawn(40, 3)], 1),
    "mask": (masked, [*(drawn(2, 30, 3, 4) for _ in range(3)), drawn(30, 30)], 3),
    "mask of a batch": (masked, [*(drawn(2, 30, 3, 4) for _ in range(3)), drawn(2, 1, 1, 30)], 3),
    "distances": (distances, [drawn(40, 3), drawn(30, 3), drawn(30, 2)], 1),
    "columns": (from_the_right, [drawn(40, 4), drawn(30, 4), drawn(30, 3)], 1),
    "two products": (two_kinds, [drawn(40, 4), drawn(30, 4), drawn(30, 3), drawn(30, 4)], 1),
    "reshaped": (reshaped, [drawn(40, 4), drawn(30, 4), drawn(30, 3)], 1),
    "itself": (itself, [drawn(60, 3)], 1),
    "f64": (attention, [drawn(40, 4, dtype=np.float64) for _ in range(3)], 1),
    "f16": (attention, [drawn(60, 4, dtype=np.float16) for _ in range(3)], 1),
}


def blocked(module: Module) -> Module:
    """The module with its products in blocks."""
    entry = module.entry
    (root,) = tile_and_fuse([entry.root], SMALL)
    return Module("test", Computation(entry.name, entry.parameters, root))


def loops(root: Instruction) -> list[Instruction]:
    return [i for i in in_order([root]) if i.op is WHILE]


def depth(root: Instruction) -> int:
    """How deep loops are, where bodies are made in blocks as well."""
    inside = [
        tile_and_fuse(canonicalize([w.attributes["body"].root]), SMALL)[0] for w in loops(root)
    ]
    return 1 + max(map(depth, inside)) if inside else 0


@pytest.mark.parametrize("name", BLOCKED)
def test_blocks_make_the_same(name: str) -> None:
    function, arguments, deep = BLOCKED[name]
    module = simple(function, *arguments)
    made = blocked(module)
    assert depth(made.entry.root) == deep
    wanted, result = interpret(module, *arguments), interpret(defined(made), *arguments)
    tolerance = 1e-2 if arguments[0].dtype == np.float16 else 1e-5
    np.testing.assert_allclose(result, wanted, rtol=tolerance, atol=tolerance)


def with_scores(q: Any, k: Any, v: Any) -> Any:
    scores = softmax(q @ k.T)
    return scores, scores @ v


NOT_BLOCKED: dict[str, Callable[..., Any]] = {
    "scores are wanted": with_scores,
    "nothing is reduced": lambda q, k, v: np.tanh(q @ k.T) @ v,
    "rows depend on each other": lambda q, k, v: softmax(q @ k.T, 0) @ v,
    "one is contracted": lambda q, k, v: (q @ k.T).sum(0) @ v,
    "places are sorted": lambda q, k, v: np.sort(softmax(q @ k.T), 1) @ v,
}


@pytest.mark.parametrize("name", NOT_BLOCKED)
def test_what_is_needed_as_a_whole_stays_whole(name: str) -> None:
    arguments = [drawn(40, 4), drawn(30, 4), drawn(30, 3)]
    assert not loops(blocked(simple(NOT_BLOCKED[name], *arguments)).entry.root)


def test_small_scores_stay_whole() -> None:
    arguments = [drawn(20, 4), drawn(20, 4), drawn(20, 3)]
    assert not loops(blocked(simple(attention, *arguments)).entry.root)


@given(
    st.lists(st.integers(1, 4), max_size=2),
    st.integers(1, 70),
    st.integers(1, 40),
    st.sampled_from([attention, causal]),
)
def test_any_sizes(batch: list[int], rows: int, columns: int, function: Any) -> None:
    arguments = [drawn(*batch, n, 3) for n in (rows, columns, columns)]
    module = simple(function, *arguments)
    result = interpret(defined(blocked(module)), *arguments)
    np.testing.assert_allclose(result, interpret(module, *arguments), rtol=1e-4, atol=1e-5)


def test_compiled_scores_are_never_there_as_a_whole() -> None:
    """Of 3 x 2000 x 1500 scores, 36 MB, a tenth of one matrix at a time."""
    q, k, v = drawn(3, 2000, 8), drawn(3, 1500, 8), drawn(3, 1500, 5)
    compiled = tj.jit(attention).lower(q, k, v).compile()
    np.testing.assert_allclose(
        compiled(q, k, v), attention(*(x.astype(float) for x in (q, k, v))), rtol=1e-3, atol=1e-5
    )
    assert compiled.explain().workspace_bytes < 12 << 20


def test_two_layers_one_after_the_other() -> None:
    def layers(x: Any) -> Any:
        return itself(itself(x) + x) - 1

    x = drawn(60, 3)
    module = simple(layers, x)
    made = blocked(module)
    assert len(loops(made.entry.root)) == 2
    np.testing.assert_allclose(
        interpret(defined(made), x), interpret(module, x), rtol=1e-5, atol=1e-5
    )
