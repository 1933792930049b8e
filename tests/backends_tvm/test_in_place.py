"""Updates that write into the memory of what they update: right in every order of reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.lowered import lower
from tracejit import lax, ops
from tracejit.backends.tvm.cpu.machine import Machine
from tracejit.backends.tvm.fusion.planner import fuse
from tracejit.shapes import ElementType, Shape

ROWS = np.arange(12.0).reshape(4, 3)


def set_row(x: Any, i: Any, row: Any) -> Any:
    return lax.dynamic_update_slice(x, row[None], (i, 0))


def filled(x: Any) -> Any:
    """Every row from the one before it, which the same buffer holds."""
    return lax.fori_loop(1, 4, lambda i, c: set_row(c, i, c[i - 1] * 2 + i), x)


def swapped(x: Any) -> Any:
    """Two buffers that change places in every step, one of them updated."""
    return lax.fori_loop(0, 3, lambda i, c: (set_row(c[1], i, c[0][i] + 1), c[0]), (x, x * 10))


def remembered(x: Any) -> Any:
    """The buffer as it was before the update is a result too."""
    return lax.fori_loop(0, 3, lambda i, c: (set_row(c[0], i, c[1][3] + 1), c[0]), (x, x * 10))


def read_after(x: Any) -> Any:
    """The sum of the buffer before its update, computed beside it."""

    def step(i: Any, c: Any) -> Any:
        updated = set_row(c[0], i, c[0][0] + c[1])
        return updated, c[1] + np.sum(c[0] * 0.1)

    return lax.fori_loop(0, 4, step, (x, 1.0))


def overlapping(x: Any) -> Any:
    """The update is a view of what it updates, one row on."""
    return lax.fori_loop(
        0, 2, lambda i, c: lax.dynamic_update_slice(c, c[:-1], (np.int64(1), np.int64(0))), x
    )


def chained(x: Any) -> Any:
    def step(i: Any, c: Any) -> Any:
        return set_row(set_row(c, i, c[3] + 1), i + 1, c[0] * 2)

    return lax.fori_loop(0, 3, step, x)


def both_results(x: Any) -> Any:
    y = x * 2
    z = set_row(y, 1, y[0])
    return y, z, set_row(z, 2, z[1])


def scattered(x: Any) -> Any:
    def step(i: Any, c: Any) -> Any:
        c = c.copy()
        c[np.array([0, 2, 0])] += c[1] + i
        return c

    return lax.fori_loop(0, 3, step, x)


def nested(x: Any) -> Any:
    def row(i: Any, c: Any) -> Any:
        return lax.fori_loop(
            0, 3, lambda j, d: lax.dynamic_update_slice(d, (d[i, j] + i * j)[None, None], (i, j)), c
        )

    return lax.fori_loop(0, 4, row, x)


def of_itself(x: Any) -> Any:
    """Updates that read the row that they write, one element of it, and other rows."""

    def step(i: Any, c: Any) -> Any:
        c = set_row(c, i, c[i] * 2 + i)
        c = lax.dynamic_update_slice(c, (c[i, 2] + c[i, 1])[None, None], (i, 2))
        return set_row(c, i, c[i - 1] * 0.5 + c[i, 1])

    return lax.fori_loop(1, 4, step, x)


def unchanged_at_times(x: Any) -> Any:
    return lax.fori_loop(
        0,
        4,
        lambda i, c: lax.cond(i % 2 == 0, lambda d: set_row(d, i, d[0] + 1), lambda d: d, c),
        x,
    )


def captured(x: Any) -> Any:
    """A loop reads an array that is updated after it."""
    y = x * 2
    made = lax.fori_loop(0, 3, lambda i, c: c + y[i], x[0])
    return made, set_row(y, 1, made)


def same_twice(x: Any) -> Any:
    y = x * 2
    return lax.fori_loop(
        0, 3, lambda i, c: (set_row(c[0], i, c[1][0] + 1), set_row(c[1], i, c[0][1] * 2)), (y, y)
    )


def needed_after(x: Any) -> Any:
    y = x * 2
    return filled(y) + y, y


def carried_along(x: Any) -> Any:
    """A part of the state that never changes is a result."""
    y = x * 2
    made, same = lax.fori_loop(0, 3, lambda i, c: (set_row(c[0], i, c[1][i] + 1), c[1]), (x, y))
    return made, same, set_row(same, 0, made[0]), y


def loop_after_loop(x: Any) -> Any:
    return filled(filled(x + 1) * 0.5), chained(nested(x * 3))


def reshaped(x: Any) -> Any:
    """Elements of a reshaped sum are gathered, then written; only the reshape reads the sum."""
    y = x.sum(1, keepdims=True)
    y[np.array([2, 3])] += 1
    return y.T @ y


def sorted_before(x: Any) -> Any:
    """A sort wants the reshaped sum in memory of its own."""
    y = x.sum(1, keepdims=True)
    ordered = np.sort(y, axis=0)
    y[np.array([2, 3])] += 1
    return ordered, y.T @ y


def both_written(x: Any) -> Any:
    """An array and a reshape of it, which has memory of its own, are both written."""
    y = x.sum(1)
    z = y[:, None].copy()
    ordered = np.sort(z, axis=0)
    y[np.array([0, 3])] *= 2
    total = y @ np.sqrt(np.abs(ordered[:, 0]))
    z[np.array([2, 3])] += total
    return z.T @ z


def loop_over_reshaped(x: Any) -> Any:
    y = x.sum(1, keepdims=True)
    ordered = np.sort(y, axis=0)
    made = lax.fori_loop(0, 3, lambda i, c: set_row(c, i, c[i + 1] * 2 + i), y)
    return ordered, made.T @ made


def branch_of_reshaped(x: Any) -> Any:
    y = x.sum(1, keepdims=True)
    ordered = np.sort(y, axis=0)
    made = lax.cond(x[0, 0] < 1, lambda d: set_row(d, 1, d[0] + 1), lambda d: d, y)
    return ordered, made.T @ made


FUNCTIONS = [
    filled,
    swapped,
    remembered,
    read_after,
    overlapping,
    chained,
    both_results,
    scattered,
    nested,
    of_itself,
    unchanged_at_times,
    captured,
    same_twice,
    needed_after,
    carried_along,
    loop_after_loop,
    reshaped,
    sorted_before,
    both_written,
    loop_over_reshaped,
    branch_of_reshaped,
]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_same_as_the_interpreter(function: Callable[[Any], Any]) -> None:
    lowered = tj.jit(function).lower(ROWS)
    given = ROWS.copy()
    expected = tj.interpret(lowered.module, given)
    actual = tj.compile(lowered.module)(given)
    np.testing.assert_array_equal(given, ROWS)
    for ours, theirs in zip(_flat(actual), _flat(expected), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-14)


def _flat(value: Any) -> list[np.ndarray]:
    if isinstance(value, tuple):
        return [leaf for element in value for leaf in _flat(element)]
    return [value]


def test_a_loop_that_stores_rows_copies_nothing_else() -> None:
    def rows(x: Any) -> Any:
        return lax.scan(lambda c, _: (c + 1.0, c), x, None, length=1000)[1]

    module = tj.jit(rows).lower(np.zeros(500)).module
    program = lower(module.entry, Machine(64, 2))
    # The buffer of rows lies in the result from the start: no second one is needed, nor moved.
    assert program.workspace_bytes < 4 * 500 * 8
    np.testing.assert_array_equal(tj.compile(module)(np.zeros(500))[:, 0], np.arange(1000.0))


def test_what_is_read_before_an_update_and_needed_after_it_has_memory() -> None:
    x = ops.parameter(0, Shape(ElementType.F64, (100,)))
    start = ops.parameter(1, Shape(ElementType.S32))
    before = ops.dynamic_slice(x, [start], (1,))
    update = ops.dynamic_update_slice(x, ops.full_like(before, 0), [start])
    after = ops.dynamic_slice(update, [ops.sub(start, ops.constant(np.int32(1)))], (1,))
    together = ops.mul(before, after)
    assert before in fuse([update, together], (), Machine()).memory
    assert before not in fuse([update, ops.neg(before)], (), Machine()).memory
