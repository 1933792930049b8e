"""`why_zero`, `check_grads`, and what a missing derivative says before anything runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit.errors import AttributeValueError, DerivativeError, GradientMismatchError

X = np.array([0.3, -0.4, 0.7])


def test_rounding() -> None:
    def f(x: Any) -> Any:
        return np.sum(np.round(x) * 2)

    found = tj.why_zero(f, X)
    assert found.is_zero
    assert [e.op for e in found.endings] == ["round_nearest_even"]
    assert "is piecewise constant (test_insight.py:" in str(found)
    assert str(found).startswith("the gradient in argument x of f is zero:")


def test_not_zero() -> None:
    found = tj.why_zero(lambda x: np.sum(np.round(x) * x), X)
    assert not found.is_zero
    assert "is not zero" in str(found)


def test_not_used() -> None:
    found = tj.why_zero(lambda x, y: np.sum(x), X, X, argnum=1)
    assert "argument y" in str(found)
    assert "does not depend on it" in str(found)


def test_stop_gradient() -> None:
    found = tj.why_zero(lambda x: np.sum(np.sin(tj.stop_gradient(x))), X)
    assert "reads bits, not values" in str(found)


def test_integers() -> None:
    found = tj.why_zero(lambda x: np.sum(np.ones(3)[np.argmax(x)]) + (x > 0).sum() * 2.0, X)
    assert found.is_zero
    assert "convert_element_type" in str(found)


def test_values() -> None:
    """A path that exists, with a derivative that is zero here."""
    found = tj.why_zero(lambda x: np.sum(np.maximum(x - 5, 0.0) ** 2), X)
    assert found.is_zero
    assert all("zero at these values" in e.reason for e in found.endings)
    assert all(e.source is not None and e.source.line for e in found.endings)


def test_check_grads() -> None:
    def f(x: Any, y: Any, n: Any) -> Any:
        return {"a": np.sin(x) * y[n], "b": np.sum(x * x) * y.sum()}

    tj.check_grads(f, (X.astype(np.float32), np.array([1.0, 2.0]), np.array([1, 0, 1])))
    tj.check_grads(lambda x: tj.jit(np.tanh)(x), (X,), order=3)
    tj.check_grads(lambda z: np.exp(z) * z, (X + 1j * X[::-1],))
    tj.check_grads(lambda z: abs(z) ** 2 + np.real(z), (X + 1j * X[::-1],))


@pytest.mark.parametrize("modes", [("fwd",), ("rev",), ("fwd", "rev")])
def test_check_grads_bites(modes: tuple[str, ...]) -> None:
    @tj.custom_jvp
    def wrong(x: Any) -> Any:
        return np.sin(x)

    @wrong.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        return wrong(primals[0]), np.cos(primals[0]) * tangents[0] * 1.01

    with pytest.raises(GradientMismatchError, match=r"derivative of .* of order 1"):
        tj.check_grads(lambda x: wrong(x), (X,), modes=modes)
    with pytest.raises(AssertionError):
        tj.check_grads(lambda x: wrong(x), (X,), modes=modes)


def test_check_grads_looks_at_the_second_order() -> None:
    @tj.custom_jvp
    def wrong(x: Any) -> Any:
        return np.sin(x)

    @wrong.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        return wrong(primals[0]), tj.stop_gradient(np.cos(primals[0])) * tangents[0]

    tj.check_grads(lambda x: wrong(x), (X,), order=1)
    with pytest.raises(GradientMismatchError, match="of order 2"):
        tj.check_grads(lambda x: wrong(x), (X,), order=2)


def test_check_grads_refuses_other_modes() -> None:
    with pytest.raises(AttributeValueError, match="'fwd' or 'rev', not 'forward'"):
        tj.check_grads(np.sin, (X,), modes=("forward",))


def test_a_missing_rule_names_op_and_line_before_anything_runs() -> None:
    def f(x: Any) -> Any:
        return tj.pure_callback(np.sin, x, x).sum()

    with pytest.raises(DerivativeError, match=r"custom_call: .*\(test_insight.py:\d+\)"):
        tj.jit(tj.grad(f)).lower(X)


def floored(x: Any) -> Any:
    return np.floor(x) + 4


@pytest.mark.parametrize(
    ("function", "where"),
    [
        (lambda x: tj.lax.scan(lambda c, a: (c + np.floor(a), None), 0.0, x)[0], "scan"),
        (lambda x: tj.lax.while_loop(lambda s: s[0] < 9, floored, x).sum(), "while"),
        (lambda x: tj.lax.cond(x[0] > -9, lambda x: np.floor(x).sum(), np.sum, x), "conditional"),
        (tj.checkpoint(lambda x: np.floor(x).sum()), "call"),
    ],
)
def test_paths_that_end_in_loops_and_branches(function: Any, where: str) -> None:
    found = tj.why_zero(function, np.array([0.3, 0.7]))
    assert f"floor: is piecewise constant, in {where}" in str(found)
