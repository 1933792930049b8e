"""BatchNormTraining, BatchNormInference and BatchNormGrad, evaluated.

Everything is computed in f32 for narrower types and rounded once.
"""

from __future__ import annotations

import numpy as np

from tracejit.backends.numpy.interpreter import Value, interpret
from tracejit.backends.numpy.precision import widened
from tracejit.graph import Instruction
from tracejit.ops.normalisation import BATCH_NORM_GRAD, BATCH_NORM_INFERENCE, BATCH_NORM_TRAINING


def _prepare(
    instruction: Instruction, *arrays: np.ndarray
) -> tuple[tuple[int, ...], float, list[np.ndarray]]:
    """The dimensions but the features', epsilon, and the arrays in the accumulation type.

    Arrays with one number per feature get size-1 dimensions, to combine with the operand's.
    """
    feature, rank = instruction.attributes["feature_index"], arrays[0].ndim
    along = [1] * rank
    along[feature] = -1
    prepared = [widened(a if a.ndim == rank else a.reshape(along)) for a in arrays]
    others = tuple(d for d in range(rank) if d != feature)
    return others, instruction.attributes["epsilon"], prepared


@interpret.attach(BATCH_NORM_TRAINING)
def batch_norm_training(instruction: Instruction, *arrays: np.ndarray) -> Value:
    others, epsilon, (operand, scale, offset) = _prepare(instruction, *arrays)
    count = operand.size // max(scale.size, 1)
    mean = operand.sum(others, keepdims=True) / count
    variance = np.square(operand - mean).sum(others, keepdims=True) / count
    output = scale * (operand - mean) / np.sqrt(variance + epsilon) + offset
    dtype = arrays[0].dtype
    return output.astype(dtype), mean.reshape(-1).astype(dtype), variance.reshape(-1).astype(dtype)


@interpret.attach(BATCH_NORM_INFERENCE)
def batch_norm_inference(instruction: Instruction, *arrays: np.ndarray) -> Value:
    _, epsilon, (operand, scale, offset, mean, variance) = _prepare(instruction, *arrays)
    output = scale * (operand - mean) / np.sqrt(variance + epsilon) + offset
    return output.astype(arrays[0].dtype)


@interpret.attach(BATCH_NORM_GRAD)
def batch_norm_grad(instruction: Instruction, *arrays: np.ndarray) -> Value:
    others, epsilon, prepared = _prepare(instruction, *arrays)
    operand, scale, mean, variance, grad_output = prepared
    count = operand.size // max(scale.size, 1)
    centred = operand - mean
    total = variance + epsilon
    grad_offset = grad_output.sum(others, keepdims=True)
    products = (grad_output * centred).sum(others, keepdims=True)
    grad_scale = products / np.sqrt(total)
    inner = grad_output - grad_offset / count - centred * products / (count * total)
    grad_operand = scale / np.sqrt(total) * inner
    dtype = arrays[0].dtype
    return (
        grad_operand.astype(dtype),
        grad_scale.reshape(-1).astype(dtype),
        grad_offset.reshape(-1).astype(dtype),
    )
