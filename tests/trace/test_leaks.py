"""Traced values do not outlive their trace, whatever happens inside it."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit.errors import TracerLeakError
from tracejit.trace.context import current_trace
from tracejit.trace.tracer import lift

X = np.arange(3.0)
kept: list[Any] = []


def keep(x: Any) -> Any:
    y = x * 2
    kept[:] = [x, y, y[1:]]
    return y


@pytest.mark.parametrize("number", [0, 1, 2])
def test_used_after_the_trace(number: int) -> None:
    tj.jit(keep)(X)
    line = keep.__code__.co_firstlineno
    for use in (lambda v: v + 1, lambda v: np.sin(v), lambda v: v[0], bool, lambda v: v.sum()):
        with pytest.raises(TracerLeakError, match=r"traced in keep \(made at test_.*:\d+\)") as e:
            use(kept[number])
        assert "after the trace has ended; return it from the function" in str(e.value)
        assert isinstance(e.value, RuntimeError)
    if number == 1:
        with pytest.raises(TracerLeakError, match=rf"made at test_leaks\.py:{line + 1}\)"):
            kept[1].sum()


def test_used_in_another_trace() -> None:
    tj.jit(keep)(X)
    with pytest.raises(TracerLeakError, match="traced in keep"):
        tj.jit(lambda x: x + kept[1])(X)


def test_leaked_out_of_grad() -> None:
    def loss(x: Any) -> Any:
        kept[:] = [x * 2]
        return x.sum()

    def function(x: Any) -> Any:
        gradient = tj.grad(loss)(x)
        return gradient + kept[0]

    for run in (function, tj.jit(function)):
        with pytest.raises(TracerLeakError, match="traced in loss"):
            run(X)


def test_a_pullback_outlives_its_trace() -> None:
    def function(x: Any) -> Any:
        value, pull = tj.vjp(lambda y: y * y, x)
        kept[:] = [pull]
        return value

    tj.jit(function)(X)
    with pytest.raises(TracerLeakError, match="the pullback of <lambda> is used after the trace"):
        kept[0](X)


def test_an_exception_inside() -> None:
    """It arrives unchanged, and the next call traces afresh."""
    fail = [True]

    @tj.jit
    def function(x: Any) -> Any:
        kept[:] = [x]
        if fail[0]:
            raise KeyError("mine")
        return x + 1

    for _ in range(2):
        with pytest.raises(KeyError, match="mine"):
            function(X)
        assert current_trace() is None
    with pytest.raises(TracerLeakError):
        kept[0].sum()
    fail[0] = False
    np.testing.assert_array_equal(function(X), X + 1)


def test_an_exception_inside_grad() -> None:
    def loss(x: Any) -> Any:
        raise KeyError("mine")

    for run in (tj.grad(loss), tj.jit(tj.grad(loss))):
        with pytest.raises(KeyError, match="mine"):
            run(X)
        assert current_trace() is None


def test_another_thread_records_into_the_same_trace() -> None:
    """A function that works in threads of its own can be traced."""

    def function(x: Any) -> Any:
        results: list[Any] = [None, None]

        def work(number: int) -> None:
            results[number] = (x * (number + 1))[1:] + x[0]

        threads = [threading.Thread(target=work, args=(n,)) for n in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return results[0] + results[1]

    np.testing.assert_array_equal(tj.jit(function)(X + 1), function(X + 1))


class Holder:
    value: Any = None


HOLDER = Holder()


def to_global(x: Any) -> Any:
    global leaked
    leaked = x * 2
    return x


def to_attribute(x: Any) -> Any:
    HOLDER.value = x * 2
    return x


def to_dictionary(x: Any, store: dict[str, Any] = {}) -> Any:  # noqa: B006
    store["value"] = x * 2
    HOLDER.value = store["value"]
    return x


def to_generator(x: Any) -> Any:
    HOLDER.value = (row for row in [x * 2])
    return x


def to_default(x: Any) -> Any:
    def later(value: Any = x * 2) -> Any:
        return value + 1

    HOLDER.value = later
    return x


def test_every_route_out_of_a_trace() -> None:
    """A global, an attribute, a default, a generator, a closure."""
    inside: list[Any] = []

    def to_closure(x: Any) -> Any:
        nonlocal inside
        inside = [x * 2]
        return x

    routes: list[tuple[Any, Any]] = [
        (to_global, lambda: leaked + 1),
        (to_attribute, lambda: HOLDER.value + 1),
        (to_dictionary, lambda: HOLDER.value + 1),
        (to_generator, lambda: next(HOLDER.value) + 1),
        (to_default, lambda: HOLDER.value()),
        (to_closure, lambda: inside[0] + 1),
    ]
    for function, use in routes:
        for run in (tj.jit(function), tj.jit(tj.vmap(function))):
            run(X)
            with pytest.raises(TracerLeakError, match=rf"traced in {function.__name__} \(made at"):
                use()


leaked: Any = None


def test_out_of_a_branch_and_a_loop() -> None:
    def function(x: Any) -> Any:
        tj.lax.cond(x[0] > 0, to_attribute, lambda y: y, x)
        return HOLDER.value + 1

    with pytest.raises(TracerLeakError, match="traced in true_fun"):
        tj.jit(function)(X)

    def loops(x: Any) -> Any:
        tj.lax.fori_loop(0, 3, lambda i, s: to_attribute(s), x)
        return HOLDER.value + 1

    with pytest.raises(TracerLeakError, match="traced in body_fun"):
        tj.jit(loops)(X)


def test_a_value_of_an_ended_inner_trace_in_a_graph_is_seen() -> None:
    def f(x: np.ndarray) -> Any:
        found: list[Any] = []

        def branch(v: Any) -> Any:
            found.append(v.instruction)
            return v

        made = tj.lax.cond(x.sum() > 0, branch, lambda v: v * 2, x)
        return made + lift(found[0])

    def in_a_loop(x: np.ndarray) -> Any:
        return tj.lax.fori_loop(0, 3, lambda i, v: f(v), x)

    for function in (f, in_a_loop):
        with pytest.raises(TracerLeakError, match="whose trace has ended"):
            tj.jit(function).lower(np.ones(3))
