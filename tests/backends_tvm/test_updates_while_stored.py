"""Updates computed while they are stored, over the arrays that they are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import tracejit as tj
from tests.evaluation import given as parameter
from tests.lowered import lower
from tracejit import lax, ops
from tracejit.backends.tvm.analysis.in_place_safety import reads_elsewhere
from tracejit.backends.tvm.cpu.machine import Machine

ROWS, COLUMNS, ARRAYS = 7, 40, 2
MACHINE = Machine(64, 2)


@dataclass(frozen=True)
class Window:
    """A part of one of the arrays, or of what that was before the step."""

    array: int
    row: int
    column: int
    before: bool


@dataclass(frozen=True)
class Update:
    """``target`` becomes a sum of windows of its size; ``moves`` with the step, as they do."""

    target: Window
    read: tuple[Window, ...]
    rows: int
    columns: int
    moves: bool


@st.composite
def updates(draw: st.DrawFn) -> Update:
    rows, columns = draw(st.sampled_from([1, 4])), draw(st.sampled_from([1, 19, 33, 37]))
    moves = draw(st.booleans())
    last = ROWS - rows - 2 * moves

    def window() -> Window:
        return Window(
            draw(st.integers(0, ARRAYS - 1)),
            draw(st.integers(0, last)),
            draw(st.integers(0, COLUMNS - columns)),
            draw(st.booleans()),
        )

    def beside(own: Window) -> Window:
        row, column = own.row + draw(st.integers(-1, 1)), own.column + draw(st.integers(-2, 1))
        row, column = min(max(row, 0), last), min(max(column, 0), COLUMNS - columns)
        return Window(own.array, row, column, False)

    target = window()
    kinds = (lambda: target, lambda: beside(target), window)
    read = [draw(st.sampled_from(kinds))() for _ in range(draw(st.integers(1, 3)))]
    return Update(target, tuple(read), rows, columns, moves)


def stepped(arrays: Sequence[Any], step: Any, work: Sequence[Update]) -> list[Any]:
    """The arrays after all updates, one after the other."""
    old, new = arrays, list(arrays)
    for update in work:
        size = (update.rows, update.columns)
        by = step if update.moves else 0

        def read(window: Window, size: tuple[int, int] = size, by: Any = by) -> Any:
            array = (old if window.before else new)[window.array]
            return lax.dynamic_slice(array, (window.row + by, np.int64(window.column)), size)

        total = sum(read(window) * (n + 2) for n, window in enumerate(update.read)) + 1
        place = (update.target.row + by, np.int64(update.target.column))
        changed = new[update.target.array]
        new[update.target.array] = lax.dynamic_update_slice(changed, total, place)
    return new


@settings(max_examples=40)
@given(st.lists(updates(), min_size=1, max_size=4), st.booleans())
def test_same_as_the_interpreter(work: Sequence[Update], in_a_loop: bool) -> None:
    def run(*arrays: Any) -> Any:
        if not in_a_loop:
            return tuple(stepped(arrays, np.int64(1), work))
        return lax.fori_loop(
            np.int64(0), np.int64(3), lambda i, c: tuple(stepped(c, i, work)), arrays
        )

    draws = np.random.default_rng(0)
    given_arrays = [
        draws.integers(-9, 9, (ROWS, COLUMNS)).astype(np.float64) for _ in range(ARRAYS)
    ]
    module = tj.jit(run).lower(*given_arrays).module
    expected = tj.interpret(module, *given_arrays)
    for ours, theirs in zip(tj.compile(module)(*given_arrays), expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_stencil_needs_no_memory_of_its_own() -> None:
    def stencil(a: Any, b: Any) -> Any:
        def step(_: Any, state: Any) -> Any:
            a, b = (array.copy() for array in state)
            a[1:] -= 0.5 * (b[1:] - b[:-1])
            b[:-1, 1:] += a[1:, 1:] - a[1:, :-1]
            return a, b

        return lax.fori_loop(0, 5, step, (a, b))

    arrays = np.ones((50, 60)), np.full((50, 60), 2.0)
    module = tj.jit(stencil).lower(*arrays).module
    assert lower(module.entry, MACHINE).workspace_bytes < 1000
    for ours, theirs in zip(
        tj.compile(module)(*arrays), tj.interpret(module, *arrays), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)


def test_arrays_that_update_each_other_are_not_copied_whole() -> None:
    def rows(a: Any, b: Any) -> Any:
        def step(i: Any, state: Any) -> Any:
            a, b = state
            return (
                lax.dynamic_update_slice(a, b[i][None] * 2 + 1, (i, np.int64(0))),
                lax.dynamic_update_slice(b, a[i][None] * 3 + 1, (i, np.int64(0))),
            )

        return lax.fori_loop(np.int64(0), np.int64(9), step, (a, b))

    module = tj.jit(rows).lower(np.ones((90, 10)), np.ones((90, 10))).module
    assert lower(module.entry, MACHINE).workspace_bytes < 10 * 90 * 8


def test_the_same_numbers_in_another_shape_are_another_place() -> None:
    array = parameter("f64[4,6]")
    other = ops.reshape(array, (6, 4))
    part = ops.neg(ops.slice_(other, (1, 1), (3, 3)))
    places = [ops.constant(np.int64(1)), ops.constant(np.int64(1))]
    assert reads_elsewhere(ops.dynamic_update_slice(array, part, places), lambda i: i is array)
    own = ops.neg(ops.slice_(array, (1, 1), (3, 3)))
    update = ops.dynamic_update_slice(array, own, places)
    assert not reads_elsewhere(update, lambda i: False)
