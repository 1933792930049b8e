"""Swaps the operands of a product whose transpose alone is used, so that nothing is transposed.

    transpose(dot(a, b))                 ->  dot(b, a)

The derivative of ``x @ w`` with respect to ``w`` is such a product. If something else reads the
product too, it stays: it would be computed twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tracejit.graph import Instruction
from tracejit.ops.base import make
from tracejit.ops.contraction import DOT_GENERAL
from tracejit.ops.layout import TRANSPOSE
from tracejit.traversal import in_order, transform, user_counts


def swap_transposed_dots(roots: Sequence[Instruction]) -> list[Instruction]:
    """Equal ``roots``."""
    over = {i for i in in_order(roots) if _swaps_sides(i)}
    if not over:
        return list(roots)
    counts = user_counts(roots)
    over = {i for i in over if counts[i.operands[0]] == 1}
    shapes = {i.operands[0]: i.array_shape for i in over}

    def visit(instruction: Instruction, operands: tuple[Instruction, ...]) -> Instruction | None:
        if instruction in over:
            return operands[0]
        if instruction not in shapes:
            return None
        lhs, rhs = operands
        old = instruction.attributes
        made = make(
            DOT_GENERAL,
            rhs,
            lhs,
            lhs_batch_dims=old["rhs_batch_dims"],
            lhs_contracting_dims=old["rhs_contracting_dims"],
            rhs_batch_dims=old["lhs_batch_dims"],
            rhs_contracting_dims=old["lhs_contracting_dims"],
            operand_precision=old["operand_precision"][::-1],
            shape=shapes[instruction],
        )
        if max(lhs.serial, rhs.serial) < instruction.serial:
            # It runs where the product ran, so that its operands are not kept until the end.
            made = replace(made, serial=instruction.serial)
        return made

    return transform(roots, visit)


def _swaps_sides(instruction: Instruction) -> bool:
    """Whether a transpose exchanges the dimensions of a product that come of its two operands."""
    if instruction.op is not TRANSPOSE or instruction.operands[0].op is not DOT_GENERAL:
        return False
    product = instruction.operands[0]
    lhs, _ = product.operands
    batch = len(product.attributes["lhs_batch_dims"])
    right = lhs.array_shape.rank - len(product.attributes["lhs_contracting_dims"])
    sides = [*range(right, product.array_shape.rank), *range(batch, right)]
    return bool(instruction.attributes["dimensions"] == (*range(batch), *sides))
