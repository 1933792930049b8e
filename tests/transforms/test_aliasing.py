"""Arguments that share memory, in functions that write to them: as NumPy has it, or refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit.errors import ArgumentError
from tracejit.transforms.jit.aliasing import EFFORT, overlaps_itself, twins


def both(x: Any, y: Any) -> Any:
    x += 1
    y *= 2
    return (x * y).sum()


def stepwise(x: Any, y: Any) -> Any:
    for i in range(1, 5):
        x[i] = x[i - 1] + y[5 - i]
    return x.sum() + y[0]


def reading(x: Any, y: Any) -> Any:
    return (x * y).sum()


def made() -> np.ndarray:
    return np.arange(6.0) + 1


def _views(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    whole = np.resize(a, 8)
    return whole[:6], whole[2:]


PAIRS: dict[str, Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]] = {
    "one": lambda a: (a, a),
    "views of all": lambda a: (a[:], a.reshape(2, 3).reshape(6)),
    "apart": lambda a: (a, made()),
    "overlapping": _views,
    "reversed": lambda a: (a, a[::-1]),
    "interleaved": lambda a: (np.repeat(a, 2)[::2], np.repeat(a, 2)[1::2]),
}
REFUSED = ("overlapping", "reversed")


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("function", [both, stepwise])
@pytest.mark.parametrize("mutates", [None, "x", ("x", "y")])
def test_as_numpy_or_refused(function: Callable[..., Any], pair: str, mutates: Any) -> None:
    jitted = tj.jit(function, mutates=mutates)
    for given in ("apart", pair, "apart", pair):
        whole, expected = (made() for _ in range(2))
        x, y = PAIRS[given](whole)
        right = function(*PAIRS[given](expected))
        if given in REFUSED:
            with pytest.raises(ArgumentError, match="is written to, and shares memory with"):
                jitted(x, y)
            continue
        assert jitted(x, y) == right
        if mutates == ("x", "y") and given == "one":
            np.testing.assert_array_equal(whole, expected)
        if mutates is None:
            np.testing.assert_array_equal(whole, made())


def test_what_only_reads_takes_every_pair() -> None:
    jitted = tj.jit(reading)
    for pair in PAIRS.values():
        x, y = pair(made())
        assert jitted(x, y) == reading(x, y)
    assert jitted.cache_report().count == 1


def test_red_and_black_are_apart() -> None:
    whole = np.arange(10.0)
    assert tj.jit(both, mutates=("x", "y"))(whole[::2], whole[1::2]) == 330.0
    np.testing.assert_array_equal(whole[:4], [1, 2, 3, 6])


def test_the_report_says_so() -> None:
    x = made()
    jitted = tj.jit(both)
    jitted(x, x)
    assert "is the same array as x" in str(jitted.cache_report())


def test_inside_a_trace() -> None:
    inner = tj.jit(both)
    x = made()
    assert tj.jit(lambda x: inner(x, x))(made()) == both(x, x)
    with pytest.raises(ArgumentError, match="argument x of both is written to"):
        tj.jit(lambda x: inner(x[1:], x[:-1]))(made())


def test_under_grad() -> None:
    def f(x: Any, y: Any) -> Any:
        x[0] = 2.0
        return (x * y).sum()

    x = made()
    np.testing.assert_array_equal(tj.grad(f)(x, made()), [0, *made()[1:]])
    with pytest.raises(ArgumentError, match="argument x of f is written to"):
        tj.grad(f)(x, x)


def test_trees() -> None:
    def f(state: dict[str, Any], y: Any) -> Any:
        state["a"] *= 2
        return state["b"] + y + state["a"]

    a, b = made(), made()
    jitted = tj.jit(f)
    np.testing.assert_array_equal(jitted({"a": a, "b": b}, b), made() * 4)
    np.testing.assert_array_equal(jitted({"a": a, "b": b}, a), made() * 5)
    np.testing.assert_array_equal(jitted({"a": a, "b": a}, a), made() * 6)


def test_twins_are_found_by_address() -> None:
    x = made()
    assert twins([x, x[:], made()], (0,)) == {1: 0}
    assert twins([x, made()], (0,)) == {}
    assert twins([x, x], ()) == {}
    assert EFFORT > 100


def _sliding(a: np.ndarray) -> np.ndarray:
    return np.lib.stride_tricks.sliding_window_view(a, 3, writeable=True)


@pytest.mark.parametrize(
    "view",
    [
        _sliding,
        lambda a: np.lib.stride_tricks.as_strided(a, (3, 3), (0, 8)),
        lambda a: np.ndarray((3, 3), a.dtype, a, strides=(0, 8)),
        lambda a: np.broadcast_to(a, (3, 6)),
    ],
)
def test_an_array_that_overlaps_itself(view: Callable[[np.ndarray], np.ndarray]) -> None:
    def f(x: Any) -> Any:
        x[1, 0] = 7
        return x.sum()

    jitted = tj.jit(f)
    assert jitted(np.ones((3, 3))) == 15
    for _ in range(2):
        with pytest.raises(ArgumentError, match="x of f is written to, and some of its elements"):
            jitted(view(made()))
    assert tj.jit(lambda x: x.sum())(_sliding(made())) == _sliding(made()).sum()


@pytest.mark.parametrize("held", [lambda a: a, lambda a: [a], lambda a: {"k": a}])
def test_an_array_that_the_function_closes_over(held: Callable[[np.ndarray], Any]) -> None:
    table = made()
    known = held(table)

    def f(x: Any) -> Any:
        x[0] = 7
        inner = known[0] if type(known) is list else known["k"] if type(known) is dict else known
        return x.sum() + inner.sum()

    jitted = tj.jit(f)
    for _ in range(2):
        assert jitted(made()) == 48
        with pytest.raises(ArgumentError, match="x of f is written to, and shares memory with kno"):
            jitted(table[1:])


def test_an_array_with_gaps_does_not_overlap_itself() -> None:
    x = np.arange(24.0).reshape(2, 3, 4).transpose(2, 0, 1)[::-2, :, ::2]
    assert not overlaps_itself(x)
    assert tj.jit(reading)(x, x) == reading(x, x)
