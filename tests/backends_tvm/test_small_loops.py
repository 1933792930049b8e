"""Loops over a few numbers: arrays taken apart, state that nothing needs, loops that repeat."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.backends_tvm.compiled import check
from tracejit.runtime import importing_tvm

with importing_tvm():
    from tracejit.backends.tvm.kernels.machine import Machine
    from tracejit.backends.tvm.lower import lower

TURNS = 5


def turned(step: Callable[[Any], Any], state: Any) -> Any:
    """``step`` five times, in a loop."""
    after = tj.lax.while_loop(lambda s: s[0] < TURNS, lambda s: (s[0] + 1, step(s[1])), (0, state))
    return after[1]


def agrees(function: Callable[..., Any], *arguments: Any) -> None:
    """Compiled and interpreted, on the module that is traced."""
    leaves = [np.asarray(a) for a in tj.tree.leaves(arguments)]
    check(tj.jit(function).lower(*arguments).module.entry, leaves)


def rotated(y: Any) -> Any:
    return np.stack([y[1], -y[0]]) * 0.9


def reversed_and_padded(y: Any) -> Any:
    longer = np.pad(y[::-1], (1, 1))
    return longer[1:3] + np.concatenate([y[:1], y[1:]]) * 0.5


def by_matrix(y: Any) -> Any:
    matrix = np.stack([np.stack([y[0], y[1]]), np.stack([y[1], 1 - y[0]])])
    return np.tanh(matrix.T @ y + matrix.sum(axis=0) - matrix.max(axis=1))


def clipped(y: Any) -> Any:
    total = np.sum(np.where(y > 0.2, y, -y))
    return np.clip(y * 1.7, -1.0, total).astype(np.float32).astype(np.float64)


def with_a_sort(y: Any) -> Any:
    return np.sort(np.stack([y[1] + 0.1, y[0] * -1.5]))


def with_a_long_row(y: Any) -> Any:
    row = np.arange(50.0) * y[0] + y[1]
    return np.stack([np.mean(np.sin(row)), row[7] / 10])


STEPS = [rotated, reversed_and_padded, by_matrix, clipped, with_a_sort, with_a_long_row]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_values(step: Callable[[Any], Any]) -> None:
    agrees(lambda y: turned(step, y), np.array([0.3, -0.7]))


def test_special_numbers() -> None:
    for special in (np.nan, np.inf, -0.0):
        agrees(lambda y: turned(by_matrix, y), np.array([special, 0.5]))
        agrees(lambda y: turned(reversed_and_padded, y), np.array([special, -0.0]))


def test_nested_loops_and_branches() -> None:
    def step(y: Any) -> Any:
        inner = turned(rotated, y)
        return tj.lax.cond(y[0] > 0, lambda z: np.stack([z[1], z[0]]), lambda z: z * 2, inner)

    agrees(lambda y: turned(step, y), np.array([0.3, -0.7]))


def kernels(function: Callable[..., Any], *arguments: Any) -> list[str]:
    """The names of the kernels that are compiled."""
    entry = tj.jit(function).lower(*arguments).module.entry
    return [kernel.name for kernel in lower(entry, Machine()).kernels]


def test_a_step_is_one_kernel_that_writes_where_it_reads() -> None:
    found = kernels(lambda y: turned(rotated, y), np.array([0.3, -0.7]))
    body = [name for name in found if "_body_" in name or "_update" in name]
    assert len(body) == 1, body


def test_state_that_nothing_needs_is_left_out() -> None:
    def both(y: Any, matrix: Any) -> Any:
        def step(state: Any) -> Any:
            vector, product, count = state
            return rotated(vector), product @ matrix, count + 1

        after = tj.lax.while_loop(lambda s: s[2] < TURNS, step, (y, matrix, 0))
        return after[0]

    arguments = np.array([0.3, -0.7]), np.eye(9)
    agrees(both, *arguments)
    assert not any("dot" in name for name in kernels(both, *arguments))


def test_what_a_later_loop_does_not_need_an_earlier_one_does_not_make() -> None:
    def chained(y: Any, matrix: Any) -> Any:
        def step(state: Any) -> Any:
            return state[0] * 0.5, state[1] @ matrix, state[2] + 1

        first = tj.lax.while_loop(lambda s: s[2] < TURNS, step, (y, matrix, 0))
        return tj.lax.while_loop(lambda s: s[2] < 2 * TURNS, step, first)[0]

    arguments = np.array([0.3, -0.7]), np.eye(9)
    agrees(chained, *arguments)
    assert not any("dot" in name for name in kernels(chained, *arguments))


def settled(p: Any) -> Any:
    """A loop that turns as often as the numbers want, and its sum."""

    def goes_on(y: Any) -> Any:
        return np.sum(np.abs(y)) > 0.05

    return np.sum(tj.lax.while_loop(goes_on, lambda y: y * p - 0.01, np.array([1.0, 0.5])))


def test_a_derivative_takes_no_step_twice() -> None:
    p = np.array([0.7, 0.6])
    agrees(tj.value_and_grad(settled), p)
    loops = [name for name in kernels(tj.value_and_grad(settled), p) if "_condition_" in name]
    assert len(loops) == 1, loops


def test_a_scan_of_loops_takes_no_step_twice() -> None:
    def total(p: Any) -> Any:
        def move(y: Any, x: Any) -> Any:
            after = tj.lax.while_loop(lambda y: y[0] < x, lambda y: y * p + 0.1, y)
            return after * 0.5, after[1]

        return np.sum(tj.lax.scan(move, np.array([0.1, 0.2]), np.arange(4.0))[1])

    p = np.array([1.1, 1.05])
    agrees(tj.value_and_grad(total), p)
    found = kernels(tj.value_and_grad(total), p)
    # The two scans, and the loop within the first.
    assert sum("_condition_" in name for name in found) == 3, found


def test_a_solver_that_halves_takes_no_step_twice() -> None:
    def total(p: Any) -> Any:
        after = tj.lax.while_loop(
            lambda s: s[0] < 3.0,
            lambda s: (s[0] + 0.5, s[1] + s[0] / 2 * (s[1] * p + s[1])),
            (0.0, np.array([0.1, 0.2])),
        )
        return np.sum(after[1])

    p = np.array([0.3, 0.2])
    agrees(tj.value_and_grad(total), p)
    loops = [name for name in kernels(tj.value_and_grad(total), p) if "_condition_" in name]
    assert len(loops) == 1, loops


def test_a_part_that_also_has_memory_of_its_own() -> None:
    """The vector is made of the numbers; a sort wants one of them as an array."""

    def step(y: Any) -> Any:
        first = np.reshape(np.sin(y[0]) * np.exp(y[1]), (1,))
        wide = np.sort(np.concatenate([np.broadcast_to(first, (70,)), first]))
        return np.concatenate([first, np.reshape(y[0] + wide[3], (1,))]) * 1.0

    agrees(lambda y: turned(step, y), np.array([0.3, -0.7]))


def test_a_long_step() -> None:
    """More ops than one kernel holds."""

    def step(y: Any) -> Any:
        for _ in range(60):
            y = np.stack([np.sin(y[0]) + y[1] * 0.5, y[0] * y[1] + 0.1, y[2] - y[0]])
        return y

    agrees(lambda y: turned(step, y), np.array([0.3, -0.7, 0.2]))
