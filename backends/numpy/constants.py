"""Constants and structure, evaluated."""

from __future__ import annotations

import numpy as np

from tracejit.backends.numpy.interpreter import Value, interpret
from tracejit.graph import Instruction
from tracejit.ops.constants import CONSTANT, GET_TUPLE_ELEMENT, IOTA, PARAMETER, TUPLE

interpret.decline(PARAMETER, "is given its value by the caller of the computation")


@interpret.attach(CONSTANT)
def constant(instruction: Instruction) -> Value:
    return instruction.attributes["literal"]


@interpret.attach(IOTA)
def iota(instruction: Instruction) -> Value:
    shape = instruction.array_shape
    dimension = instruction.attributes["iota_dimension"]
    sizes = [1] * shape.rank
    sizes[dimension] = shape.dimensions[dimension]
    counted = np.arange(sizes[dimension]).astype(shape.dtype).reshape(sizes)
    return np.broadcast_to(counted, shape.dimensions)


@interpret.attach(TUPLE)
def tuple_(instruction: Instruction, *elements: Value) -> Value:
    return elements


@interpret.attach(GET_TUPLE_ELEMENT)
def get_tuple_element(instruction: Instruction, operand: Value) -> Value:
    return operand[instruction.attributes["index"]]
