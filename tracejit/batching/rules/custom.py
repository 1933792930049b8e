"""CustomCall: the function is called for each element of the batch.

The library's own linear algebra takes batches of matrices as they are. An op that is made of
others, with no derivative of its own, is batched as they are.
"""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.batching.batch import Batched, batch, batched_shape, batching, uniform
from tracejit.batching.sequential import one_by_one
from tracejit.graph import Instruction
from tracejit.ops.base import make
from tracejit.ops.custom import CUSTOM_CALL
from tracejit.targets import LINEAR_ALGEBRA, differentiable_expansion_for


@batching.attach(CUSTOM_CALL)
def custom_call_rule(
    instruction: Instruction, operands: Sequence[Batched], size: int
) -> Instruction | Batched:
    attributes = instruction.attributes
    if not attributes["custom_call_target"].startswith(LINEAR_ALGEBRA):
        expansion = differentiable_expansion_for(instruction)
        if expansion is None:
            return one_by_one(instruction, operands, size)
        known = dict(zip(expansion.parameters, operands, strict=True))
        return batch([expansion.root], known, size)[0]
    shape = batched_shape(instruction.shape, uniform(instruction.shape, True), size)
    values = [operand.stretched(size) for operand in operands]
    own = {"shape": shape, "operand_layout_constraints": None}
    return make(CUSTOM_CALL, *values, **{**attributes, **own})
