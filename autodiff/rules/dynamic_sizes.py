"""GetDimensionSize, SetDimensionSize, DynamicReshape."""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.autodiff.dynamic import fitted, masked
from tracejit.autodiff.reverse import Cotangent, differentiate
from tracejit.graph import Instruction
from tracejit.ops.bounds import flags_of
from tracejit.ops.dynamic_sizes import (
    DYNAMIC_RESHAPE,
    GET_DIMENSION_SIZE,
    SET_DIMENSION_SIZE,
    dynamic_reshape,
    get_dimension_size,
)

differentiate.decline(GET_DIMENSION_SIZE, "is an integer")


@differentiate.attach(SET_DIMENSION_SIZE)
def set_dimension_size(instruction: Instruction, cotangent: Instruction) -> Sequence[Cotangent]:
    operand, size = instruction.operands
    if operand.array_shape.is_dynamic or not instruction.array_shape.is_dynamic:
        return [fitted(cotangent, operand), None]
    # Elements beyond the size are no part of the result.
    (dimension,) = instruction.attributes["dimensions"]
    return [masked(fitted(cotangent, operand), size, dimension), None]


@differentiate.attach(DYNAMIC_RESHAPE)
def dynamic_reshape_rule(instruction: Instruction, cotangent: Instruction) -> Sequence[Cotangent]:
    operand, *sizes = instruction.operands
    shape = operand.array_shape
    before = [get_dimension_size(operand, d) for d in range(shape.rank)]
    made = dynamic_reshape(cotangent, before, shape.dimensions, flags_of(shape))
    return [made, *([None] * len(sizes))]
