"""Derivatives and maps of jitted functions outside of a trace: compiled from the second call on."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit.errors import DerivativeError

X = np.linspace(-1.0, 1.0, 5)


def energy(x: Any, scale: Any = 2.0) -> Any:
    return np.sum(np.tanh(x * scale) ** 2)


def wave(x: Any, scale: Any = 2.0) -> Any:
    return np.sin(x * scale) * x


@pytest.mark.parametrize(
    ("transform", "function"),
    [
        (tj.grad, energy),
        (tj.value_and_grad, energy),
        (tj.jacrev, wave),
        (tj.jacfwd, wave),
        (tj.hessian, energy),
        (tj.vmap, wave),
    ],
)
def test_every_call_gives_the_same(
    transform: Callable[..., Any], function: Callable[..., Any]
) -> None:
    expected = tj.tree.leaves(transform(function)(X))
    made = transform(tj.jit(function))
    for _ in range(3):
        for ours, right in zip(tj.tree.leaves(made(X)), expected, strict=True):
            assert type(ours) is type(right)
            np.testing.assert_allclose(ours, right, 1e-13, 1e-15)


def test_python_runs_once_for_each_kind() -> None:
    seen: list[Any] = []

    @tj.jit
    def noted(x: Any) -> Any:
        seen.append(x.shape)
        return energy(x)

    slope = tj.grad(noted)
    for size in (5, 5, 5, 3, 3, 5):
        np.testing.assert_allclose(slope(X[:size]), tj.grad(energy)(X[:size]), 1e-13)
    assert seen == [(5,), (5,), (3,)]


def test_numbers_trees_and_what_is_returned_besides() -> None:
    @tj.jit
    def loss(p: Any, x: Any) -> Any:
        return energy(p["w"] * x), {"x": x, "n": 3}

    made = tj.value_and_grad(loss, has_aux=True)
    calls = [made({"w": 0.5}, X) for _ in range(3)]
    for (value, aux), gradient in calls:
        assert type(gradient["w"]) is float
        assert aux["n"] == 3
        np.testing.assert_array_equal(aux["x"], X)
        assert value == pytest.approx(energy(0.5 * X))


def test_static_arguments_and_methods() -> None:
    class Model:
        rate = 0.5

        @tj.jit(static_argnums=(0, 2))
        def loss(self, x: Any, kind: str) -> Any:
            return energy(x * self.rate) if kind == "energy" else np.sum(x)

    model = Model()
    for kind, expected in (("energy", tj.grad(energy)(X, 1.0)), ("sum", np.ones(5))):
        slope = tj.grad(lambda x, kind=kind: model.loss(x, kind))
        for _ in range(2):
            np.testing.assert_allclose(slope(X), expected, 1e-12)
    static = tj.grad(tj.jit(lambda x, n: np.sum(x**n), static_argnums=1))
    for n in (2, 3, 3):
        np.testing.assert_allclose(static(X, n), n * X ** (n - 1))


def test_what_asks_for_values_is_interpreted() -> None:
    @tj.jit
    def chosen(x: Any, steps: int) -> Any:
        for _ in range(steps):
            x = x * 2 if x.sum() > 0 else x * 3
        return x.sum()

    slope = tj.grad(chosen)
    for x, steps in ((X + 1, 2), (X + 1, 3), (-X - 1, 2)):
        np.testing.assert_array_equal(slope(x, steps), (2 if x.sum() > 0 else 3) ** steps)


def test_a_call_that_is_wrong_refuses_itself_alone() -> None:
    seen: list[int] = []

    @tj.jit
    def noted(x: Any) -> Any:
        seen.append(0)
        return energy(x)

    slope = tj.grad(noted)
    for _ in range(3):
        slope(X)
    with pytest.raises(DerivativeError, match="argument x of noted must be real"):
        slope(np.arange(5))
    before = len(seen)
    slope(X)
    assert len(seen) == before


def test_inside_of_traces_it_is_recorded() -> None:
    slope = tj.grad(tj.jit(energy))
    slope(X)
    slope(X)
    assert " tanh(" in str(tj.jit(slope).lower(X).module)
    second = tj.grad(lambda x: slope(x).sum())
    np.testing.assert_allclose(second(X), tj.grad(lambda x: tj.grad(energy)(x).sum())(X), 1e-12)


def test_every_transformation_alike_finds_the_program() -> None:
    seen: list[int] = []

    @tj.jit
    def noted(x: Any) -> Any:
        seen.append(0)
        return energy(x)

    for transform, function in ((tj.grad, energy), (tj.hessian, energy)):
        seen.clear()
        for _ in range(5):
            np.testing.assert_allclose(transform(noted)(X), transform(function)(X), 1e-12, 1e-14)
        assert len(seen) == 2
    negated = tj.grad(lambda x: -noted(x))
    np.testing.assert_allclose(negated(X), -tj.grad(energy)(X), 1e-12)


def test_programs_of_different_transformations_are_apart() -> None:
    product = tj.jit(lambda x, y: np.sum(x * y * y))
    for _ in range(2):
        np.testing.assert_array_equal(tj.grad(product)(X, X), X * X)
        np.testing.assert_allclose(tj.grad(product, 1)(X, X), 2 * X * X)
        assert len(tj.grad(product, (0, 1))(X, X)) == 2
    rows = tj.jit(lambda x, y: x + y)
    for _ in range(2):
        assert tj.vmap(rows)(X, X).shape == (5,)
        assert tj.vmap(rows, in_axes=(0, None))(X, X).shape == (5, 5)
        assert tj.vmap(rows, in_axes=[None, 0], out_axes=1)(X[:2], X).shape == (2, 5)


def test_a_wrapper_of_a_users_is_no_transformation() -> None:
    slope = tj.grad(tj.jit(energy))

    @functools.wraps(slope)
    def doubled(a: Any, b: Any) -> Any:
        return np.sum(slope(a * b))

    for _ in range(3):
        made = tj.grad(doubled, 1)(X, X + 2)
        right = tj.grad(lambda a, b: np.sum(tj.grad(energy)(a * b)), 1)(X, X + 2)
        np.testing.assert_allclose(made, right, 1e-12)
