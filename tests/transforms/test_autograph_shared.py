"""`jit(f, autograph=True)`: what is one array or another after a branch shares its memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit.errors import ConcretizationError


def written(a: np.ndarray, c: Any) -> Any:
    x = a * 1
    b = x if c > 1 else x * 2
    b[0] = 7
    return x, b


def other_written(a: np.ndarray, c: Any) -> Any:
    x = a * 1
    b = x if c > 1 else x * 2
    x[0] = 7
    return x, b


def views(a: np.ndarray, c: Any) -> Any:
    x, y = a * 1, a * 2
    if c > 1:
        b = x[1:]
    else:
        b = y[::-1][1:]
    b += 100
    y[2] = 4
    return x, y, b


def views_of_one(a: np.ndarray, c: Any) -> Any:
    x = a * 1
    z = x.reshape(2, 2)
    if c > 1:
        y = z.T[0]
    else:
        y = x[::2]
    y[1] = 50
    z[0, 0] = 3
    y *= 2
    return x, z, y


def bound_again(a: np.ndarray, c: Any) -> Any:
    x = a * 1
    z = x
    if c > 1:
        x = x + 1
    if c > 2:
        x = x * 3
    x[0] = 50
    return x, z


def written_or_bound(a: np.ndarray, c: Any) -> Any:
    b, y = a * 1, a * 3
    z = b
    if c > 1:
        b[0] = 50
    else:
        b = y
    b[1] = 60
    return b, y, z


def in_lists(a: np.ndarray, c: Any) -> Any:
    x = a * 1
    arrays = [x, x * 2]
    for i in range(3):
        if a[i] > c:
            arrays[0] = arrays[1]
    arrays[0][0] = 5
    return x, arrays


def nested(a: np.ndarray, c: Any) -> Any:
    x, y, z = a * 1, a * 3, a * 4
    if c > 2:
        b = x
    elif c > 1:
        b = y[:]
    else:
        b = z
    b[1] = 60
    z[2] = 70
    y[3] = 80
    return b, x, y, z


def loops_after(a: np.ndarray, c: Any) -> Any:
    x = a * 1
    z = x
    w = z[1:]
    if c > 1:
        x = x * 2
    i = 0
    while i < c:
        x[i] += z[1]
        z[1] += w[0]
        i += 1
    return x, z, w


def branches_after(a: np.ndarray, c: Any) -> Any:
    x = a * 1
    z = x
    if c > 1:
        x = x * 2
    if c != 3:
        z[0] = 5
        x[1] = z[0] + 2
    else:
        x[0] = 8
    return x, z


def returned(a: np.ndarray, c: Any) -> Any:
    def either(q: np.ndarray) -> np.ndarray:
        if q[1] > c:
            return q
        return q * 2

    x = a * 1
    t = either(x)
    t[1] = 9
    return x, t


def best_so_far(a: np.ndarray, c: Any) -> Any:
    x = a * 1
    best = x
    for k in range(3):
        if x[k] > c:
            best = x
        x = x + 1
    best[0] = 100
    return x, best


def view_bound_again(a: np.ndarray, c: Any) -> Any:
    x = a.reshape(2, 2)
    v = x[0]
    w = v[::-1]
    if c > 1:
        x[0, 0] = 5
        w = v * 2
    elif c > 0:
        w = w + 1
        x[1, 1] = 7
        v = v + w
    w[1] = 5
    return x, v, w


def view_bound_in_steps(a: np.ndarray, c: Any) -> Any:
    x = a.reshape(2, 2)
    v = x[0]
    i = 0
    while i < c:
        v = x[i % 2] * 1
        v[0] += 1
        x[0, 0] += v[1] + 5
        i = i + 1
    return x, v


def view_written_or_bound(a: np.ndarray, c: Any) -> Any:
    x = a.reshape(2, 2)
    v = x[0]
    if c > 1:
        v[1] *= -5
    else:
        v = v * 2
    return x, v


def written_through_a_view_or_bound(a: np.ndarray, c: Any) -> Any:
    x = a * 1
    v = x[::2]
    if c > 1:
        v[1] *= 6
    else:
        x = x + 1
    return x, v


PROGRAMS: list[Callable[[np.ndarray, Any], Any]] = [
    written,
    other_written,
    views,
    views_of_one,
    bound_again,
    written_or_bound,
    in_lists,
    nested,
    loops_after,
    branches_after,
    returned,
    best_so_far,
    view_bound_again,
    written_through_a_view_or_bound,
    view_written_or_bound,
    view_bound_in_steps,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_writes_are_seen_under_all_names(program: Callable[[np.ndarray, Any], Any]) -> None:
    compiled = tj.jit(program, autograph=True)
    a = np.arange(4.0)
    for c in range(4):
        made, expected = compiled(a, np.asarray(c)), program(a.copy(), c)
        for one, other in zip(tj.tree.leaves(made), tj.tree.leaves(expected), strict=True):
            np.testing.assert_array_equal(one, other)
    assert compiled.cache_report().count == 1


def test_what_nobody_reads_again_costs_nothing() -> None:
    """The array that a variable was before is not chosen anew with each write."""

    def scaled(x: np.ndarray) -> np.ndarray:
        if x.max() > 1:
            x = x / 2
        for i in range(3):
            x[i] += 1
        return x

    text = tj.jit(scaled, autograph=True).lower(np.ones(4)).as_text("hlo")
    assert "select" not in text


def test_a_view_that_a_loop_binds_again_after_reading_it_is_refused() -> None:
    def program(x: np.ndarray, c: Any) -> Any:
        v = x[0]
        while c > 0:
            x[0, 0] += 5
            v = v * 2
            c = c - 1
        return x, v

    with pytest.raises(ConcretizationError, match="a view of, an array that the steps write to"):
        tj.jit(program, autograph=True)(np.ones((2, 2)), 3)
