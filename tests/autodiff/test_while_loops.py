"""Derivatives of loops whose number of steps is known only while running."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit import lax
from tracejit.autodiff.budget import memory_budget
from tracejit.ops.control import WHILE
from tracejit.traversal import in_order

RNG = np.random.default_rng(3)
X, W = RNG.normal(size=3), RNG.normal(size=(3, 3)) * 0.5


def looped(x: Any, w: Any, n: Any) -> Any:
    def step(state: Any) -> Any:
        y, i = state
        return np.sin(y @ w) + 0.1 * y, i + 1

    return lax.while_loop(lambda state: state[1] < n, step, (x, 0))[0].sum()


def unrolled(x: Any, w: Any, n: int) -> Any:
    for _ in range(n):
        x = np.sin(x @ w) + 0.1 * x
    return x.sum()


# Room for all states, for ten twice, for two twice: then most steps are computed again.
@pytest.mark.parametrize("budget", [None, 10 * 2 * 32, 1])
@pytest.mark.parametrize("steps", [0, 1, 2, 3, 5, 16, 37])
def test_same_as_unrolled(budget: int | None, steps: int) -> None:
    expected = tj.grad(unrolled, argnums=(0, 1))(X, W, steps)
    actual = tj.grad(looped, argnums=(0, 1), memory_budget=budget)(X, W, steps)
    np.testing.assert_allclose(actual[0], expected[0], rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(actual[1], expected[1], rtol=1e-12, atol=1e-15)


def test_compiled_once_for_every_number_of_steps() -> None:
    gradient = tj.jit(tj.value_and_grad(looped, argnums=(0, 1), memory_budget=10 * 2 * 32))
    for steps in (0, 1, 9, 10, 11, 64, 333):
        value, actual = gradient(X, W, steps)
        assert value == pytest.approx(looped(X, W, steps), rel=1e-14)
        expected = tj.grad(unrolled, argnums=(0, 1))(X, W, steps)
        np.testing.assert_allclose(actual[0], expected[0], rtol=1e-10, atol=1e-15)
        np.testing.assert_allclose(actual[1], expected[1], rtol=1e-10, atol=1e-15)
    assert gradient.cache_report().count == 1


def test_trip_count_that_depends_on_the_values() -> None:
    def newton(a: Any) -> Any:
        """The square root, to convergence."""
        return lax.while_loop(lambda y: np.abs(y * y - a) > 1e-13, lambda y: (y + a / y) / 2, a)

    for a in (0.3, 2.0, 50.0):
        assert tj.grad(newton)(a) == pytest.approx(0.5 / np.sqrt(a), rel=1e-6)
        assert tj.jit(tj.grad(newton))(a) == pytest.approx(0.5 / np.sqrt(a), rel=1e-6)


def test_loops_in_loops_and_branches() -> None:
    def inner(x: Any, n: Any) -> Any:
        return lax.fori_loop(0, n, lambda i, y: y * np.cos(y + i), x)

    def outer(x: Any, n: Any) -> Any:
        def step(i: Any, y: Any) -> Any:
            return lax.cond(y.sum() > 1.0, lambda z: inner(z, n), lambda z: z + 0.7, y)

        return lax.fori_loop(0, n, step, x).sum()

    def plain(x: Any, n: int) -> Any:
        for _ in range(n):
            if x.sum() > 1.0:
                for i in range(n):
                    x = x * np.cos(x + i)
            else:
                x = x + 0.7
        return x.sum()

    for n in (1, 3):
        expected = tj.grad(plain)(np.abs(X), n)
        np.testing.assert_allclose(tj.grad(outer)(np.abs(X), n), expected, rtol=1e-12)
        np.testing.assert_allclose(tj.jit(tj.grad(outer))(np.abs(X), n), expected, rtol=1e-12)


def test_order_two_and_forward_mode() -> None:
    def build(x: Any) -> Any:
        return looped(x, W, 4)

    def gradient_along(x: Any) -> Any:
        return tj.grad(lambda y: looped(y, W, 3), memory_budget=1)(x) @ X

    with memory_budget(1):
        second = tj.grad(gradient_along)(X)
    expected = tj.grad(lambda x: tj.grad(lambda y: unrolled(y, W, 3))(x) @ X)(X)
    np.testing.assert_allclose(second, expected, rtol=1e-9, atol=1e-12)
    t = RNG.normal(size=3)
    pushed = tj.jvp(lambda x: unrolled(x, W, 4), (X,), (t,))
    with memory_budget(1):
        np.testing.assert_allclose(tj.jvp(build, (X,), (t,)), pushed, rtol=1e-12)


def test_batched() -> None:
    xs = RNG.normal(size=(4, 3))
    steps = np.array([0, 1, 5, 9])
    actual = tj.vmap(tj.grad(looped), (0, None, 0))(xs, W, steps)
    expected = [tj.grad(unrolled)(x, W, int(n)) for x, n in zip(xs, steps, strict=True)]
    np.testing.assert_allclose(actual, expected, rtol=1e-12)


def test_integers_and_unused_parts_of_the_state() -> None:
    def f(x: Any) -> Any:
        def step(state: Any) -> Any:
            return state["x"] * 2, state["n"] + 1, state["unused"] + 1.0

        def go(state: Any) -> Any:
            made = step(state)
            return {"x": made[0], "n": made[1], "unused": made[2]}

        start = {"x": x, "n": 0, "unused": x}
        return lax.while_loop(lambda s: s["n"] < 3, go, start)["x"]

    assert tj.grad(f)(1.5) == 8.0


def test_side_effects_are_not_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: Any) -> Any:
        def step(y: Any) -> Any:
            tj.debug.print("{}", y)
            return y * 2

        return lax.while_loop(lambda y: y < 10, step, x)

    for gradient in (tj.grad(f), tj.jit(tj.grad(f)), tj.value_and_grad(f)):
        gradient(1.0)
        assert capsys.readouterr().out.split() == ["1.0", "2.0", "4.0", "8.0"]


def swinging(p: Any, y: Any, n: Any) -> Any:
    """A few numbers, which have their Jacobian carried along; the step's length depends on them."""

    def step(state: Any) -> Any:
        y, time, count = state
        length = np.minimum(0.1 + 0.01 * y[0] ** 2, 1.0 - 0.01 * time)
        force = np.stack([y[1], -p[0] * y[1] - p[1] ** 2 * y[0]])
        return y + length * force, time + length, count + 1

    y, time, _ = lax.while_loop(lambda state: state[2] < n, step, (y, np.float64(0.2), 0))
    return np.sum(y**2) * time


def swinging_unrolled(p: Any, y: Any, n: int) -> Any:
    time = 0.2
    for _ in range(n):
        length = np.minimum(0.1 + 0.01 * y[0] ** 2, 1.0 - 0.01 * time)
        y = y + length * np.stack([y[1], -p[0] * y[1] - p[1] ** 2 * y[0]])
        time = time + length
    return np.sum(y**2) * time


@pytest.mark.parametrize("steps", [0, 1, 7])
def test_a_few_numbers(steps: int) -> None:
    p, y = np.array([0.4, 1.9]), np.array([1.0, -0.3])
    expected = tj.grad(swinging_unrolled, argnums=(0, 1))(p, y, steps)
    for gradient in (
        tj.grad(swinging, argnums=(0, 1)),
        tj.jit(tj.grad(swinging, argnums=(0, 1))),
    ):
        actual = gradient(p, y, steps)
        np.testing.assert_allclose(actual[0], expected[0], rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(actual[1], expected[1], rtol=1e-12, atol=1e-15)


def test_a_few_numbers_keep_nothing() -> None:
    p, y = np.array([0.4, 1.9]), np.array([1.0, -0.3])
    text = tj.jit(tj.grad(swinging)).lower(p, y, 7).as_text("hlo")
    assert "dynamic-update-slice" not in text
    # Of five numbers and more the states are kept.
    text = tj.jit(tj.grad(looped)).lower(np.ones(5), np.eye(5), 7).as_text("hlo")
    assert "dynamic-update-slice" in text


# Three numbers change, of which the time begins as a constant: three rows for each argument.
@pytest.mark.parametrize(("argnums", "rows"), [((0,), 3), ((1,), 3), ((0, 1), 6)])
def test_only_wanted_derivatives_are_carried(argnums: tuple[int, ...], rows: int) -> None:
    p, y = np.array([0.4, 1.9]), np.array([1.0, -0.3])
    entry = tj.jit(tj.grad(swinging, argnums=argnums)).lower(p, y, 7).module.entry
    sizes = [len(i.operands[0].operands) for i in in_order([entry.root]) if i.op is WHILE]
    assert max(sizes) == min(sizes) + rows
    expected = tj.grad(swinging_unrolled, argnums=argnums)(p, y, 7)
    for gradient in (tj.grad(swinging, argnums=argnums), tj.jit(tj.grad(swinging, argnums))):
        for one, other in zip(gradient(p, y, 7), expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-15)
    second = tj.hessian(swinging, argnums=argnums)(p, y, 6)
    for one, other in zip(
        tj.tree.leaves(second),
        tj.tree.leaves(tj.hessian(swinging_unrolled, argnums=argnums)(p, y, 6)),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, rtol=1e-9)


def test_second_derivatives_and_batches_of_a_few_numbers() -> None:
    p, y = np.array([0.4, 1.9]), np.array([1.0, -0.3])
    expected = tj.hessian(swinging_unrolled)(p, y, 6)
    np.testing.assert_allclose(tj.hessian(swinging)(p, y, 6), expected, rtol=1e-9)
    many = np.stack([p, p * 1.1, p * 0.7])
    found = tj.jit(tj.vmap(tj.grad(swinging), (0, None, None)))(many, y, 6)
    for one, row in zip(many, found, strict=True):
        np.testing.assert_allclose(row, tj.grad(swinging_unrolled)(one, y, 6), rtol=1e-10)
