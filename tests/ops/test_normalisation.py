"""Batch normalisation: the specification's formulas, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.building import computation
from tests.samples.normalisation import gradient, inference, training
from tracejit import ops
from tracejit.backends.numpy import evaluate
from tracejit.errors import (
    AttributeValueError,
    DimensionError,
    ElementTypeError,
    ShapeError,
    TracejitError,
)
from tracejit.graph import Instruction
from tracejit.shapes import ElementType, Shape, shape_of

F32, F64 = ElementType.F32, ElementType.F64
EPSILON = 0.125  # a power of two: HLO keeps epsilon in single precision


def array(*dimensions: int, element_type: ElementType = F32) -> Instruction:
    return ops.parameter(0, Shape(element_type, dimensions))


def value(function: Callable[..., Instruction], *arrays: np.ndarray) -> Any:
    return evaluate(computation("main", function, *map(shape_of, arrays)), arrays)


def draw(seed: int, *dimensions: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=dimensions)


X, SCALE, OFFSET, GRAD = draw(0, 4, 3, 5, 2), draw(1, 2), draw(2, 2), draw(3, 4, 3, 5, 2)
MEAN, VARIANCE = X.mean((0, 1, 2)), X.var((0, 1, 2))


def test_training_normalises_and_returns_the_moments() -> None:
    output, mean, variance = value(
        training(EPSILON, 3),
        X,
        SCALE,
        OFFSET,
    )
    assert_allclose(mean, MEAN, rtol=1e-12)
    assert_allclose(variance, VARIANCE, rtol=1e-12)
    assert_allclose(output, SCALE * (X - MEAN) / np.sqrt(VARIANCE + EPSILON) + OFFSET, rtol=1e-12)


def test_inference_is_training_with_given_moments() -> None:
    trained = value(
        training(EPSILON, 3),
        X,
        SCALE,
        OFFSET,
    )
    inferred = value(
        inference(EPSILON, 3),
        X,
        SCALE,
        OFFSET,
        MEAN,
        VARIANCE,
    )
    assert_allclose(inferred, trained[0], rtol=1e-12)


def test_gradients_as_the_specification_writes_them() -> None:
    of_operand, of_scale, of_offset = value(
        gradient(EPSILON, 3),
        X,
        SCALE,
        MEAN,
        VARIANCE,
        GRAD,
    )
    others, total = (0, 1, 2), VARIANCE + EPSILON
    c = (GRAD * (X - MEAN) / total).mean(others)
    d = GRAD.mean(others)
    assert_allclose(of_operand, SCALE / np.sqrt(total) * (GRAD - d - c * (X - MEAN)), rtol=1e-10)
    assert_allclose(of_scale, (GRAD * (X - MEAN) / np.sqrt(total)).sum(others), rtol=1e-10)
    assert_allclose(of_offset, GRAD.sum(others), rtol=1e-10)


def test_epsilon_is_held_in_single_precision() -> None:
    made = ops.batch_norm_training(array(2, 3), array(3), array(3), 1e-3, -1)
    assert made.attributes == {"epsilon": float(np.float32(1e-3)), "feature_index": 1}


def train(
    operand: Instruction, feature: Instruction, epsilon: float = 1e-3, feature_index: int = 1
) -> Instruction:
    return ops.batch_norm_training(operand, feature, array(3), epsilon, feature_index)


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (
            lambda: train(array(2, 3), array(2)),
            ShapeError,
            r"batch_norm_training: scale f32\[2\] must have one element for each of the 3 "
            r"features of operand f32\[2,3\] \(dimension 1\)",
        ),
        (
            lambda: train(array(2, 3), array(3, 1)),
            ShapeError,
            r"batch_norm_training: scale f32\[3,1\] must have one element for each",
        ),
        (
            lambda: train(array(2, 3), array(3, element_type=F64)),
            ElementTypeError,
            r"batch_norm_training: element types must be equal; operand f32\[2,3\], scale f64",
        ),
        (
            lambda: train(array(2, 3, element_type=ElementType.S32), array(3)),
            ElementTypeError,
            r"batch_norm_training: operand s32\[2,3\] has element type s32; allowed are",
        ),
        (
            lambda: train(array(2, 3), array(3), feature_index=2),
            DimensionError,
            r"batch_norm_training: dimension 2 is out of range for rank 2",
        ),
        (
            lambda: train(array(), array(3), feature_index=0),
            AttributeValueError,
            r"batch_norm_training: feature_index 0 must be a dimension of operand f32\[\]",
        ),
        (
            lambda: train(array(2, 3), array(3), epsilon=-1e-3),
            AttributeValueError,
            r"batch_norm_training: epsilon -0.001\d* must not be negative",
        ),
        (
            lambda: ops.batch_norm_inference(
                array(2, 3), array(3), array(3), array(3), array(2), 0.1, 1
            ),
            ShapeError,
            r"batch_norm_inference: variance f32\[2\] must have one element",
        ),
        (
            lambda: ops.batch_norm_grad(
                array(2, 3), array(3), array(3), array(3), array(3, 2), 0.1, 1
            ),
            ShapeError,
            r"batch_norm_grad: grad_output f32\[3,2\] must have the dimensions of operand",
        ),
    ],
)
def test_refusals(
    build: Callable[[], Instruction], error: type[TracejitError], message: str
) -> None:
    with pytest.raises(error, match=message):
        build()
