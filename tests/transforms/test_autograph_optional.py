"""Variables that are None, or unbound, on some ways through a traced function: as in Python."""

from __future__ import annotations

import ast
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit.errors import ArgumentError, ConcretizationError
from tracejit.transforms.autograph.liveness import LIVE, note_live

X = np.arange(40.0) % 7


def bound_by_a_for(x: Any, n: int) -> Any:
    for i in range(n):
        y = x[i] * i
        x = x + y
    return y


def bound_by_a_while(x: Any, n: int) -> Any:
    while n < 10:
        y = x[0] + n
        n = n + 3
    return y


def bound_by_the_first_step(x: Any, n: int) -> Any:
    i = 0
    while i < n:
        if i == 0:
            total = x[i]
        else:
            total = total + x[i]
        i += 1
    return total


def bound_in_a_nest(x: Any, n: int) -> Any:
    for i in range(n):
        for j in range(n):
            t = x[i] * x[j]
        s = t + 1
    return s


def bound_in_one_branch(x: Any, n: int) -> Any:
    if n > 0:
        y = x[0] + n
    return y


def bound_and_read_under_one_test(x: Any, n: int) -> Any:
    if n > 0:
        y = x[0] + n
    if n > 0:
        return y
    return x[1] - n


def bound_before_a_break(x: Any, n: int) -> Any:
    for i in range(40):
        if x[i] > n:
            found = i
            break
    return found


def longest(x: Any, n: int) -> Any:
    best: Any = None
    where = -1
    for i in range(n):
        if best is None or x[i] > best:
            best, where = x[i], i
    return best, where


def longest_pair(x: Any, n: int) -> Any:
    pair: Any = None
    for i in range(n):
        if x[i] > 1 and (pair is None or pair[0] < x[i]):
            pair = (x[i], i)
    if pair is None:
        return -1.0, -1
    return pair


def extremes(x: Any, n: int) -> Any:
    state: dict[str, Any] = {"low": None, "high": None}
    for i in range(n):
        if state["low"] is None or x[i] < state["low"]:
            state["low"] = x[i]
        if state["high"] is None or x[i] > state["high"]:
            state["high"] = x[i]
    return state["high"] - state["low"]


def of_an_object(x: Any, n: int) -> Any:
    box = SimpleNamespace(best=None)
    for i in range(n):
        if box.best is None or box.best < x[i]:
            box.best = x[i]
    return box.best


def differences(x: Any, n: int) -> Any:
    last: Any = None
    total: Any = 0.0
    for i in range(n):
        if last is not None:
            total = total + abs(x[i] - last)
        last = x[i]
    return total


def differences_by_number(x: Any, n: int) -> Any:
    last: Any = None
    total = 0.0
    for i in range(n):
        if i > 0:
            total = total + abs(x[i] - last)
        last = x[i]
    return total


def forgotten(x: Any, n: int) -> Any:
    last: Any = 5.0
    i = 0
    while i < n:
        last = None if x[i] > 2 else x[i]
        i += 1
    return last


def an_array(x: Any, n: int) -> Any:
    y: Any = None
    if n > 2:
        y = x[:3] * n
    return y


def used_where_it_is_none(x: Any, n: int) -> Any:
    y: Any = None
    if n > 2:
        y = x[n]
    return np.cos(y)


def or_another(x: Any, n: int) -> Any:
    y: Any = None
    if n > 2:
        y = x[n] - 4
    return y or 7.0


def compared(x: Any, n: int) -> Any:
    y: Any = None
    while n < 5:
        y, n = n, n + 1
    return y == 4, y != 4


def deleted(x: Any, n: int) -> Any:
    y = 2
    while n > 0:
        n = n - y
        if n > 3:
            del y
    return n


def nothing_yet(x: Any, n: int) -> Any:
    y: Any = None
    if n > 2:
        y = y + x[0]
    return n


PROGRAMS = [
    bound_by_a_for, bound_by_a_while, bound_by_the_first_step, bound_in_a_nest,
    bound_in_one_branch, bound_and_read_under_one_test, bound_before_a_break, longest,
    longest_pair, extremes, of_an_object, differences, differences_by_number, forgotten, an_array,
    used_where_it_is_none, or_another, compared, deleted, nothing_yet,
]  # fmt: skip


def assert_same(found: Any, expected: Any) -> None:
    """The same arrays, numbers and Nones, in tuples."""
    if isinstance(expected, tuple):
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    elif expected is None or found is None:
        assert found is expected
    else:
        np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("function", PROGRAMS)
def test_as_python(function: Callable[..., Any], check: bool) -> None:
    """The same value, None included, or the same kind of exception, with variable and line."""
    jitted = tj.jit(function, autograph=True, check=check)
    for n in (0, 1, 4, 11):
        try:
            expected = function(X, n)
        except (TypeError, UnboundLocalError) as error:
            with pytest.raises(type(error), match=r"(variable \S+ |NoneType).*optional.py:\d"):
                jitted(X, n)
            continue
        found = jitted(X, n)
        assert_same(found, expected)


def test_derivatives() -> None:
    @tj.autograph
    def cubes(x: Any) -> Any:
        total = None
        for v in x:
            if total is None:
                total = v * v
            elif v > 0:
                total = total + v**3
        return total

    found = tj.jit(tj.grad(cubes))(np.array([1.0, -2.0, 3.0]))
    np.testing.assert_allclose(found, [2, 0, 27])


def test_batches() -> None:
    @tj.autograph
    def halved(x: Any, default: Any) -> Any:
        y: Any = None
        if x > 0:
            y = x / 2
        return y if default is None else default if y is None else y

    values = np.array([2.0, -2.0])
    np.testing.assert_allclose(tj.vmap(lambda x: halved(x, 5.0))(values), [1, 5])
    with pytest.raises(ConcretizationError, match="None for some elements of a batch"):
        tj.vmap(lambda x: halved(x, None))(values)


def test_text_and_arrays_do_not_mix() -> None:
    def named(x: Any) -> Any:
        name: Any = "a"
        while x < 5:
            name = None
            x = x + 1
        return x if name is None else -x

    with pytest.raises(ArgumentError, match="the variable name is 'a' before a step and None"):
        tj.jit(named, autograph=True)(1.0)

    def chosen(x: Any) -> Any:
        name = "a" if x > 0 else None
        return x if name is None else -x

    with pytest.raises(ArgumentError, match="is 'a' after one branch and None after the other"):
        tj.jit(chosen, autograph=True)(1.0)


def keys_in_a_branch(x: Any) -> Any:
    made = {"b": x}
    if x > 0:
        made["a"] = x
    return made["b"]


def keys_in_steps(x: Any) -> Any:
    made: dict[str, Any] = {}
    while x < 9:
        made["last"] = x
        x = x + 1
    return x


def keys_in_both_branches(x: Any) -> Any:
    made: dict[str, Any] = {"a": None}
    if x > 0:
        made["b"] = x
        made["a"] = x
    else:
        made["b"] = -x
    return made["b"] + (1.0 if made["a"] is None else made["a"])


def test_keys_of_dictionaries() -> None:
    with pytest.raises(ConcretizationError, match=r"made\['a'\] may have no value after"):
        tj.jit(keys_in_a_branch, autograph=True)(1.0)
    with pytest.raises(ConcretizationError, match=r"made\['last'\] may have no value"):
        tj.jit(keys_in_steps, autograph=True)(1.0)
    for x in (2.0, -2.0):
        assert tj.jit(keys_in_both_branches, autograph=True)(x) == keys_in_both_branches(x)


def test_live_variables() -> None:
    text = """
for i in range(n):
    t = x[i]
    for j in range(n):
        u = t + v
        v = u
    y = t + 1
    with z:
        while n:
            q = 1
t = y
print(q, t)
"""
    body = ast.parse(text).body
    note_live(body)
    nodes = (node for one in body for node in ast.walk(one))
    loops = [node for node in nodes if isinstance(node, ast.For | ast.While)]
    live = {loop.lineno: "".join(sorted(getattr(loop, LIVE) & set("tuvyqij"))) for loop in loops}
    assert live == {2: "qy", 4: "qtv", 9: "qvy"}


def test_a_call_that_returns_none_runs_once() -> None:
    seen: list[float] = []

    def half(x: Any) -> Any:
        tj.debug.callback(lambda v: seen.append(float(v)), x)
        y = None
        if x > 0:
            y = x / 2
        return y

    jitted = tj.jit(half, autograph=True)
    assert [jitted(x) for x in (2.0, -1.0, -1.0, 4.0)] == [1.0, None, None, 2.0]
    assert seen == [2.0, -1.0, -1.0, 4.0]
