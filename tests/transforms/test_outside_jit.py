"""Outside jit every family runs at once on NumPy arrays, and `grad` follows Python's control flow.

Each function decides by values in plain Python; its gradient is compared with finite differences.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit import lax, nn
from tracejit import numpy as tnp
from tracejit.scipy import special

X = np.array([0.7, -1.2, 2.3])


def elementwise(x: Any) -> Any:
    y = tnp.sin(x)
    while y.sum() < 5:
        y = y + tnp.exp(x)
    return y.sum()


def indexing(x: Any) -> Any:
    total = x[0]
    for i in range(3):
        if x[i] > 0:
            total = total + x[int(tnp.argmax(x))] * x[i]
    return total


def in_place(x: Any) -> Any:
    y = tnp.zeros(3)
    for i, value in enumerate(x):
        if value < 0:
            y[i] = value**2
        else:
            y[i:] += value
    return (y * y).sum()


def reductions(x: Any) -> Any:
    return x.max() * tnp.prod(x) if float(x.mean()) > 0 else x.min() + x.var()


def linear_algebra(x: Any) -> Any:
    matrix = tnp.outer(x, x) + 2 * tnp.eye(3)
    if tnp.linalg.det(matrix) > 1:
        return tnp.linalg.inv(matrix)[0, 1] + tnp.linalg.norm(x)
    return tnp.trace(matrix)


def sorting(x: Any) -> Any:
    ranked = tnp.sort(x)
    return sum(v * n for n, v in enumerate(ranked) if v > -1)


def fourier(x: Any) -> Any:
    return tnp.abs(tnp.fft.fft(x)[1]) ** 2 if X.size == 3 else x.sum()


def special_functions(x: Any) -> Any:
    return sum(special.gammaln(v) if v > 0 else special.erf(v) for v in x)


def networks(x: Any) -> Any:
    y = nn.softmax(nn.relu(x))
    return nn.gelu(y).sum() if y[2] > y[0] else y.sum()


def operations(x: Any) -> Any:
    y = lax.cond(x[0] > 0, lambda v: v * 2, lambda v: v, x)
    _, rows = lax.scan(lambda c, v: (c + v, c * v), 0.0, y)
    return lax.associative_scan(np.add, rows).sum()


FAMILIES: list[Callable[[Any], Any]] = [
    elementwise,
    indexing,
    in_place,
    reductions,
    linear_algebra,
    sorting,
    fourier,
    special_functions,
    networks,
    operations,
]


@pytest.mark.parametrize("function", FAMILIES)
def test_at_once_and_with_grad(function: Callable[[Any], Any]) -> None:
    value = function(X)
    assert isinstance(value, float | np.floating | np.ndarray)
    assert not isinstance(value, np.ndarray) or value.ndim == 0
    step = 1e-6
    numeric = [(function(X + step * e) - function(X - step * e)) / (2 * step) for e in np.eye(3)]
    got_value, gradient = tj.value_and_grad(function)(X)
    np.testing.assert_allclose(got_value, value, rtol=1e-12)
    assert isinstance(gradient, np.ndarray)
    np.testing.assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-7)


def test_other_functions_of_random_numbers_run_at_once() -> None:
    drawn = tj.random.normal(tj.random.key(0), (3,))
    assert isinstance(drawn, np.ndarray)
    gradient = tj.grad(lambda s: (s * tj.random.normal(tj.random.key(0), (3,))).sum())(2.0)
    np.testing.assert_allclose(gradient, drawn.sum())


def test_functions_at_once_write_to_arrays() -> None:
    x = np.arange(4.0)
    out = np.zeros(4)
    assert tj.numpy.add(x, 1, out=out) is out
    np.testing.assert_array_equal(out, [1, 2, 3, 4])
    assert tj.numpy.cumsum(out, out=out) is out
    np.testing.assert_array_equal(out, [1, 3, 6, 10])
    parts = np.zeros(4), np.zeros(4)
    assert tj.numpy.modf(x + 0.5, out=parts)[1] is parts[1]
    np.testing.assert_array_equal(parts, [[0.5] * 4, x])
    tj.numpy.add.at(out, [0, 0, 2], 1.5)
    tj.numpy.put(out, [1], 7)
    tj.numpy.copyto(out, -1.0, where=out > 9)
    np.testing.assert_array_equal(out, [4, 7, 7.5, -1])
    out.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        tj.numpy.put(out, [0], 1)


def test_what_only_memory_has() -> None:
    for wish in (lambda x: x.flags, lambda x: x.tobytes(), lambda x: x.resize(2)):
        with pytest.raises(AttributeError, match="it has no memory until the compiled function"):
            tj.jit(wish)(np.arange(4.0))
    with pytest.raises(AttributeError, match="a traced array has no attribute 'height'"):
        tj.jit(lambda x: x.height)(np.arange(4.0))

    def strides(x: Any) -> Any:
        assert (x.strides, x.T.strides, x[::2, 1].strides) == ((24, 8), (8, 24), (48,))
        base = x[0].base
        assert base is not None
        assert x.base is None
        return base

    x = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(tj.jit(strides)(x), x)


def test_names_that_a_function_does_not_have() -> None:
    with pytest.raises(TypeError, match="static: <lambda> has no argument named m; it has n, x"):
        tj.jit(lambda x, n: x, static_argnames="m")
    with pytest.raises(TypeError, match="mutates: <lambda> has no argument named y"):
        tj.jit(lambda x: None, mutates="y")
    assert tj.jit(lambda x, **options: x * options["n"], static_argnames="n")(2.0, n=3) == 6


def test_bfloat16_tensors() -> None:
    torch = pytest.importorskip("torch")
    made = tj.jit(lambda x: x * 2)(torch.ones((2, 3), dtype=torch.bfloat16).T)
    assert made.dtype.name == "bfloat16"
    np.testing.assert_array_equal(made.astype(float), np.full((3, 2), 2.0))
