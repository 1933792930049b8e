"""`jit(f, mutates=...)` writes results over the caller's arrays, or back to them: same numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj


def swap(x: Any, y: Any) -> None:
    x[:], y[:] = y.copy(), x.copy()


def shifted(x: Any, y: Any) -> Any:
    before = x.copy()
    x[1:] = x[:-1] + y[1:]
    y[:] = x[::-1]
    return before, x, y * 2


def untouched(x: Any, y: Any) -> Any:
    y += x
    return x, y, y


def stepwise(x: Any, y: Any) -> Any:
    for _ in range(3):
        x[1:-1] = 0.5 * (x[:-2] + x[2:])
        y -= x
    return y.sum()


PROGRAMS = [swap, shifted, untouched, stepwise]


def plain() -> tuple[np.ndarray, np.ndarray]:
    return np.arange(40.0), np.linspace(1, 2, 40)


def of_one() -> tuple[np.ndarray, np.ndarray]:
    whole = np.arange(80.0)
    return whole[:40], whole[40:]


def overlapping() -> tuple[np.ndarray, np.ndarray]:
    whole = np.arange(60.0)
    return whole[:40], whole[20:]


def strided() -> tuple[np.ndarray, np.ndarray]:
    whole = np.arange(160.0).reshape(40, 4)
    return whole[:, 1], whole[::-1, 2]


@pytest.mark.parametrize("made", [plain, of_one, strided])
@pytest.mark.parametrize("program", PROGRAMS)
def test_as_numpy(program: Callable[..., Any], made: Callable[..., Any]) -> None:
    mutating = tj.jit(program, mutates=("x", "y"))
    for _ in range(3):
        expected, given = made(), made()
        result, found = program(*expected), mutating(*given)
        for right, ours in zip(expected, given, strict=True):
            np.testing.assert_allclose(ours, right, 1e-14)
        for right, ours in zip(np.atleast_1d(result), np.atleast_1d(found), strict=True):
            if right is not None:
                np.testing.assert_allclose(ours, right, 1e-14)


def test_results_are_not_the_arguments() -> None:
    x, y = plain()
    first = tj.jit(untouched, mutates="y")(x, y)
    kept = [value.copy() for value in first]
    x += 1
    y += 1
    for value, copy in zip(first, kept, strict=True):
        np.testing.assert_array_equal(value, copy)


def test_arrays_that_overlap_are_refused() -> None:
    x, y = overlapping()
    before = x.copy(), y.copy()
    with pytest.raises(tj.errors.ArgumentError, match="shares memory with argument"):
        tj.jit(swap, mutates=("x", "y"))(x, y)
    np.testing.assert_array_equal(x, before[0])
    np.testing.assert_array_equal(y, before[1])


def test_one_array_twice() -> None:
    x = np.arange(5.0)
    tj.jit(lambda x, y: y.__iadd__(x), mutates="y")(x, x)
    np.testing.assert_array_equal(x, 2 * np.arange(5.0))


def test_matrices_by_columns() -> None:
    def program(a: Any) -> None:
        a[1:] += a[:-1].copy() @ a[0]

    def column(a: Any) -> None:
        a[:, 1:] -= a[:, :1]

    for order in ("C", "F"):
        expected = np.arange(25.0).reshape(5, 5)
        given = np.array(expected, order=order)
        column(expected)
        tj.jit(column, mutates="a")(given)
        np.testing.assert_array_equal(given, expected)


def test_nothing_is_written_where_a_callback_fails() -> None:
    def fail(value: np.ndarray) -> np.ndarray:
        raise ValueError("no")

    def program(x: Any) -> None:
        x *= 2
        x += tj.pure_callback(fail, np.ones(5), x)

    x = np.ones(5)
    with pytest.raises(ValueError, match="no"):
        tj.jit(program, mutates="x")(x)
    np.testing.assert_array_equal(x, np.ones(5))


@pytest.mark.filterwarnings("ignore:.*no result has the shape")
def test_beside_donated_arguments() -> None:
    def program(x: Any, y: Any) -> Any:
        x += y
        return x * 2, y - 1

    for donated in (0, 1, (0, 1)):
        expected, given = plain(), plain()
        results = program(*expected)
        found = tj.jit(program, mutates="x", donate_argnums=donated)(*given)
        np.testing.assert_array_equal(given[0], expected[0])
        for right, ours in zip(results, found, strict=True):
            np.testing.assert_array_equal(ours, right)


def test_trees_and_keywords() -> None:
    def program(state: Any, rate: Any, *, moments: Any) -> None:
        for name in state:
            moments[name] *= 0.5
            state[name] -= rate * moments[name]

    def made() -> tuple[Any, Any]:
        return {"a": np.ones(3), "b": np.ones((2, 2))}, {"a": np.ones(3), "b": np.ones((2, 2))}

    expected, given = made(), made()
    mutating = tj.jit(program, mutates=("state", "moments"))
    for _ in range(2):
        program(expected[0], 0.1, moments=expected[1])
        mutating(given[0], 0.1, moments=given[1])
    for right, ours in zip(expected, given, strict=True):
        for name in right:
            np.testing.assert_allclose(ours[name], right[name], 1e-15)
