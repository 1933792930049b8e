"""ConvertElementType, ReducePrecision and BitcastConvertType."""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.batching.batch import Batched, batching
from tracejit.batching.pointwise import pointwise
from tracejit.graph import Instruction
from tracejit.ops.element_types import (
    BITCAST_CONVERT_TYPE,
    CONVERT_ELEMENT_TYPE,
    REDUCE_PRECISION,
    bitcast_convert_type,
)

batching.attach(CONVERT_ELEMENT_TYPE, REDUCE_PRECISION)(pointwise)


@batching.attach(BITCAST_CONVERT_TYPE)
def bitcast_rule(instruction: Instruction, operands: Sequence[Batched], size: int) -> Instruction:
    # Between widths the last dimension comes or goes; the batch is the first.
    return bitcast_convert_type(operands[0].value, instruction.array_shape.element_type)
