"""`lax.associative_scan`, `lax.map` in batches, forms of `cond` and `switch`, beside JAX."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import tracejit as tj
from tests.numpy_api.compare import same
from tracejit import lax
from tracejit.errors import (
    ArgumentError,
    AttributeValueError,
    DimensionError,
    ElementTypeError,
    ShapeError,
)

GENERATOR = np.random.default_rng(0)


def both(function: Any, *args: Any) -> Any:
    """At once and inside jit; both must agree."""
    now = function(*args)
    same(tj.jit(function)(*args), now)
    return now


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 7, 8, 16, 31])
@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan_of_sums(count: int, reverse: bool) -> None:
    x = GENERATOR.integers(-9, 9, (count, 3)).astype(np.int64)
    result = both(lambda x: lax.associative_scan(np.add, x, reverse=reverse), x)
    expected = np.cumsum(x[::-1], 0)[::-1] if reverse else np.cumsum(x, 0)
    np.testing.assert_array_equal(result, expected)


def compose(left: Any, right: Any) -> Any:
    """First x -> a x + b of ``left``, then that of ``right``."""
    return {"a": left["a"] * right["a"], "b": right["a"] * left["b"] + right["b"]}


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan_of_trees_beside_jax(axis: int, reverse: bool) -> None:
    tree = {"a": GENERATOR.normal(size=(6, 5)), "b": GENERATOR.normal(size=(6, 5))}
    result = both(lambda t: lax.associative_scan(compose, t, reverse=reverse, axis=axis), tree)
    with jax.enable_x64(True):
        expected = jax.lax.associative_scan(compose, tree, reverse=reverse, axis=axis % 2)
        for name in tree:
            np.testing.assert_allclose(result[name], expected[name], rtol=1e-12)


def test_associative_scan_is_shallow() -> None:
    """As many products as jax.lax's: about twice the logarithm of the length."""
    text = tj.jit(lambda x: lax.associative_scan(np.multiply, x)).lower(np.ones(1024)).as_text()
    assert text.count(" multiply(") == 2 * 10 - 1


def test_associative_scan_with_transformations() -> None:
    x = GENERATOR.normal(size=7)

    def loss(x: Any) -> Any:
        return (lax.associative_scan(np.multiply, x) ** 2).sum()

    step = 1e-6
    numeric = [(loss(x + step * e) - loss(x - step * e)) / (2 * step) for e in np.eye(7)]
    np.testing.assert_allclose(both(tj.grad(loss), x), numeric, rtol=1e-6, atol=1e-9)
    rows = GENERATOR.normal(size=(4, 7))
    batched = both(tj.vmap(lambda r: lax.associative_scan(np.maximum, r)), rows)
    np.testing.assert_array_equal(batched, np.maximum.accumulate(rows, 1))
    matrices = GENERATOR.normal(size=(5, 2, 2))
    products = both(lambda m: lax.associative_scan(np.matmul, m), matrices)
    np.testing.assert_allclose(products[-1], np.linalg.multi_dot(matrices), rtol=1e-12)
    flags = np.array([True, True, False, True])
    np.testing.assert_array_equal(
        both(lambda f: lax.associative_scan(np.logical_and, f), flags), [True, True, False, False]
    )


def test_associative_scan_refuses() -> None:
    x = np.ones((3, 2))
    with pytest.raises(ShapeError, match=r"must have one length along axis 0; found \[3, 4\]"):
        lax.associative_scan(lambda a, b: a, (x, np.ones((4, 2))))
    with pytest.raises(DimensionError, match="associative_scan"):
        lax.associative_scan(np.add, x, axis=2)
    with pytest.raises(ArgumentError, match="fn must return the tree that it takes"):
        lax.associative_scan(lambda a, b: (a, b), x)
    with pytest.raises(ShapeError, match="fn must return the shapes that it takes; f64"):
        lax.associative_scan(lambda a, b: a.sum(), x)


@pytest.mark.parametrize("batch_size", [1, 2, 3, 6, 7, 10])
def test_map_in_batches(batch_size: int) -> None:
    tree = {"x": GENERATOR.normal(size=(7, 3)), "n": np.arange(7)}

    def function(row: Any) -> Any:
        return {"sum": row["x"].sum() * row["n"], "twice": row["x"] * 2}

    result = both(lambda t: lax.map(function, t, batch_size=batch_size), tree)
    np.testing.assert_allclose(result["sum"], tree["x"].sum(1) * tree["n"], rtol=1e-12)
    np.testing.assert_array_equal(result["twice"], tree["x"] * 2)
    gradient = tj.grad(lambda x: (lax.map(lambda r: r @ r, x, batch_size=batch_size)).sum())
    np.testing.assert_allclose(both(gradient, tree["x"]), 2 * tree["x"], rtol=1e-12)


def test_map_in_batches_refuses() -> None:
    with pytest.raises(AttributeValueError, match="map: batch_size must be at least 1, not 0"):
        lax.map(np.sin, np.ones(3), batch_size=0)
    with pytest.raises(ShapeError, match="first dimensions of one length"):
        lax.map(lambda t: t[0], (np.ones(3), np.ones(4)), batch_size=2)


def test_cond_with_a_named_operand() -> None:
    def function(p: Any, x: Any) -> Any:
        return lax.cond(p, lambda t: t["a"] + 1, lambda t: t["b"] * 2, operand={"a": x, "b": x})

    x = np.arange(3.0)
    np.testing.assert_array_equal(both(function, True, x), x + 1)
    np.testing.assert_array_equal(both(function, 0.0, x), x * 2)
    none = both(lambda p: lax.cond(p, lambda _: 1.0, lambda _: 2.0, operand=None), False)
    assert none == 2.0
    with pytest.raises(ShapeError, match=r"cond: pred must be one truth value, not pred\[3\]"):
        lax.cond(x > 1, lambda: 1, lambda: 2)


def test_switch_clamps() -> None:
    branches = [lambda x, n=n: x * n for n in range(3)]
    x = np.arange(1.0, 3.0)
    for index, chosen in ((-7, 0), (0, 0), (1, 1), (2, 2), (3, 2), (2**40, 2), (-(2**40), 0)):
        np.testing.assert_array_equal(both(lambda i: lax.switch(i, branches, x), index), x * chosen)
    big = np.uint64(2**63 + 1)
    np.testing.assert_array_equal(both(lambda i: lax.switch(i, branches, operand=x), big), x * 2)
    with pytest.raises(ElementTypeError, match="switch: index must be an integer, not f64"):
        lax.switch(1.0, branches, x)
    with pytest.raises(ShapeError, match=r"switch: index must be one integer, not s64\[2\]"):
        lax.switch(np.array([1, 2]), branches, x)
