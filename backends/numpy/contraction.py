"""DotGeneral, evaluated."""

from __future__ import annotations

import math

import numpy as np

from tracejit.backends.numpy.interpreter import Value, interpret
from tracejit.backends.numpy.precision import narrowed, widened
from tracejit.graph import Instruction
from tracejit.ops.contraction import DOT_GENERAL
from tracejit.shapes import element_type_of


def accumulator(instruction: Instruction, operand: np.ndarray) -> np.dtype:
    """What products are summed in: the result's type, and no less than f32 or the operands'."""
    result = widened(np.empty(0, instruction.array_shape.dtype)).dtype
    if not element_type_of(operand.dtype).is_inexact:
        return result
    return np.promote_types(result, widened(operand).dtype)


@interpret.attach(DOT_GENERAL)
def dot_general(instruction: Instruction, lhs: np.ndarray, rhs: np.ndarray) -> Value:
    attributes = instruction.attributes
    wide = accumulator(instruction, lhs)
    lhs_batch, rhs_batch = attributes["lhs_batch_dims"], attributes["rhs_batch_dims"]
    lhs_sum, rhs_sum = attributes["lhs_contracting_dims"], attributes["rhs_contracting_dims"]
    lhs_rest = [d for d in range(lhs.ndim) if d not in lhs_batch + lhs_sum]
    rhs_rest = [d for d in range(rhs.ndim) if d not in rhs_batch + rhs_sum]
    batch = [lhs.shape[d] for d in lhs_batch]
    summed = math.prod(lhs.shape[d] for d in lhs_sum)
    rows = math.prod(lhs.shape[d] for d in lhs_rest)
    columns = math.prod(rhs.shape[d] for d in rhs_rest)
    left = widened(lhs).transpose([*lhs_batch, *lhs_rest, *lhs_sum]).astype(wide)
    right = widened(rhs).transpose([*rhs_batch, *rhs_sum, *rhs_rest]).astype(wide)
    product = left.reshape([*batch, rows, summed]) @ right.reshape([*batch, summed, columns])
    made = narrowed(product, instruction.array_shape.element_type)
    return made.reshape(instruction.array_shape.dimensions)
