"""Writes in every form NumPy has, one after the other, in random programs against NumPy.

A program works on an array x of shape (4, 4), an array y of the same shape, and the views that its
steps have made so far; a step is one of FORMS, with two places i and j.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracejit as tj
from tests.numpy_api.compare import same
from tracejit.errors import ArgumentError, ConcretizationError, ReadOnlyError, ShapeError

Form = Callable[[Any, Any, list[Any], int, int], None]


def element(x: Any, y: Any, views: list[Any], i: int, j: int) -> None:
    x[i, j] = y[j, i] + 1


def row(x: Any, y: Any, views: list[Any], i: int, j: int) -> None:
    x[i] = y[j]


def row_added(x: Any, y: Any, views: list[Any], i: int, j: int) -> None:
    x[i] += x[j]


def column(x: Any, y: Any, views: list[Any], i: int, j: int) -> None:
    x[:, i] *= y[:, j]


def column_by_transpose(x: Any, y: Any, views: list[Any], i: int, j: int) -> None:
    x.T[i] = y[j]


def slice_of_slice(x: Any, y: Any, views: list[Any], i: int, j: int) -> None:
    x[1:][:, ::2][i % 3, j % 2] = 7


def reversed_slice(x: Any, y: Any, views: list[Any], i: int, j: int) -> None:
    x[::-1][i:] -= 1


def stepped(x: Any, y: Any, views: list[Any], i: int, j: int) -> None:
    x[i % 2 :: 2, j % 2 :: 2] = y[:2, 2:]


def swapped_rows(x: Any, y: Any, views: list[Any], i: int, j: int) -> None:
    x[[i, j]] = x[[j, i]]


def swapped_elements(x: Any, y: Any, views: list[Any], i: int, j: int) -> None:
    x[i, 0], x[j, 1] = x[j, 1], x[i, 0]


def by_places(x: Any, y: Any, views: list[Any], i: int, j: int) -> None:
    x[[0, 2, 3], [i, j, i]] = y[0, :3]


def by_places_added(x: Any, y: Any, views: list[Any], i: int, j: int) -> None:
    x[[i, j, i]] += 1


def added_at(x: Any, y: Any, views: list[Any], i: int, j: int) -> None:
    np.add.at(x, ([i, j, i], [0, 0, 0]), y[0, :3])


def subtracted_at(x: Any, y: Any, views: list[Any], i: int, j: int) -> None:
    np.subtract.at(x[1], [i, j, j], 2)


def greatest_at(x: Any, y: Any, views: list[Any], i: int, j: int) -> None:
    np.maximum.at(x, [i, j, i], y[:3])


def masked(x: Any, y: Any, views: list[Any], i: int, j: int) -> None:
    x[x > 0] = i - j


def masked_added(x: Any, y: Any, views: list[Any], i: int, j: int) -> None:
    x[y > 0] += 2


def masked_from(x: Any, y: Any, views: list[Any], i: int, j: int) -> None:
    m = y < x
    x[m] = y[m] * 2 - x[m]


def masked_rows(x: Any, y: Any, views: list[Any], i: int, j: int) -> None:
    x[y[:, i] > 0] = y[j]


def masked_part(x: Any, y: Any, views: list[Any], i: int, j: int) -> None:
    x[i][y[j] < 0] = 5


def reduced_under_a_mask(x: Any, y: Any, views: list[Any], i: int, j: int) -> None:
    x[i, j] = x[y > 0].sum() + (x[y > 0] < 1).any() + x[y[i] > 0].sum(axis=0)[j]


def by_out(x: Any, y: Any, views: list[Any], i: int, j: int) -> None:
    np.add(x[i], y[j], out=x[j])


def by_out_where(x: Any, y: Any, views: list[Any], i: int, j: int) -> None:
    np.multiply(x, y, out=x, where=x > y)


def summed_into(x: Any, y: Any, views: list[Any], i: int, j: int) -> None:
    np.sum(x, axis=0, out=x[i])


def view_of_row(x: Any, y: Any, views: list[Any], i: int, j: int) -> None:
    views.append(x[i])


def view_of_column(x: Any, y: Any, views: list[Any], i: int, j: int) -> None:
    views.append(x.T[j])


def view_by_reshape(x: Any, y: Any, views: list[Any], i: int, j: int) -> None:
    views.append(x.reshape(2, 8)[i % 2])


def view_of_view(x: Any, y: Any, views: list[Any], i: int, j: int) -> None:
    views.append(views[-1][::-1] if views else x[::-1].ravel())


def view_written(x: Any, y: Any, views: list[Any], i: int, j: int) -> None:
    if views:
        views[i % len(views)][j] = 11


def view_scaled(x: Any, y: Any, views: list[Any], i: int, j: int) -> None:
    for view in views:
        view *= 2


def diagonal_read(x: Any, y: Any, views: list[Any], i: int, j: int) -> None:
    d = np.diagonal(x)
    x[i, i] = 3
    x[0] += d[j]


def diagonal_filled(x: Any, y: Any, views: list[Any], i: int, j: int) -> None:
    np.fill_diagonal(x, y[i, j])


def flat_written(x: Any, y: Any, views: list[Any], i: int, j: int) -> None:
    x.reshape(-1)[4 * i + j] = 1


def put(x: Any, y: Any, views: list[Any], i: int, j: int) -> None:
    np.put(x, [4 * i, 4 * j + 1], y[0, :2])


def copied(x: Any, y: Any, views: list[Any], i: int, j: int) -> None:
    np.copyto(x[i], y[j])


def loop_of_rows(x: Any, y: Any, views: list[Any], i: int, j: int) -> None:
    for k in range(1, 4):
        x[k] = 0.5 * x[k - 1] + y[k]


def iterated(x: Any, y: Any, views: list[Any], i: int, j: int) -> None:
    for one, other in zip(x, y, strict=True):
        one -= other[i]


def copy_is_apart(x: Any, y: Any, views: list[Any], i: int, j: int) -> None:
    apart = x.copy()
    apart[i] = 100
    x[j] += apart[j] / 50


def overlapping(x: Any, y: Any, views: list[Any], i: int, j: int) -> None:
    x[1:] = x[:-1]


FORMS: dict[str, Form] = {
    form.__name__: form
    for form in (
        element, row, row_added, column, column_by_transpose, slice_of_slice, reversed_slice,
        stepped, swapped_rows, swapped_elements, by_places, by_places_added, added_at,
        subtracted_at, greatest_at, masked, masked_added, masked_from, masked_rows, masked_part,
        reduced_under_a_mask, by_out, by_out_where, summed_into, view_of_row, view_of_column,
        view_by_reshape, view_of_view, view_written, view_scaled, diagonal_read, diagonal_filled,
        flat_written, put, copied, loop_of_rows, iterated, copy_is_apart, overlapping,
    )
}  # fmt: skip

RNG = np.random.default_rng(3)
X, Y = RNG.normal(size=(2, 4, 4)).round(2)


def program(steps: list[tuple[str, int, int]]) -> Callable[[Any, Any], Any]:
    def run(x: Any, y: Any) -> Any:
        x = x.copy()
        views: list[Any] = []
        for name, i, j in steps:
            FORMS[name](x, y, views, i, j)
        return x, views

    return run


@pytest.mark.parametrize("name", FORMS)
def test_form(name: str) -> None:
    """Each form by itself, between views that must see it."""
    steps = [("view_of_column", 0, 1), (name, 1, 2), ("view_scaled", 0, 0), (name, 3, 0)]
    same(tj.jit(program(steps))(X, Y), program(steps)(X, Y))


PLACES = st.integers(0, 3)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(sorted(FORMS)), PLACES, PLACES), min_size=2, max_size=7))
def test_random_programs(steps: list[tuple[str, int, int]]) -> None:
    same(tj.jit(program(steps))(X, Y), program(steps)(X, Y))


def test_compiled(machine_code: None) -> None:
    steps = [(name, 1, 2) for name in sorted(FORMS)]
    same(tj.jit(program(steps))(X, Y), program(steps)(X, Y), rtol=1e-9)


def test_the_callers_arrays_are_not_written_to() -> None:
    x, before = X.copy(), X.copy()

    def function(x: Any) -> Any:
        x[0] = 1
        x.T[1] += 5
        return x

    expected = X.copy()
    expected[0] = 1
    expected.T[1] += 5
    same(tj.jit(function)(x), expected)
    np.testing.assert_array_equal(x, before)


def test_a_function_that_only_writes_is_refused() -> None:
    def function(x: Any) -> None:
        x[0] = 1

    with pytest.raises(ArgumentError, match=r"writes to argument x .*jit\(f, mutates=\.\.\.\)"):
        tj.jit(function)(X)


def test_mutates_writes_back() -> None:
    @tj.jit(mutates="x")
    def step(x: Any, dt: float) -> None:
        x[1:-1] += dt * (x[2:] - 2 * x[1:-1] + x[:-2])

    x = np.arange(6.0) ** 2
    expected = x.copy()
    for _ in range(2):
        step(x, 0.1)
        expected[1:-1] += 0.1 * (expected[2:] - 2 * expected[1:-1] + expected[:-2])
    np.testing.assert_allclose(x, expected)
    x.flags.writeable = False
    with pytest.raises(ReadOnlyError, match=r"step: mutates=\['x'\].*read-only"):
        step(x, 0.1)


def test_mutates_trees_by_place_and_name() -> None:
    def function(state: Any, rate: Any = None) -> Any:
        state["w"][0] = 7
        rate[:] = rate * 2
        return rate.sum()

    jitted = tj.jit(function, mutates=[0, "rate"])
    state, rate = {"w": np.zeros(3)}, np.ones(2)
    assert jitted(state, rate=rate) == 4
    assert jitted(state, rate) == 8
    np.testing.assert_array_equal(state["w"], [7, 0, 0])
    np.testing.assert_array_equal(rate, [4, 4])
    with pytest.raises(ReadOnlyError, match="is no NumPy array"):
        jitted({"w": [1.0]}, rate)


def test_mutates_inside_a_traced_function() -> None:
    @tj.jit(mutates=0)
    def step(x: Any) -> None:
        x[0] = x[1]

    def outer(x: Any) -> Any:
        y = x * 1
        step(y)
        return y

    np.testing.assert_array_equal(tj.jit(outer)(np.array([1.0, 2.0])), [2.0, 2.0])


def test_what_a_view_cannot_do() -> None:
    def of_diagonal(x: Any) -> Any:
        np.diagonal(x)[0] = 1
        return x

    def of_broadcast(x: Any) -> Any:
        np.broadcast_to(x[0], (4, 4))[0] = 1
        return x

    for function in (of_diagonal, of_broadcast):
        with pytest.raises(ValueError, match="read-only"):
            function(X.copy())
        with pytest.raises(ReadOnlyError, match="read-only"):
            tj.jit(function)(X)


def test_what_unknown_masks_cannot_do() -> None:
    refused: list[tuple[Callable[[Any], Any], type[Exception], str]] = [
        (lambda x: x[x > 0], ConcretizationError, "how many elements a mask selects"),
        (lambda x: len(x[x > 0]), ConcretizationError, "len: how many elements"),
        (lambda x: np.sort(x[x > 0]), ConcretizationError, r"np\.sort: how many elements"),
        (lambda x: x[x > 0][0], ConcretizationError, "index: how many elements"),
        (lambda x: x[x > 0] + x[x > 1], ShapeError, "different masks"),
        (lambda x: x[x > 0] + x[0], ShapeError, "unknown number along axis 0"),
        (lambda x: x.__setitem__(x > 0, x[x > 1]), ShapeError, "another mask"),
    ]
    for function, error, text in refused:
        with pytest.raises(error, match=text):
            tj.jit(function)(X)


def test_derivatives_look_at_what_a_mask_selects_only() -> None:
    def function(x: Any) -> Any:
        y = x.copy()
        m = y > 0
        y[m] = np.sqrt(y[m])
        return y.sum() + np.log(x[m]).sum()

    x = np.array([-1.0, 4.0, 9.0])
    np.testing.assert_allclose(tj.jit(tj.grad(function))(x), [1, 0.5, 1 / 6 + 1 / 9])
