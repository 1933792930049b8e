"""Long loops of which all is known while tracing, under ``autograph=True``: one While each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.transforms import counted
from tracejit.affine import Affine
from tracejit.errors import ConcretizationError
from tracejit.graph import Module
from tracejit.ops.constants import parameter
from tracejit.ops.control import WHILE
from tracejit.shapes import ElementType, Shape
from tracejit.trace.affine_bounds import counting, may_be_place, with_places_free
from tracejit.transforms.autograph import runtime
from tracejit.transforms.autograph.loops import run_loop
from tracejit.traversal import called_computations, instructions

X = np.arange(20.0)


@pytest.fixture(autouse=True, scope="module")
def soon() -> Iterator[None]:
    """Short traces count as long, short loops as worth it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runtime, "UNROLLED", 3)
        yield from counted.soon()


def loops_of(module: Module) -> int:
    """How many loops there are."""
    every = [one for c in called_computations(module) for one in instructions(c)]
    return sum(one.op is WHILE for one in every)


def check(function: Callable[..., Any], *args: Any, most_loops: int) -> None:
    """The results are Python's, the graph has loops if any are allowed, and no more."""
    jitted = tj.jit(function, autograph=True)
    np.testing.assert_allclose(jitted(*args), function(*args), rtol=1e-12)
    assert min(most_loops, 1) <= loops_of(jitted.lower(*args).module) <= most_loops


def queens(x: Any) -> Any:
    columns = np.zeros(5, np.int64)
    count = 0
    row = 0
    columns[0] = -1
    while row >= 0:
        columns[row] += 1
        if columns[row] >= 5:
            row -= 1
        else:
            free = True
            for r in range(row):
                if columns[r] == columns[row] or abs(columns[r] - columns[row]) == row - r:
                    free = False
                    break
            if free:
                if row == 4:
                    count += 1
                else:
                    row += 1
                    columns[row] = -1
    return x * count


def sieve(x: Any) -> Any:
    primes = np.ones(2000, np.bool_)
    i = 2
    while i * i < 2000:
        if primes[i]:
            for j in range(i * i, 2000, i):
                primes[j] = False
        i += 1
    return x[0] + primes


def sifted(x: Any) -> Any:
    """The sum of what a walk through a heap meets."""
    total = x[0] * 0
    end = 20
    while end > 1:
        end -= 1
        root = 0
        while 2 * root + 1 < end:
            root = 2 * root + 1 if x[root] % 3 < 1 else 2 * root + 2
            total = total + x[root]
    return total


def failures(x: Any) -> Any:
    """Of Knuth, Morris and Pratt: places that come out of an array."""
    table = np.zeros(20, np.int64)
    k = 0
    for i in range(1, 20):
        while k > 0 and x[k] != x[i]:
            k = table[k - 1]
        if x[k] == x[i]:
            k += 1
        table[i] = k
    return table


def test_numbers_are_places() -> None:
    check(queens, X, most_loops=6)
    check(sieve, X, most_loops=6)
    check(sifted, X, most_loops=6)
    check(failures, X % 3, most_loops=6)


def test_what_may_be_a_place() -> None:
    """Counters of known bounds have to lie inside; what depends on a carried number may not."""
    row, r, i = (parameter(n, Shape(ElementType.S64)) for n in range(3))
    with counting(None, None, None, [row]), counting(i, Affine(0), Affine(5)):
        with counting(r, Affine(0), Affine(-1, {row: 1})):
            assert [may_be_place(at, 6) for at in (row, r, i)] == [False, False, True]
            with with_places_free():
                assert [may_be_place(at, 5) for at in (row, r, i)] == [True, True, False]


def fibonacci(x: Any) -> Any:
    a, b, k = 0, 1, 0
    while k < 80:
        a, b = b, a + b
        k += 1
    return x + a % 1000


def congruential(x: Any) -> Any:
    k = 0
    seed = 1
    while k < 40:
        seed = (seed * 6364136223846793005 + 1442695040888963407) % 2**64
        k += 1
    return x + seed % 1000


def appending(x: Any) -> Any:
    values: list[Any] = []
    k = 0
    while k < 40:
        values.append(x[k % 20] * k)
        k += 1
    return np.stack(values)


def growing(x: Any) -> Any:
    k = 0
    while k < 40:
        x = np.concatenate([x, x[:1]])
        k += 1
    return x


@pytest.mark.parametrize("function", [fibonacci, congruential, appending, growing])
def test_what_arrays_cannot_hold_runs_step_by_step(function: Callable[..., Any]) -> None:
    check(function, X, most_loops=0)


def test_derivatives() -> None:
    """A While has none in reverse mode, where nobody knows how often it runs."""

    def power(x: Any) -> Any:
        k = 0
        y = x * 1
        while k < 40:
            y = y * (1 + x / 40)
            k += 1
        return y.sum()

    x = X / 20
    expected = (1 + x / 40) ** 40 + x * (1 + x / 40) ** 39
    for function in (
        tj.grad(tj.jit(power, autograph=True)),
        tj.jit(tj.grad(tj.jit(power, autograph=True))),
        tj.jit(tj.grad(tj.autograph(power))),
        tj.jit(tj.grad(power), autograph=True),
    ):
        np.testing.assert_allclose(function(x), expected)


def test_places_outside_are_clamped() -> None:
    def last(x: Any) -> Any:
        k = 0
        total = x[0]
        while k < 40:
            total = total + x[k]
            k += 1
        return total

    found = tj.jit(last, autograph=True)(X)
    assert found == X.sum() + 20 * X[-1]


def test_a_test_that_no_step_changes() -> None:
    def spinning(x: Any) -> Any:
        def get() -> tuple[Any, ...]:
            return (x,)

        run_loop("while", None, lambda: True, lambda: None, get, print, ("x",), is_known=True)
        return x

    with pytest.raises(ConcretizationError, match="does not depend on the loop's variables"):
        tj.jit(spinning)(X)
