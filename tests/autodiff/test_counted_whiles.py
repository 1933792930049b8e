"""Loops whose number of steps their text tells: their derivatives keep every step."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracejit as tj

X = np.random.default_rng(0).standard_normal((3, 8))
COMPARE = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "!=": operator.ne,
}  # fmt: skip


def stepped(x: Any, start: int, test: str, stop: int, step: int, swapped: bool) -> Any:
    """A loop over the numbers from ``start`` on that compare so with ``stop``."""

    def goes_on(state: Any) -> Any:
        return COMPARE[test](stop, state[0]) if swapped else COMPARE[test](state[0], stop)

    def body(state: Any) -> Any:
        return state[0] + step, np.tanh(state[1] * x[state[0] % 3] + 0.1 * state[0])

    return tj.lax.while_loop(goes_on, body, (start, x[0]))[1].sum()


def expected(x: Any, start: int, test: str, stop: int, step: int, swapped: bool) -> Any:
    number, value = start, x[0]
    while COMPARE[test](stop, number) if swapped else COMPARE[test](number, stop):
        value, number = np.tanh(value * x[number % 3] + 0.1 * number), number + step
    return value.sum()


@settings(max_examples=40, deadline=None)
@given(
    st.integers(-3, 9),
    st.sampled_from(sorted(COMPARE)),
    st.integers(-3, 9),
    st.sampled_from([1, 2, 3, -1, -2]),
    st.booleans(),
)
def test_any_counter(start: int, test: str, stop: int, step: int, swapped: bool) -> None:
    number, count = start, 0
    while COMPARE[test](stop, number) if swapped else COMPARE[test](number, stop):
        number, count = number + step, count + 1
        if count > 12:
            return  # it ends where the counter wraps around
    given = start, test, stop, step, swapped
    gradient = tj.grad(lambda x: stepped(x, *given))
    right = tj.grad(lambda x: expected(x, *given))(X)
    np.testing.assert_allclose(gradient(X), right, 1e-12, 1e-14)
    text = str(tj.jit(gradient).lower(X).module)
    assert (" scan(" in text) == (count > 0)


def powers(x: Any) -> Any:
    return tj.lax.fori_loop(0, 20, lambda i, s: np.sin(s @ s) + 0.1 * s, x).sum()


def test_every_order() -> None:
    tj.check_grads(powers, (X[:, :3] * 0.3,), order=2)
    tj.check_grads(tj.jit(powers), (X[:, :3] * 0.3,), order=1)


@pytest.mark.parametrize("budget", [1 << 10, None])
def test_states_are_kept_within_the_budget(budget: int | None) -> None:
    gradient = tj.grad(powers, memory_budget=budget)
    assert (" scan(" in str(tj.jit(gradient).lower(X[:, :3]).module)) == (budget is None)
    np.testing.assert_allclose(gradient(X[:, :3]), tj.grad(powers)(X[:, :3]), 1e-12)


def test_numbers_of_steps_that_are_not_known() -> None:
    def until(x: Any, n: Any) -> Any:
        return tj.lax.fori_loop(0, n, lambda i, s: np.sin(s @ s), x).sum()

    gradient = tj.jit(tj.grad(until))
    assert " scan(" not in str(gradient.lower(X[:, :3], 3).module)
    right = tj.grad(lambda x: until(x, 3))(X[:, :3])
    np.testing.assert_allclose(gradient(X[:, :3], 3), right, 1e-12)
