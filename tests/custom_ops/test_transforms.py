"""Ops of users under grad, vmap, loops and branches; several outputs, side effects."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.transforms.test_callbacks import plain
from tracejit import lax
from tracejit.custom_ops import (
    InferenceContext,
    Op,
    Operation,
    batching,
    gradient,
    kernel,
    register_op,
    unchanged_shape,
)
from tracejit.errors import (
    ArgumentError,
    DerivativeError,
    ShapeError,
)

pytestmark = pytest.mark.usefixtures("own_targets")
both = pytest.mark.parametrize("way", [plain, tj.jit], ids=["eager", "jit"])
X = np.array([1, 2, 3], np.float32)


def elementwise(name: str = "Elementwise", types: str = "numbertype") -> Op:
    op = register_op(name).attr(f"T: {types}").attr("by: float = 2.0").input("x: T").output("y: T")
    return op.set_shape_fn(unchanged_shape)


def test_gradients_are_checked() -> None:
    op = elementwise()
    kernel(op)(lambda x: x)
    gradient(op)(lambda op, grad: [grad, grad])
    with pytest.raises(
        DerivativeError, match=r"Elementwise: .* one cotangent .* of 1 inputs, not 2"
    ):
        tj.grad(lambda x: op(x).sum())(X)
    with pytest.raises(ArgumentError, match="Elementwise has a gradient already"):
        gradient(op)(lambda op, grad: grad)
    with pytest.raises(ArgumentError, match="is no function"):
        gradient(elementwise("Other"))(3)  # type: ignore[arg-type]


def test_gradient_sees_results_and_names() -> None:
    op = register_op("Exponential").input("x: double").output("y: double")
    op.set_shape_fn(unchanged_shape)
    kernel(op)(lambda x: np.exp(x))
    gradient(op)(lambda op, grad: grad * op.output("y") + 0 * op.input("x"))
    third = tj.grad(tj.grad(tj.grad(lambda x: op(x))))
    for way in (third, tj.jit(third)):
        np.testing.assert_allclose(way(0.5), np.exp(0.5))
    np.testing.assert_allclose(tj.jvp(op, (0.5,), (2.0,))[1], 2 * np.exp(0.5))


def test_batching_rules() -> None:
    op = register_op("RowSum").attr("by: float = 1.0")
    op.input("x: double").input("s: double").output("total: double").output("x_again: double")

    def shapes(c: InferenceContext) -> None:
        c.set_output(0, c.subshape(c.input(0), 0, -1))
        c.set_output(1, c.input(0))

    op.set_shape_fn(shapes)
    calls: list[tuple[int, ...]] = []

    @kernel(op)
    def summed(x: np.ndarray, s: np.ndarray, by: float) -> tuple[np.ndarray, np.ndarray]:
        calls.append(x.shape)
        return np.asarray(x.sum(-1) * by), x

    gradient(op)(lambda op, grads: [grads[0][..., None] * op.get_attr("by") + grads[1], None])

    @batching(op)
    def batch(operation: Operation, size: int) -> Any:
        x, s = operation.inputs
        assert s.shape == (size,)
        return op(x, s[0], by=operation.get_attr("by"))

    x = np.arange(6.0).reshape(2, 3)
    for way in (plain, tj.jit):
        calls.clear()
        made = way(tj.vmap(lambda x: op(x, 1.0, by=2.0)))(x)
        assert made.total.tolist() == [6, 24]
        np.testing.assert_array_equal(made.x_again, x)
        assert calls == [(2, 3)]
    slopes = tj.jit(tj.grad(lambda x: tj.vmap(lambda x: op(x, 1.0).total ** 2)(x).sum()))(x)
    assert slopes.tolist() == [[6] * 3, [24] * 3]
    each = tj.vmap(tj.grad(lambda x: op(x, 1.0).total ** 2))
    assert each(x).tolist() == [[6] * 3, [24] * 3]
    with pytest.raises(ArgumentError, match="RowSum has a rule already"):
        batching(op)(batch)


def test_batching_rules_are_checked() -> None:
    op = elementwise()
    kernel(op)(lambda x: x)
    batching(op)(lambda op, size: op.inputs[0][0])
    with pytest.raises(ShapeError, match=r"must return f32\[2,3\], not f32\[3\] \(.*py:\d+\)"):
        tj.vmap(op)(np.stack([X, X]))


@both
def test_calls_in_loops_and_branches(way: Any) -> None:
    op = elementwise()
    kernel(op)(lambda x, by: x * x.dtype.type(by))
    gradient(op)(lambda op, grad: grad * op.get_attr("by"))

    def f(x: Any) -> Any:
        x = lax.fori_loop(0, 3, lambda i, x: op(x), x)
        return lax.cond(x.sum() > 0, lambda x: op(x, 3.0), lambda x: x, x)

    assert way(f)(X).tolist() == [24, 48, 72]
    assert way(tj.grad(lambda x: f(x).sum()))(X).tolist() == [24, 24, 24]


@both
def test_several_outputs_and_lists(way: Any) -> None:
    op = register_op("Split").attr("n: int >= 0").input("x: float")
    op.output("parts: n * float").output("rest: float")

    def shapes(c: InferenceContext) -> None:
        c.set_output("parts", [c.scalar()] * c.get_attr("n"))
        c.set_output("rest", c.vector(c.subtract(c.dim(c.input("x"), 0), c.get_attr("n"))))

    op.set_shape_fn(shapes)
    kernel(op)(lambda x, n: ([x[i] for i in range(n)], x[n:]))

    @gradient(op)
    def of_split(op: Operation, grads: list[Any]) -> Any:
        assert len(op.output("parts")) == op.get_attr("n") == 2
        return np.concatenate([np.stack(grads[:-1]), grads[-1]])

    made = way(lambda x: op(x, 2))(X)
    assert [float(part) for part in made.parts] == [1, 2]
    assert made.rest.tolist() == [3]
    assert way(lambda x: op(x, 0).rest)(X).tolist() == [1, 2, 3]
    slopes = way(tj.grad(lambda x: op(x, 2).parts[1] * 5 + op(x, 2).rest.sum()))(X)
    assert slopes.tolist() == [0, 5, 1]


def test_stateful_ops_happen_each_time() -> None:
    op = register_op("Count").input("x: float").output("y: float").set_is_stateful()
    op.set_shape_fn(unchanged_shape)
    seen: list[float] = []

    @kernel(op)
    def counted(x: np.ndarray) -> np.ndarray:
        seen.append(float(x.sum()))
        return x

    @tj.jit
    def f(x: Any) -> Any:
        op(x)
        op(x)
        return x

    f(X)
    assert seen == [6, 6]
    with pytest.raises(ArgumentError, match="Count is stateful"):
        kernel(op, form="tracejit")(lambda x: x)
