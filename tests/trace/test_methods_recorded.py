"""Methods, also those that a method calls on its own object, record plain NumPy calls."""

from __future__ import annotations

import dataclasses
import functools
import threading
from typing import Any

import numpy as np
import pytest

import tracejit as tj

X = np.arange(1.0, 4.0)


class Layer:
    def __init__(self, scale: float) -> None:
        self.scale = scale

    def __call__(self, x: Any) -> Any:
        out = np.zeros(3)
        out[0] = x.sum() * self.scale
        return out


class Base:
    size = 3

    def __init__(self) -> None:
        self.layer = Layer(2.0)
        self.function: Any = lambda x: np.array([x[0], x[1], 0.0])
        self.__secret = 5.0

    def helper(self, x: Any, *, start: float = 1.0) -> Any:
        out = np.full(self.size, start)
        out[1:] += x[:-1]
        return self.deeper(out)

    def deeper(self, x: Any) -> Any:
        table = np.empty(self.size)
        for i in range(self.size):
            table[i] = x[i] * self.__secret
        return table

    @staticmethod
    def fixed(x: Any) -> Any:
        return np.array([x[0], 1.0, x[2]])

    @classmethod
    def of_class(cls, x: Any) -> Any:
        out = np.zeros(cls.size)
        out[2] = x[0]
        return out + cls.fixed(x)

    @property
    def doubled(self) -> float:
        return self.__secret * 2

    def run(self, x: Any) -> Any:
        inner = [self.helper(x, start=v) for v in (1.0, 2.0)]
        mapped = sum(map(lambda v: self.fixed(v), inner))
        return mapped + self.layer(x) + self.function(x) + self.of_class(x) * self.doubled


class Child(Base):
    def helper(self, x: Any, *, start: float = 1.0) -> Any:
        out = np.zeros(3)
        out[:] = super().helper(x, start=start)
        out[0] = 1
        return out

    def __private(self, x: Any) -> Any:
        out = np.zeros(3)
        out[1] = x[1]
        return out

    def run(self, x: Any) -> Any:
        return super().run(x) + self.__private(x)


@pytest.mark.parametrize("kind", [Base, Child])
def test_methods_called_on_self(kind: type[Base]) -> None:
    made = kind()
    expected = made.run(X)
    np.testing.assert_array_equal(tj.jit(made.run)(X), expected)
    np.testing.assert_array_equal(tj.jit(functools.partial(made.run))(X), expected)
    np.testing.assert_array_equal(tj.jit(made.layer)(X), made.layer(X))
    np.testing.assert_array_equal(tj.jit(kind.of_class)(X), kind.of_class(X))
    np.testing.assert_array_equal(tj.jit(kind.fixed)(X), kind.fixed(X))
    gradient = tj.jit(tj.grad(lambda x: kind.of_class(x).sum()))(X)
    np.testing.assert_array_equal(gradient, [2, 0, 1])


def test_decorated_methods() -> None:
    class Counter:
        calls = 0

        @tj.jit(static_argnums=0)
        def method(self, x: Any) -> Any:
            """Doubles."""
            self.calls += 1
            return self._twice(x)

        def _twice(self, x: Any) -> Any:
            out = np.zeros(3)
            out[:] = x
            return out * 2

        @classmethod
        def of_class(cls, x: Any) -> Any:
            return cls.inner(x)

        @staticmethod
        @tj.jit
        def inner(x: Any) -> Any:
            return x + 1

    counter = Counter()
    for _ in range(3):
        np.testing.assert_array_equal(counter.method(X), X * 2)
    assert counter.calls == 1
    assert Counter.method.__name__ == "method"
    assert Counter.method.__doc__ == "Doubles."
    np.testing.assert_array_equal(counter.of_class(X), X + 1)


@tj.tree.register_dataclass
@dataclasses.dataclass
class Affine:
    weight: Any
    bias: Any

    def apply(self, x: Any) -> Any:
        return self._scaled(x) + self.bias

    def _scaled(self, x: Any) -> Any:
        out = np.zeros(3)
        out[:] = x * self.weight
        return out


def test_dataclasses_are_trees() -> None:
    affine = Affine(2.0 * X, np.float64(1))
    np.testing.assert_array_equal(tj.jit(Affine.apply)(affine, X), affine.apply(X))
    gradient = tj.jit(tj.grad(lambda a: Affine.apply(a, X).sum()))(affine)
    assert isinstance(gradient, Affine)
    np.testing.assert_array_equal(gradient.weight, X)
    assert gradient.bias == 3
    step = tj.jit(lambda a: dataclasses.replace(a, bias=a.bias + 1))(affine)
    assert type(step) is Affine
    assert step.bias == 2


def test_methods_of_arguments() -> None:
    def applied(model: Any, x: Any) -> Any:
        return model.apply(x)

    def each(models: Any, x: Any) -> Any:
        return sum(map(lambda model: model.apply(x), models))

    affine = Affine(2.0 * X, np.float64(1))
    np.testing.assert_array_equal(tj.jit(applied)(affine, X), affine.apply(X))
    np.testing.assert_array_equal(tj.jit(each)([affine, affine], X), 2 * affine.apply(X))
    made = Base()
    run = tj.jit(lambda base, x: base.run(x), static_argnums=0)
    np.testing.assert_array_equal(run(made, X), made.run(X))


def test_wrapped_functions_and_generators() -> None:
    def outer(function: Any) -> Any:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return wrapper

    @tj.jit
    @outer
    def function(x: Any, /, *, n: int = 2) -> Any:
        """Words."""

        def rows() -> Any:
            for i in range(n):
                row = np.zeros(3)
                row[0] = x[i]
                yield row

        return np.stack(list(rows()))

    assert function.__name__ == "function"
    assert function.__doc__ == "Words."
    assert function.__wrapped__.__name__ == "function"
    np.testing.assert_array_equal(function(X)[:, 0], X[:2])


def test_two_threads_trace_at_once() -> None:
    made = Child()
    expected = made.run(X)
    barrier = threading.Barrier(4)
    results: list[Any] = [None] * 4

    def work(number: int) -> None:
        jitted = tj.jit(lambda x: made.run(x) * number)
        barrier.wait()
        results[number] = jitted(X)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, result in enumerate(results):
        np.testing.assert_array_equal(result, expected * number)
    assert made.run(X) is not expected
    np.testing.assert_array_equal(made.run(X), expected)


def chained(layer: Any, x: Any, depth: int) -> Any:
    """Calls itself by its global name, and a method of an argument."""
    return layer.twice(x) if depth == 0 else layer.twice(chained(layer, x, depth - 1))


def test_functions_that_call_themselves_and_methods() -> None:
    class Twice:
        def twice(self, x: Any) -> Any:
            return np.array([x[0] * 2, x[1] * 2, x[2] * 2])

    def inner(layer: Any, x: Any, depth: int) -> Any:
        return x if depth == 0 else layer.twice(inner(layer, x, depth - 1))

    twice: Any = Twice()
    np.testing.assert_array_equal(tj.jit(lambda x: chained(twice, x, 2))(X), 8 * X)
    np.testing.assert_array_equal(tj.jit(lambda x: inner(twice, x, 2))(X), 4 * X)
