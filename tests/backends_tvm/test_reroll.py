"""Re-rolling: unrolled Python loops are compiled as loops, and compute what the long graph does."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.lowered import lower
from tracejit.backends.numpy.interpreter import evaluate
from tracejit.backends.tvm.cpu.machine import Machine
from tracejit.backends.tvm.passes.canonicalize.canonicalize import canonicalize
from tracejit.backends.tvm.pipeline import applied
from tracejit.graph import Computation, Instruction
from tracejit.ops.constants import elements_of, tuple_
from tracejit.ops.control import WHILE
from tracejit.transforms.jit import trace_limit
from tracejit.traversal import in_order

X = np.random.default_rng(0).normal(size=(12, 12))


@pytest.fixture(autouse=True)
def step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops of Python are recorded as they run, however long."""
    monkeypatch.setattr(trace_limit, "LONGEST", 1 << 30)


def stencil(x: Any) -> Any:
    a, b = x.copy(), x * 2
    for _ in range(60):
        b[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[:-2, 1:-1] + a[2:, 1:-1])
        a[1:-1, 1:-1] = 0.2 * (b[1:-1, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:])
    return a, b


def fibonacci(x: Any) -> Any:
    """Every step needs the two before it."""
    one, two = x, np.cos(x)
    for _ in range(300):
        one, two = two, np.sin(one) * 0.5 + two * 0.4
    return two


def with_fixed_arrays(x: Any) -> Any:
    w, bias, y = np.tanh(x), np.arange(12.0), x
    for _ in range(200):
        y = np.tanh(y @ w + bias) * 0.5 + x
    return y, w


def with_a_tail(x: Any) -> Any:
    for _ in range(200):
        y = np.sin(x)
        x = y * 0.9 + 0.1
    return np.exp(x), y.sum(), x + y


def several(x: Any) -> Any:
    for _ in range(200):
        x = np.sin(x) + 0.1
        x = x * 0.9
    for _ in range(200):
        x = np.cos(x) * 0.9
        x = x - 0.1
        x = np.abs(x)
    return x


def swapped(x: Any) -> Any:
    """An odd number of steps, each pair of which puts the arrays back where they were."""
    a, b = x.copy(), np.zeros_like(x)
    for _ in range(101):
        b[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, 2:])
        a, b = b, a
    return a, b


def passed_round(x: Any) -> Any:
    """After three steps each array is in its old place."""
    a, b, c = x, x * 2, np.cos(x)
    for k in range(200):
        a, b, c = b, np.sin(c) * 0.5 + k * 0.01, a * 0.9 - b * 0.1
    return a, c


def with_constants(x: Any) -> Any:
    dt = 1e-2
    for k in range(200):
        t = k * dt
        x = (np.sin(x) * 0.5 + 0.1 * x) * (1 + t) + np.cos(t * t) * np.tanh(X)
    return x


def with_constants_of_several_dtypes(x: Any) -> Any:
    values = np.random.default_rng(3)
    for k in range(100):
        rows = values.normal(size=(3, 12)).astype(np.float32)
        whole = values.integers(-9, 9, 12).astype(np.int16)
        x = np.sin(x) * np.float32(values.normal()) + whole * 0.1
        x[:3] += rows
        x = np.where(values.random(12) < 0.5, x, x * 0.5) + ((1 + 2j * k) * x).imag * 1e-3
    return x


def with_a_source(x: Any) -> Any:
    """What does not depend on the steps before is in its step as well."""
    source, y = np.exp(-x * x), x * 0.5
    for k in range(200):
        y = np.tanh(np.maximum(y * 1.0, -3.0)) * 1.0 + source * np.sin(0.1 * k + 0.05)
        y = np.abs(y) - 0.5
    return y


def first_and_last_differ(x: Any) -> Any:
    for k in range(201):
        x = np.cos(x) if k in (0, 200) else np.sin(x) * (0.5 + k * 1e-3)
        x = np.abs(x) - 0.1 * k
    return x


def some_are_kept(x: Any) -> Any:
    kept = []
    for k in range(450):
        x = np.abs(np.sin(x) * (0.5 + k * 1e-3) - 0.1)
        if k % 150 == 0:
            kept.append(x)
    return (*kept, x)


def lagging(x: Any) -> Any:
    """The second step reads what the first one read, the later ones do not."""
    one = two = x
    for k in range(200):
        one, two = np.sin(two) + k, np.cos(one) * 0.3
        two = two - np.tanh(one)
    return one


def row_by_row(x: Any) -> Any:
    """Rows of what is written and of what is read, forwards and then back by twos."""
    a, b = np.tile(x, (5, 1)), np.zeros((60, 12))
    for i in range(1, 60):
        b[i] = a[i] * 0.5 + b[i - 1] * 0.4 + a[i - 1]
        a[i, 1:] += b[i, :-1]
    for i in range(57, -1, -2):
        a[i] = b[i + 1] * 0.3 - a[i + 2]
        b[i, :6] = np.sin(a[i, ::2]) + b[i + 1, 1::2]
        a[i] = np.abs(a[i]) * 0.9 + b[i, 11] - b[i, 0]
    return a, b


def every_element(x: Any) -> Any:
    """Loops in a loop, over elements that are written before they are read again."""
    a = np.concatenate([x, x * 0.5], 1)
    for _ in range(10):
        for i in range(1, 11):
            a[i, 1:-1] += a[i - 1, :-2] + a[i + 1, 2:]
            for j in range(1, 23):
                a[i, j] += a[i, j - 1]
                a[i, j] /= 4.0
    return a


def in_a_triangle(x: Any) -> Any:
    """An inner loop of another length each time."""
    a = np.tile(x, (1, 4))[:5]
    for k in range(48):
        a[:, k] = a[:, k] / (1 + np.dot(a[:, k], a[:, k]))
        for j in range(k + 1, 48):
            a[:, j] -= a[:, k] * np.dot(a[:, k], a[:, j])
    return a


ROLLED = [
    row_by_row,
    every_element,
    in_a_triangle,
    stencil,
    fibonacci,
    with_fixed_arrays,
    with_a_tail,
    several,
    swapped,
    passed_round,
    with_constants,
    with_constants_of_several_dtypes,
    with_a_source,
    first_and_last_differ,
    some_are_kept,
    lagging,
]
COUNTS = {several: 2, some_are_kept: 3, row_by_row: 2, in_a_triangle: 2}


def every_step_is_needed(x: Any) -> Any:
    total = []
    for _ in range(200):
        x = np.sin(x) * 0.9 + 0.1
        total.append(x[0, 0])
    return np.stack(total)


def every_step_is_different(x: Any) -> Any:
    functions = (np.sin, np.cos, np.tanh, np.arctan)
    for i, which in enumerate(np.random.default_rng(0).integers(0, 4, 200)):
        x = functions[which](x) * (0.9 + i) + x[i * i % 11]
    return x


def few_steps(x: Any) -> Any:
    for k in range(10):
        x = np.sin(x) * (0.9 + k)
    return x


STRAIGHT = [every_step_is_needed, every_step_is_different, few_steps]


def loops(function: Callable[..., Any]) -> tuple[int, list[Instruction]]:
    """How many loops it has, and its results; the interpreter finds the same bits in them."""
    computation = tj.jit(function).lower(X).module.entry
    roots: Sequence[Instruction] = canonicalize(elements_of(computation.root), anew=True)
    made = applied("reroll", roots)
    before, after = (
        evaluate(Computation("results", computation.parameters, tuple_(list(results))), [X])
        for results in (roots, made)
    )
    for expected, actual in zip(before, after, strict=True):
        np.testing.assert_array_equal(actual, expected, strict=True)
    return sum(i.op is WHILE for i in in_order(made)), made


@pytest.mark.parametrize("function", ROLLED, ids=lambda f: f.__name__)
def test_equal_steps_become_a_loop(function: Callable[..., Any]) -> None:
    count, made = loops(function)
    assert count == COUNTS.get(function, 1)
    assert len(in_order(made)) < (600 if function is in_a_triangle else 200)


@pytest.mark.parametrize("function", STRAIGHT, ids=lambda f: f.__name__)
def test_steps_that_a_loop_cannot_take_stay(function: Callable[..., Any]) -> None:
    count, made = loops(function)
    assert count == 0
    assert len(in_order(made)) > 20


@pytest.mark.parametrize("function", ROLLED, ids=lambda f: f.__name__)
def test_same_result(function: Callable[..., Any]) -> None:
    expected, actual = function(X), tj.jit(function)(X)
    pairs = (
        zip(expected, actual, strict=True) if isinstance(expected, tuple) else [(expected, actual)]
    )
    for theirs, ours in pairs:
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


def test_as_many_kernels_as_one_step_has() -> None:
    def kernels(steps: int) -> int:
        def function(x: Any) -> Any:
            for _ in range(steps):
                x = np.sin(np.cumsum(x, 0)) * 0.9
                x = x @ x.T * 0.01
            return x

        return len(lower(tj.jit(function).lower(X).module.entry, Machine(64, 2)).kernels)

    assert kernels(1000) < 30


def random_steps(seed: int) -> Callable[..., Any]:
    """Some steps of random ops on some arrays, which change places after each step."""
    values = random.Random(seed)
    arrays, steps = values.randint(1, 3), values.choice([120, 131])
    places = values.sample(range(arrays), arrays)
    ops = [tuple(values.randrange(n) for n in (7, arrays, arrays)) for _ in range(7)]
    tables = []
    for _ in ops:
        linear, period = values.random() * 0.01, values.choice([1, 2, steps])
        table = [values.uniform(-0.9, 0.9) for _ in range(period)]
        tables.append([table[k % period] + linear * (period == 1) * k for k in range(steps)])
    odd = values.choice([None, 0, steps - 1])

    def function(x: Any) -> Any:
        s = [x * 0.3 if n else x for n in range(arrays)]
        for k in range(steps):
            if k == odd:
                s[0] = np.cos(s[0]) * 0.7
            for (op, a, b), table in zip(ops, tables, strict=True):
                c = table[k]
                if op == 0:
                    s[a] = np.sin(s[b]) * 0.5 + s[a] * c
                elif op == 1:
                    s[a] = s[a] * 0.9
                    s[a][:2] += np.array([[c], [c * c]])
                elif op == 2:
                    s[a] = s[a] * 0.8 + s[b] * np.float32(c)
                elif op == 3:
                    s[a][1:-1] = 0.3 * (s[b][1:-1] + s[b][2:] + s[b][:-2]) + int(100 * c)
                elif op == 4:
                    s[a] = np.where(s[b] > c, s[a] * 0.9, x)
                elif op == 5:
                    s[a] = np.tanh(s[b] + x * c)
                else:
                    s[a] = s[a] + np.full(x.shape, c) * np.arange(x.shape[1]) * 0.01
            s = [s[place] for place in places]
        return tuple(s)

    return function


@pytest.mark.parametrize("seed", range(8))
def test_random_steps(seed: int) -> None:
    count, _ = loops(random_steps(seed))
    assert count


@pytest.mark.parametrize("seed", [0, 1])
def test_random_steps_compiled(seed: int) -> None:
    module = tj.jit(random_steps(seed)).lower(X).module
    for ours, theirs in zip(tj.compile(module)(X), tj.interpret(module, X), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("function", [swapped, with_constants], ids=lambda f: f.__name__)
def test_gradients(function: Callable[..., Any]) -> None:
    def loss(x: Any) -> Any:
        made = function(x)
        return (made[0] if isinstance(made, tuple) else made).sum()

    count, _ = loops(tj.grad(loss))
    assert count == (function is swapped)
    module = tj.jit(tj.grad(loss)).lower(X).module
    if count:
        np.testing.assert_allclose(tj.compile(module)(X), tj.interpret(module, X), rtol=1e-9)
