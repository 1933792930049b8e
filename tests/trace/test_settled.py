"""Values known while tracing are plain arrays in long traces: as NumPy has them, and unrecorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.transforms.test_known_loops import queens as iterative_queens
from tracejit.graph import mark
from tracejit.trace import context
from tracejit.trace.context import Trace
from tracejit.trace.tracer import Tracer
from tracejit.traversal import called_computations, instructions

TABLE = np.arange(12.0)


def queens(x: Any) -> Any:
    size, count = 5, 0
    board = np.zeros(size, int)

    def is_free(row: int, column: int) -> bool:
        for i in range(row):
            if board[i] == column or abs(board[i] - column) == row - i:
                return False
        return True

    def place(row: int) -> None:
        nonlocal count
        if row == size:
            count += 1
            return
        for column in range(size):
            if is_free(row, column):
                board[row] = column
                place(row + 1)

    place(0)
    return x + count


def sieve(x: Any) -> Any:
    prime = np.ones(200, bool)
    prime[:2] = False
    for i in range(2, 200):
        if prime[i]:
            for j in range(i * i, 200, i):
                prime[j] = False
    return x[0] * prime[:20]


def rows(x: Any) -> Any:
    grid = np.zeros((6, 6))
    for i in range(6):
        row = grid[i]
        for j in range(6):
            row[j] = i * j % 5
        row += 1
        grid[i, ::2] *= 2
        assert row[0] == grid[i][0] == 2
    below = grid[3:]
    below[0] = 7
    return x[:6] + grid + below.sum(0) + grid.T[1]


def mixed(x: Any) -> Any:
    """Known arrays that become unknown by a write, views of them, and copies from before."""
    a = np.zeros(4)
    a[1] = 3
    view, copy = a[1:], a.copy()
    a[2] = x[0]
    view[0] += 1
    b = np.arange(4)
    b[0] = 5
    c = b[1:3]
    with_x = c * x[1]
    b[1] = 9
    c[1] = 8
    return a + copy, view, with_x, b, c, np.concatenate([b, a])


def casts(x: Any) -> Any:
    a = np.zeros(3, np.int32)
    a[0] = 2.9
    a[1:] = [7, 8]
    a += 1
    b = np.zeros(3, np.complex64)
    b[1] = 1j
    c = np.full((2, 2), 300, np.uint16)
    c[np.array([0, 1]), 1] = c[0] + 1
    d = np.array([True, False])
    d[d] = False
    return x[0] + a, b * x[0], c, d, a / 2, a[a > 3], np.float32(2) * b.real, a[..., 0]


def functions(x: Any) -> Any:
    a = np.array([[3, 1], [2, 5]])
    a.sort()
    low, high = np.divmod(a, 2)
    spread = np.broadcast_to(a[0], (2, 2))
    np.put(a, [0], [9])
    np.add.at(a, ([0, 0], [1, 1]), 1)
    a.fill(4) if a.max() > 99 else None
    order = np.argsort(a, axis=None)
    return x[0] * a, low, high, spread, order, a.ravel()[::-1], np.linalg.inv(a), a.mean(1), -a.T


def inner(x: Any) -> Any:
    """Transformations inside see what was written before, and what is written after stays."""
    a = np.zeros(3)
    a[0] = 2
    row = a[1:]
    slope = tj.grad(lambda t: (t * a).sum() + row.sum() * t[0])(x[:3])
    a[1] = 5
    mapped = tj.vmap(lambda t: t + a + row[0])(x[:2])
    row[1] = 6
    return slope + a, mapped, row


def looped(x: Any) -> Any:
    a = np.zeros(3)
    for i in range(3):
        a[i] = i
    total = x[0] * 0
    i = 0
    while total < 4:
        total = total + a[1] + x[1]
        a[2] += 1
        i += 1
    if total > 2:
        a[0] = total
    return a, total, i


PROGRAMS = [queens, sieve, rows, mixed, casts, functions]
X = np.arange(1.0, 7.0)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every trace is long."""
    monkeypatch.setattr(context, "SETTLED", 0)


def compare(made: Any, expected: Any) -> None:
    if isinstance(expected, tuple):
        assert len(made) == len(expected)
        for one, other in zip(made, expected, strict=True):
            compare(one, other)
        return
    assert np.asarray(made).dtype == np.asarray(expected).dtype
    np.testing.assert_allclose(made, expected, rtol=1e-12)


@pytest.mark.parametrize("function", [*PROGRAMS, iterative_queens], ids=lambda f: f.__name__)
def test_as_numpy(function: Callable[..., Any]) -> None:
    compare(tj.jit(function)(X), function(X.copy()))


@pytest.mark.parametrize("autograph", [False, True])
def test_transformations_inside(autograph: bool) -> None:
    slope, mapped, row = tj.jit(inner, autograph=autograph)(X)
    np.testing.assert_allclose(slope, [4, 5, 6])
    np.testing.assert_allclose(mapped, X[:2, None] + [2, 5, 0] + 5)
    np.testing.assert_allclose(row, [5, 6])


def test_traced_loops_and_branches() -> None:
    compare(tj.jit(looped, autograph=True)(X), looped(X))


def _count(function: Callable[..., Any]) -> int:
    module = tj.jit(function).lower(X).module
    return sum(len(instructions(one)) for one in called_computations(module))


def test_nothing_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _count(lambda x: queens(x)) < 8
    monkeypatch.setattr(context, "SETTLED", 300)
    assert _count(lambda x: queens(x)) < 8


def test_short_traces_record_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: Any) -> Any:
        a = np.zeros(3)
        a[1] = 2
        return x[:3] + a

    assert _count(f) < 8
    monkeypatch.setattr(context, "SETTLED", 512)
    assert _count(f) > 8


def test_many_turns_make_no_instructions() -> None:
    made: list[int] = []

    def f(x: Any) -> Any:
        total, a = 0, np.arange(10)
        for i in range(500):
            total += a[i % 10] * TABLE[i % 12]
            a[i % 10] = total % 7
            made.append(mark())
        return x + total

    expected = f(X)
    made.clear()
    compare(tj.jit(f)(X), expected)
    assert made[-1] - made[0] == len(made) - 1


def test_errors_are_those_of_short_traces() -> None:
    for wrong in (
        lambda a: a[7],
        lambda a: a.__setitem__(7, 1),
        lambda a: a.__setitem__(0, 2**70),
        lambda a: a.__setitem__(slice(2), [1, 2, 3]),
        lambda a: a + np.zeros(2),
        lambda a: np.concatenate([a, np.zeros((1, 1))]),
    ):
        with pytest.raises(tj.errors.TracejitError):
            tj.jit(lambda x, wrong=wrong: wrong(np.zeros(3, int)) or x)(X)


def test_leaks_are_named() -> None:
    kept: list[Any] = []

    def f(x: Any) -> Any:
        a = np.zeros(3)
        a[0] = 1
        kept.append(a)
        return x

    tj.jit(f)(X)
    with pytest.raises(tj.errors.TracerLeakError, match=r"test_settled\.py"):
        kept[0] + 1


def _settled() -> Iterator[Trace]:
    with Trace("f") as trace:
        trace.settle()
        yield trace


def test_arrays_of_one_number_are_broadcast() -> None:
    for trace in _settled():
        assert trace.is_settled
        zeros = tj.numpy.zeros(5)
        assert isinstance(zeros, Tracer)
        assert zeros.instruction.op.opcode == "broadcast"
        zeros[1] = -0.0
        assert zeros.instruction.op.opcode == "constant"
