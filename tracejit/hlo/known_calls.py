"""Custom calls of XLA's own, read as the ops that they implement.

TopK           what XLA's CPU client makes of TopK, and of a sort whose beginning is sliced
AllocateBuffer an array with any contents
Sharding …     marks of where an array lies: the array, or where partitions share it out a copy
lapack_…_ffi   what JAX makes of linear algebra, see `lapack_calls`
"""

from __future__ import annotations

from tracejit.graph import Instruction
from tracejit.hlo import lapack_calls
from tracejit.ops.comparison import COMPARE
from tracejit.ops.custom import CUSTOM_CALL
from tracejit.ops.dumps import COPY
from tracejit.ops.elementwise_unary import erf
from tracejit.ops.reduction import top_k
from tracejit.shapes import Shape, TupleShape

# What says where arrays lie, and in which order: on one device, and of their numbers, nothing.
_ON_ONE_DEVICE = frozenset(
    {
        "LayoutConstraint",
        "MoveToDevice",
        "MoveToHost",
        "Sharding",
        "annotate_device_placement",
    }
)
_EDGES = frozenset({"SPMDFullToShardShape", "SPMDShardToFullShape"})


def as_op(instruction: Instruction, is_partitioned: bool = False) -> Instruction:
    """What a custom call means, where XLA says it; any other instruction as it is.

    The edges of a region that is partitioned by hand mean nothing unless ``is_partitioned``.
    """
    if instruction.op is not CUSTOM_CALL:
        return instruction
    target = instruction.attributes["custom_call_target"]
    is_shaped_alike = [o.shape for o in instruction.operands] == [instruction.shape]
    is_edge = target in _EDGES and not is_partitioned
    if (is_edge or target in _ON_ONE_DEVICE) and is_shaped_alike:
        if target != "Sharding" or "devices=" not in instruction.sharding:
            return instruction.operands[0]
        (operand,), annotated = instruction.operands, instruction.sharding
        return Instruction(
            COPY, (operand,), operand.shape, {}, instruction.source, sharding=annotated
        )
    if target == "mhlo.erf" and is_shaped_alike:
        return erf(instruction.operands[0])
    if target == "AllocateBuffer" and isinstance(instruction.shape, Shape):
        return lapack_calls.unused(instruction.shape)
    if target.startswith("lapack_"):
        return lapack_calls.as_op(instruction) or instruction
    if target != "TopK":
        return instruction
    shape, operands = instruction.shape, instruction.operands
    roots = [c.root for c in instruction.attributes["called_computations"]]
    upwards = any(r.op is not COMPARE or r.attributes["direction"] != "GT" for r in roots)
    if upwards or len(operands) != 1 or not isinstance(shape, TupleShape):
        return instruction
    values, given = shape.elements[0], operands[0].shape
    if not (isinstance(values, Shape) and isinstance(given, Shape) and values.rank == given.rank):
        return instruction
    if not values.rank or values.dimensions[-1] > given.dimensions[-1]:
        return instruction
    made = top_k(operands[0], values.dimensions[-1])
    return made if made.shape == shape else instruction
