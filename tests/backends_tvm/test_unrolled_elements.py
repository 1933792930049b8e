"""Unrolled loops over single elements and vectors, done at once: the same numbers as one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tracejit as tj
from tracejit.backends.numpy import evaluate
from tracejit.backends.tvm.ir.graph import flattened_graph
from tracejit.backends.tvm.passes.canonicalize.canonicalize import canonicalize
from tracejit.backends.tvm.passes.reroll.gemv_to_gemm import merge_gemvs
from tracejit.backends.tvm.passes.reroll.slp_vectorize import vectorize_updates
from tracejit.graph import Computation, Instruction
from tracejit.transforms.jit import trace_limit
from tracejit.traversal import in_order

Pass = Callable[[Sequence[Instruction]], list[Instruction]]
ROWS, COLUMNS = 4, 12


@pytest.fixture(scope="module", autouse=True)
def step_by_step() -> Iterator[None]:
    """Loops of Python are recorded as they run, however long."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trace_limit, "LONGEST", 1 << 30)
        yield


def rewritten(
    function: Callable[..., Any], arrays: Sequence[np.ndarray], passes: Sequence[Pass]
) -> list[Instruction]:
    """What a function that writes to copies of its arguments is traced to, after some passes.

    The interpreter gives what NumPy gives.
    """

    def run(*given_arrays: Any) -> Any:
        copies = [array.copy() for array in given_arrays]
        function(*copies)
        return tuple(copies)

    graph = flattened_graph(tj.jit(run).lower(*arrays).module.entry)
    roots = canonicalize(graph.outputs, anew=True)
    for each in passes:
        roots = each(roots)
    for expected, made in zip(run(*arrays), roots, strict=True):
        found = evaluate(Computation("made", tuple(graph.parameters), made), arrays)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    return roots


def count(roots: Sequence[Instruction], opcode: str) -> int:
    return sum(i.op.opcode == opcode for i in in_order(roots))


def numbers(*dimensions: int) -> np.ndarray:
    return np.random.default_rng(0).integers(-9, 9, dimensions).astype(np.float64)


def saxpy(x: Any, y: Any) -> None:
    for i in range(ROWS):
        for j in range(COLUMNS):
            y[i, j] = 2.5 * x[i, j] + y[i, j] * (j + 2)


def backwards(x: Any, y: Any) -> None:
    for i in range(ROWS):
        for j in reversed(range(COLUMNS)):
            y[i, j] = x[3 - i, 11 - j] - y[i, 0] * x[i, i]


def columns(x: Any, y: Any) -> None:
    for j in range(3):
        for i in range(COLUMNS):
            y.T[i, j] += x[j, i]


def downwards(x: Any, y: Any) -> None:
    x, y = x.T, y.T
    for j in range(ROWS):
        for i in range(COLUMNS):
            y[i, j] = np.where(x[i, j] > 0, x[i, j] / 2, y[i, j])


def converted(x: Any, y: Any) -> None:
    for i in range(ROWS):
        for j in range(COLUMNS):
            y[i, j] = float(j) if j % 2 else x[i, j].astype(np.int32).astype(np.float64)


@pytest.mark.parametrize(("function", "updates"), [(saxpy, 4), (backwards, 4)])
def test_a_row_is_written_at_once(function: Callable[..., Any], updates: int) -> None:
    arrays = numbers(ROWS, COLUMNS), numbers(ROWS, COLUMNS)
    roots = rewritten(function, arrays, [vectorize_updates])
    assert count(roots, "dynamic-update-slice") == updates


@pytest.mark.parametrize("function", [columns, downwards, converted])
def test_other_elements_keep_their_values(function: Callable[..., Any]) -> None:
    rewritten(function, (numbers(ROWS, COLUMNS), numbers(ROWS, COLUMNS)), [vectorize_updates])


def test_what_each_element_needs_of_the_one_before_is_left() -> None:
    def running(x: Any) -> None:
        for i in range(1, 30):
            x[i] = x[i - 1] + x[i]

    assert count(rewritten(running, [numbers(30)], [vectorize_updates]), "add") == 29


def test_arrays_that_are_needed_in_between_are_kept() -> None:
    def snapshots(x: Any, y: Any) -> None:
        for i in range(20):
            x[i] = x[i] * 2
            if i == 10:
                y[:] = x[::-1]

    rewritten(snapshots, [numbers(20), numbers(20)], [vectorize_updates])


@st.composite
def walks(draw: st.DrawFn) -> list[tuple[int, int, int, list[tuple[int, int, int, int]]]]:
    """Loops over a row: array, row, direction, and what is read: array, row, column, step."""
    loops = []
    for _ in range(draw(st.integers(1, 3))):
        reads = [
            (
                draw(st.integers(0, 1)),
                draw(st.integers(0, ROWS - 1)),
                draw(st.integers(0, COLUMNS - 1)),
                draw(st.sampled_from([-2, -1, 0, 1, 1, 1, 2])),
            )
            for _ in range(draw(st.integers(1, 3)))
        ]
        place = draw(st.integers(0, 1)), draw(st.integers(0, ROWS - 1))
        loops.append((*place, draw(st.sampled_from([1, -1])), reads))
    return loops


@given(walks(), st.integers(8, COLUMNS))
def test_any_reads(loops: Any, length: int) -> None:
    def run(*arrays: Any) -> None:
        for array, row, direction, reads in loops:
            for k in range(length)[::direction]:
                total: Any = 1.0
                for other, line, first, step in reads:
                    column = first + step * k
                    if 0 <= column < COLUMNS:
                        total = total * 0.5 + arrays[other][line, column]
                arrays[array][row, k] = total

    rewritten(run, (numbers(ROWS, COLUMNS), numbers(ROWS, COLUMNS)), [vectorize_updates])


def triangular_product(a: Any, b: Any) -> None:
    for i in range(b.shape[0]):
        for j in range(b.shape[1]):
            b[i, j] += a[i + 1 :, i] @ b[i + 1 :, j]


def test_products_with_vectors_are_one_product() -> None:
    arrays = numbers(20, 20), numbers(20, 15)
    roots = rewritten(triangular_product, arrays, [merge_gemvs, vectorize_updates])
    assert count(roots, "dot") == 19
    assert count(roots, "dynamic-update-slice") == 20

    def covariances(x: Any, c: Any) -> None:
        for i in range(12):
            c[i:, i] = c[i, i:] = x[:, i] @ x[:, i:]

    arrays = numbers(7, 12), numbers(12, 12)
    assert count(rewritten(covariances, arrays, [merge_gemvs]), "dot") == 1


def test_an_infinity_stays_in_its_own_products() -> None:
    a, b = numbers(20, 20), numbers(20, 15)
    a[3, 5], b[7, 2], b[19, 4], a[12, 3] = np.inf, np.nan, -np.inf, np.nan
    with np.errstate(all="ignore"):
        rewritten(triangular_product, [a, b], [merge_gemvs, vectorize_updates])


@given(st.integers(0, 5), st.integers(8, 12), st.integers(1, 3), st.integers(-2, 2), st.booleans())
def test_any_products(first: int, size: int, width: int, shift: int, overwrites: bool) -> None:
    def run(x: Any, y: Any, c: Any) -> None:
        for i in range(size):
            column = min(max(i + shift, 0), 11)
            c[i, :width] += x[first:, i] @ y[first:, column : column + width]
            if overwrites:
                y[first + i // 4, column] = c[i, 0]

    arrays = numbers(9, 12), numbers(9, 15), numbers(12, 4)
    rewritten(run, arrays, [merge_gemvs, vectorize_updates])
