"""Derivatives of batch normalisation: one BatchNormGrad, and its own derivative by formulas."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.autodiff.gradients import check_gradients
from tests.autodiff.structure import gradients, opcodes
from tests.samples.normalisation import training
from tracejit import ops
from tracejit.graph import Instruction

X = np.random.default_rng(0).normal(size=(4, 3, 2))
SCALE, OFFSET = np.array([0.5, 1.0, -2.0]), np.array([1.0, 0.0, 3.0])


def output_only(x: Instruction, scale: Instruction, offset: Instruction) -> Sequence[Instruction]:
    return ops.elements_of(training(0.125, 1)(x, scale, offset))[:1]


def test_the_derivative_of_training_is_one_batch_norm_grad() -> None:
    assert opcodes(output_only, X, SCALE, OFFSET) == {
        "parameter": 4,
        "batch-norm-training": 1,
        "batch-norm-grad": 1,
        "get-tuple-element": 5,
    }


def test_the_moments_have_derivatives_of_their_own() -> None:
    def moments(x: Instruction, scale: Instruction, offset: Instruction) -> Sequence[Instruction]:
        return ops.elements_of(training(0.125, 1)(x, scale, offset))[1:]

    assert "batch-norm-grad" not in opcodes(moments, X, SCALE, OFFSET)
    arriving = [np.array([8.0, 0.0, 0.0]), np.array([0.0, 8.0, 0.0])]
    of_x, of_scale, of_offset = gradients(moments, [X, SCALE, OFFSET], arriving)
    assert of_scale is None
    assert of_offset is None
    assert of_x is not None
    assert_allclose(of_x[:, 0], np.ones((4, 2)))
    assert_allclose(of_x[:, 1], 2 * (X[:, 1] - X[:, 1].mean()))
    assert_allclose(of_x[:, 2], np.zeros((4, 2)))


@pytest.mark.parametrize("feature_index", [0, 1, 2])
def test_three_orders_of_derivatives(feature_index: int) -> None:
    features = X.shape[feature_index]
    arrays = [X, np.resize(SCALE, features), np.resize(OFFSET, features)]
    check_gradients(training(0.125, feature_index), arrays, order=3, relative=1e-5)
