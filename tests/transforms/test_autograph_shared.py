"""`jit(f, autograph=True)`: what is one array or another after a branch shares its memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit.errors import ConcretizationError, UnsupportedError


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


def written_then_bound(a: np.ndarray, c: Any) -> Any:
    x = a * 1
    z = x
    if c > 1:
        x[0] = 5
        x = x + 1
    return x, z


def swapped_or_one(a: np.ndarray, c: Any) -> Any:
    x, y = a * 1, a * 2
    z, w = x, y
    if c > 1:
        x[0] = 5
        x, y = y, x
        x[1] = 6
    else:
        y = x
        y[0] = 3
    x[2] = 9
    return x, y, z, w


def chain(a: np.ndarray, c: Any) -> Any:
    x, y, z = a * 1, a * 2, a * 3
    if c > 2:
        z = x
        z[0] = 1
    elif c > 1:
        z = y
        z[1] = 2
    else:
        z = z[::-1]
    z[2] = 7
    if c > 0:
        z[1] *= 3
        x[1] += z[2]
        y, z = z, y
    y[3] = 4
    return x, y, z


def bound_by_steps_if_any(a: np.ndarray, c: Any) -> Any:
    x = a * 1
    z = x
    i = 0
    while i < c:
        y = x * 2
        x = y
        i += 1
    x[0] = 50
    return x, z


def one_after_steps(a: np.ndarray, c: Any) -> Any:
    x, y = a * 1, a * 2
    z, w = x, y
    for _ in range(c):
        y = x + 1
        x = y
    y[0] = 50
    x[1] = 60
    return x, y, z, w


def of_outside_after_steps(a: np.ndarray, c: Any) -> Any:
    x, y = a * 1, a * 2
    z = y
    for _ in range(c):
        z = x[::-1]
    z[0] = 50
    x[1] = 60
    return x, y, z


def swapped_by_steps(a: np.ndarray, c: Any) -> Any:
    x, y = a * 1, a * 2
    for i in range(c):
        x[i] += 7
        y[1] += x[0]
        x, y = y, x
    x[0] = 50
    return x, y


def of_the_other_after_steps(a: np.ndarray, c: Any) -> Any:
    x, y = a * 1, a * 2
    for _ in range(c + 1):
        x = y
        y += 1
    x[0] = 50
    return x, y


def one_before_steps(a: np.ndarray, c: Any) -> Any:
    x = y = a * 1
    for _ in range(c):
        y = x.ravel()
        x, y = y, x
    y[0] += 50
    return x, y


KNOWN = np.full(4, 3.0)


def known_arrays_in_steps(a: np.ndarray, c: Any) -> Any:
    x, y = a * 1, a * 2
    z = y
    for _ in range(c):
        x = KNOWN
        y = KNOWN
    return x, y + z, z


def views_back_and_forth(a: np.ndarray, c: Any) -> Any:
    x, y = a * 1, a * 2
    for i in range(6):
        if a[i % 4] > c:
            x, y = y[::-1], x
        else:
            x = x[::-1].reshape(4)
        x[i % 4] += 3
    return x, y


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
    written_then_bound,
    swapped_or_one,
    chain,
    bound_by_steps_if_any,
    one_after_steps,
    of_outside_after_steps,
    swapped_by_steps,
    of_the_other_after_steps,
    one_before_steps,
    known_arrays_in_steps,
    views_back_and_forth,
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


def third_name_of_swapped(x: np.ndarray, y: np.ndarray, c: Any) -> Any:
    x, y = x * 1, y * 1
    z = x
    for _ in range(c):
        x[0] += 1
        x, y = y, x
    return x, y, z


def third_name_of_written(x: np.ndarray, y: np.ndarray, c: Any) -> Any:
    x = x * 1
    z = x
    while c > 0:
        x[0] += 1
        x = x + y
        c = c - 1
    return x, z + 1


def written_after_swaps(x: np.ndarray, y: np.ndarray, c: Any) -> Any:
    x, y = x * 1, y * 1
    z = x
    for _ in range(c):
        x, y = y, x
    x[0] = 1
    return x, z


@pytest.mark.parametrize(
    "program", [third_name_of_swapped, third_name_of_written, written_after_swaps]
)
def test_what_a_loop_makes_unknown_cannot_be_read(program: Callable[..., Any]) -> None:
    x = np.ones(3)
    refused = "an array is read that may have been written to under another name: the loop at"
    with pytest.raises(ConcretizationError, match=refused) as error:
        tj.jit(program, autograph=True)(x, x * 2, 2)
    assert f"the loop at {Path(__file__).name}:" in str(error.value)
    assert (x == 1).all()


def test_a_third_name_that_a_step_reads_is_refused() -> None:
    def program(x: np.ndarray, c: Any) -> Any:
        x = x * 1
        z = x
        y = x * 2
        while c > 0:
            y = y + z[0]
            x[0] += 1
            x = x * 2
            c = c - 1
        return x, y

    with pytest.raises(ConcretizationError, match="binds names anew, and another name"):
        tj.jit(program, autograph=True)(np.ones(2), 3)


def test_what_may_be_a_written_array_is_refused_in_a_step() -> None:
    def program(x: np.ndarray, c: Any) -> Any:
        y = x * 1
        x = y if c > 1 else y + 1
        while c > 0:
            y[0] = x[1]
            y = x + 1
            c = c - 1
        return x, y

    with pytest.raises(ConcretizationError, match="binds names anew, and another name"):
        tj.jit(program, autograph=True)(np.ones(2), 3)


def test_two_names_of_one_array_that_a_step_writes_to_are_refused() -> None:
    def program(x: np.ndarray, c: Any) -> Any:
        y = x * 2
        while c > 0:
            x[0] += y[1]
            y[1] += 1
            y = x = x + y
            c = c - 1
        return x, y

    with pytest.raises(ConcretizationError, match="may be the same array; copy it before"):
        tj.jit(program, autograph=True)(np.ones(2), 3)


def test_long_loops_that_swap_are_right_under_a_third_name() -> None:
    """Recorded once they would be refused: they are recorded step by step."""

    def program(x: np.ndarray, y: np.ndarray) -> Any:
        x, y = x * 1, y * 1
        z = x
        for i in range(40):
            x, y = y, x
            for j in range(40):
                x[j % 3] += y[i % 3] * 0.01
        return x, y, z

    x = np.arange(3.0)
    for one, other in zip(tj.jit(program)(x, x + 1), program(x, x + 1), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_the_derivative_through_a_chain_of_branches() -> None:
    def program(x: np.ndarray, y: np.ndarray, c: Any) -> Any:
        x, y = x * 1, y * 1
        z = x
        if c > 1:
            x[0] = 5
            x = x * y
        elif c > 0:
            x = y
            x[1] = 2
        if c < 2:
            y[0] = z[0] * 3
        return z[0] + (x * y).sum()

    x, y = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    called: Callable[..., Any] = program
    for c in range(3):
        made = tj.jit(tj.grad(tj.autograph(program), argnums=(0, 1)))(x, y, np.asarray(c))
        for number, one in enumerate(made):
            for place in range(2):
                ends = []
                for step in (1e-6, -1e-6):
                    moved = [x.copy(), y.copy()]
                    moved[number][place] += step
                    ends.append(called(*moved, c))
                assert abs(one[place] - (ends[0] - ends[1]) / 2e-6) < 1e-6


def bound_in_a_loop_in_a_branch(n: Any) -> Any:
    w, v = np.zeros(4), np.ones(4)
    if n > 0:
        i = 0
        while i < n:
            i = i + 1
            v = w
    w += 0.125
    return v, w


def returned_from_a_loop(n: Any) -> Any:
    a, b, i = np.arange(3.0), np.zeros(3), 0.0
    while i < n:
        i = i + 1
        b[0] += 1
        if i > 3:
            return i, a, b
    return i, a, b + a


@pytest.mark.parametrize("function", [bound_in_a_loop_in_a_branch, returned_from_a_loop])
@pytest.mark.parametrize("n", [10.0, 1.0, -1.0])
def test_arrays_from_outside_of_a_loop(function: Any, n: float) -> None:
    jitted = tj.jit(function, autograph=True)
    for one, other in zip(function(n), jitted(n), strict=True):
        np.testing.assert_array_equal(one, other)


def raveled_in_a_branch(a: np.ndarray, n: Any) -> Any:
    w = x = a * 1
    if n > 0:
        w = x[::-1]
    z = w * 2
    if n > 1:
        z = w.ravel()
    z[0] = 5
    return x, w, z


def raveled_and_written(a: np.ndarray, n: Any) -> Any:
    w = x = a * 1
    if n > 0:
        w = x[::-1]
    z = w.ravel()
    x[0] = 3
    return x, w, z


def raveled_in_a_loop(a: np.ndarray, n: Any) -> Any:
    w = x = a * 1
    if n > 0:
        w = x[::-1]
    for i in range(int(n)):
        w.ravel()[0] = 9 + i
    return w, x


@pytest.mark.parametrize("f", [raveled_in_a_branch, raveled_and_written, raveled_in_a_loop])
def test_a_ravel_that_may_be_a_copy_is_neither_view_nor_copy(f: Callable[..., Any]) -> None:
    with pytest.raises(ConcretizationError, match="gives a view of it or a copy"):
        tj.jit(f, autograph=True, check=True)(np.arange(4.0), 2.0)


def test_views_of_what_may_be_a_view_are_written_to() -> None:
    def f(a: np.ndarray, n: Any) -> Any:
        w = x = a * 1
        if n > 0:
            w = x[::-1]
        w.view()[0], w.reshape(4)[1], w.flat[2], w[None].squeeze()[3] = 3, 4, 5, 6
        return x, w

    for n in (-1.0, 1.0):
        ours = tj.jit(f, autograph=True, check=True)(np.arange(4.0), n)
        np.testing.assert_array_equal(ours, f(np.arange(4.0), n))


def test_a_ravel_of_an_argument_that_is_strided_is_refused() -> None:
    def f(x: np.ndarray) -> Any:
        z = x.ravel()
        z[0] = 5
        return x * 2

    jitted = tj.jit(f, check=True)
    np.testing.assert_array_equal(jitted(np.arange(4.0)), [10, 2, 4, 6])
    with pytest.raises(UnsupportedError, match="has gaps in memory"):
        jitted(np.arange(4.0)[::-1])


def test_a_view_that_a_loop_binds_again_is_named_where_its_memory_is_written_to() -> None:
    def f(n: Any) -> Any:
        u, v = np.zeros(4), np.arange(4.0)
        w = v.reshape(2, 2)
        i = 0.0
        while i < n * n + 2:
            i = i + 1
            v.ravel()[0] = 5
            w = u[::-1].reshape(2, 2)
        return v, w

    with pytest.raises(ConcretizationError, match=r"copy the array before: w = w\.copy\(\)"):
        tj.jit(f, autograph=True, check=True)(1.0)


def test_a_reshape_that_may_be_a_copy_is_not_written_to() -> None:
    def f(n: Any) -> Any:
        u, v = np.zeros((2, 2)), np.ones((2, 2))
        w = u[:, ::-1]
        if n > 0:
            w = v
        w.ravel()[0] = 7
        return u, v

    with pytest.raises(ConcretizationError, match="gives a view of it or a copy"):
        tj.jit(f, autograph=True)(1.0)


def a_view_of_a_swapped_array(n: Any) -> Any:
    u, v = np.zeros(4), np.arange(4.0)
    w = u.copy().reshape(2, 2)
    i = 0
    while i < n * n + 2:
        i = i + 1
        for _ in range(int(n * n)):
            w = v.reshape(2, 2)
        u, v = v, u
    w += 0.125
    return u, v, w


def test_a_view_of_another_shape_that_a_nested_loop_makes() -> None:
    """Which of the swapped arrays it is a view of is not known: the others cannot be read."""
    with pytest.raises(ConcretizationError, match="may have been written to under another name"):
        tj.jit(a_view_of_a_swapped_array, autograph=True)(1.2)


@pytest.mark.parametrize("is_view", [False, True])
@pytest.mark.parametrize("n", [0.0, 1.0, 4.0])
def test_a_name_that_a_step_binds_to_the_same_array_again_sees_its_writes(
    n: float, is_view: bool
) -> None:
    def f(n: Any) -> Any:
        w = np.zeros(4)
        u = w[1:] if is_view else w
        i = 0
        while i < n:
            i = i + 1
            w[2] = n + i
            u = w[1:] if is_view else w
        u[1] *= 3
        u[2] = 7
        return u, w

    for made, right in zip(tj.jit(f, autograph=True)(n), f(n), strict=True):
        np.testing.assert_array_equal(made, right)


def _of_both_branches(x: Any, n: Any) -> Any:
    if n > 0:
        u = x * 0.5
        w = u
    else:
        u = x * 2
        w = u[::-1]
    w += 1.0
    return u, w


def _of_one_branch(x: Any, n: Any) -> Any:
    u = x * 3
    w = u
    if n > 0:
        u = x * 0.5
        w = u
    u[0] = 7
    return u, w


def _parts(x: Any, n: Any) -> Any:
    u, w = x * 3, x * 4
    z = u[:2]
    if n > 0:
        t = x * 0.5
        w, z = t[:3], t[1:3]
    else:
        w = w[:3]
    w *= 2
    z += 1
    return u, w, z


def _leaves(x: Any, n: Any) -> Any:
    d = {"a": x * 1, "b": x * 2}
    if n > 0:
        t = x * 0.5
        d["a"], d["b"] = t, t[::-1]
    d["a"][0] = 9
    d["b"][1] = 8
    return d["a"], d["b"]


def _nested(x: Any, n: Any) -> Any:
    u = x * 3
    w = u.copy()
    if n > 0:
        t = x * 0.5
        if n > 1:
            u = t
            w = t[::-1]
        else:
            u = t * 2
            w = u
    w[0] += 1
    return u, w


def _one_of_two(x: Any, n: Any) -> Any:
    u, w = x * 3, x * 4
    if n > 0:
        p, q = x * 0.5, x * 0.25
        w = p if x.sum() > n else q
        u = p
    w += 1
    return u, w


@pytest.mark.parametrize(
    "function", [_of_both_branches, _of_one_branch, _parts, _leaves, _nested, _one_of_two]
)
@pytest.mark.parametrize("n", [-1.0, 0.5, 2.0, 30.0])
def test_names_that_a_branch_binds_to_one_array_that_it_makes(
    function: Callable[..., Any], n: float
) -> None:
    x = np.arange(4.0)
    for right, ours in zip(function(x, n), tj.jit(function, autograph=True)(x, n), strict=True):
        np.testing.assert_array_equal(ours, right)


def test_names_of_one_array_of_a_branch_that_the_other_gives_another_type() -> None:
    def f(x: Any, n: Any) -> Any:
        u, w = x * 3, x.astype(np.float64)
        if n > 0:
            u = x * 0.5
            w = u
        w += 1
        return u, w

    x = np.arange(4, dtype=np.float32)
    with pytest.raises(ConcretizationError, match="binds two names to one array that it makes"):
        tj.jit(f, autograph=True)(x, np.float32(1))


def test_a_loop_that_writes_to_what_the_step_before_bound() -> None:
    """The second step writes to an array from before the loop, under another name."""

    def f(x: Any, n: Any, copies: bool) -> Any:
        x, z = x * 1, x * 2
        i = 0
        while i < n:
            x[0] = 5.0
            x = z.copy() if copies else z
            i += 1
        return x, z

    jitted = tj.jit(f, autograph=True, static_argnums=2)
    x = np.arange(4.0)
    with pytest.raises(ConcretizationError, match="bind x to a copy of that"):
        jitted(x, 2.0, False)
    for right, ours in zip(f(x, 2.0, True), jitted(x, 2.0, True), strict=True):
        np.testing.assert_array_equal(ours, right)


def raveled_after_a_branch(a: np.ndarray, n: Any) -> Any:
    v = np.arange(4.0)
    w = v[::-1][1:]
    if n > 0:
        w = a[1:4]
    w.ravel()[0] = 0.125
    return v, w


def raveled_where_a_branch_makes_the_array(a: np.ndarray, n: Any) -> Any:
    w = a[1:]
    if n > 0:
        w = np.arange(8.0)[::-1]
    z = w.ravel()
    z[0] = 5
    return w


def made_contiguous_after_a_branch(a: np.ndarray, n: Any) -> Any:
    w = np.arange(8.0)[::-1]
    if n > 0:
        w = np.arange(8.0)
    np.ascontiguousarray(w)[0] = 5
    return w


def raveled_columns_after_a_branch(a: np.ndarray, n: Any) -> Any:
    w = np.arange(16.0).reshape(4, 4)[:, ::2]
    if n > 0:
        w = np.ones((4, 2))
    w.ravel()[0] = 7
    return w


def raveled_after_a_loop(a: np.ndarray, n: Any) -> Any:
    w = np.arange(16.0)[::2]
    for _ in range(int(n)):
        w = np.arange(8.0) + w
    w.ravel()[0] = 5
    return w


def raveled_in_the_step_of_a_loop(a: np.ndarray, n: Any) -> Any:
    w = np.arange(16.0)[::2]
    for _ in range(int(n)):
        w.ravel()[0] = 5
        w = w * 2
    return w


MAY_HAVE_GAPS = [
    raveled_after_a_branch,
    raveled_where_a_branch_makes_the_array,
    made_contiguous_after_a_branch,
    raveled_columns_after_a_branch,
    raveled_after_a_loop,
    raveled_in_the_step_of_a_loop,
]


@pytest.mark.parametrize("f", MAY_HAVE_GAPS)
def test_an_array_that_may_have_gaps_is_not_written_to_through_a_ravel(
    f: Callable[..., Any],
) -> None:
    with pytest.raises(ConcretizationError, match=r"gives a view of it or a copy.*shared\.py:\d"):
        tj.jit(f, autograph=True)(np.arange(9.0), 2.0)


def test_the_next_step_of_a_loop_may_get_an_array_with_gaps() -> None:
    def f(n: Any) -> Any:
        w = np.arange(8.0)
        for _ in range(int(n)):
            w.ravel()[0] = 5
            w = np.arange(16.0)[::2]
        return w

    with pytest.raises(UnsupportedError, match="asks for the order of memory"):
        tj.jit(f, autograph=True)(2.0)


def test_an_array_that_may_have_gaps_is_read_and_copied() -> None:
    def f(n: Any) -> Any:
        w = np.arange(16.0).reshape(4, 4)[:, ::2]
        if n > 0:
            w = np.ones((4, 2))
        x, y, z = w.copy(), w + 1, w.flatten()
        x.ravel()[0], y.ravel()[1], z[2] = 7, 8, 9
        return w, w.ravel(), x, y, z

    jitted = tj.jit(f, autograph=True)
    for n in (-1.0, 1.0):
        for one, other in zip(f(n), jitted(n), strict=True):
            np.testing.assert_array_equal(one, other)


def written_in_a_loop_of_a_loop(a: np.ndarray, n: Any) -> Any:
    z, s = a * 1, 0.0
    for _ in range(int(n)):
        y = z
        for _ in range(int(n)):
            y[0] = s + 3
            s = s + z.sum()
    return z, s


def written_in_a_loop_of_a_branch(a: np.ndarray, n: Any) -> Any:
    z, s = a * 1, 0.0
    if n > 0:
        y = z[1:]
        for _ in range(int(n)):
            y *= 2
            s = s + z.sum()
    return z, s


def written_in_one_branch_of_a_loop(a: np.ndarray, n: Any) -> Any:
    z = a * 1
    for _ in range(int(n)):
        y = z
        if z[0] < 9:
            y += z.sum()
        else:
            y = y * 2
    return z


def written_by_a_mask_in_a_loop_of_a_loop(a: np.ndarray, n: Any) -> Any:
    z, i = a * 1, 0
    while i < n:
        i += 1
        y = z
        for _ in range(int(n)):
            y[y > a.mean()] = z.sum() * 0.125
    return z


WRITTEN_FURTHER_IN = [
    written_in_a_loop_of_a_loop,
    written_in_a_loop_of_a_branch,
    written_in_one_branch_of_a_loop,
    written_by_a_mask_in_a_loop_of_a_loop,
]


@pytest.mark.parametrize("f", WRITTEN_FURTHER_IN)
def test_a_name_bound_in_a_statement_is_written_to_in_one_inside(f: Callable[..., Any]) -> None:
    jitted = tj.jit(f, autograph=True)
    for n in (-1.0, 2.0, 3.0):
        ours, right = jitted(np.arange(6.0), n), f(np.arange(6.0), n)
        for one, other in zip(ours, right, strict=True):
            np.testing.assert_array_equal(one, other)


def _written_too(y: Any, n: int, of: Callable[[Any], Any]) -> Any:
    y = y * 1
    z = y + 1
    for _ in range(n):
        z += 1
        y -= z
        z = of(y)
    return y, z


def _read_too(y: Any, n: int, of: Callable[[Any], Any]) -> Any:
    y = y * 1
    z, total = y + 1, 0.0
    for _ in range(n):
        y -= 1
        total += z.sum()
        z = of(y)
    return y, z, total


def _read_in_a_branch(y: Any, n: int, of: Callable[[Any], Any]) -> Any:
    y = y * 1
    z = y + 1
    for i in range(n):
        y -= 1
        if y[3] > i - 1:
            z = of(y)
        else:
            z = z * 2
    return y, z


def _chosen(y: Any, n: int, of: Callable[[Any], Any]) -> Any:
    y = y * 1
    z = y + 1
    for _ in range(n):
        y -= 1
        if y[3] > 0:
            z = of(y)
    return y, z


@pytest.mark.parametrize("function", [_written_too, _read_too, _read_in_a_branch, _chosen])
@pytest.mark.parametrize("n", [0, 1, 2, 4])
def test_a_variable_that_a_step_binds_to_an_array_that_steps_write_to(
    function: Callable[..., Any], n: int
) -> None:
    """From the second step on both names are one array."""

    def copied(x: Any, n: Any) -> Any:
        return function(x, n, lambda one: one.copy())

    def bound(x: Any, n: Any) -> Any:
        return function(x, n, lambda one: one)

    x = np.arange(4.0)
    jitted = tj.jit(copied, autograph=True)
    for right, ours in zip(copied(x, n), jitted(x, n), strict=True):
        np.testing.assert_array_equal(ours, right)
    with pytest.raises(ConcretizationError, match="array from before the loop"):
        tj.jit(bound, autograph=True)(x, n)
