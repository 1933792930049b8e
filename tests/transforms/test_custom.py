"""Derivatives that the user writes, and values that the reverse pass computes again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.lowered import lower
from tracejit.backends.tvm.cpu.machine import Machine
from tracejit.errors import ArgumentError, DerivativeError


@tj.custom_vjp
def by_vjp(x: Any, y: Any) -> Any:
    return np.sin(x) * y


# Ten times the true derivative in x, so that the rule shows.
by_vjp.defvjp(
    lambda x, y: (np.sin(x) * y, (x, y)),
    lambda kept, g: (10 * g * np.cos(kept[0]) * kept[1], g * np.sin(kept[0])),
)


@tj.custom_jvp
def by_jvp(x: Any, y: Any) -> Any:
    return np.sin(x) * y


@by_jvp.defjvp
def _(primals: Any, tangents: Any) -> Any:
    (x, y), (dx, dy) = primals, tangents
    return by_jvp(x, y), 10 * np.cos(x) * dx * y + np.sin(x) * dy


@pytest.mark.parametrize("f", [by_vjp, by_jvp])
def test_rule_is_used_by_every_transformation(f: Any) -> None:
    x, y = 1.0, 2.0
    assert f(x, y) == np.sin(x) * y
    expected = (10 * np.cos(x) * y, np.sin(x))
    np.testing.assert_allclose(tj.grad(f, argnums=(0, 1))(x, y), expected)
    np.testing.assert_allclose(tj.jit(tj.grad(f, argnums=(0, 1)))(x, y), expected)
    np.testing.assert_allclose(tj.jvp(f, (x, y), (1.0, 0.0))[1], expected[0])
    np.testing.assert_allclose(tj.grad(tj.grad(f))(x, y), -10 * np.sin(x) * y)
    xs = np.arange(3.0)
    np.testing.assert_allclose(tj.vmap(tj.grad(f), (0, None))(xs, y), 10 * np.cos(xs) * y)
    summed = tj.grad(lambda x, y: tj.vmap(f, (0, None))(x, y).sum(), argnums=(0, 1))
    of_x, of_y = summed(xs, y)
    np.testing.assert_allclose(of_x, 10 * np.cos(xs) * y)
    np.testing.assert_allclose(of_y, np.sin(xs).sum())


def test_arguments_that_are_no_arrays() -> None:
    def raised(x: Any, kind: str) -> Any:
        return x**2 if kind == "square" else x**3

    power = tj.custom_vjp(raised, nondiff_argnums=1)
    power.defvjp(lambda x, kind: (power(x, kind), x), lambda kind, x, g: (g * len(kind),))
    assert tj.grad(lambda x: power(x, "square"))(3.0) == 6.0
    assert tj.grad(lambda x: power(x, "cube"))(3.0) == 4.0


def test_trees_and_none() -> None:
    @tj.custom_vjp
    def f(p: Any, q: Any) -> Any:
        return {"out": p["a"] * p["b"] + q}

    f.defvjp(lambda p, q: (f(p, q), p), lambda p, g: ({"a": g["out"], "b": g["out"] * 2}, None))
    of_p, of_q = tj.grad(lambda p, q: f(p, q)["out"], argnums=(0, 1))({"a": 3.0, "b": 4.0}, 1.0)
    assert of_p == {"a": 1.0, "b": 2.0}
    assert of_q == 0.0


def test_rules_for_each_argument() -> None:
    @tj.custom_jvp
    def f(x: Any, y: Any) -> Any:
        return x * y

    f.defjvps(lambda t, result, x, y: 7 * t * y, None)
    assert tj.grad(f, argnums=(0, 1))(2.0, 3.0) == (21.0, 0.0)


def test_captured_values_have_no_derivative() -> None:
    def outer(a: Any) -> Any:
        @tj.custom_vjp
        def inner(x: Any) -> Any:
            return x * a

        inner.defvjp(lambda x: (x * 2.0, None), lambda kept, g: (g,))
        return inner(2.0)

    with pytest.raises(DerivativeError, match="inner: its derivative was given for its arguments"):
        tj.grad(outer)(3.0)


def test_rules_that_do_not_fit() -> None:
    def f(x: Any) -> Any:
        return x * 2

    missing = tj.custom_vjp(f)
    with pytest.raises(DerivativeError, match=r"no derivative was given; call f\.defvjp"):
        tj.grad(missing)(1.0)
    wrong = tj.custom_vjp(f)
    wrong.defvjp(lambda x: x, lambda kept, g: (g,))
    with pytest.raises(ArgumentError, match=r"must return \(result, kept\)"):
        tj.grad(wrong)(1.0)
    short = tj.custom_vjp(f)
    short.defvjp(lambda x: (x, None), lambda kept, g: ())
    with pytest.raises(ArgumentError, match="must return a tuple of 1"):
        tj.grad(short)(1.0)
    shaped = tj.custom_vjp(f)
    shaped.defvjp(lambda x: (x, None), lambda kept, g: (np.ones(3),))
    with pytest.raises(ArgumentError, match=r"must have the shape f64\[\], not f64\[3\]"):
        tj.grad(shaped)(1.0)


def test_checkpoint_computes_again() -> None:
    def f(x: Any, w: Any) -> Any:
        return np.sum(np.tanh(np.tanh(x @ w) @ w))

    x, w = np.linspace(-1, 1, 6).reshape(2, 3), np.eye(3) * 0.5
    expected = tj.grad(f, argnums=(0, 1))(x, w)
    for policy in (
        None,
        tj.checkpoint_policies.everything_saveable,
        tj.checkpoint_policies.dots_saveable,
        tj.checkpoint_policies.dots_with_no_batch_dims_saveable,
        tj.checkpoint_policies.save_only_ops(["Tanh"]),
    ):
        again = tj.grad(tj.checkpoint(f, policy=policy), argnums=(0, 1))
        for actual in (again(x, w), tj.jit(again)(x, w)):
            np.testing.assert_allclose(actual[0], expected[0], rtol=1e-12)
            np.testing.assert_allclose(actual[1], expected[1], rtol=1e-12)

    def count(policy: Any, opcode: str) -> int:
        gradient = tj.grad(tj.checkpoint(f, policy=policy), argnums=(0, 1))
        text = tj.jit(gradient).lower(x, w).as_text()
        return text.count(f" {opcode}(")

    assert count(None, "opt-barrier") == 1
    assert count(None, "tanh") > count(tj.checkpoint_policies.save_only_ops(["Tanh"]), "tanh") - 1


def test_checkpoint_saves_memory_of_the_compiled_program() -> None:
    def loss(layer: Any) -> Any:
        def total(weights: Any, x: Any) -> Any:
            for w in weights:
                x = layer(x, w)
            return (x**2).sum()

        return total

    def layer(x: Any, w: Any) -> Any:
        return np.tanh(np.exp(np.sin(np.tanh(x @ w))) * 0.1)

    weights, x = [np.full((64, 64), 0.01)] * 12, np.ones((256, 64))

    def workspace(layer: Any) -> int:
        module = tj.jit(tj.grad(loss(layer))).lower(weights, x).module
        return lower(module.entry, Machine(64, 2)).workspace_bytes

    assert workspace(tj.checkpoint(layer)) < 0.5 * workspace(layer)


def test_checkpoint_composes() -> None:
    @tj.checkpoint
    def f(x: Any) -> Any:
        return np.sin(np.sin(x))

    xs = np.linspace(0, 1, 5)
    expected = np.cos(np.sin(xs)) * np.cos(xs)
    np.testing.assert_allclose(tj.vmap(tj.grad(f))(xs), expected)
    np.testing.assert_allclose(tj.grad(lambda x: tj.vmap(f)(x).sum())(xs), expected)
    np.testing.assert_allclose(tj.jvp(f, (xs,), (np.ones(5),))[1], expected)

    def either(x: Any, kind: bool) -> Any:
        return x**2 if kind else x

    chosen = tj.checkpoint(either, static_argnums=1)
    assert tj.grad(lambda x: chosen(x, True))(3.0) == 6.0


def written(x: Any) -> Any:
    """Uses an array of its own, which NumPy's protocols do not reach."""
    out = np.zeros(3)
    out[1:] = x[1:] * 2
    return out


def test_the_users_functions_record() -> None:
    x = np.arange(3.0)
    by_rule = tj.custom_vjp(written)
    by_rule.defvjp(lambda x: (written(x), x), lambda kept, g: (written(g) * 5,))
    pushed = tj.custom_jvp(written)
    pushed.defjvp(lambda primals, tangents: (written(primals[0]), written(tangents[0]) * 5))
    for f in (by_rule, pushed):
        for gradient in (
            tj.grad(lambda x, f=f: f(x).sum()),
            tj.jit(tj.grad(lambda x, f=f: f(x).sum())),
        ):
            np.testing.assert_array_equal(gradient(x), [0, 10, 10])
    again = tj.checkpoint(written)
    np.testing.assert_array_equal(tj.grad(lambda x: again(x).sum())(x), [0, 2, 2])
