"""ConvGeneralDilated, evaluated."""

from __future__ import annotations

import math

import numpy as np

from tracejit.backends.numpy.contraction import accumulator
from tracejit.backends.numpy.interpreter import Value, interpret
from tracejit.backends.numpy.windows import spread, views
from tracejit.graph import Instruction
from tracejit.ops.convolution import CONV_GENERAL_DILATED


@interpret.attach(CONV_GENERAL_DILATED)
def conv_general_dilated(instruction: Instruction, lhs: np.ndarray, rhs: np.ndarray) -> Value:
    attributes, shape = instruction.attributes, instruction.array_shape
    numbers, window = attributes["dim_labels"], attributes["window"]
    batch_groups = attributes["batch_group_count"]
    groups = batch_groups * attributes["feature_group_count"]
    wide = accumulator(instruction, lhs)
    positions = tuple(shape.dimensions[d] for d in numbers.output_spatial_dimensions)

    base = lhs.transpose(
        [
            *numbers.input_spatial_dimensions,
            numbers.input_batch_dimension,
            numbers.input_feature_dimension,
        ]
    )
    base = _split_groups(
        spread(base.astype(wide), window, 0), -2 if batch_groups > 1 else -1, groups
    )
    kernel = rhs.transpose(
        [
            *numbers.kernel_spatial_dimensions,
            numbers.kernel_input_feature_dimension,
            numbers.kernel_output_feature_dimension,
        ]
    )
    kernel = _split_groups(kernel.astype(wide), -1, groups)
    kernel = np.flip(kernel, tuple(a + 1 for a, entry in enumerate(window) if entry.reversal))

    # base [group, spatial…, batch, feature] times kernel [group, spatial…, input, output]
    batch, features = base.shape[-2:]
    product = np.zeros([groups, math.prod(positions) * batch, kernel.shape[-1]], wide)
    offsets = np.ndindex(*[entry.size for entry in window])
    for offset, view in zip(offsets, views(window, positions), strict=True):
        place, element = (slice(None), *view), (slice(None), *offset)
        seen = base[place].reshape([groups, product.shape[1], features])
        product += seen @ kernel[element]

    result = np.moveaxis(product.reshape([groups, *positions, batch, kernel.shape[-1]]), 0, -2)
    result = result.reshape([*positions, batch, groups * kernel.shape[-1]])
    places = [
        *numbers.output_spatial_dimensions,
        numbers.output_batch_dimension,
        numbers.output_feature_dimension,
    ]
    return result.transpose(np.argsort(places)).astype(shape.dtype)


def _split_groups(array: np.ndarray, axis: int, groups: int) -> np.ndarray:
    """``axis`` cut into equal consecutive groups, which a new first dimension counts."""
    axis %= array.ndim
    sizes = [*array.shape[:axis], groups, array.shape[axis] // groups, *array.shape[axis + 1 :]]
    return np.moveaxis(array.reshape(sizes), axis, 0)
