"""Python's integers that do not fit: raised as NumPy does, while tracing or by the call."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit.errors import ValueRangeError

X = np.arange(4, dtype=np.int8)


def stored(index: Any) -> Callable[[Any, Any], Any]:
    def function(x: Any, n: Any) -> Any:
        x = x.copy()
        x[index] = n
        return x

    return function


def written(write: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def function(x: Any, n: Any) -> Any:
        x = x.copy()
        write(x, n)
        return x

    return function


ALIKE: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, n: x + n,
    "np.add": lambda x, n: np.add(n, x),
    "multiply": lambda x, n: n * x,
    "floor_divide": lambda x, n: x // n,
    "and": lambda x, n: x & n,
    "maximum": lambda x, n: np.maximum(x, n),
    "scalar": lambda x, n: x[1] - n,
    "less": lambda x, n: x < n,
    "not_equal": lambda x, n: n != x,
    "true_divide": lambda x, n: x / n,
    "clip": lambda x, n: np.clip(x, -n, n),
    "clip below": lambda x, n: x.clip(n),
    "clip above": lambda x, n: x.clip(None, n),
    "full": lambda x, n: np.full(3, n, np.int8),
    "full_like": lambda x, n: np.full_like(x, n),
    "array": lambda x, n: np.array(n, np.int8),
    "a list": lambda x, n: np.array([n, 1], np.int8),
    "a list of both": lambda x, n: np.array([x[0], n], np.int8),
    "asarray": lambda x, n: np.asarray([[n]], np.int8) + x,
    "np.int8": lambda x, n: np.int8(n) + x,
    "x[0]": stored(0),
    "x[:2]": stored(slice(2)),
    "x[[0, 1]]": stored([0, 1]),
    "x[...]": stored(...),
    "x[:2], a list": lambda x, n: stored(slice(2))(x, [n, 1]),
    "x[0], NumPy's number": lambda x, n: stored(0)(x, np.int64(300)),
    "fill": written(lambda x, n: x.fill(n)),
    "put": written(lambda x, n: np.put(x, [0], n)),
    "place": written(lambda x, n: np.place(x, x > 1, [n])),
    "putmask": written(lambda x, n: np.putmask(x, x > 1, n)),
    "copyto": written(lambda x, n: np.copyto(x, n)),
    "searchsorted": lambda x, n: np.searchsorted(x, n),
    "outer": lambda x, n: np.multiply.outer(x, n),
}


def outcome(function: Callable[[], Any]) -> Any:
    try:
        made = np.asarray(function())
    except OverflowError:
        return "OverflowError"
    return made.dtype, made.tolist()


@pytest.mark.parametrize("name", ALIKE)
def test_numbers_known_while_tracing(name: str) -> None:
    function = ALIKE[name]
    for number in (5, 300, -300, 2**40):

        def ours(n: int = number) -> Any:
            return tj.interpret(tj.jit(lambda x: function(x, n)).lower(X).module, X)

        assert outcome(ours) == outcome(partial(function, X, number)), number


LISTED = ("a list", "a list of both", "asarray", "x[:2], a list", "x[0], NumPy's number", "place")


@pytest.mark.parametrize("name", [name for name in ALIKE if name not in LISTED])
def test_arguments(name: str) -> None:
    """What is known of them while tracing is that they are Python's integers."""
    if name in ("clip", "np.int8"):  # -n is no argument; outside of a trace np.int8 is NumPy's
        return
    function = ALIKE[name]
    lowered = tj.jit(function).lower(X, 1)
    for number in (5, 300, -300, 2**40):

        def ours(n: int = number) -> Any:
            return tj.interpret(lowered.module, *lowered._flatten(X, n))

        assert outcome(ours) == outcome(partial(function, X, number)), number


def test_every_way_to_call() -> None:
    """The long way, the short one, keywords, and what was lowered."""
    function = tj.jit(lambda x, n: x + n)
    message = r"argument n of <lambda>: 300 does not fit where it is used, between -128 and 127"
    by_name: Callable[[Any, Any], Any] = lambda x, n: function(x, n=n)  # noqa: E731
    calls: list[Callable[[Any, Any], Any]] = [function, function, by_name]
    for call in calls:
        np.testing.assert_array_equal(call(X, 5), X + 5)
        with pytest.raises(ValueRangeError, match=message) as caught:
            call(X, 300)
        assert re.search(r"\(test_fitting.py:\d+\)$", str(caught.value))
        np.testing.assert_array_equal(call(X, -6), X - 6)
    compiled = function.lower(X, 5).compile()
    np.testing.assert_array_equal(compiled(X, 7), X + 7)
    with pytest.raises(ValueRangeError, match="does not fit"):
        compiled(X, 300)


def test_the_narrowest_use_counts() -> None:
    lowered = tj.jit(lambda x, y, n: (x + n, y + n, n)).lower(X, X.astype(np.uint16), 1)
    (bounds,) = lowered._staged.bounds.values()
    assert (bounds.least, bounds.most) == (0, 127)


def test_inside_of_derivatives_and_other_jits() -> None:
    inner = tj.jit(lambda x, n: x + n)

    def loss(w: Any, x: Any, n: Any) -> Any:
        return (w * inner(x, n)).sum()

    function = tj.jit(tj.grad(loss))
    np.testing.assert_array_equal(function(1.0, X, 5), (X + 5).sum())
    with pytest.raises(ValueRangeError, match="argument n"):
        function(1.0, X, 300)


def test_branches_may_not_be_taken() -> None:
    """Nothing is asked of a number for what may never be done with it."""

    def function(x: Any, n: Any) -> Any:
        return tj.lax.cond(n < 100, lambda: x + n, lambda: x)

    lowered = tj.jit(function).lower(X, 1)
    np.testing.assert_array_equal(tj.interpret(lowered.module, *lowered._flatten(X, 300)), X)


def test_numbers_made_of_arguments_wrap() -> None:
    lowered = tj.jit(lambda x, n: x + 2 * n).lower(X, 1)
    made = tj.interpret(lowered.module, *lowered._flatten(X, 150))
    np.testing.assert_array_equal(made, X + np.int8(300 - 256))
