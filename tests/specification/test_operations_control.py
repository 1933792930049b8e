"""The page "Operation semantics": Call, Conditional, While; and the batch normalisations."""

from __future__ import annotations

import numpy as np
import pytest

import tracejit as tj
from tests.specification.running import F32, S32, Build, computation, expect, f32, s32
from tracejit.builder import XlaBuilder
from tracejit.shapes import Shape, TupleShape, shape_of

VECTOR = Shape(F32, (3,))


def test_call_applies_a_computation() -> None:
    function = computation(lambda b, x, y: b.sub(x, y), VECTOR, VECTOR)
    expect(
        lambda b, x, y: b.call(function, [y, x]), [f32([1, 2, 3]), f32([5, 5, 5])], f32([4, 3, 2])
    )


def test_call_may_have_no_operands() -> None:
    function = computation(lambda b: b.constant(s32([1, 2])))
    expect(lambda b: b.call(function, []), [], s32([1, 2]))


@pytest.mark.parametrize("predicate", [True, False])
def test_conditional_runs_one_of_two(predicate: bool) -> None:
    negate = computation(lambda b, x: b.neg(x), VECTOR)
    total = computation(lambda b, x: b.broadcast(b.reshape(x, ()), (3,)), Shape(F32, (1,)))
    expect(
        lambda b, p, x, y: b.conditional(p, x, negate, y, total),
        [np.array(predicate), f32([1, 2, 3]), f32([7])],
        f32([-1, -2, -3]) if predicate else f32([7, 7, 7]),
    )


@pytest.mark.parametrize("index", [-1, 0, 1, 2, 3])
def test_conditional_runs_one_of_many_the_last_by_default(index: int) -> None:
    branches = [
        computation(lambda b, x, c=c: b.mul(x, b.broadcast(b.constant(f32(c)), (3,))), VECTOR)
        for c in (1, 10, 100)
    ]
    factor = 10.0**index if 0 <= index < 3 else 100.0
    x = f32([1, 2, 3])
    expect(lambda b, i, x: b.conditional(i, branches, [x, x, x]), [s32(index), x], x * f32(factor))


def test_while_counts_to_a_thousand() -> None:
    """init = {0, zero_vector[10]}; each step adds a constant vector to the accumulator."""
    state = TupleShape((Shape(S32), Shape(F32, (10,))))
    condition = computation(
        lambda b, s: b.lt(b.get_tuple_element(s, 0), b.constant(s32(1000))), state
    )
    body = computation(
        lambda b, s: b.tuple(
            [
                b.add(b.get_tuple_element(s, 0), b.constant(s32(1))),
                b.add(b.get_tuple_element(s, 1), b.constant(np.full(10, 0.5, np.float32))),
            ]
        ),
        state,
    )
    expect(
        lambda b, i, v: b.while_(condition, body, b.tuple([i, v])),
        [s32(0), np.zeros(10, np.float32)],
        (s32(1000), np.full(10, 500, np.float32)),
    )


RNG = np.random.default_rng(0)
X = RNG.standard_normal((4, 3, 5, 2)).astype(np.float32)
SCALE, OFFSET = f32([2, 3]), f32([1, -1])
EPSILON = 0.001


def close(build: Build, arrays: list[np.ndarray], *expected: np.ndarray) -> None:
    """Both backends, to single precision, for results that are sums over many elements."""
    builder = XlaBuilder("example")
    parameters = [builder.parameter(i, shape_of(a)) for i, a in enumerate(arrays)]
    made = builder.build(build(builder, *parameters))
    for results in (tj.interpret(made, *arrays), tj.compile(made)(*arrays)):
        given = results if isinstance(results, tuple) else (results,)
        for result, wanted in zip(given, expected, strict=True):
            assert result.dtype == np.float32
            np.testing.assert_allclose(result, wanted, rtol=2e-5, atol=2e-5)


def moments() -> tuple[np.ndarray, np.ndarray]:
    wide = X.astype(np.float64)
    mean = wide.mean(axis=(0, 1, 2))
    return mean, ((wide - mean) ** 2).mean(axis=(0, 1, 2))


def test_batch_norm_training_is_its_formulas() -> None:
    mean, variance = moments()
    wanted = SCALE * (X - mean) / np.sqrt(variance + EPSILON) + OFFSET
    close(
        lambda b, x, s, o: b.batch_norm_training(x, s, o, EPSILON, 3),
        [X, SCALE, OFFSET],
        wanted,
        mean,
        variance,
    )


def test_batch_norm_inference_takes_mean_and_variance() -> None:
    mean, variance = f32([0.5, -0.5]), f32([2, 4])
    wanted = SCALE * (X - mean) / np.sqrt(variance + EPSILON) + OFFSET
    close(
        lambda b, x, s, o, m, v: b.batch_norm_inference(x, s, o, m, v, EPSILON, 3),
        [X, SCALE, OFFSET, mean, variance],
        wanted,
    )


def test_batch_norm_grad_is_its_formulas() -> None:
    mean, variance = moments()
    grad = RNG.standard_normal(X.shape)
    c = (grad * (X - mean) / (variance + EPSILON)).mean(axis=(0, 1, 2))
    d = grad.mean(axis=(0, 1, 2))
    deviation = np.sqrt(variance + EPSILON)
    close(
        lambda b, x, s, m, v, g: b.batch_norm_grad(x, s, m, v, g, EPSILON, 3),
        [X, SCALE, f32(mean), f32(variance), f32(grad)],
        SCALE / deviation * (grad - d - c * (X - mean)),
        (grad * (X - mean) / deviation).sum(axis=(0, 1, 2)),
        grad.sum(axis=(0, 1, 2)),
    )
