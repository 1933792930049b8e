"""Arrays in containers, under other names, too: one array in statements on traced values."""

from __future__ import annotations

import dataclasses
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit.errors import ConcretizationError

Point = namedtuple("Point", "a b")


@dataclasses.dataclass
class Box:
    buf: Any

    def __setitem__(self, i: int, value: Any) -> None:
        self.buf[i] = value


def in_list(x: Any, n: Any) -> Any:
    z = x * 1
    one = [z]
    for _ in range(n):
        one[0][0] = z.sum()
    return z, one[0]


def in_dictionary(x: Any, n: Any) -> Any:
    z = x * 1
    d = {"a": z}
    for _ in range(n):
        d["a"][0] = z.sum()
    return z, d["a"]


def in_tuple(x: Any, n: Any) -> Any:
    z = x * 1
    t = (z,)
    for _ in range(n):
        t[0][0] = z.sum()
    return z, t[0]


def in_named_tuple(x: Any, n: Any) -> Any:
    z = x * 1
    p = Point(z, [z])
    for _ in range(n):
        p[0][0] = z.sum()
        p.b[0][1] = p.a.sum() * 0.5
    return z, p.a, p.b[0]


def nested_containers(x: Any, n: Any) -> Any:
    z = x * 1
    one = [{"a": (z,)}]
    for _ in range(n):
        one[0]["a"][0][0] = z.sum()
    return z, one[0]["a"][0]


def in_attribute(x: Any, n: Any) -> Any:
    z = x * 1
    b = Box(z)
    for _ in range(n):
        b.buf[0] = z.sum()
        b[1] = z[0] * 0.5
    return z, b.buf


def in_closure(x: Any, n: Any) -> Any:
    z = x * 1
    one = [z]

    def write() -> None:
        one[0][0] = z.sum()

    for _ in range(n):
        write()
    return z, one[0]


def in_called_function(x: Any, n: Any) -> Any:
    def write(held: list[Any], value: Any) -> None:
        held[0][0] = value

    z = x * 1
    one = [z]
    for _ in range(n):
        write(one, z.sum())
    return z, one[0]


def view_in_list(x: Any, n: Any) -> Any:
    z = x * 1
    one, v = [z[1:]], z[::-1]
    for _ in range(n):
        one[0][0] = v.sum()
    return z, one[0], v


def in_branch(x: Any, n: Any) -> Any:
    z = x * 1
    one = [z]
    if n > 1:
        one[0][0] = z.sum()
        z[1] = one[0].sum()
    return z, one[0]


def in_while(x: Any, n: Any) -> Any:
    z = x * 1
    one = [z]
    while n > 0:
        one[0][0] = z.sum()
        n = n - 1
    return z, one[0]


def in_nested_loops(x: Any, n: Any) -> Any:
    z = x * 1
    one = [z]
    for _ in range(n):
        for _ in range(n):
            one[0][0] = z.sum() * 0.5
    return z, one[0]


def list_with_two_names(x: Any, n: Any) -> Any:
    one, s = [x * 1], 0.0
    m = one
    for _ in range(n):
        one[0] = one[0] + 1
        s = s + m[0].sum()
    return s, m[0]


def list_beside_a_bound_list(x: Any, n: Any) -> Any:
    z, w = x * 1, x * 2
    v = z[::-1]
    d, one, m = {"p": z[:]}, [w, w], [z, w]
    if n > 1:
        d["p"][0] = n
    else:
        v = v[:]
        m = one
    return v, *m, z


def branch_that_binds_the_list(x: Any, n: Any) -> Any:
    z = x * 1
    held, v, s = [z], z[1:], 0.0
    if n > 1:
        held[0][1] = 7
        s = z[1] + v[0]
        held = [x * 3]
    held[0][2] = 5
    return z, held[0], s, v


def tuple_of_one_view(x: Any, n: Any) -> Any:
    z = x * 1
    t = (x * 2, z[:])
    for _ in range(n):
        t = (t[1], t[1])
    t[0][0] = 5
    t[1][1] = 6
    return z, *t


def list_bound_to_one_of_the_same_view(x: Any, n: Any) -> Any:
    w = x * 1
    v = w[::-1]
    held = [v, w]
    m = list(held)
    if n > 1:
        m = held
        v[1] += n
    return *held, *m


def tuple_bound_in_a_branch_that_is_not_taken(x: Any, n: Any) -> Any:
    z, s = x * 1, 0.0
    t = (x * 2, z)
    for _ in range(n):
        if s > 0.2:
            t = (t[1], t[0])
    t[1][0] = 9
    z[1] = 7
    return z, *t


FUNCTIONS = [
    in_list, in_dictionary, in_tuple, in_named_tuple, nested_containers, in_attribute, in_closure,
    in_called_function, view_in_list, in_branch, in_while, in_nested_loops, list_with_two_names,
    list_bound_to_one_of_the_same_view, list_beside_a_bound_list, branch_that_binds_the_list,
    tuple_of_one_view, tuple_bound_in_a_branch_that_is_not_taken,
]  # fmt: skip
X = np.arange(4.0)


def same(ours: Any, right: Any) -> None:
    for mine, other in zip(ours, right, strict=True):
        np.testing.assert_allclose(mine, other)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_traced(function: Callable[..., Any]) -> None:
    jitted = tj.jit(function, autograph=True)
    for n in (3, 0):
        same(jitted(X, n), function(X, n))


@pytest.mark.parametrize("options", [{}, {"autograph": True}])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_known(function: Callable[..., Any], options: dict[str, Any]) -> None:
    same(tj.jit(function, static_argnums=1, **options)(X, 20), function(X, 20))


@pytest.mark.parametrize("function", [in_list, in_dictionary, list_with_two_names, view_in_list])
def test_known_loops_stay_loops(function: Callable[..., Any]) -> None:
    text = str(tj.jit(function, static_argnums=1, autograph=True).lower(X, 1000).module)
    assert text.count(" while(") == 1
    assert len(text.splitlines()) < 200


def test_an_array_bound_anew_in_the_loop_is_refused_by_name() -> None:
    def function(x: Any, n: Any) -> Any:
        z = x * 1
        one = [z]
        for _ in range(n):
            one[0][0] = z.sum()
            z = z + 1
        return z, one[0]

    with pytest.raises(ConcretizationError, match=r"another name of it, z, .*z.copy\(\)"):
        tj.jit(function, autograph=True)(X, 3)


def read_through_another_name(x: Any, n: Any) -> Any:
    z, s = x * 1, 0.0
    held = [z]
    for i in range(n):
        held[0][1] = s + i
        s = s + z[1]
        held = [held[0]]
    return z, s


def read_through_a_view(x: Any, n: Any) -> Any:
    z, s = x * 1, 0.0
    held, v = [z], z[1:]
    for i in range(n):
        held[0][1] = s + i
        s = s + v[0]
        if i > 100:
            held = [x * 2]
    return z, s, held[0]


@pytest.mark.parametrize("function", [read_through_another_name, read_through_a_view])
def test_a_list_bound_anew_whose_array_is_read_is_refused_by_name(
    function: Callable[..., Any],
) -> None:
    with pytest.raises(ConcretizationError, match=r"writes to held\[0\] and .*held\[0\].copy\(\)"):
        tj.jit(function, autograph=True)(X, 3)


def list_or_list(x: Any, n: Any) -> Any:
    rows, columns = [x * 1, x * 2], [x * 3, x * 4]
    one = rows if n > 1 else columns
    one[0][1] = 9
    return *one, *rows, *columns


def bound_in_one_branch(x: Any, n: Any) -> Any:
    held = [x * 1, x * 2]
    if n > 1:
        held = [x * 3, x * 4]
    held[1] = x * 7
    return held


def test_a_list_or_another_is_read_and_its_arrays_are_written() -> None:
    for function in (list_or_list, bound_in_one_branch):
        jitted = tj.jit(function, autograph=True)
        for n in (0, 3):
            same(jitted(X, n), function(X, n))


def written_after_the_choice(x: Any, n: Any) -> Any:
    rows, columns = [x * 1, x * 2], [x * 3, x * 4]
    one = rows if n > 1 else columns
    one[1] = x * 7
    return *rows, *columns


def second_name_after_a_branch(x: Any, n: Any) -> Any:
    held = [x * 1, x * 2]
    m = held
    if n > 1:
        held = [x * 3, x * 4]
    held[1] = x * 7
    return *held, *m


def second_name_made_in_a_branch(x: Any, n: Any) -> Any:
    held, m = [x * 1], [x * 2]
    if n > 1:
        held = m = [x * 3]
    held[0] = x * 7
    return *held, *m


def second_name_after_a_loop(x: Any, n: Any) -> Any:
    held, m = [x * 1, x * 2], [x * 3, x * 4]
    for _ in range(n):
        held = m
    held[1] = x * 7
    return *held, *m


def chosen_in_a_loop(x: Any, n: Any) -> Any:
    held, m, s = [x * 1, x * 2], [x * 3, x * 4], 0.0
    for i in range(n):
        if i > 1:
            held = m
        s = s + held[0].sum()
    m[0] = x * 7
    return s, *held


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (written_after_the_choice, "the chosen value may be the same list as rows"),
        (second_name_after_a_branch, "held may be the same list as m"),
        (second_name_made_in_a_branch, "m may be the same list as held"),
        (second_name_after_a_loop, "held may be the same list as m"),
        (chosen_in_a_loop, "held may be the same list as m"),
    ],
)
def test_one_of_two_lists_that_may_be_one_is_not_written_to(
    function: Callable[..., Any], names: str
) -> None:
    with pytest.raises(ConcretizationError, match=rf"{names}.*\(test_containers.py:\d+\)"):
        tj.jit(function, autograph=True)(X, 3)


def test_a_step_that_binds_a_list_anew_does_not_write_to_one_with_two_names() -> None:
    def function(x: Any, n: Any) -> Any:
        held, s = [x * 1, x * 2], 0.0
        m = held
        for i in range(n):
            held[0] = held[0] + 1
            s = s + m[0].sum()
            if i > 1:
                held = [x * 3, x * 4]
        return s, held

    with pytest.raises(ConcretizationError, match=r"held is bound anew and .* another name, m;"):
        tj.jit(function, autograph=True)(X, 3)


def test_a_list_written_to_in_a_loop_whose_array_is_lent() -> None:
    def function(x: Any, n: Any) -> Any:
        z = x * 1
        held, is_off = [z, x * 2], False
        for _ in range(n):
            z[0] += 1
            held[1] = held[1] * 2
            if is_off:
                held = [x, x]
        return z, *held

    same(tj.jit(function, autograph=True)(X, 3), function(X, 3))


def test_derivatives() -> None:
    def loss(x: Any, n: Any) -> Any:
        z, held = x * 1, {"a": [x * 2]}
        held["b"] = z
        for _ in range(n):
            held["b"][0] = np.sin(z).sum()
            held["a"][0][1] = z[0] * z[1]
        return (z * held["a"][0]).sum()

    ours = tj.grad(tj.jit(loss, autograph=True, static_argnums=1))(X, 3)
    steps = 1e-6 * np.eye(4)
    expected = [(loss(X + step, 3) - loss(X - step, 3)) / 2e-6 for step in steps]
    np.testing.assert_allclose(ours, expected, 1e-6, 1e-6)


def test_a_write_through_ravel_of_a_known_array_in_a_long_trace() -> None:
    def function(x: Any) -> Any:
        u = np.zeros(4)
        for _ in range(400):
            x = x * 0.5 - 1
        u.ravel()[0] = x[0]
        return u

    np.testing.assert_allclose(tj.jit(function)(X), function(X))
