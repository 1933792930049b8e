"""Samples of BatchNormTraining, BatchNormInference and BatchNormGrad."""

from __future__ import annotations

from collections.abc import Callable

from tests.samples.base import Operand, Sample
from tests.samples.domains import near_one
from tracejit import ops
from tracejit.graph import Instruction
from tracejit.ops.base import FLOATING

FEATURES = Operand((3,))
POSITIVE = Operand((3,), domain=near_one)
IMAGES = Operand((4, 2, 2, 3))
CHANNELS_FIRST = Operand((4, 3, 2))


def training(epsilon: float, feature_index: int) -> Callable[..., Instruction]:
    return lambda x, scale, offset: ops.batch_norm_training(
        x, scale, offset, epsilon, feature_index
    )


def inference(epsilon: float, feature_index: int) -> Callable[..., Instruction]:
    return lambda x, scale, offset, mean, variance: ops.batch_norm_inference(
        x, scale, offset, mean, variance, epsilon, feature_index
    )


def gradient(epsilon: float, feature_index: int) -> Callable[..., Instruction]:
    return lambda x, scale, mean, variance, grad_output: ops.batch_norm_grad(
        x, scale, mean, variance, grad_output, epsilon, feature_index
    )


SAMPLES = [
    Sample(
        "BatchNormTraining",
        training(1e-3, 3),
        (IMAGES, FEATURES, FEATURES),
        FLOATING,
        "features last",
    ),
    Sample(
        "BatchNormTraining",
        training(0.5, -2),
        (CHANNELS_FIRST, FEATURES, FEATURES),
        FLOATING,
        "features in between",
    ),
    Sample(
        "BatchNormTraining",
        training(1.0, 0),
        (FEATURES, FEATURES, FEATURES),
        FLOATING,
        "features only",
    ),
    Sample(
        "BatchNormTraining",
        training(1e-3, 1),
        (Operand((4, 0)), Operand((0,)), Operand((0,))),
        FLOATING,
        "no feature",
    ),
    Sample(
        "BatchNormInference",
        inference(1e-3, 1),
        (CHANNELS_FIRST, FEATURES, FEATURES, FEATURES, POSITIVE),
        FLOATING,
        "features in between",
    ),
    Sample(
        "BatchNormInference",
        inference(0.0, 3),
        (Operand((0, 2, 2, 3)), FEATURES, FEATURES, FEATURES, POSITIVE),
        FLOATING,
        "no image",
    ),
    Sample(
        "BatchNormGrad",
        gradient(1e-3, 3),
        (IMAGES, FEATURES, FEATURES, POSITIVE, IMAGES),
        FLOATING,
        "features last",
    ),
    Sample(
        "BatchNormGrad",
        gradient(0.25, 0),
        (Operand((3, 4)), FEATURES, FEATURES, POSITIVE, Operand((3, 4))),
        FLOATING,
        "features first",
    ),
]
