"""reduce, accumulate, outer, at and reduceat at their edges, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest

import tracejit as tj
from tests.numpy_api.arrays import C64, CUBE, F32, F64, S64, U8
from tests.numpy_api.compare import check, check_writes

I8 = S64.astype(np.int8)
BOOL = F64 > 0
NUMBER = np.array(-2.5)
VECTOR = np.array([3, 0, 2, -1])
NAN = C64.copy()
NAN[1, 2] = complex(np.nan, 1)
Call = Callable[..., Any]


def at(name: str, index: Any, *operands: Any) -> Call:
    """``np.<name>.at`` on a copy."""

    def function(np: Any, x: Any) -> Any:
        y = x.copy()
        getattr(np, name).at(y, index, *operands)
        return y

    return function


def at_traced(name: str, *operands: Any) -> Call:
    """The same at places that are unknown while tracing."""

    def function(np: Any, x: Any, i: Any) -> Any:
        y = x.copy()
        getattr(np, name).at(y, i, *operands)
        getattr(np, name).at(y, (slice(None, None, -1), i), *operands)
        return y

    return function


@pytest.mark.parametrize(
    ("function", "x"),
    [
        (at("sinh", [0, 0, 1]), F64),
        (at("negative", ([0, 0, 2], [1, 1, 3])), S64),
        (at("power", [1, 1, 0], 2), S64),
        (at("divide", [0, -3], [[2.0], [4.0]]), F64),
        (at("divide", ([[0], [0]], slice(None, None, 2), [1, 1]), 2.0), CUBE),
        (at("logical_or", [True, False, False], 3), S64),
        (at("logical_and", [0, 0], [0.0, 1, 2, 3]), F64),
        (at("greater_equal", [0, 2], 1), I8),
        (at("add", [0, 0], 1.75), S64),
        (at("add", [0, 0], 300.25), F32),
        (at("add", [0, 0], S64[:1]), U8),
        (at("maximum", [0, 0], S64[:2] * 100), I8),
        (at("add", (0, 1), 2), F64),
        (at("sqrt", (slice(None), 0)), U8),
        (at("hypot", ..., 2.0), F64),
        (at("multiply", (None, 0), 2.0), F64),
        (at("arctan2", (True, [0, 0], 1), 2.0), F64),
        (at("fmod", (BOOL,), 2.0), F64),
        (at("subtract", [[0, 1], [1, 1]], 1.5), F64),
    ],
)
def test_at_known_places(function: Call, x: np.ndarray) -> None:
    check_writes(function, x)


@pytest.mark.parametrize(
    ("function", "x"),
    [
        (at_traced("cos"), F64[:, :3]),
        (at_traced("divide", 3.0), F64[:, :3]),
        (at_traced("logical_xor", 2), S64[:, :3]),
        (at_traced("add", 2.5), S64[:, :3]),
        (at_traced("minimum", -150), S64[:, :3]),
    ],
)
def test_at_traced_places(function: Call, x: np.ndarray) -> None:
    check_writes(function, x, np.array([0, 2, 2, -1]))
    check_writes(function, x, np.arange(40) % 3)


def test_at_a_traced_mask() -> None:
    def function(np: Any, x: Any) -> Any:
        y = x.copy()
        np.exp.at(y, x > 0)
        return y

    check_writes(function, F64)


@pytest.mark.parametrize(
    ("function", "x"),
    [
        (lambda np, x: np.fmax.reduce(x, axis=(0, 2), initial=1), CUBE),
        (lambda np, x: np.hypot.reduce(x, axis=None, where=x > 0), CUBE),
        (lambda np, x: np.gcd.reduce(x, axis=(-1, 0), keepdims=True), S64),
        (lambda np, x: np.subtract.reduce(x, axis=(), initial=5), F64),
        (lambda np, x: np.subtract.reduce(x, axis=()), F64),
        (lambda np, x: np.equal.reduce(x, dtype=bool), F64),
        (lambda np, x: np.not_equal.accumulate(x, axis=1), BOOL),
        (lambda np, x: np.logical_or.accumulate(x), F64),
        (lambda np, x: np.logical_and.accumulate(x, -1), S64),
        (lambda np, x: np.logical_xor.reduceat(x, [0, 2]), S64),
        (lambda np, x: np.maximum.reduce(x, axis=0), NUMBER),
        (lambda np, x: (np.sum(x, axis=-1), np.max(x, axis=0), np.any(x, axis=0)), NUMBER),
        (lambda np, x: np.add.reduceat(x, []), F64),
        (lambda np, x: np.multiply.reduceat(x, [1, 0, 2, 2], axis=1), F64),
        (lambda np, x: np.add(x, 1, casting="no"), F64),
        (lambda np, x: np.logical_or(x, 0, casting="safe"), F64),
    ],
)
def test_reductions(function: Call, x: np.ndarray) -> None:
    check(function, x)


@pytest.mark.parametrize("x", [C64, NAN, NAN.astype(np.complex128)[::-1]])
def test_complex_numbers_have_numpys_order(x: np.ndarray) -> None:
    check(lambda np, x: (np.max(x, 0), np.min(x, axis=(0, 1)), np.max(x, keepdims=True)), x)
    check(lambda np, x: (np.argmax(x), np.argmin(x, 1), np.argmax(x, 0, keepdims=True)), x)
    check(lambda np, x: np.max(x, 1, initial=0.5 + 1j, where=x.real > 0), x)
    check(lambda np, x: np.maximum.reduce(x[:0], initial=2 - 1j), x)
    check(lambda np, x: np.max(np.array([1 + 2j, 1 + 3j, 1 - 5j]) * x[:, :3], 1), np.abs(x) * 0 + 1)


def test_extremes_under_a_mask() -> None:
    def function(np: Any, x: Any) -> Any:
        return x[x > 0].max(), x[x < 1].min(axis=0), (x + 1j)[x > 0].max()

    check_writes(function, F64)


@pytest.mark.parametrize(
    ("function", "x", "error", "text"),
    [
        (lambda np, x: np.sin.reduce(x), F64, ValueError, "only for functions of two arguments"),
        (lambda np, x: np.sin.outer(x, x), F64, ValueError, "only for functions of two arguments"),
        (lambda np, x: np.divmod.reduce(x), F64, ValueError, "only for functions of one result"),
        (at("add", [0]), F64, ValueError, "takes 2 arrays, not 1"),
        (at("sin", [0], 1), F64, ValueError, "takes 1 arrays, not 2"),
        (at("add", (0, 1), [2]), S64, ValueError, "is not broadcastable to what the index gives"),
        (at("add", [0, 5], 2), S64, IndexError, "out of bounds"),
        (lambda np, x: np.add.accumulate(x), NUMBER, TypeError, "a number has no elements"),
        (lambda np, x: np.add.accumulate(x, axis=1), NUMBER, np.exceptions.AxisError, "axis 1"),
        (lambda np, x: np.add.accumulate(x, axis=None), F64, ValueError, "one axis must be given"),
        (lambda np, x: np.add.reduceat(x, [0, 9]), F64, IndexError, "index 9 is out of bounds"),
        (lambda np, x: np.add.reduceat(x, [[0]]), F64, ValueError, "indices must be a vector"),
        (lambda np, x: np.equal.reduce(x), F64, TypeError, "are no operands"),
        (lambda np, x: np.max(x, where=x > 0), F64, ValueError, "pass initial="),
        (lambda np, x: np.add(x, 1, casting="no"), S64 * 1j, None, ""),
        (lambda np, x: np.sqrt(x, casting="no"), S64, TypeError, "cannot cast an argument from"),
        (lambda np, x: np.sum(x, axis=3), F64, np.exceptions.AxisError, "axis 3 is out of bounds"),
        (lambda np, x: x[:, :, 0], F64, IndexError, "too many indices"),
    ],
)
def test_refusals(function: Call, x: np.ndarray, error: type[Exception] | None, text: str) -> None:
    if error is None:
        check(function, x)
        return
    with pytest.raises(error):
        function(np, x.copy())
    with pytest.raises(error, match=text):
        tj.jit(lambda x: function(tj.numpy, x))(x)


@pytest.mark.parametrize("shape", [(2,), (1, 2), (1, 1, 2), (1, 1, 1), ()])
def test_at_with_an_operand_of_higher_rank(shape: tuple[int, ...]) -> None:
    """NumPy ignores one dimension of size 1 in front; for two of them it reads beyond the array."""

    def added(v: Any, u: Any) -> Any:
        made, index = v.copy(), cast("Any", (..., -1))
        np.add.at(made, index, u)
        return made

    v, u = np.zeros((2, 3)), np.full(shape, 2.0)
    expected = added(v, u.reshape(-1) if u.ndim > 2 else u)
    np.testing.assert_array_equal(tj.jit(lambda v, u: added(v, u))(v, u), expected)
