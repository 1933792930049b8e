"""DotGeneral takes the batch as a batch dimension."""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.batching.axes import later
from tracejit.batching.batch import Batched, batching
from tracejit.graph import Instruction
from tracejit.ops.contraction import DOT_GENERAL, DotDimensionNumbers, dot_general
from tracejit.ops.dimensions import moved


@batching.attach(DOT_GENERAL)
def dot_general_rule(
    instruction: Instruction, operands: Sequence[Batched], size: int
) -> Instruction:
    lhs, rhs = operands
    a = instruction.attributes
    lhs_contracting, rhs_contracting = a["lhs_contracting_dims"], a["rhs_contracting_dims"]
    lhs_batch, rhs_batch = a["lhs_batch_dims"], a["rhs_batch_dims"]
    if lhs.is_batched:
        lhs_contracting, lhs_batch = later(lhs_contracting), later(lhs_batch)
    if rhs.is_batched:
        rhs_contracting, rhs_batch = later(rhs_contracting), later(rhs_batch)
    # The result has batch dimensions, then the other ones of lhs, then of rhs, each in its order.
    place = len(lhs_batch)
    if lhs.is_batched and rhs.is_batched:
        lhs_batch, rhs_batch, place = (0, *lhs_batch), (0, *rhs_batch), 0
    elif rhs.is_batched:
        place = lhs.value.array_shape.rank - len(lhs_contracting)
    product = dot_general(
        lhs.value,
        rhs.value,
        DotDimensionNumbers(lhs_contracting, rhs_contracting, lhs_batch, rhs_batch),
        a["operand_precision"] or None,
        instruction.array_shape.element_type,
    )
    return moved(product, place, 0)
