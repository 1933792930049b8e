"""jvp, linearize, linear_transpose, and whole Jacobians and Hessians."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit import lax
from tracejit.errors import ArgumentError, DerivativeError

X = np.array([1.0, 2.0, 3.0])
T = np.array([0.1, -0.2, 0.3])


def f(x: Any) -> Any:
    return np.sin(x) * x.sum()


def f_dot(x: np.ndarray, t: np.ndarray) -> Any:
    return np.cos(x) * t * x.sum() + np.sin(x) * t.sum()


def g(x: Any) -> Any:
    return np.array([x[0] * x[1], np.sin(x[2]), x.sum(), x[1] ** 3])


G = np.array([[2, 1, 0], [0, 0, np.cos(3)], [1, 1, 1], [0, 12, 0]], float)


def test_jvp_outside_and_inside_jit() -> None:
    value, derivative = tj.jvp(f, (X,), (T,))
    np.testing.assert_allclose(value, f(X))
    np.testing.assert_allclose(derivative, f_dot(X, T))
    _, derivative = tj.jit(lambda x, t: tj.jvp(f, (x,), (t,)))(X, T)
    np.testing.assert_allclose(derivative, f_dot(X, T))


def test_jvp_of_trees_numbers_and_integers() -> None:
    def h(d: Any) -> Any:
        return {"product": d["x"] * d["y"], "count": 3}

    value, derivative = tj.jvp(
        h, ({"x": 2.0, "y": np.float32(3)},), ({"x": 1.0, "y": np.float32(0)},)
    )
    assert value == {"product": 6.0, "count": 3}
    assert derivative == {"product": 3.0, "count": 0}


def test_jvp_with_aux() -> None:
    value, derivative, aux = tj.jvp(lambda x: (x * x, {"n": x + 1}), (X,), (T,), has_aux=True)
    np.testing.assert_allclose(derivative, 2 * X * T)
    np.testing.assert_allclose(value, X * X)
    np.testing.assert_allclose(aux["n"], X + 1)


def test_jvp_through_control_flow_and_of_gradients() -> None:
    def h(x: Any) -> Any:
        return lax.scan(lambda c, y: (c * np.sin(y), c), 1.0, x)[0]

    numeric = (h(X + 1e-6 * T) - h(X - 1e-6 * T)) / 2e-6
    np.testing.assert_allclose(tj.jvp(h, (X,), (T,))[1], numeric, rtol=1e-7)
    second = tj.jvp(tj.grad(lambda x: np.sum(x**3)), (X,), (T,))[1]
    np.testing.assert_allclose(second, 6 * X * T)
    third = tj.jvp(lambda x: tj.jvp(lambda y: y**3, (x,), (T,))[1], (X,), (T,))[1]
    np.testing.assert_allclose(third, 6 * X * T * T)


def test_jvp_of_complex_numbers_is_that_of_both_parts() -> None:
    z, t = np.array([1 + 2j]), np.array([0.3 - 1j])
    np.testing.assert_allclose(tj.jvp(np.exp, (z,), (t,))[1], np.exp(z) * t)
    slope = (z.real * t.real + z.imag * t.imag) / abs(z)
    np.testing.assert_allclose(tj.jvp(np.abs, (z,), (t,))[1], slope)
    np.testing.assert_allclose(tj.jvp(np.conj, (z,), (t,))[1], np.conj(t))


def test_linearize_and_transpose() -> None:
    value, push = tj.linearize(f, X)
    np.testing.assert_allclose(value, f(X))
    np.testing.assert_allclose(push(T), f_dot(X, T))
    np.testing.assert_allclose(push(2 * T), 2 * f_dot(X, T))
    (back,) = tj.linear_transpose(lambda x: x[1:] * 2, X)(np.array([1.0, 5.0]))
    np.testing.assert_allclose(back, [0, 2, 10])


def test_tangents_that_do_not_fit() -> None:
    with pytest.raises(ArgumentError, match="tangents must be a tree like the primals"):
        tj.jvp(f, (X,), (T, T))
    with pytest.raises(ArgumentError, match="primals must be a tuple or list, not ndarray"):
        tj.jvp(f, X, T)  # type: ignore[call-overload]


@pytest.mark.parametrize("jacobian", [tj.jacrev, tj.jacfwd])
def test_jacobian(jacobian: Any) -> None:
    np.testing.assert_allclose(jacobian(g)(X), G, rtol=1e-12)
    np.testing.assert_allclose(tj.jit(jacobian(g))(X), G, rtol=1e-12)


@pytest.mark.parametrize("jacobian", [tj.jacrev, tj.jacfwd])
def test_jacobian_of_trees(jacobian: Any) -> None:
    a, x = np.arange(4.0).reshape(2, 2), X[:2]
    result = jacobian(lambda a, x: {"s": a @ x}, argnums=(0, 1))(a, x)
    assert list(result) == ["s"]
    of_a, of_x = result["s"]
    np.testing.assert_allclose(of_a, np.einsum("ij,k->ijk", np.eye(2), x))
    np.testing.assert_allclose(of_x, a)
    value, aux = jacobian(lambda x: (x * 2, "kept"), has_aux=True)(X)
    np.testing.assert_allclose(value, 2 * np.eye(3))
    assert aux == "kept"


def test_jacobian_of_holomorphic_functions() -> None:
    z = np.array([1 + 1j, 2 - 1j])
    for jacobian in (tj.jacrev, tj.jacfwd):
        np.testing.assert_allclose(jacobian(lambda z: z**2, holomorphic=True)(z), np.diag(2 * z))
    with pytest.raises(DerivativeError, match="holomorphic"):
        tj.jacrev(lambda z: z**2)(z)


def test_jacobian_of_integers_is_refused() -> None:
    with pytest.raises(DerivativeError, match=r"argument x of g must be real or complex, not s64"):
        tj.jacfwd(g)(np.arange(3))


def test_hessian_and_its_product() -> None:
    expected = np.array([[0, 3, 2], [3, 0, 1], [2, 1, 0]], float)
    np.testing.assert_allclose(tj.hessian(np.prod)(X), expected, rtol=1e-12)
    np.testing.assert_allclose(tj.jit(tj.hessian(lambda x: np.prod(x)))(X), expected, rtol=1e-12)
    (product,) = tj.hvp(lambda x: np.prod(x), (X,), (T,))
    np.testing.assert_allclose(product, expected @ T, rtol=1e-12)
    blocks = tj.hessian(lambda p: (p["a"] ** 2).sum() * p["b"])({"a": X, "b": 2.0})
    np.testing.assert_allclose(blocks["a"]["a"], 4 * np.eye(3))
    np.testing.assert_allclose(blocks["a"]["b"], 2 * X)
    np.testing.assert_allclose(blocks["b"]["a"], 2 * X)
    assert blocks["b"]["b"] == 0
