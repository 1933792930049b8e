"""vmap: the same as one call for each element, for every kind of axes, nested and composed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tracejit as tj
from tracejit import lax
from tracejit.errors import ArgumentError, ConcretizationError, ShapeError

RNG = np.random.default_rng(0)
MATRICES = RNG.normal(size=(5, 3, 4))
VECTORS = RNG.normal(size=(5, 4))


def check(function: Callable[..., Any], *arrays: Any, in_axes: Any = 0, out_axes: int = 0) -> None:
    """vmap outside and inside jit against a Python loop."""
    axes = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(arrays)
    size = next(x.shape[a] for x, a in zip(arrays, axes, strict=True) if a is not None)
    rows = [
        function(*[x if a is None else np.take(x, i, a) for x, a in zip(arrays, axes, strict=True)])
        for i in range(size)
    ]
    expected = np.stack([np.asarray(row) for row in rows], out_axes)
    mapped = tj.vmap(function, in_axes, out_axes)
    np.testing.assert_allclose(mapped(*arrays), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(tj.jit(mapped)(*arrays), expected, rtol=1e-12, atol=1e-12)


def written(x: np.ndarray, i: np.ndarray) -> np.ndarray:
    x = x.copy()
    x[i] += 1.0
    x[i[0]] = 7.0
    return x


def doubled_until_large(x: np.ndarray) -> Any:
    return lax.while_loop(
        lambda c: c[0].sum() < 100.0, lambda c: (c[0] * 2 + 1, c[1] + 1), (np.abs(x), 0)
    )[0]


FUNCTIONS: dict[str, Any] = {
    "reductions": lambda x: np.sum(np.exp(x), axis=0) / x.max(),
    "sort": lambda x: np.sort(x),
    "cumulative": lambda x: np.cumsum(x),
    "select": lambda x: np.where(x > 0, np.sqrt(np.abs(x)), 0.0),
    "fori_loop": lambda x: lax.fori_loop(0, 3, lambda i, c: c * 2 + x, x),
    "while_loop": doubled_until_large,
    "cond": lambda x: lax.cond(x.sum() > 0, lambda y: y * 2, lambda y: -y, x),
    "switch": lambda x: lax.switch(
        (x.sum() > 0).astype(np.int32), [lambda y: y * 2, lambda y: -y], x
    ),
    "scan": lambda x: lax.scan(lambda c, y: (c + y, c * y), 0.0, x)[1],
    "grad": tj.grad(lambda x: np.sum(np.tanh(x) ** 2)),
    "constant": lambda x: np.ones(3),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_of_a_vector(name: str) -> None:
    check(FUNCTIONS[name], VECTORS)


@pytest.mark.parametrize("in_axes", [(0, 0), (0, None), (None, 0)])
def test_matrix_product(in_axes: tuple[Any, Any]) -> None:
    rhs = RNG.normal(size=(5, 4, 2))
    arrays = [x if a == 0 else x[0] for x, a in zip((MATRICES, rhs), in_axes, strict=True)]
    check(lambda a, b: a @ b, *arrays, in_axes=in_axes)
    check(lambda a, b: a @ b, *arrays, in_axes=in_axes, out_axes=1)


@pytest.mark.parametrize("in_axes", [(0, 0), (0, None), (None, 0)])
def test_indexing_and_writes(in_axes: tuple[Any, Any]) -> None:
    indices = RNG.integers(0, 3, size=(5, 2))
    arrays = [x if a == 0 else x[0] for x, a in zip((MATRICES, indices), in_axes, strict=True)]
    check(lambda x, i: x[i], *arrays, in_axes=in_axes)
    check(written, *arrays, in_axes=in_axes)


@pytest.mark.parametrize("groups", [{}, {"feature_group_count": 2}, {"batch_group_count": 2}])
@pytest.mark.parametrize("in_axes", [(0, 0), (0, None), (None, 0)])
def test_convolution(in_axes: tuple[Any, Any], groups: dict[str, Any]) -> None:
    features = 2 if "feature_group_count" in groups else 4
    both = RNG.normal(size=(3, 2, 4, 6, 6)), RNG.normal(size=(3, 8, features, 3, 3))
    arrays = [x if a == 0 else x[0] for x, a in zip(both, in_axes, strict=True)]
    check(
        lambda x, k: lax.conv_general_dilated(x, k, (1, 1), "SAME", **groups),
        *arrays,
        in_axes=in_axes,
    )


@given(st.integers(-3, 2), st.integers(-2, 1), st.integers(0, 4))
def test_any_axis(source: int, destination: int, size: int) -> None:
    shape = [2, 3]
    shape.insert(source % 3, size)
    x = RNG.normal(size=shape)
    actual = tj.vmap(lambda row: row.sum(0), source, destination)(x)
    expected = np.moveaxis(np.moveaxis(x, source, 0).sum(1), 0, destination)
    np.testing.assert_allclose(actual, expected, rtol=1e-14, atol=1e-14)


def test_trees_of_axes() -> None:
    tree = {"w": MATRICES, "b": VECTORS[0]}
    mapped: Any = tj.vmap(
        lambda p, x: {"y": p["w"] @ x + p["b"][:3], "b": p["b"]},
        in_axes=({"w": 0, "b": None}, 0),
        out_axes={"y": 1, "b": None},
    )
    result = mapped(tree, VECTORS)
    expected = np.einsum("bij,bj->ib", MATRICES, VECTORS) + VECTORS[0][:3, None]
    np.testing.assert_allclose(result["y"], expected)
    np.testing.assert_array_equal(result["b"], VECTORS[0])


def test_keyword_arguments_are_mapped_over_their_first_dimension() -> None:
    result = tj.vmap(lambda x, *, scale: x * scale)(VECTORS, scale=np.arange(5.0))
    np.testing.assert_allclose(result, VECTORS * np.arange(5.0)[:, None])


def test_nested_in_each_other_and_in_other_transformations() -> None:
    check(lambda x: tj.vmap(lambda y: y * y.sum())(x), MATRICES)
    outer: Any = tj.vmap(tj.vmap(lambda a, b: a * b, (None, 0)), (0, None))
    np.testing.assert_allclose(outer(np.arange(3.0), np.arange(4.0)), np.outer(range(3), range(4)))

    def loss(w: Any) -> Any:
        return np.sum(tj.vmap(lambda x: np.tanh(x @ w))(MATRICES))

    w = RNG.normal(size=4)
    expected = np.einsum("bij,bi->j", MATRICES, 1 - np.tanh(MATRICES @ w) ** 2)
    np.testing.assert_allclose(tj.grad(loss)(w), expected, rtol=1e-10)
    np.testing.assert_allclose(tj.jit(tj.grad(loss))(w), expected, rtol=1e-10)


def test_a_batch_of_nothing() -> None:
    assert tj.vmap(lambda x: x @ x.T)(np.ones((0, 2, 3))).shape == (0, 2, 2)
    ones: Any = tj.vmap(lambda: np.ones(2), axis_size=3)
    assert ones().shape == (3, 2)


def test_sizes_that_differ() -> None:
    def add(a: Any, b: Any) -> Any:
        return a + b

    with pytest.raises(ShapeError, match=r"equally long; argument a of add: 3, argument b of add"):
        tj.vmap(add)(np.ones(3), np.ones(4))


@pytest.mark.parametrize(
    ("in_axes", "out_axes", "error", "message"),
    [
        ((0,), 0, ArgumentError, "in_axes of f has 1 entries for 2 positional arguments"),
        (({"a": 0}, 0), 0, ArgumentError, "in_axes for argument x of f does not fit"),
        (("x", 0), 0, ArgumentError, "must hold integers and None, not 'x'"),
        ((None, None), 0, ArgumentError, "no argument of f is mapped; pass axis_size"),
        ((2, 0), 0, ShapeError, "argument x of f has rank 1 and is to be mapped over dimension 2"),
        ((0, 0), 3, ArgumentError, "out_axes of f says 3 for a result of rank 1"),
        ((0, 0), None, ArgumentError, "says None for a result f64.. that is not the same"),
    ],
)
def test_axes_that_do_not_fit(
    in_axes: Any, out_axes: Any, error: type[Exception], message: str
) -> None:
    def f(x: Any, y: Any) -> Any:
        return x + y

    with pytest.raises(error, match=message):
        tj.vmap(f, in_axes, out_axes)(np.ones(3), np.ones(3))


def test_python_asks_for_one_of_many_values() -> None:
    def f(x: Any) -> Any:
        return x if x > 0 else -x

    with pytest.raises(ConcretizationError, match="depends on argument x of f"):
        tj.vmap(f)(np.ones(3))
