"""CustomCall: the function is called for each element of the batch.

The library's own linear algebra takes batches of matrices as they are. An op that is defined by
other ops, with no derivative of its own, is batched like these; another op by its rule, if it has
one.
"""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.batching.batch import Batched, batch, batched_shape, batching, uniform
from tracejit.batching.sequential import one_by_one
from tracejit.errors import ShapeError
from tracejit.graph import Instruction
from tracejit.ops.base import make
from tracejit.ops.constants import tuple_
from tracejit.ops.custom import CUSTOM_CALL, LINEAR_ALGEBRA
from tracejit.shapes import TupleShape
from tracejit.targets import Function, batching_for, differentiable_expansion_for
from tracejit.trace.body import Abstract, record_body


@batching.attach(CUSTOM_CALL)
def custom_call_rule(
    instruction: Instruction, operands: Sequence[Batched], size: int
) -> Instruction | Batched:
    attributes = instruction.attributes
    if not attributes["custom_call_target"].startswith(LINEAR_ALGEBRA):
        rule = batching_for(instruction)
        if rule is not None:
            return _ruled(rule, instruction, operands, size)
        expansion = differentiable_expansion_for(instruction)
        if expansion is None:
            return one_by_one(instruction, operands, size)
        known = dict(zip(expansion.parameters, operands, strict=True))
        return batch([expansion.root], known, size)[0]
    shape = batched_shape(instruction.shape, uniform(instruction.shape, True), size)
    values = [operand.stretched(size) for operand in operands]
    own = {"shape": shape, "operand_layout_constraints": None}
    return make(CUSTOM_CALL, *values, **{**attributes, **own})


def _ruled(
    rule: Function, instruction: Instruction, operands: Sequence[Batched], size: int
) -> Instruction:
    """What the user's rule makes of the operands, all batched."""
    name = instruction.attributes["custom_call_target"]
    values = [operand.stretched(size) for operand in operands]
    body = record_body(
        lambda *arrays: tuple(rule(size, *arrays)),
        f"the batching rule of {name}",
        [Abstract(value.array_shape) for value in values],
    )
    replacements = dict(zip(body.parameters, values, strict=True))
    made, _ = body.rebuilt(replacements | {c: c for c in body.captured})
    wanted = [batched_shape(shape, True, size) for shape in instruction.element_shapes]
    if [result.shape for result in made] != wanted:
        raise ShapeError(
            f"{name}: the batching rule must return {', '.join(map(str, wanted))}, not "
            f"{', '.join(str(result.shape) for result in made)}",
            instruction.source,
        )
    return tuple_(made) if isinstance(instruction.shape, TupleShape) else made[0]
