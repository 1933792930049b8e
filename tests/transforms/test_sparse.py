"""Sparse Jacobians and Hessians: as the dense ones, from few products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import tracejit as tj
from tracejit.errors import ArgumentError, UnsupportedError
from tracejit.transforms.sparse import colours_of
from tracejit.transforms.sparsity import pattern_of

X = np.random.default_rng(0).normal(size=12)
MATRIX = np.random.default_rng(1).normal(size=(4, 3))


def rosenbrock(x: Any) -> Any:
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def stencil(x: Any) -> Any:
    y = np.zeros(12)
    y[1:-1] = x[2:] - 2 * x[1:-1] + x[:-2]
    return y * np.exp(x)


def written(x: Any) -> Any:
    y = np.zeros(12)
    y[np.array([3, 5, 3])] = x[:3] * x[4]
    return y + np.where(x > 9, x, x * 2)


def scanned_columns(x: Any) -> Any:
    def step(carry: Any, column: Any) -> Any:
        return carry, column * column

    return tj.lax.scan(step, 0.0, x.reshape(4, 3), reverse=True)[1] + np.roll(x, 1).reshape(4, 3)


FUNCTIONS: dict[str, tuple[Callable[[Any], Any], int]] = {
    "pointwise": (lambda x: np.sin(x) * x, 12),
    "stencil": (stencil, 34),
    "rolled": (lambda x: np.roll(x, 1) * x[::-1], 24),
    "reduced": (lambda x: (x.reshape(3, 4) ** 2).sum(1), 12),
    "product": (lambda x: x.reshape(3, 4) @ MATRIX, 36),
    "product from the left": (lambda x: MATRIX @ np.tanh(x.reshape(3, 4)), 48),
    "batched": (lambda x: np.einsum("bij,bj->bi", x.reshape(2, 2, 3), np.ones((2, 3))), 12),
    "gathered": (lambda x: x[np.array([3, 3, 0])] ** 2, 3),
    "padded": (lambda x: np.pad(x, 2) * 3.0, 12),
    "joined": (lambda x: np.concatenate([x[:2], np.ones(3), x[5:6] * x[0]]), 4),
    "chosen": (lambda x: np.where(x > 0, x, x[0]), 23),
    "stopped": (lambda x: tj.stop_gradient(x) * np.floor(x), 0),
    "rounded": (lambda x: np.round(x) * x, 12),
    "written": (written, 17),
    "scanned": (lambda x: tj.lax.scan(lambda c, a: (c, a * a * c), x[3], x)[1], 23),
    "summed by a scan": (lambda x: tj.lax.scan(lambda c, a: (c + a * a, c), 0.0, x)[1], 66),
    "scanned backwards over columns": (scanned_columns, 24),
    "branched": (lambda x: tj.lax.cond(x[0] > 0, np.sin, lambda x: x[::-1] * 2, x), 24),
    "looped": (lambda x: tj.lax.fori_loop(0, 2, lambda i, c: c * np.roll(c, 1), x), 144),
    "looped by itself": (lambda x: tj.lax.while_loop(lambda c: c[0] < 9, lambda c: c + 5, x), 12),
    "called": (tj.checkpoint(lambda x: np.sin(x) * x), 12),
    "mapped": (lambda x: tj.vmap(lambda a: np.exp(-a * a))(x), 12),
    "unknown": (np.cumprod, 144),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_as_the_dense_one(name: str) -> None:
    function, entries = FUNCTIONS[name]
    found = tj.jacfwd(function, sparse=True)(X)
    assert isinstance(found, sp.csr_array)
    assert found.nnz <= entries
    dense = tj.jacfwd(function)(X)
    np.testing.assert_allclose(found.toarray(), dense.reshape(found.shape), 1e-12, 1e-12)
    again = tj.jacrev(function, sparse=True)(X)
    np.testing.assert_allclose(again.toarray(), found.toarray())


def test_hessian() -> None:
    found = tj.hessian(rosenbrock, sparse=True)(X)
    assert found.nnz == 12 + 2 * 11
    np.testing.assert_allclose(found.toarray(), tj.hessian(rosenbrock)(X), 1e-10)


def test_a_large_one() -> None:
    """100,000 unknowns take three products; the dense matrix would have 80 GB."""
    x = np.linspace(0, 1, 100_000)
    pattern = pattern_of(tj.grad(rosenbrock), x)
    assert colours_of(pattern).max() == 2
    found = tj.hessian(rosenbrock, sparse=True)(x)
    assert found.nnz == 3 * len(x) - 2
    np.testing.assert_allclose(found.diagonal()[0], 1200 * x[0] ** 2 - 400 * x[1] + 2)


def test_other_arguments() -> None:
    found = tj.jacfwd(lambda a, x: a * x[1:] * x[:-1], argnums=1, sparse=True)(2.0, X)
    assert found.shape == (11, 12)
    assert found.nnz == 22


def test_refusals() -> None:
    with pytest.raises(ArgumentError, match="sparse=True is for one real argument"):
        tj.jacfwd(np.sin, argnums=(0,), sparse=True)
    with pytest.raises(ArgumentError, match="real numbers as argument x of"):
        tj.jacfwd(lambda x: x, sparse=True)(np.arange(3))
    with pytest.raises(ArgumentError, match="one array as the result"):
        tj.jacfwd(lambda x: (x, x), sparse=True)(X)
    with pytest.raises(UnsupportedError, match="outside jit only"):
        tj.jit(lambda x: tj.jacfwd(np.sin, sparse=True)(x))(X)
