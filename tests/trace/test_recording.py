"""Recording namespaces: np and math in a traced function record, and nobody else sees them."""

from __future__ import annotations

import functools
import math
import random
import secrets
import threading
import warnings
from math import exp as math_exp
from time import perf_counter
from types import FunctionType
from typing import Any

import numpy as another_name
import numpy as np
import pytest
import scipy.linalg
import scipy.special
import scipy.stats
from numpy import sin, zeros

import tracejit as tj
from tests.trace import helpers
from tests.trace.helpers import normalised
from tracejit.trace.outside_world import FrozenValueWarning
from tracejit.trace.recording import copied

X = np.arange(1.0, 5.0)
calls = 0


def plain(x: Any) -> Any:
    """Everything that NumPy's protocols do not reach."""
    y = zeros(3)
    y[0] = x[0]
    y[1:] = sin(x[:2])
    z = np.array([x[0], 2.0, math_exp(x[1])])
    n = helpers.normalised(x) + normalised(x)
    w = [another_name.full(2, value) for value in (x[0], x[1])]
    import numpy as local

    b = local.empty_like(x)
    b[:] = x[::-1]
    c = np.stack([np.ones(2) * x[0], np.arange(2) + x[1]])
    return y, z, n, w, b, c, math.sqrt(x[2]) * math.pi, math.floor(x[3] + 0.5)


def test_plain_code() -> None:
    result, expected = tj.jit(plain)(X), plain(X)
    for one, other in zip(tj.tree.leaves(result), tj.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other)
        assert type(one) is type(other)


TABLE = np.arange(12.0).reshape(4, 3)
NAMES = np.array(["a", "b"])


def test_arrays_from_outside() -> None:
    """Traced values index them; for everything else they are NumPy's."""
    local = np.arange(5.0)

    def function(x: Any, i: Any) -> Any:
        assert isinstance(TABLE, np.ndarray)
        assert type(local[2]) == np.float64  # noqa: E721
        assert NAMES[1] == "b"
        assert np.unique(local).size == 5
        one = TABLE[i], TABLE[1:, i], TABLE[i, 0], (local * 2)[i], local.take(i), TABLE[[i, 0]]
        return one, local[:4].dot(x), x @ TABLE, TABLE[0] * x[0], TABLE.T[i], local[-1]

    result, expected = tj.jit(function)(X, 2), function(X, 2)
    for one, other in zip(tj.tree.leaves(result), tj.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other)
    gradient = tj.grad(lambda x: local[:4].dot(x) * TABLE[1, 0])(X)
    np.testing.assert_allclose(gradient, [0, 3, 6, 9])
    assert type(tj.jit(lambda x: (x, TABLE))(X)[1]) is np.ndarray
    with pytest.raises(TypeError, match="cannot be stored into an array from outside"):
        tj.jit(lambda x: TABLE.__setitem__(0, x[:3]))(X)


def test_the_switch() -> None:
    """Without recording a traced number is stored into a NumPy array, which NumPy refuses."""
    with pytest.raises(ValueError, match="setting an array element") as caught:
        tj.jit(plain, record_numpy=False)(X)
    assert "write it to an array made inside the traced function" in str(caught.value.__cause__)


def test_globals_are_written_through() -> None:
    @tj.jit
    def count(x: Any) -> Any:
        global calls
        calls += 1
        helpers.count()
        return x + calls

    before = calls, helpers.calls
    count(X)
    count(X)
    assert (calls, helpers.calls) == (before[0] + 1, before[1] + 1)
    count(X.astype(np.float32))
    assert (calls, helpers.calls) == (before[0] + 2, before[1] + 2)


def test_nobody_else_sees_it() -> None:
    """While one thread traces, another one's np is NumPy."""
    inside, seen = threading.Event(), threading.Event()
    modules: list[Any] = []

    def function(x: Any) -> Any:
        inside.set()
        assert seen.wait(10)
        y = np.zeros(2)
        y[0] = x[0]
        return y

    def watch() -> None:
        assert inside.wait(10)
        modules.extend([type(np.zeros(2)), globals()["np"], vars(helpers)["np"]])
        seen.set()

    thread = threading.Thread(target=watch)
    thread.start()
    tj.jit(function)(X)
    thread.join()
    assert modules == [np.ndarray, np, np]


def test_closures() -> None:
    module, factor = np, 3.0

    def helper(n: int, x: Any) -> Any:
        out = module.zeros(1)
        out[0] = x
        return out if n == 0 else other(n - 1, x) + factor

    def other(n: int, x: Any) -> Any:
        return helper(n, x) * 2

    counter = 0

    def counting(x: Any) -> Any:
        nonlocal counter
        counter += 1
        return helper(3, x[0])

    np.testing.assert_array_equal(tj.jit(counting)(X), counting(X))
    assert counter == 2


def test_methods_partials_and_callable_objects() -> None:
    class Layer:
        def __init__(self) -> None:
            self.weight = np.ones(4)

        def __call__(self, x: Any) -> Any:
            out = np.zeros(4)
            out[0] = x[0]
            return out + self.weight

        def method(self, x: Any, y: Any = 1) -> Any:
            out = np.zeros(4)
            out[1] = x[1]
            return out + self.weight * y

    layer = Layer()
    np.testing.assert_array_equal(tj.jit(layer)(X), layer(X))
    np.testing.assert_array_equal(tj.jit(layer.method)(X, y=2.0), layer.method(X, 2))
    partial = functools.partial(Layer.method, layer, y=X)
    np.testing.assert_array_equal(tj.jit(partial)(X), partial(X))


def test_decorated_functions() -> None:
    def twice(function: Any) -> Any:
        @functools.wraps(function)
        def wrapper(*args: Any) -> Any:
            return function(*args) + function(*args)

        return wrapper

    @twice
    def made(x: Any) -> Any:
        out = np.zeros(2)
        out[0] = x[0]
        return out

    np.testing.assert_array_equal(tj.jit(made)(X), made(X))


def test_grad_records_too() -> None:
    def loss(x: Any) -> Any:
        out = np.zeros(3)
        for i in range(3):
            out[i] = x[i] * x[i + 1]
        return math.sqrt(out.sum())

    expected = np.array([2, 4, 6, 3]) / (2 * math.sqrt(20))
    np.testing.assert_allclose(tj.grad(loss)(X), expected)
    np.testing.assert_allclose(tj.jit(tj.grad(loss))(X), expected)


def test_a_copy_keeps_what_a_function_has() -> None:
    def function(x: Any, y: float = 2.0, *, z: float = 3.0) -> Any:
        """Says what it does."""
        return np.zeros(1) + x * y * z

    assert isinstance(function, FunctionType)
    copy = copied(function)
    assert copied(copy) is copy
    assert copy.__name__ == "function"
    assert copy.__doc__ == function.__doc__
    assert copy(1.0) is not None
    jitted = tj.jit(function)
    assert jitted.__name__ == "function"
    assert jitted.__doc__ == function.__doc__
    assert jitted.__wrapped__ is function
    np.testing.assert_array_equal(jitted(X), function(X))


def test_random_numbers_and_clocks_warn() -> None:
    with pytest.warns(FrozenValueWarning, match=r"np\.random\..*rand is called while tracing") as w:
        tj.jit(lambda x: x + np.random.rand(4))(X)
    assert w[0].filename == __file__
    with pytest.warns(FrozenValueWarning) as repeated:
        tj.jit(lambda x: x + sum(np.random.rand() for _ in range(9)) + np.random.randn())(X)
    assert len(repeated) == 2
    with pytest.warns(FrozenValueWarning, match=r"time.* its value is frozen"):
        tj.jit(lambda x: x + helpers.now())(X)
    with pytest.warns(FrozenValueWarning, match=r"time\.perf_counter is called while tracing"):
        tj.jit(lambda x: x + perf_counter())(X)
    with pytest.warns(FrozenValueWarning, match=r"secrets\.randbelow is called while tracing"):
        tj.jit(lambda x: x + secrets.randbelow(9))(X)
    system = random.SystemRandom()
    with pytest.warns(FrozenValueWarning, match="random is called while tracing"):
        tj.jit(lambda x: x + system.random())(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tj.jit(lambda x: x + np.random.default_rng(0).normal(size=4))(X)


def test_callbacks_may_read_clocks() -> None:
    """They are called while the program runs: nothing is frozen."""

    def noisy(v: Any) -> Any:
        return v + np.random.rand(4)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        function = tj.jit(lambda x: tj.pure_callback(noisy, x, x))
        assert not np.array_equal(function(X), function(X))


def test_math_takes_numbers_only() -> None:
    with pytest.raises(TypeError, match=r"math\.sin: takes numbers, not an array \(4,\); use np"):
        tj.jit(lambda x: math.sin(x))(X)


@pytest.mark.parametrize(
    "name",
    """
    acos asin atan cos sin tan exp expm1 log log2 log10 log1p sqrt sinh cosh tanh asinh atanh floor
    ceil trunc fabs degrees radians erf isnan isinf isfinite
    """.split(),
)
def test_math(name: str) -> None:
    function = getattr(math, name)
    result = tj.jit(lambda x: (getattr(math, name)(x), getattr(math, name)(x)))(0.375)[0]
    assert type(result) is type(function(0.375)) or isinstance(result, np.bool_)
    assert result == pytest.approx(function(0.375), rel=1e-14)


def test_math_of_several() -> None:
    def function(x: Any, y: Any) -> Any:
        return (
            math.atan2(x, y),
            math.hypot(x, y, 2.0),
            math.fmod(x, y),
            math.copysign(x, -y),
            math.pow(x, y),
            math.log(x, 3),
            math.isclose(x, x + 1e-12),
        )

    result, expected = tj.jit(function)(1.5, 2.25), function(1.5, 2.25)
    np.testing.assert_allclose(result, expected, rtol=1e-14)


def test_the_array_class() -> None:
    def f(x: np.ndarray) -> Any:
        assert isinstance(x, np.ndarray)
        assert not isinstance(x[0], np.ndarray)
        assert issubclass(np.ndarray, np.ndarray)
        made = np.ndarray(2, dtype=np.float32)
        made[0], made[1] = x.sum(), 5
        return made, np.ndarray(2, np.int8, buffer=b"\x01\x02") + x[0]

    made, sums = tj.jit(f)(np.ones(3))
    np.testing.assert_array_equal(made, np.array([3, 5], np.float32), strict=True)
    np.testing.assert_array_equal(sums, [2.0, 3.0], strict=True)


@pytest.mark.parametrize(
    "function",
    [
        scipy.special.logsumexp, scipy.linalg.det, scipy.stats.norm.pdf, scipy.special.gamma,
        np.sort, np.add.reduce, np.linalg.norm, np.vectorize(lambda x: x * 2),
    ],
)  # fmt: skip
def test_functions_of_libraries_are_traced_themselves(function: Any) -> None:
    """With no function of the user's around them, or under a name of the user's."""
    x = np.array([[0.5, 0.25], [0.125, 2.0]])
    np.testing.assert_allclose(tj.jit(function)(x), function(x), rtol=1e-12)
    np.testing.assert_allclose(tj.jit(lambda x: function(x))(x), function(x), rtol=1e-12)
    both = np.stack([x, 2 * x])
    wanted = np.stack([function(each) for each in both])
    np.testing.assert_allclose(tj.vmap(function)(both), wanted, rtol=1e-12)
