"""jit: when it traces, what it returns, static arguments, threads, text."""

from __future__ import annotations

import gc
import sys
import threading
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import tracejit as tj
from tests.numpy_api.compare import same
from tracejit.errors import ArgumentError, NotFiniteError
from tracejit.shapes import ElementType, Shape

X = np.arange(6.0).reshape(2, 3)


class Counted:
    """A function that counts how often it is traced."""

    def __init__(self) -> None:
        self.traces = 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.traces += 1
        return tj.tree.map(lambda x: x * 2, (args, kwargs))


def test_traces_once_for_each_kind_of_arguments() -> None:
    counted = Counted()
    function = tj.jit(counted)
    kinds: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((X,), {}),
        ((X.astype(np.float32),), {}),
        ((X[:1],), {}),
        ((X, X), {}),
        (([X, X],), {}),
        (({"a": X, "b": X},), {}),
        (({"a": X, "c": X},), {}),
        ((X,), {"k": X}),
        ((2,), {}),
        ((2.0,), {}),
        ((True,), {}),
        ((1j,), {}),
        ((np.float64(2),), {}),
        ((np.array(2.0),), {}),
        ((None, X), {}),
        ((), {}),
    ]
    for expected, (args, kwargs) in enumerate(kinds, start=1):
        for _ in range(3):
            same(function(*args, **kwargs), tj.tree.map(lambda x: x * 2, (args, kwargs)))
        assert counted.traces == expected
    for args, kwargs in kinds:
        function(*args, **kwargs)
    assert counted.traces == len(kinds)


def test_other_values_use_the_same_version() -> None:
    counted = Counted()
    function = tj.jit(counted)
    for number in (1, 2, -5):
        assert function(number)[0] == (number * 2,)
        assert function({"a": number, "b": X})[0][0]["a"] == number * 2
    assert counted.traces == 2


class Pair(NamedTuple):
    first: Any
    second: Any


@tj.tree.register_dataclass
@dataclass
class Point:
    x: Any
    y: Any


def test_results_have_the_form_of_the_function() -> None:
    def function(x: Any) -> Any:
        return {
            "array": x,
            "rank 0": np.full((), x[0, 0]),
            "scalar": x.sum(),
            "python": 3.5,
            "list": [x, (x, None)],
            "pair": Pair(x, 2),
            "point": Point(x, x[0]),
            "truth": x[0, 0] > 0,
            "empty": (),
        }

    result, expected = tj.jit(function)(X), function(X)
    assert tj.tree.structure(result) == tj.tree.structure(expected)
    same(result, expected)
    assert isinstance(result["pair"], Pair)
    assert isinstance(result["point"], Point)
    assert type(result["python"]) is float
    assert isinstance(result["scalar"], np.float64)
    assert isinstance(result["rank 0"], np.ndarray)
    assert tj.jit(lambda x: None)(X) is None


def test_results_share_no_memory() -> None:
    x = np.arange(3.0)
    constant = np.arange(3.0)
    first, second, third, fourth = tj.jit(lambda x: (x, x, x[1:], constant))(x)
    for one in (first, second, third, fourth):
        one += 100
    np.testing.assert_array_equal(x, [0, 1, 2])
    np.testing.assert_array_equal(constant, [0, 1, 2])
    np.testing.assert_array_equal(second, [100, 101, 102])


def test_arrays_closed_over_are_constants() -> None:
    table = np.arange(3.0)
    function = tj.jit(lambda x: x + table)
    same(function(np.ones(3)), np.ones(3) + table)
    table[0] = 50
    same(function(np.ones(3)), np.array([1.0, 2, 3]))


def test_static_arguments() -> None:
    traced: list[Any] = []

    def power(x: Any, n: Any, scale: Any = 1, *, mode: str = "plain") -> Any:
        traced.append((n, scale, mode))
        made = x
        for _ in range(n - 1):
            made = made * x
        return made * scale if mode == "plain" else -made * scale

    by_name = tj.jit(power, static_argnames=("n", "mode"))
    by_number = tj.jit(power, static_argnums=1, static_argnames="mode")
    for function in (by_name, by_number):
        traced.clear()
        for _ in range(2):
            same(function(X, 3), X**3)
            same(function(X, n=3), X**3)
            same(function(X, 2, 5.0), X**2 * 5.0)
            same(function(X, 3, mode="negative"), -(X**3))
        assert [t[0] for t in traced] == [3, 3, 2, 3]
    same(tj.jit(power, static_argnums=(-2,))(X, 2), X**2)


def test_static_arguments_are_told_apart_by_type_and_sign() -> None:
    function = tj.jit(lambda x, s: np.full(2, s) + 0 * x, static_argnums=1)
    x = np.zeros(2, np.int8)
    dtypes = [function(x, s).dtype for s in (1, 1.0, True)]
    assert dtypes == [(np.full(2, s) + 0 * x).dtype for s in (1, 1.0, True)]
    signs = tj.jit(lambda x, s: x * s[0], static_argnums=1)
    assert np.signbit(signs(np.ones(1), (0.0,))).tolist() == [False]
    assert np.signbit(signs(np.ones(1), (-0.0,))).tolist() == [True]


def test_arguments_of_jit() -> None:
    def function(x: Any, n: Any) -> Any:
        return x * n

    with pytest.raises(ArgumentError, match="function has 2 positional arguments, there is no"):
        tj.jit(function, static_argnums=2)
    with pytest.raises(ArgumentError, match="a static argument of function has no buffer"):
        tj.jit(function, static_argnums=1, donate_argnums=(0, 1))
    with pytest.raises(ArgumentError, match="argument n of function is static and must be hash"):
        tj.jit(function, static_argnums=1)(X, [1])
    same(tj.jit(function, donate_argnums=0)(X.copy(), 2), X * 2)
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        tj.jit(function)(X)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'm'"):
        tj.jit(function)(X, m=2)  # type: ignore[call-arg]


def test_decorator_and_method() -> None:
    @tj.jit(static_argnames="n")
    def repeated(x: Any, n: int) -> Any:
        """Repeats."""
        return np.tile(x, n)

    assert repeated.__name__ == "repeated"
    assert repeated.__doc__ == "Repeats."
    assert repr(repeated).startswith("<jit of repeated(")
    same(repeated(X[0], n=2), np.tile(X[0], 2))

    class Model:
        @tj.jit(static_argnums=0)
        def apply(self, x: Any) -> Any:
            return x * 2

        @staticmethod
        @tj.jit
        def plain(x: Any) -> Any:
            return x * 3

        @tj.jit
        def refused(self, x: Any) -> Any:
            return x

    same(Model().apply(X), X * 2)
    same(Model.plain(X), X * 3)
    with pytest.raises(ArgumentError, match=r"self of refused: an object of class Model is no"):
        Model().refused(X)


def test_jit_inside_jit() -> None:
    inner = tj.jit(lambda x, n: x * n, static_argnums=1)

    @tj.jit
    def outer(x: Any) -> Any:
        def local(y: Any) -> Any:
            return y + x

        return inner(x, 3) + tj.jit(local)(np.ones(3)) + inner(X, 2)

    same(outer(X), X * 3 + X + 1 + X * 2)
    same(tj.grad(lambda x: outer(x).sum())(X), np.full((2, 3), 4.0))


def test_two_threads_compile_once() -> None:
    traces = []
    barrier = threading.Barrier(4)

    @tj.jit
    def function(x: Any) -> Any:
        traces.append(threading.get_ident())
        for _ in range(50):
            x = np.sin(x) + 1
        return x

    results: list[Any] = []

    def call() -> None:
        barrier.wait()
        results.extend(function(X) for _ in range(5))

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(traces) == 1
    assert len(results) == 20
    for result in results:
        np.testing.assert_array_equal(result, results[0])


def test_threads_with_other_arguments() -> None:
    """Each gets its own answer, whichever version is the latest."""
    function = tj.jit(lambda x, n: (x * n).sum(0))
    failures = []

    def call(size: int) -> None:
        x = np.arange(float(size * 2)).reshape(2, size)
        for n in range(100):
            if not np.array_equal(function(x, n), (x * n).sum(0)):
                failures.append(size)

    threads = [threading.Thread(target=call, args=(size,)) for size in (1, 2, 3, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_the_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    # The module is behind the function of the same name.
    monkeypatch.setattr(sys.modules["tracejit.transforms.jit.jitted"], "CACHE_SIZE", 3)
    counted = Counted()
    function = tj.jit(counted)
    for size in (1, 2, 3, 4, 5):
        function(np.ones(size))
    assert len(function._versions) == 3
    function(np.ones(5))
    assert counted.traces == 5
    function(np.ones(1))
    assert counted.traces == 6


def test_lower() -> None:
    lowered = tj.jit(lambda p, n: p["w"] * n + 1).lower({"w": X}, 2)
    text = lowered.as_text()
    assert "ENTRY" in text
    assert "multiply" in text
    assert tj.hlo.to_text(lowered.module) == text
    compiled = lowered.compile()
    same(compiled({"w": X}, 3), X * 3 + 1)
    same(compiled({"w": X[::-1].astype(">f8")}, 3), X[::-1] * 3 + 1)
    with pytest.raises(ArgumentError, match=r"argument p\['w'\] of <lambda>: lowered for f64\[2,3"):
        compiled({"w": X[:1]}, 3)
    with pytest.raises(ArgumentError, match="lowered for arguments"):
        compiled([X], 3)
    with pytest.raises(ArgumentError, match="must be 'hlo'"):
        lowered.as_text("c")


def test_lower_for_shapes() -> None:
    shape = Shape(ElementType.F32, (2, 3))
    compiled = tj.jit(lambda x: x.T).lower(shape).compile()
    same(compiled(X.astype(np.float32)), X.astype(np.float32).T)


def test_check() -> None:
    def function(x: Any) -> Any:
        y = x + 1
        z = np.log(y)
        return z * 2

    checked = tj.jit(function, check=True)
    same(checked(np.ones(2)), function(np.ones(2)))
    line = function.__code__.co_firstlineno + 2
    with pytest.raises(NotFiniteError, match=rf"log: makes NaN from finite.*test_jit\.py:{line}\)"):
        checked(np.array([1.0, -3.0]))
    with np.errstate(all="ignore"):
        same(checked(np.array([np.nan])), np.array([np.nan]))


def test_unknown_target() -> None:
    with pytest.raises(ValueError, match=r"'cpu', 'cpu:PROCESSOR'.*not 'tpu'"):
        tj.compile(tj.jit(lambda x: x).lower(X).module, target="tpu")


def test_garbage_is_collected_after_a_trace() -> None:
    """Not while it runs, whatever becomes of it; nothing is collected where the user said so."""
    seen = []

    def function(x: Any) -> Any:
        seen.append(gc.isenabled())
        if x.ndim == 3:
            raise ValueError("no")
        return x + 1

    jitted = tj.jit(function)
    jitted(X)
    assert gc.isenabled()
    with pytest.raises(ValueError, match="no"):
        jitted(np.ones((2, 2, 2)))
    assert gc.isenabled()
    gc.disable()
    try:
        jitted(np.ones(7))
        assert not gc.isenabled()
    finally:
        gc.enable()
    assert seen == [False] * 3
