"""`jit(f, tiered=True)`: the interpreter answers until the code is there, and nothing differs.

The code comes when the test says so; `tests/runtime/test_background.py` compiles it for real.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit import lax
from tracejit.backends.target import Target
from tracejit.errors import ArgumentError, CompilationError, ReadOnlyError
from tracejit.graph import Module
from tracejit.transforms.interpreted import Interpreted
from tracejit.transforms.jit.hooks import Compiler, Executable, use_beginner

X = np.arange(6.0).reshape(2, 3)


class Compiled(Interpreted):
    """Stands for machine code."""


class Held:
    """Compilations that end when ``may`` is set; ``modules`` were asked for."""

    def __init__(self) -> None:
        self.may = threading.Event()
        self.modules: list[str] = []
        self.compile: Callable[[Module], Executable] = Compiled

    def begin(self, module: Module, target: Target) -> Promise:
        self.modules.append(module.name)
        return Promise(self, module)


class Promise:
    def __init__(self, held: Held, module: Module) -> None:
        self.held = held
        self.module = module

    def is_built(self) -> bool:
        return self.held.may.is_set()

    def poll(self) -> Executable | None:
        return self.held.compile(self.module) if self.held.may.is_set() else None


@pytest.fixture
def held() -> Iterator[Held]:
    made = Held()
    before = use_beginner(made.begin)
    assert before is not None
    yield made
    use_beginner(before)


def tiered(function: Callable[..., Any], **options: Any) -> Any:
    return tj.jit(function, tiered=True, **options)


def tiers(f: Any) -> list[str]:
    return [record.answered_by for record in f.cache_report().compilations]


def test_interpreted_first_then_compiled(held: Held) -> None:
    f = tiered(lambda x, n: (np.sin(x) * n).sum(axis=1))
    expected = np.sin(X).sum(axis=1) * 3
    for _ in range(2):
        np.testing.assert_allclose(f(X, 3), expected, rtol=1e-12)
    assert tiers(f) == ["interpreter"]
    assert str(f.cache_report()).endswith(" s, interpreted so far: x f64[2,3]; n int")
    held.may.set()
    assert tiers(f) == ["interpreter"]
    np.testing.assert_allclose(f(X, 3), expected, rtol=1e-12)
    assert tiers(f) == ["machine code"]
    assert str(f.cache_report()).endswith(" s: x f64[2,3]; n int")
    assert held.modules == ["<lambda>"]


def test_what_is_at_hand_is_not_interpreted(held: Held) -> None:
    held.may.set()
    f = tiered(lambda x: x * 7)
    np.testing.assert_array_equal(f(X), X * 7)
    assert tiers(f) == ["machine code"]


def test_waiting(held: Held) -> None:
    f = tiered(lambda x: x + 1)
    f.wait_until_compiled(0)
    f(X)
    with pytest.raises(TimeoutError, match=r"is not compiled after 0\.01 seconds"):
        f.wait_until_compiled(0.01)
    held.may.set()
    f.wait_until_compiled()
    assert tiers(f) == ["machine code"]


def test_compiled_calls_take_the_short_way(held: Held) -> None:
    f = tiered(lambda x: x + 1)
    f(X)
    assert f._latest is None
    held.may.set()
    f(X)
    plain: Any = tj.jit(lambda x: x + 1)
    plain(X)
    assert f._latest is not None
    assert f._latest.__code__ is plain._latest.__code__


def test_calls_of_every_form(held: Held) -> None:
    def f(tree: Any, *, power: int = 1, bias: Any = 0.0) -> Any:
        return {"out": (tree["a"] ** power + bias, tree["b"][0].T), "n": 2}

    g = tiered(f, static_argnames="power")
    tree = {"a": X, "b": [X * 2]}
    for _ in range(2):
        for options in ({}, {"power": 2}, {"power": 2, "bias": 1.5}):
            made, expected = g(tree, **options), f(tree, **options)
            np.testing.assert_array_equal(made["out"][0], expected["out"][0])
            np.testing.assert_array_equal(made["out"][1], expected["out"][1])
            assert made["out"][1].flags.c_contiguous
            assert type(made["n"]) is int
        assert set(tiers(g)) == {"machine code" if held.may.is_set() else "interpreter"}
        held.may.set()
    assert len(held.modules) == 3


def test_mutated_arguments(held: Held) -> None:
    def double(x: Any) -> None:
        x *= 2

    f = tiered(double, mutates="x")
    x = X.copy()
    f(x)
    assert tiers(f) == ["interpreter"]
    held.may.set()
    f.wait_until_compiled()
    f(x)
    assert tiers(f) == ["machine code"]
    np.testing.assert_array_equal(x, X * 4)


def test_donated_arguments_are_handed_out(held: Held) -> None:
    f = tiered(lambda x, y: (x.sum(), y + x), donate_argnums=1)
    x, y = X.copy(), X.copy()
    total, updated = f(x, y)
    assert (total, updated is y) == (15.0, True)
    np.testing.assert_array_equal(y, X * 2)
    np.testing.assert_array_equal(x, X)
    y.flags.writeable = False
    with pytest.raises(ReadOnlyError, match="argument y of <lambda> is donated, but is read-only"):
        f(x, y)
    with pytest.raises(ArgumentError, match="shares memory with"):
        f(x, x)
    single = tiered(lambda x: x * 2, donate_argnums=0)
    assert single(x) is x
    np.testing.assert_array_equal(x, X * 2)


def test_donated_arguments_that_are_copied_stay_as_they_are(held: Held) -> None:
    f = tiered(lambda x: x * 2, donate_argnums=0)
    for x in (X.T.copy().T, X.astype(">f8")):
        np.testing.assert_array_equal(f(x), X * 2)
        np.testing.assert_array_equal(x, X)
    swapped = tiered(lambda x, y: (y, x), donate_argnums=(0, 1))
    x, y = X.copy(), X + 1
    first, second = swapped(x, y)
    np.testing.assert_array_equal(first, X + 1)
    np.testing.assert_array_equal(second, X)


def test_effects_happen_once_in_order(held: Held) -> None:
    """Also those of a call during which the code arrives."""
    seen: list[Any] = []

    def arrive(n: Any) -> None:
        seen.append(("first", float(n)))
        held.may.set()

    def function(n: Any) -> Any:
        tj.debug.callback(arrive, n)
        tj.debug.callback(lambda n: seen.append(("second", float(n))), n * 2)
        return n + 1

    f = tiered(function)
    assert f(1.0) == 2.0
    assert tiers(f) == ["interpreter"]
    assert f(2.0) == 3.0
    assert seen == [("first", 1.0), ("second", 2.0), ("first", 2.0), ("second", 4.0)]
    assert tiers(f) == ["machine code"]


def test_a_call_is_finished_by_the_code(held: Held) -> None:
    """Interpreting this loop would take days."""

    class Quick(Compiled):
        def __call__(self, arguments: Any) -> list[np.ndarray]:
            return [arguments[0] + 10.0**12]

    held.compile = Quick
    f = tiered(lambda x: lax.fori_loop(0, 10**12, lambda i, s: s + 1, x))
    timer = threading.Timer(0.05, held.may.set)
    timer.start()
    np.testing.assert_array_equal(f(X), X + 10.0**12)
    timer.join()


def test_a_call_that_may_have_done_something_is_not_begun_anew(held: Held) -> None:
    seen: list[Any] = []

    def look(x: Any) -> Any:
        seen.append(x)
        held.may.set()
        return x

    def function(x: Any) -> Any:
        y = tj.pure_callback(look, X, x)
        return lax.fori_loop(0, 2000, lambda i, s: s + 1, y)

    f = tiered(function)
    np.testing.assert_array_equal(f(X), X + 2000)
    assert len(seen) == 1
    assert tiers(f) == ["interpreter"]


def test_errors_of_the_compiler_are_raised_by_the_next_call(held: Held) -> None:
    def fail(module: Module) -> Executable:
        raise CompilationError("no registers left")

    held.compile = fail
    f = tiered(lambda x: x + 1)
    np.testing.assert_array_equal(f(X), X + 1)
    held.may.set()
    for call in (f, f, lambda x: f.wait_until_compiled()):
        with pytest.raises(CompilationError, match="no registers left"):
            call(X)
    assert tiers(f) == ["interpreter"]
    f.clear_cache()
    held.compile = Compiled
    np.testing.assert_array_equal(f(X), X + 1)
    assert tiers(f) == ["interpreter", "machine code"]


def test_errors_before_that_are_raised_at_once() -> None:
    with pytest.raises(
        tj.errors.AttributeValueError, match="target must be 'cpu', 'cpu:PROCESSOR'"
    ):
        tiered(lambda x: x + 1, target="tpu")(X)
    with pytest.raises(ArgumentError, match="tiered=True does not go with memory_budget="):
        tiered(lambda x: x, memory_budget=1000)
    with pytest.raises(ArgumentError, match="tune= does not go with tiered=True"):
        tiered(lambda x: x, tune=1.0)
    with pytest.raises(ArgumentError, match="a str is no array of numbers"):
        tiered(lambda x: x + 1)("word")


def test_checked_functions_are_interpreted_for_good(held: Held, interpreted: Compiler) -> None:
    f = tiered(lambda x: 1 / x, check=True)
    np.testing.assert_array_equal(f(X + 1), 1 / (X + 1))
    with pytest.raises(tj.errors.NotFiniteError):
        f(X)
    assert held.modules == []


def test_first_calls_from_many_threads_start_one_compilation(held: Held) -> None:
    traced: list[str] = []
    results: list[Any] = []
    barrier = threading.Barrier(8)

    def function(x: Any) -> Any:
        traced.append("once")
        return x * 3

    f = tiered(function)

    def call() -> None:
        barrier.wait()
        results.append(f(X))

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    held.may.set()
    results.append(f(X))
    for result in results:
        np.testing.assert_array_equal(result, X * 3)
    assert traced == ["once"]
    assert held.modules == ["function"]


def test_what_is_forgotten_is_not_waited_for(held: Held) -> None:
    f = tiered(lambda x: x + 1)
    f(X)
    f.clear_cache()
    f.wait_until_compiled(0)
    assert f.cache_report().kept == 0


def test_derivatives_batches_and_other_jits(held: Held) -> None:
    f = tiered(lambda x: (x**3).sum())
    np.testing.assert_allclose(tj.grad(f)(X), 3 * X**2)
    np.testing.assert_allclose(tj.vmap(f)(X), (X**3).sum(axis=1))
    np.testing.assert_allclose(tj.jit(lambda x: f(x) + 1)(X), (X**3).sum() + 1)
    g = tiered(tj.grad(f))
    np.testing.assert_allclose(g(X), 3 * X**2)
    held.may.set()
    np.testing.assert_allclose(g(X), 3 * X**2)
    assert tiers(g) == ["machine code"]


def test_lowered_functions_are_compiled_at_once(held: Held) -> None:
    compiled = tiered(lambda x: x + 1).lower(X).compile()
    np.testing.assert_array_equal(compiled(X), X + 1)
    assert held.modules == []


def test_pickled_by_what_it_wraps(held: Held) -> None:
    f = pickle.loads(pickle.dumps(tiered(np.linalg.norm)))
    assert f(X) == np.linalg.norm(X)
    assert tiers(f) == ["interpreter"]
