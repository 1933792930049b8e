"""Gradients where calculus written down carelessly gives NaN: finite, and right to order 2."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj

INF, NAN = np.inf, np.nan
special = tj.scipy.special
Function = Callable[[Any], Any]

# what, the function, where, its gradient, and the gradient of the sum of its gradient.
EDGES: list[tuple[str, Function, list[float], list[float], list[float]]] = [
    (
        "where sqrt",
        lambda x: np.where(x > 0, np.sqrt(x), 0.0),
        [0, 4, -1],
        [0, 0.25, 0],
        [0, -1 / 32, 0],
    ),
    (
        "where log by x",
        lambda x: np.where(x > 0, np.log(x) / x, 0.0),
        [0, 1, -1],
        [0, 1, 0],
        [0, -3, 0],
    ),
    ("where NaN", lambda x: np.where(np.isnan(x), 0.0, x * x), [NAN, 4, -1], [0, 8, -2], [0, 2, 2]),
    (
        "where overflow",
        lambda x: np.where(abs(x) < 10, np.cosh(x), 0.0),
        [0, -1e3, 1e3],
        [0] * 3,
        [1, 0, 0],
    ),
    (
        "where of a sum",
        lambda x: np.where(x[0] > 0, np.sqrt(np.sum(x**2)), 0.0),
        [0, 0],
        [0, 0],
        [0, 0],
    ),
    (
        "where of a column",
        lambda x: np.where(np.array([[True], [False]]), np.sqrt(x)[:, None] * np.ones(3), 0.0),
        [4, 0],
        [0.75, 0],
        [-3 / 32, 0],
    ),
    (
        "where of a slice",
        lambda x: np.where(x[1:] > 0, (1 / x)[1:], x[1:]),
        [2, 0, 4],
        [0, 1, -1 / 16],
        [0, 0, 1 / 32],
    ),
    (
        "where in where",
        lambda x: np.where(x > 0, np.where(x > 1, 1 / (x - 1), np.log(x)), 0.0),
        [0, 1, 3],
        [0, 1, -0.25],
        [0, -1, 0.25],
    ),
    (
        "where of a function",
        lambda x: np.where(x > 0, np.exp(np.sqrt(x) * np.log(x)), 1.0),
        [0, 1],
        [0, 1],
        [0, 1],
    ),
    (
        "where of a special function",
        lambda x: np.where(x > 0, special.digamma(x) * 0 + special.gammaln(x), 0.0),
        [0, 1, -1],
        [0, special.digamma(1.0), 0],
        [0, np.pi**2 / 6, 0],
    ),
    ("nansum", lambda x: np.nansum(np.log(x)), [NAN, 2, -1], [0, 0.5, 0], [0, -0.25, 0]),
    ("nanmean", lambda x: np.nanmean(x * x), [NAN, 2], [0, 4], [0, 2]),
    ("x**2", lambda x: x**2, [0, -1], [0, -2], [2, 2]),
    ("x**1", lambda x: x**1, [0, -1], [1, 1], [0, 0]),
    ("x**0", lambda x: x**0, [0, -1], [0, 0], [0, 0]),
    ("x**3.0", lambda x: x**3.0, [0, -1], [0, 3], [0, -6]),
    ("x**2.5", lambda x: x**2.5, [0, 1], [0, 2.5], [0, 3.75]),
    (
        "x**y",
        lambda x: x ** np.array([3.0, 3.0, 2.0, 1.0, 0.0]),
        [0, -1, -2, 0, 0],
        [0, 3, -4, 1, 0],
        [0, -6, 2, 0, 0],
    ),
    (
        "x**integers",
        lambda x: x ** np.array([3, 1, 2, 0]),
        [0, -1, -2, 0],
        [0, 1, -4, 0],
        [0, 0, 2, 0],
    ),
    ("0**y", lambda y: 0.0**y, [2, 1, 0.5, 0], [0] * 4, [0] * 4),
    ("x0**x1", lambda x: x[0] ** x[1], [0, 2], [0, 0], [2, 0]),
    ("norm", np.linalg.norm, [3, 4], [0.6, 0.8], [4 / 125, -3 / 125]),
    ("nn.logsumexp", tj.nn.logsumexp, [1, -INF], [1, 0], [0, 0]),
    ("nn.logsumexp of nothing", tj.nn.logsumexp, [-INF, -INF], [0, 0], [0, 0]),
    ("logsumexp", special.logsumexp, [1, -INF], [1, 0], [0, 0]),
    ("logsumexp of nothing", special.logsumexp, [-INF, -INF], [0, 0], [0, 0]),
    ("softplus", tj.nn.softplus, [-1e3, 0, 1e3], [0, 0.5, 1], [0, 0.25, 0]),
    (
        "logaddexp",
        lambda x: np.logaddexp(x, 0.0),
        [-1e3, 0, 1e3, -INF, INF],
        [0, 0.5, 1, 0, 1],
        [0, 0.25, 0, 0, 0],
    ),
    ("logaddexp of both", lambda x: np.logaddexp(x, x), [-INF, 1], [1, 1], [0, 0]),
    ("logaddexp of -inf", lambda x: np.logaddexp(x, -INF), [-INF, 1], [0.5, 1], [0, 0]),
    ("arctan2", lambda x: np.arctan2(x, x), [0, 1], [0, 0], [0, 0]),
    ("log1p", np.log1p, [0, 1e-300], [1, 1], [-1, -1]),
    ("expm1", np.expm1, [0, -1e3], [1, 0], [1, 0]),
    ("sinc", np.sinc, [0, 1], [0, -1], [-(np.pi**2) / 3, 2]),
    ("hypot of nothing", lambda x: np.hypot(x, x), [0], [0], [0]),
    ("hypot", lambda x: np.hypot(x, 1.0), [0, 1], [0, 0.5**0.5], [1, 0.5**1.5]),
    ("xlogy", lambda x: special.xlogy(x, 2.0), [0, 1], [np.log(2)] * 2, [0, 0]),
    (
        "masked softmax",
        lambda x: tj.nn.softmax(np.where([True, False, True], x, -INF)) * [1, 2, 3],
        [0, 7, 0],
        [-0.5, 0, 0.5],
        [0, 0, 0],
    ),
    (
        "softmax of nothing",
        lambda x: tj.nn.softmax(np.where([False] * 3, x, -INF)) * [1, 2, 3],
        [0, 1, 2],
        [0] * 3,
        [0] * 3,
    ),
    ("max of equals", np.max, [1, 1, 0], [0.5, 0.5, 0], [0] * 3),
    ("max of -inf", np.max, [-INF, -INF], [0.5, 0.5], [0, 0]),
    ("min of equals", np.min, [1, 1, 0, 0], [0, 0, 0.5, 0.5], [0] * 4),
    ("maximum of equals", lambda x: np.maximum(x, 0.0), [0, 1], [0.5, 1], [0, 0]),
    ("sort of equals", lambda x: np.sort(x) * [1, 2, 3], [1, 1, 0], [2, 3, 1], [0] * 3),
    ("clip at bounds", lambda x: np.clip(x, 0.0, 1.0), [-1, 0.5, 2], [0, 1, 0], [0] * 3),
    ("cumprod", lambda x: np.cumprod(x) * [1, 2, 3], [2, 0, 3], [1, 22, 0], [11, 17, 6]),
    ("cumprod, two zeros", lambda x: np.cumprod(x) * [1, 2, 3], [0, 0, 3], [1, 0, 0], [11, 11, 0]),
    ("prod", np.prod, [2, 0, 3], [0, 6, 0], [3, 5, 2]),
    ("prod, two zeros", np.prod, [0, 0, 3], [0] * 3, [3, 3, 0]),
    ("prod, all zeros", np.prod, [0, 0, 0], [0] * 3, [0] * 3),
    ("std of a constant", np.std, [1, 1], [0, 0], [0, 0]),
    ("var of a constant", np.var, [1, 1], [0, 0], [0, 0]),
]


@pytest.mark.parametrize(
    ("function", "point", "gradient", "second"),
    [edge[1:] for edge in EDGES],
    ids=[edge[0] for edge in EDGES],
)
def test_edge(
    function: Function, point: list[float], gradient: list[float], second: list[float]
) -> None:
    x = np.array(point, np.float64)
    found = tj.grad(lambda x: np.sum(function(x)))
    np.testing.assert_allclose(found(x), gradient, 1e-12, 1e-12)
    again = tj.grad(lambda x: np.sum(found(x)))
    np.testing.assert_allclose(again(x), second, 1e-9, 1e-9)


@pytest.mark.parametrize("order", [None, 1, 3, INF])
def test_norms_at_zero_are_finite(order: Any) -> None:
    x = np.zeros((2, 3))
    found = tj.grad(lambda x: np.linalg.norm(x, order, axis=1).sum())(x)
    assert np.isfinite(found).all()


def test_square_root_of_a_sum_of_squares_is_nan_at_zero() -> None:
    """As calculus says, 0 times infinity; `np.linalg.norm` is the norm with a derivative there."""
    assert np.isnan(tj.grad(lambda x: np.sqrt(np.sum(x**2)))(np.zeros(2))).all()


def test_compiled_as_well() -> None:
    def f(x: Any) -> Any:
        return np.sum(np.where(x > 0, np.sqrt(x) * np.log(x), 0.0))

    x = np.array([0.0, 1.0, 4.0, -1.0])
    found = tj.jit(tj.grad(f))(x)
    np.testing.assert_allclose(found, [0, 1, np.log(4) / 4 + 0.5, 0], 1e-12)
    second = tj.jit(tj.hessian(f))(x)
    assert np.isfinite(second).all()
    np.testing.assert_allclose(second[1, 1], 0, atol=1e-12)


def test_forward_mode() -> None:
    def f(x: Any) -> Any:
        return np.where(x > 0, np.sqrt(x), 0.0)

    x = np.array([0.0, 4.0, -1.0])
    _, pushed = tj.jvp(f, (x,), (np.ones(3),))
    np.testing.assert_allclose(pushed, [0, 0.25, 0])
    np.testing.assert_allclose(tj.jacfwd(f)(x), np.diag([0, 0.25, 0]))


def test_the_opt_out() -> None:
    """Without masks 0 times infinity is NaN, and the graph has nothing for it."""

    def f(x: Any) -> Any:
        return np.sum(np.where(x > 0, np.sqrt(x), 0.0))

    x = np.array([0.0, 4.0])
    found = tj.grad(f, nan_safe=False)(x)
    np.testing.assert_allclose(found, [NAN, 0.25])
    _, pull = tj.vjp(f, x, nan_safe=False)
    np.testing.assert_allclose(pull(1.0)[0], [NAN, 0.25])

    def selects(nan_safe: bool) -> int:
        text = tj.jit(tj.grad(f, nan_safe=nan_safe)).lower(x).as_text()
        return text.count(" select(")

    assert selects(True) == selects(False) + 1


def test_branches_inside_loops_and_maps() -> None:
    def f(x: Any) -> Any:
        return np.where(x > 0, np.sqrt(x), 0.0)

    x = np.array([0.0, 4.0, -1.0])
    wanted = [0, 0.25, 0]
    functions: list[Function] = [
        lambda x: tj.lax.scan(lambda c, v: (c + f(v), None), 0.0, x)[0],
        lambda x: tj.vmap(f)(x).sum(),
        lambda x: tj.lax.fori_loop(0, 1, lambda i, c: c + f(x), x * 0).sum(),
        lambda x: tj.lax.cond(x.sum() > 0, lambda x: f(x).sum(), lambda x: x.sum(), x),
        lambda x: tj.checkpoint(f)(x).sum(),
        lambda x: np.where(x > 0, tj.jit(np.sqrt)(x), 0.0).sum(),
        lambda x: np.where(np.array([False, True]), np.sqrt(x)[np.array([0, 1])], 0.0).sum(),
    ]
    for function in functions:
        np.testing.assert_allclose(tj.grad(function)(x), wanted)


def test_masks_cost_nothing_where_no_derivative_is_singular() -> None:
    def f(x: Any, w: Any, b: Any) -> Any:
        h = x @ w + b
        return np.sum(np.where(h > 0, h, 0.1 * h))

    given = np.ones((4, 3)), np.ones((3, 2)), np.zeros(2)
    texts = [
        tj.jit(tj.grad(f, (0, 1, 2), nan_safe=safe)).lower(*given).as_text()
        for safe in (True, False)
    ]
    assert texts[0].count("select(") == texts[1].count("select(")
