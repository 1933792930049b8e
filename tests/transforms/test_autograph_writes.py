"""`jit(f, autograph=True)`: writes that reach arrays by other names than the statement's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit import lax
from tracejit.errors import ConcretizationError, UnsupportedError


def add_to(p: np.ndarray, value: float) -> None:
    p[0] += value


class Grid:
    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def add(self, value: float) -> None:
        self.values[1:] = self.values[1:] + value


def by_helper_in_while(x: float) -> Any:
    p, q, d = np.zeros(2), np.ones(3), x
    while d > 0.1:
        add_to(p, d)
        add_to(q, p[0])
        d = d / 2
    return p, q


def by_helper_in_if(x: float) -> Any:
    p, q = np.zeros(2), np.zeros(2)
    if x > 2:
        add_to(p, x)
    else:
        add_to(q, x)
    return p, q


def by_method(x: float) -> Any:
    grid, rounds = Grid(np.zeros(3)), 0
    while grid.values[1] < x:
        grid.add(1.5)
        rounds += 1
    return grid.values, rounds


def nested(x: float) -> Any:
    grid, n = Grid(np.zeros(3)), 0
    while n < 4:
        if x > n:
            grid.add(x)
            while grid.values[2] > 3:
                add_to(grid.values, 1.0)
                grid.add(-2.0)
        n += 1
    return grid.values


def second_name(x: float) -> Any:
    a = np.zeros(3)
    b, d = a, x
    while d > 0:
        a[0] += 1
        d = d - b[0]
    return b, d


def view_from_outside(x: float) -> Any:
    a = np.zeros(3)
    tail = a[1:]
    if x > 1:
        tail[0] += x
        x = x + a[1]
    tail += 1
    return a, x


def updated_by_operator(x: float) -> Any:
    a = np.ones(2)
    b = a
    for _ in range(int(x)):
        a *= 2
        x = x + b[1]
    return a, b, x


def list_item(x: float) -> Any:
    rows = [np.zeros(2), np.ones(2)]
    while x > 0:
        rows[0] = rows[0] + x
        rows[1][1] += 1
        x = x - 1
    return rows[0], rows[1]


FUNCTIONS = (
    by_helper_in_while,
    by_helper_in_if,
    by_method,
    nested,
    second_name,
    view_from_outside,
    updated_by_operator,
    list_item,
)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_against_python(function: Any) -> None:
    for x in (0.25, 1.5, 2.5, 4.0):
        expected = function(x)
        found = tj.jit(function, autograph=True)(x)
        for right, ours in zip(expected, found, strict=True):
            np.testing.assert_allclose(ours, right, rtol=1e-12)


def test_arguments_written_by_a_helper_in_a_loop() -> None:
    def until(p: np.ndarray, limit: float) -> Any:
        rounds = 0
        while p[0] < limit:
            add_to(p, 1.0)
            rounds += 1
        return rounds

    p = np.zeros(2)
    assert tj.jit(until, autograph=True, mutates=["p"])(p, 3.5) == 4
    np.testing.assert_array_equal(p, [4.0, 0.0])


def test_one_memory_under_a_name_that_is_bound_again() -> None:
    def both(x: float) -> Any:
        a = np.zeros(2)
        grid = Grid(a)
        while x > 0:
            grid.add(x)
            a = a + 1
            x = x - 1
        return a

    with pytest.raises(ConcretizationError, match="assigns another name of it, a,"):
        tj.jit(both, autograph=True)(2.0)


def test_functions_of_lax_still_refuse() -> None:
    def function(x: Any) -> Any:
        total = np.zeros(2)

        def body(i: Any, x: Any) -> Any:
            add_to(total, x)
            return x

        if x > 0:
            x = lax.fori_loop(0, 3, body, x)
        return total

    with pytest.raises(UnsupportedError, match="is written to inside body_fun"):
        tj.jit(function, autograph=True)(2.0)


def test_a_write_reaches_a_view_with_names_of_its_own() -> None:
    def function(x: float, n: float) -> Any:
        a, b, c = n, 0.25, 0
        u, v = np.zeros(4), np.arange(4.0)
        w = v[:3]
        if 0 < a < 1.5:
            if not b > a:
                return u, v
        else:
            if c > 1:
                w = v[::-1][1:]
            if b > a:
                w.ravel()[0] = n
                u, v = v, u
        if a > 0 and n < 1:
            u, v = v, u
        v.ravel()[0] = -2.0
        return u, v

    with pytest.raises(ConcretizationError, match=r"another name of it, u,.*u = u\.copy"):
        tj.jit(function, autograph=True)(1.0, 0.7)
