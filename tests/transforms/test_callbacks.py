"""Python functions called by traced programs: debug.print, debug.callback, pure_callback."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit import lax, targets
from tracejit.errors import DerivativeError, ElementTypeError, ShapeError

X = np.arange(1.0, 4.0)
Transform = Callable[[Callable[..., Any]], Callable[..., Any]]


def plain(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


both = pytest.mark.parametrize("way", [plain, tj.jit], ids=["eager", "jit"])


@both
def test_print_formats_values(way: Transform, capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: Any) -> Any:
        tj.debug.print("x {} {s:.1f} {word}", x, s=x.sum(), word="!")
        tj.debug.print("plain")
        return x

    made = way(f)
    made(X)
    made(2 * X)
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["x [1. 2. 3.] 6.0 !", "plain", "x [2. 4. 6.] 12.0 !", "plain"]


@both
def test_in_loops_and_branches(way: Transform) -> None:
    seen: list[Any] = []

    def f(x: Any) -> Any:
        def body(i: Any, carry: Any) -> Any:
            tj.debug.callback(lambda i, c: seen.append((int(i), float(c))), i, carry)
            return carry * 2

        def loud(v: Any) -> Any:
            tj.debug.callback(seen.append, "loud")
            return v

        def step(carry: Any, row: Any) -> Any:
            tj.debug.callback(lambda r: seen.append(float(r)), row)
            return carry + row, carry

        total = lax.fori_loop(0, 2, body, x[0])
        lax.cond(total > 3, loud, lambda v: v, x)
        return lax.scan(step, total, x)[0]

    assert way(f)(X) == 10
    assert seen == [(0, 1.0), (1, 2.0), "loud", 1.0, 2.0, 3.0]


@both
def test_differentiation_ignores_it_and_does_it_once(way: Transform) -> None:
    seen: list[Any] = []

    def f(x: Any) -> Any:
        tj.debug.callback(lambda v: seen.append(v.tolist()), x * x)

        def step(carry: Any, row: Any) -> Any:
            tj.debug.callback(lambda r: seen.append(float(r)), row)
            return carry + row * row, row

        return lax.scan(step, 0.0, x)[0]

    assert way(tj.grad(f))(X).tolist() == (2 * X).tolist()
    assert seen == [[1, 4, 9], 1.0, 2.0, 3.0]


@both
def test_loops_with_derivatives_print_once(way: Transform) -> None:
    seen: list[float] = []

    def f(x: Any) -> Any:
        def body(i: Any, carry: Any) -> Any:
            tj.debug.callback(lambda c: seen.append(float(c)), carry)
            return carry * 2

        return lax.fori_loop(0, 3, body, x)

    assert way(tj.grad(f))(1.5) == 8
    assert seen == [1.5, 3, 6]


def test_with_checks() -> None:
    seen: list[Any] = []

    def f(x: Any) -> Any:
        tj.debug.callback(lambda v: seen.append(v.tolist()), x)
        return x + 1

    assert tj.jit(f, check=True)(X).tolist() == [2, 3, 4]
    assert seen == [[1, 2, 3]]


@both
def test_vmap_calls_for_each_element(way: Transform) -> None:
    seen: list[float] = []

    def f(x: Any) -> Any:
        tj.debug.callback(lambda v: seen.append(float(v)), x + 1)
        return x * 2

    assert way(tj.vmap(f))(X).tolist() == (2 * X).tolist()
    assert seen == [2, 3, 4]


@both
def test_pure_callback(way: Transform) -> None:
    def host(x: np.ndarray, scale: float) -> dict[str, np.ndarray]:
        return {"cumulative": np.cumsum(x) * scale, "total": x.sum()}

    like = {"cumulative": X, "total": np.float64(0)}

    def f(x: Any) -> Any:
        made = tj.pure_callback(host, like, x, 2.0)
        return made["cumulative"] + made["total"]

    assert way(f)(X).tolist() == [8, 12, 18]
    assert way(tj.vmap(f))(np.stack([X, 2 * X])).tolist() == [[8, 12, 18], [16, 24, 36]]


@both
def test_pure_callback_checks_its_result(way: Transform) -> None:
    def wrong(x: Any) -> Any:
        return tj.pure_callback(lambda v: v[:2], x, x)

    def narrow(x: Any) -> Any:
        return tj.pure_callback(lambda v: v.astype(np.float32), x, x)

    with pytest.raises(ShapeError, match=r"must return an array f64\[3\].*dimensions \[2\]"):
        way(wrong)(X)
    with pytest.raises(ElementTypeError, match="dtype float32"):
        way(narrow)(X)
    with pytest.raises(DerivativeError, match="without a gradient"):
        tj.grad(lambda x: tj.pure_callback(np.sin, x, x).sum())(X)


def test_what_a_callback_raises_comes_through() -> None:
    def stop(value: np.ndarray) -> None:
        raise RuntimeError("enough")

    @tj.jit
    def f(x: Any) -> Any:
        tj.debug.callback(stop, x)
        return x

    with pytest.raises(RuntimeError, match="enough"):
        f(X)


def test_callbacks_are_forgotten_with_their_program() -> None:
    def f(x: Any) -> Any:
        tj.debug.callback(lambda v: None, x)
        return x.sum()

    gc.collect()
    before = len(targets._held)
    for _ in range(3):
        tj.grad(f)(X)
    gc.collect()
    assert len(targets._held) <= before


def test_breakpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    """The debugger sees the values of the function's variables, in loops as well."""
    seen: list[Any] = []

    def debugger() -> None:
        frame = sys._getframe(1)
        seen.append({name: frame.f_locals[name] for name in ("x", "y") if name in frame.f_locals})
        assert "traced program at" in frame.f_code.co_filename

    monkeypatch.setattr(sys, "breakpointhook", debugger)

    def function(x: Any) -> Any:
        y = x * 2
        tj.debug.breakpoint()
        return y

    function(1.0)
    assert tj.jit(function)(2.0) == 4.0
    assert seen == [{"x": 1.0, "y": 2.0}, {"x": 2.0, "y": 4.0}]
    seen.clear()
    tj.jit(lambda x: tj.lax.fori_loop(0, 3, lambda i, s: function(s), x))(1.0)
    assert [values["x"] for values in seen] == [1, 2, 4]
