"""GetDimensionSize, SetDimensionSize and DynamicReshape, evaluated."""

from __future__ import annotations

import math

import numpy as np

from tracejit.backends.numpy.extents import Dynamic, padded
from tracejit.backends.numpy.interpreter import Value, interpret
from tracejit.errors import ShapeError
from tracejit.graph import Instruction
from tracejit.ops.dynamic_sizes import DYNAMIC_RESHAPE, GET_DIMENSION_SIZE, SET_DIMENSION_SIZE


@interpret.attach(GET_DIMENSION_SIZE)
def get_dimension_size(instruction: Instruction, operand: Value) -> Value:
    sizes = operand.sizes if isinstance(operand, Dynamic) else operand.shape
    (dimension,) = instruction.attributes["dimensions"]
    return np.int32(sizes[dimension])


@interpret.attach(SET_DIMENSION_SIZE)
def set_dimension_size(instruction: Instruction, operand: Value, size: np.ndarray) -> Value:
    whole = operand.padded if isinstance(operand, Dynamic) else operand
    sizes = list(operand.sizes if isinstance(operand, Dynamic) else operand.shape)
    (dimension,) = instruction.attributes["dimensions"]
    sizes[dimension] = min(max(int(size), 0), whole.shape[dimension])
    return Dynamic(whole, tuple(sizes)) if instruction.array_shape.is_dynamic else whole


@interpret.attach(DYNAMIC_RESHAPE)
def dynamic_reshape(instruction: Instruction, operand: Value, *dim_sizes: np.ndarray) -> Value:
    array = operand.valid if isinstance(operand, Dynamic) else operand
    sizes = [int(size) for size in dim_sizes]
    if min(sizes, default=0) < 0 or math.prod(sizes) != array.size:
        raise ShapeError(
            f"dynamic_reshape: {array.size} elements cannot have the sizes {sizes}",
            instruction.source,
        )
    shape = instruction.array_shape
    made = array.reshape(sizes)
    return padded(made, shape) if shape.is_dynamic else made
