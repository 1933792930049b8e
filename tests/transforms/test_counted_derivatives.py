"""Derivatives of long loops of Python: recorded once as a Scan, and equal to the single steps'."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import tracejit as tj
from tests.transforms.counted import arrays, function_of
from tests.transforms.test_counted_loops import loop
from tracejit.errors import TracejitError
from tracejit.transforms.autograph import capture_policy, loop_capture
from tracejit.transforms.jit import trace_limit

SOON = 8


@pytest.fixture(autouse=True, scope="module")
def soon() -> Iterator[None]:
    """Short traces count as long, short loops as worth it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trace_limit, "LONGEST", SOON)
        patch.setattr(loop_capture, "LEAST_STEPS", 3)
        patch.setattr(capture_policy, "LEAST_OF_NESTS", 3)
        patch.setattr(trace_limit, "LEAST_OF_NESTS", (3, 3))
        yield


def recorded(function: Callable[..., Any], *args: Any, limit: float = SOON) -> tuple[str, Any]:
    """The graph of a function as it is recorded, and what that gives."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trace_limit, "LONGEST", limit)
        module = tj.jit(function).lower(*args).module
    return str(module), tj.interpret(module, *args)


def check(function: Callable[..., Any], *args: Any) -> str:
    """The graph with loops, which gives what the one without them gives."""
    text, found = recorded(function, *args)
    _, expected = recorded(function, *args, limit=math.inf)
    for ours, right in zip(tj.tree.leaves(found), tj.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(ours, right, 1e-9, 1e-11)
    return text


@settings(max_examples=40, deadline=None)
@given(loop([]))
def test_any_program(lines: list[str]) -> None:
    own = ["x, y, A = x * 1, y * 1, A * 1", "s, k = 0.25, 0"]
    result = "return s + (0.3 * x).sum() + (y * y).sum() + k * np.sin(A).sum()"
    function = tj.autograph(function_of([*own, *lines, result]))
    gradient = tj.value_and_grad(function, (0, 1, 2))
    try:
        recorded(gradient, *arrays(), limit=math.inf)
    except (TracejitError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        with pytest.raises((type(error), TracejitError)):
            recorded(gradient, *arrays())
        return
    check(gradient, *arrays())


def scalars(s: Any, w: Any, x: Any) -> Any:
    for i in range(x.shape[0]):
        s = np.tanh(s * w + x[i])
    return s


def in_place(s: Any, w: Any, x: Any) -> Any:
    a = np.zeros(x.shape[0])
    a[0] = s
    for i in range(1, x.shape[0]):
        a[i] = np.tanh(a[i - 1] * w) * x[i]
    return (a * a).sum()


def rows(s: Any, w: Any, x: Any) -> Any:
    for row in x.reshape(3, 2):
        s = s + np.sin(row.sum() * w) * row[0] * s
    return s


def nested(s: Any, w: Any, x: Any) -> Any:
    for i in range(1, 6):
        for j in range(i):
            s = np.sin(s * w + x[i] * x[j])
    return s


def jitted(s: Any, w: Any, x: Any) -> Any:
    return _jitted(s, w, x)


_jitted = tj.jit(scalars)
X = np.random.default_rng(0).standard_normal(6)
W = np.float64(0.7)


@pytest.mark.parametrize("function", [scalars, in_place, rows, nested, jitted])
def test_finite_differences(function: Callable[..., Any]) -> None:
    text = check(tj.value_and_grad(lambda w, x: function(0.1, w, x), (0, 1)), W, X)
    assert " scan(" in text
    tj.check_grads(tj.jit(lambda w, x: function(0.1, w, x)), (W, X), order=2)


def hessian(w: Any, x: Any) -> Any:
    return tj.hessian(lambda w: scalars(0.1, w, x))(w)


def forward(w: Any, x: Any) -> Any:
    return tj.jvp(lambda w, x: scalars(0.1, w, x), (w, x), (w, x))


def linearized(w: Any, x: Any) -> Any:
    value, push = tj.linearize(lambda w: in_place(0.1, w, x), w)
    return value, push(w)


def mapped(w: Any, x: Any) -> Any:
    return tj.vmap(tj.grad(lambda w: in_place(0.1, w, x)))(w * x[:3])


def recomputed(w: Any, x: Any) -> Any:
    return tj.grad(tj.checkpoint(lambda w: scalars(0.1, w, x)))(w)


def twice(w: Any, x: Any) -> Any:
    return tj.grad(tj.grad(lambda w: scalars(0.1, w, x)))(w)


@pytest.mark.parametrize("function", [hessian, forward, linearized, mapped, recomputed, twice])
def test_transformations_record_once(function: Callable[..., Any]) -> None:
    assert " scan(" in check(function, W, X)


_slope = tj.grad(lambda w, x: np.sum((w - x) ** 2))


@pytest.mark.parametrize("slope", [_slope, tj.jit(_slope), tj.vmap(lambda w, x: 2 * (w - x))])
def test_steps_of_descent_are_recorded_once(slope: Callable[..., Any]) -> None:
    lines = ["for _ in range(20):", "    x = x - 0.1 * slope(x, y)", "return x"]
    function = function_of(lines, slope=slope)
    assert check(lambda x, y: function(x, y, None), *arrays()[:2]).count(" while(") == 1


def test_what_a_step_does_besides_is_done_step_by_step() -> None:
    seen: list[int] = []

    def noting(w: Any) -> Any:
        seen.append(0)
        return w * w

    lines = ["for _ in range(5):", "    x = x - 0.1 * slope(x)", "return x.sum()"]
    function = function_of(lines, slope=tj.grad(lambda w: noting(w).sum()))
    text, _ = recorded(lambda x: function(x, None, None), X)
    assert " while(" not in text
    assert len(seen) > 5


def test_branches_that_are_not_taken_are_seen_through_steps() -> None:
    lines = [
        "s = y[0] * 0", "for i in range(4):", "    s = np.where(x[i] > 1, np.sqrt(s), s + y[i])",
        "return s",
    ]  # fmt: skip
    function = function_of(lines)
    x, y, A = np.array([2.0, 0.5, 0.5, 0.5, 0.5, 0.5]), *arrays()[1:]
    with np.errstate(all="ignore"):
        text, found = recorded(tj.grad(function, 1), x, y, A)
    assert " scan(" not in text
    np.testing.assert_array_equal(found, tj.grad(function, 1)(x, y, A))


def test_parts_of_great_arrays_are_kept_and_not_the_arrays() -> None:
    text, _ = recorded(tj.grad(lambda w, x: in_place(0.1, w, x)), W, np.ones(50))
    assert "f64[49,50]" not in text
    assert "f64[49,1]" in text


def test_an_error_names_the_line_of_the_loop() -> None:
    lines = ["for i in range(6):", "    x = x * x[i + 1]", "return x.sum()"]
    with pytest.raises(IndexError, match="index 6 is out of bounds for axis 0 with size 6"):
        tj.jit(tj.grad(function_of(lines)))(*arrays())
