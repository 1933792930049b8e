"""grad, value_and_grad, vjp: values, trees, compositions, and what is refused before it runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.numpy_api.compare import same
from tracejit import nn
from tracejit.errors import ArgumentError, DerivativeError, ShapeError

X = np.array([0.5, -1.5, 2.0])
W = np.arange(6.0).reshape(2, 3) / 6


def loss(w: Any, x: Any) -> Any:
    return np.sum(np.tanh(w @ x) ** 2)


def loss_gradient(w: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    y = np.tanh(w @ x)
    inner = 2 * y * (1 - y**2)
    return np.outer(inner, x), w.T @ inner


def numeric(function: Any, x: np.ndarray, step: float = 1e-6) -> np.ndarray:
    """Central differences of a function of one array."""
    made = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        move = np.zeros_like(x)
        move[index] = step
        made[index] = (function(x + move) - function(x - move)) / (2 * step)
    return made


WAYS: dict[str, Any] = {"outside jit": lambda f: f, "inside jit": tj.jit}


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> Any:
    return WAYS[request.param]


MATRIX = np.array([[1.0, 0.5], [-0.3, 0.8]])


def test_grad(way: Any) -> None:
    by_w, by_x = loss_gradient(W, X)
    same(way(tj.grad(loss))(W, X), by_w)
    same(way(tj.grad(loss, argnums=1))(W, X), by_x)
    same(way(tj.grad(loss, argnums=-1))(W, X), by_x)
    same(way(tj.grad(loss, argnums=(1, 0)))(W, X), (by_x, by_w))
    same(way(tj.value_and_grad(loss))(W, X), (loss(W, X), by_w))
    same(way(lambda w: tj.grad(loss)(w, X))(W), by_w)
    same(way(lambda w, x: tj.grad(lambda v: loss(v, x))(w))(W, X), by_w)


def test_trees_and_aux(way: Any) -> None:
    def model(p: Any, batch: Any, name: str = "mean") -> Any:
        y = batch["x"] @ p["layers"][0] + p["bias"]
        assert name == "mean"
        return np.mean(y**2), {"y": y, "name": 3}

    p = {"layers": [W.T], "bias": np.float64(0.5)}
    batch = {"x": np.ones((4, 3)), "labels": np.arange(4)}
    value, gradient = way(tj.value_and_grad(model, has_aux=True))(p, batch)
    (number, aux), expected = value, model(p, batch)
    same(number, expected[0])
    same(aux, expected[1])
    assert tj.tree.structure(gradient) == tj.tree.structure(p)
    same(
        gradient["layers"][0],
        numeric(lambda w: model({"layers": [w], "bias": 0.5}, batch)[0], W.T),
        rtol=1e-7,
    )
    assert isinstance(gradient["bias"], np.float64)
    same(way(tj.grad(model, has_aux=True))(p, batch)[0], gradient)


def test_python_numbers(way: Any) -> None:
    def function(x: Any, n: Any) -> Any:
        return x**3 * n

    gradient = way(tj.grad(function))(2.0, 3)
    assert gradient == 36.0
    assert type(gradient) is float
    w = np.ones(2, np.float32)
    assert (w - 0.1 * gradient).dtype == np.float32


def test_of_grad(way: Any) -> None:
    def cubed(x: Any) -> Any:
        return x**3 * 2

    assert way(tj.grad(tj.grad(cubed)))(2.0) == 24.0
    assert way(tj.grad(tj.grad(tj.grad(cubed))))(2.0) == 12.0
    hessian = np.stack(
        [way(tj.grad(lambda x, i=i: tj.grad(loss, 1)(W, x)[i]))(X) for i in range(3)]
    )
    expected = np.stack([numeric(lambda x, i=i: loss_gradient(W, x)[1][i], X) for i in range(3)])
    np.testing.assert_allclose(hessian, expected, rtol=1e-6, atol=1e-8)


def test_inner_and_outer_variables_are_not_confused(way: Any) -> None:
    def outer(x: Any) -> Any:
        # d/dy (x * y) = x, which is a constant for y and not for x.
        return x * tj.grad(lambda y: x * y)(1.0)

    assert way(tj.grad(outer))(3.0) == 6.0


def test_of_jit(way: Any) -> None:
    same(way(tj.grad(tj.jit(loss)))(W, X), loss_gradient(W, X)[0])


def test_in_place_writes(way: Any) -> None:
    def function(x: Any) -> Any:
        y = np.zeros(3)
        y[0] = x[0] * x[1]
        y[1:] = x[:2] ** 2
        y[2] *= x[2]
        y += x
        return (y * np.arange(1.0, 4.0)).sum()

    same(way(tj.grad(function))(X), numeric(function, X), rtol=1e-7)


def test_indices(way: Any) -> None:
    places = np.array([0, 2, 0])

    def function(x: Any, i: Any) -> Any:
        y = np.sort(x)[::-1] * x[i]
        return (y[places] ** 2).sum() + x[-1] * np.where(x > 0, x, 0).max()

    expected = numeric(lambda x: function(x, 1), X)
    same(way(tj.grad(function))(X, 1), expected, rtol=1e-6)


def test_unused_arguments_and_constants(way: Any) -> None:
    same(way(tj.grad(lambda x, y: x.sum(), argnums=(0, 1)))(X, W), (np.ones(3), np.zeros((2, 3))))
    same(way(tj.grad(lambda x: 2.0))(X), np.zeros(3))
    same(way(tj.grad(lambda x: np.floor(x).sum()))(X), np.zeros(3))


def test_stop_gradient(way: Any) -> None:
    def function(x: Any) -> Any:
        frozen = tj.stop_gradient({"x": x, "n": 3, "c": x + 1j})
        return (x * frozen["x"] * frozen["n"] + frozen["c"].imag).sum()

    same(way(tj.grad(function))(X), X * 3)
    same(tj.stop_gradient(X), X)
    same(way(lambda x: tj.stop_gradient(x))(X.astype(np.float32)), X.astype(np.float32))


def test_vjp(way: Any) -> None:
    def function(w: Any, x: Any) -> Any:
        return {"y": np.tanh(w @ x), "s": x.sum()}

    def pulled(w: Any, x: Any, y_bar: Any, s_bar: Any) -> Any:
        value, pull = tj.vjp(function, w, x)
        return value, pull({"y": y_bar, "s": s_bar}), pull({"y": y_bar * 2, "s": s_bar})

    y_bar = np.array([1.0, -2.0])
    value, (w_bar, x_bar), (double, _) = way(pulled)(W, X, y_bar, np.float64(3.0))
    y = np.tanh(W @ X)
    inner = y_bar * (1 - y**2)
    same(value, {"y": y, "s": X.sum()})
    same(w_bar, np.outer(inner, X))
    same(x_bar, W.T @ inner + 3)
    same(double, 2 * w_bar)


def test_vjp_with_aux() -> None:
    value, pull, aux = tj.vjp(lambda x: (x**2, {"n": 3, "x": x}), X, has_aux=True)
    same(value, X**2)
    same(aux, {"n": 3, "x": X})
    same(pull(np.ones(3)), (2 * X,))


def test_complex(way: Any) -> None:
    z = np.array([1.0 + 2j, -0.5 + 0.25j])
    # JAX's convention: df/dx - i df/dy.
    same(way(tj.grad(lambda z: (np.abs(z) ** 2).sum()))(z), 2 * z.conj())
    same(way(tj.grad(lambda z: (z * z).real.sum()))(z), 2 * z)
    holomorphic = tj.grad(lambda z: (z**3 + np.exp(z)).sum(), holomorphic=True)
    same(way(holomorphic)(z), 3 * z**2 + np.exp(z))
    same(way(tj.grad(lambda x: np.abs(x + 1j).sum()))(X), X / np.abs(X + 1j))


def test_integers(way: Any) -> None:
    function = tj.grad(lambda n, x: (x * n).sum(), argnums=(0, 1), allow_int=True)
    gradient = way(function)(np.array([1, 2, 3]), X)
    same(gradient[0], np.zeros(3, int))
    same(gradient[1], np.array([1.0, 2, 3]))


def test_the_operations_of_networks() -> None:
    """BatchNormTraining's gradient is one BatchNormGrad, max pooling's one SelectAndScatter."""

    def network(p: Any, x: Any) -> Any:
        y = nn.conv(x, p["kernel"])
        y, mean, variance = nn.batch_norm(y, p["scale"], p["offset"])
        y = nn.max_pool(nn.relu(y), (2, 2), (2, 2))
        return (y**2).mean(), (mean, variance)

    rng = np.random.default_rng(1)
    p = {
        "kernel": rng.normal(size=(3, 3, 2, 4)),
        "scale": rng.normal(size=4) + 2,
        "offset": rng.normal(size=4),
    }
    x = rng.normal(size=(2, 4, 4, 2))
    gradient = tj.jit(tj.grad(network, has_aux=True))
    text = gradient.lower(p, x).as_text()
    for opcode in (" batch-norm-training(", " batch-norm-grad(", " select-and-scatter("):
        assert text.count(opcode) == 1, opcode
    made = gradient(p, x)[0]
    for name in p:
        expected = numeric(lambda v, name=name: network({**p, name: v}, x)[0], p[name])
        np.testing.assert_allclose(made[name], expected, rtol=2e-5, atol=1e-7)


def test_what_is_refused(way: Any) -> None:
    def message(function: Any, *args: Any) -> str:
        with pytest.raises(DerivativeError, match=r"test_grad\.py:\d+\)") as caught:
            way(function)(*args)
        assert isinstance(caught.value, TypeError)
        return str(caught.value)

    def vector(x: Any) -> Any:
        return x * 2

    assert "vector must return one number; it returns f64[3]" in message(tj.grad(vector), X)
    assert "must return one number; it returns" in message(tj.grad(lambda x: (x.sum(), 1)), X)
    assert "must return a real number, not s64[]" in message(tj.grad(lambda x: 3), X)
    assert "must return a real number, not c128[]" in message(tj.grad(lambda x: x.sum() * 1j), X)
    assert "must return a complex number, not f64[]" in message(
        tj.grad(lambda x: np.abs(x).sum(), holomorphic=True), X + 0j
    )
    assert "argument x of <lambda> must be complex, not f64[3]" in message(
        tj.grad(lambda x: (x * 1j).sum(), holomorphic=True), X
    )
    assert "argument p['n'] of <lambda> must be real or complex, not s64[]" in message(
        tj.grad(lambda p: p["x"].sum()), {"x": X, "n": np.int64(3)}
    )


def test_an_operation_without_a_derivative_names_its_line() -> None:
    """Before anything runs: the function's own value is not worked out either."""

    def function(x: Any) -> Any:
        return tj.pure_callback(np.sin, x, x).sum()

    line = function.__code__.co_firstlineno + 1
    for way in WAYS.values():
        with pytest.raises(DerivativeError, match=rf"without a gradient.*test_grad\.py:{line}\)"):
            way(tj.grad(function))(X)


def test_wrong_calls() -> None:
    with pytest.raises(ArgumentError, match="called with 1 positional arguments, argnums asks for"):
        tj.grad(loss, argnums=1)(W)  # type: ignore[call-arg]
    with pytest.raises(ArgumentError, match=r"must return \(value, aux\) for has_aux=True"):
        tj.grad(loss, has_aux=True)(W, X)
    with pytest.raises(ArgumentError, match=r"argument p\['a'\] of <lambda>: a str is no array"):
        tj.grad(lambda p: 1.0)({"a": "text"})
    value, pull = tj.vjp(lambda x: x * 2, X)
    same(value, X * 2)
    with pytest.raises(ArgumentError, match="cotangent of a result must be in a tree "):
        pull([X])
    with pytest.raises(ShapeError, match=r"the cotangent of a result f64\[3\] is f64\[2\]"):
        pull(np.ones(2))
    with pytest.raises(DerivativeError, match=r"the cotangent of a result f64\[3\] is f32\[3\]"):
        pull(np.ones(3, np.float32))


def test_names() -> None:
    assert tj.grad(loss).__name__ == "loss"
    assert tj.jit(tj.value_and_grad(loss)).__name__ == "loss"
    assert tj.jit(tj.grad(loss)).lower(W, X).module.name == "loss"


def test_control_flow_on_values_outside_jit() -> None:
    def function(x: Any) -> Any:
        steps = 0
        while np.abs(x).max() > 1:
            x = x * 0.5 if x.sum() > 0 else x * 0.25
            steps += 1
        return (x**2).sum() * steps

    x = X * 1.1
    same(tj.grad(function)(x), numeric(function, x), rtol=1e-6)


def test_a_training_step() -> None:
    """Momentum on a small network, inside jit: float32 stays float32 beside Python numbers."""
    rng = np.random.default_rng(0)
    x, labels = rng.normal(size=(32, 4)).astype(np.float32), rng.integers(0, 3, 32)
    p = {"w": np.zeros((4, 3), np.float32), "b": np.zeros(3, np.float32)}

    def cost(p: Any, x: Any, labels: Any) -> Any:
        return np.mean(nn.cross_entropy(x @ p["w"] + p["b"], labels))

    @tj.jit
    def step(p: Any, m: Any, x: Any, labels: Any, rate: Any) -> Any:
        value, gradient = tj.value_and_grad(cost)(p, x, labels)
        m = tj.tree.map(lambda m, g: 0.9 * m + g, m, gradient)
        return value, tj.tree.map(lambda p, m: p - rate * m, p, m), m

    m = tj.tree.map(np.zeros_like, p)
    values = []
    for _ in range(20):
        value, p, m = step(p, m, x, labels, 0.1)
        values.append(value)
    assert values[-1] < values[0]
    assert {leaf.dtype for leaf in tj.tree.leaves((p, m))} == {np.dtype(np.float32)}


def test_gradients_go_through_iteration() -> None:
    x = np.array([1.0, 2.0])
    for total in (
        lambda x: sum(e * e for e in x),
        lambda x: np.sum(np.vstack(x) ** 2),
        lambda x: np.sum(np.array(list(x)) ** 2),
    ):
        np.testing.assert_array_equal(tj.grad(total)(x), [2, 4])
        np.testing.assert_array_equal(tj.jvp(total, (x,), (np.array([3.0, 4.0]),))[1], 22)


def test_steps_of_a_scan_that_nothing_counts() -> None:
    """Its derivative neither reads nor makes anything for each step."""

    def descended(w: Any) -> Any:
        return tj.lax.scan(lambda w, _: (w - 0.1 * MATRIX @ w, w.sum()), w, None, length=5)[0]

    step = np.eye(2) - 0.1 * MATRIX
    wanted = np.linalg.matrix_power(step, 5)
    for transform in (tj.jacrev, tj.jacfwd):
        np.testing.assert_allclose(transform(descended)(np.ones(2)), wanted, 1e-12)
