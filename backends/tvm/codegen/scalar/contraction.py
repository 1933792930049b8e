"""DotGeneral as a reduction: products of elements, added one after the other."""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.codegen.root_rules import Results
from tracejit.backends.tvm.codegen.scalar.reduction import Combination, combined
from tracejit.backends.tvm.codegen.scalar.table import scalar
from tracejit.backends.tvm.ir.tir import Stmt
from tracejit.graph import Instruction
from tracejit.ops.contraction import DOT_GENERAL
from tracejit.ops.element_types import convert_element_type
from tracejit.ops.elementwise import mul
from tracejit.ops.layout import broadcast_in_dim, transpose
from tracejit.ops.reduction import reduce_sum
from tracejit.shapes import ElementType


@scalar.attach(DOT_GENERAL)
def dot_general(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    total = as_reduction(instruction)
    product, initial = total.operands
    part = Combination([product], [initial], total.attributes["to_apply"])
    kept = instruction.array_shape.dimensions
    over = product.array_shape.dimensions[len(kept) :]
    return combined(
        frame, [part], kept, over, lambda at, along: [*at, *along], [instruction], results
    )


def as_reduction(instruction: Instruction) -> Instruction:
    """The Reduce, over the last dimensions, of all products that a DotGeneral adds."""
    lhs, rhs = instruction.operands
    given = instruction.attributes
    kind = instruction.array_shape.element_type
    wide = ElementType.F32 if kind.is_floating and kind.bits < 32 else kind
    batch, summed = len(given["lhs_batch_dims"]), given["lhs_contracting_dims"]
    rows = lhs.array_shape.rank - batch - len(summed)
    kept = instruction.array_shape.dimensions
    sizes = (*kept, *(lhs.array_shape.dimensions[d] for d in summed))
    inner = range(len(kept), len(sizes))

    def spread(operand: Instruction, side: str, free: Sequence[int]) -> Instruction:
        first, last = given[f"{side}_batch_dims"], given[f"{side}_contracting_dims"]
        others = [d for d in range(operand.array_shape.rank) if d not in (*first, *last)]
        moved = transpose(convert_element_type(operand, wide), [*first, *others, *last])
        return broadcast_in_dim(moved, sizes, (*range(batch), *free, *inner))

    left = spread(lhs, "lhs", range(batch, batch + rows))
    right = spread(rhs, "rhs", range(batch + rows, len(kept)))
    return reduce_sum(mul(left, right), inner)
