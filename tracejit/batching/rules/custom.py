"""CustomCall: the function is called for each element of the batch.

The library's own linear algebra takes batches of matrices as they are.
"""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.batching.batch import Batched, batched_shape, batching, uniform
from tracejit.batching.sequential import one_by_one
from tracejit.graph import Instruction
from tracejit.ops.base import make
from tracejit.ops.custom import CUSTOM_CALL
from tracejit.targets import LINEAR_ALGEBRA


@batching.attach(CUSTOM_CALL)
def custom_call_rule(
    instruction: Instruction, operands: Sequence[Batched], size: int
) -> Instruction:
    attributes = instruction.attributes
    if not attributes["custom_call_target"].startswith(LINEAR_ALGEBRA):
        return one_by_one(instruction, operands, size)
    shape = batched_shape(instruction.shape, uniform(instruction.shape, True), size)
    values = [operand.stretched(size) for operand in operands]
    own = {"shape": shape, "operand_layout_constraints": None}
    return make(CUSTOM_CALL, *values, **{**attributes, **own})
