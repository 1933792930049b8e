"""RaggedDot and ScaledDot: the gradients of a contraction in groups are contractions in groups.

Where groups divide rows, one gradient's groups divide rows too, and the other's a sum; where they
divide a sum, both gradients' divide rows. What has other group sizes in every row, and ScaledDot,
go through the DotGeneral that computes the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.autodiff.composition import pullback_through
from tracejit.autodiff.reverse import Cotangent, Cotangents, differentiate, is_differentiable
from tracejit.graph import Instruction
from tracejit.ops.contraction import DotDimensionNumbers
from tracejit.ops.element_types import convert_element_type
from tracejit.ops.grouped import (
    RAGGED_DOT,
    SCALED_DOT,
    RaggedDotDimensionNumbers,
    RaggedMode,
    ragged_dot,
    ragged_of,
)
from tracejit.ops.grouped_expansions import ragged_as_dot, scaled_as_dot
from tracejit.ops.layout import transpose


@differentiate.attach(RAGGED_DOT)
def ragged_dot_rule(instruction: Instruction, cotangent: Instruction) -> Cotangents:
    mode, group_sizes = ragged_of(instruction).mode, instruction.operands[2]
    if mode is RaggedMode.BATCH or group_sizes.array_shape.rank > 1:
        return pullback_through(
            lambda *operands: [ragged_as_dot(instruction, operands)],
            instruction.operands,
            [cotangent],
        )
    gradients = _Gradients(instruction, cotangent)
    if mode is RaggedMode.ROWS:
        return gradients.of_lhs_of_rows(), gradients.of_rhs_of_rows(), None
    return gradients.of_lhs_of_sums(), gradients.of_rhs_of_sums(), None


class _Gradients:
    """The dimensions of a RaggedDot: batch, summed, and ``left`` and ``right``, one operand's own.

    ``outer`` and ``inner`` are where the result has left and right, after groups and batch.
    """

    def __init__(self, instruction: Instruction, cotangent: Instruction) -> None:
        a = instruction.attributes
        self.cotangent = cotangent
        self.lhs, self.rhs, self.group_sizes = instruction.operands
        self.lhs_batch, self.rhs_batch = a["lhs_batch_dims"], a["rhs_batch_dims"]
        self.lhs_summed, self.rhs_summed = a["lhs_contracting_dims"], a["rhs_contracting_dims"]
        self.group = a["rhs_group_dims"]
        (self.ragged,) = a["lhs_ragged_dims"]
        self.precision = a["operand_precision"] or None
        self.left = _others(self.lhs, self.lhs_batch + self.lhs_summed)
        self.right = _others(self.rhs, self.rhs_batch + self.rhs_summed + self.group)
        first = 0 if self.group else 1
        last = cotangent.array_shape.rank - len(self.right)
        self.batch = tuple(range(first, first + len(self.lhs_batch)))
        self.outer = tuple(range(first + len(self.lhs_batch), last))
        self.inner = tuple(range(last, last + len(self.right)))
        pairs = list(zip(self.lhs_summed, self.rhs_summed, strict=True))
        self.rhs_in_order_of_lhs = [r for _, r in sorted(pairs)]
        self.lhs_in_order_of_rhs = [pair[0] for pair in sorted(pairs, key=lambda pair: pair[1])]

    def of_lhs_of_rows(self) -> Cotangent:
        numbers = DotDimensionNumbers(self.inner, self.right, self.batch, self.rhs_batch)
        rows = RaggedDotDimensionNumbers(
            numbers, (self.outer[self.left.index(self.ragged)],), self.group
        )
        places = [*self.lhs_batch, *self.left, *self.lhs_in_order_of_rhs]
        return self._product(self.lhs, self.cotangent, self.rhs, rows, places)

    def of_rhs_of_rows(self) -> Cotangent:
        numbers = DotDimensionNumbers(self.left, self.outer, self.lhs_batch, self.batch)
        sums = RaggedDotDimensionNumbers(numbers, (self.ragged,))
        places = [*self.group, *self.rhs_batch, *self.rhs_in_order_of_lhs, *self.right]
        return self._product(self.rhs, self.lhs, self.cotangent, sums, places)

    def of_lhs_of_sums(self) -> Cotangent:
        numbers = DotDimensionNumbers(self.right, self.inner, self.rhs_batch, self.batch)
        ragged = self.rhs_summed[self.lhs_summed.index(self.ragged)]
        rows = RaggedDotDimensionNumbers(numbers, (ragged,), (0,))
        places = [*self.lhs_batch, *self.lhs_in_order_of_rhs, *self.left]
        return self._product(self.lhs, self.rhs, self.cotangent, rows, places)

    def of_rhs_of_sums(self) -> Cotangent:
        numbers = DotDimensionNumbers(self.left, self.outer, self.lhs_batch, self.batch)
        rows = RaggedDotDimensionNumbers(numbers, (self.ragged,), (0,))
        places = [*self.rhs_batch, *self.rhs_in_order_of_lhs, *self.right]
        return self._product(self.rhs, self.lhs, self.cotangent, rows, places)

    def _product(
        self,
        wanted: Instruction,
        lhs: Instruction,
        rhs: Instruction,
        numbers: RaggedDotDimensionNumbers,
        places: Sequence[int],
    ) -> Cotangent:
        """The cotangent of ``wanted``, which has the product's dimensions at ``places``."""
        if not is_differentiable(wanted):
            return None
        types = [i.array_shape.element_type for i in (lhs, rhs)]
        wider = max(types, key=lambda element_type: element_type.bits)
        x, y = (convert_element_type(i, wider) for i in (lhs, rhs))
        made = ragged_dot(x, y, self.group_sizes, numbers, self.precision)
        order = sorted(range(len(places)), key=lambda i: places[i])
        return convert_element_type(transpose(made, order), wanted.array_shape.element_type)


def _others(operand: Instruction, taken: Sequence[int]) -> tuple[int, ...]:
    return tuple(d for d in range(operand.array_shape.rank) if d not in taken)


@differentiate.attach(SCALED_DOT)
def scaled_dot_rule(instruction: Instruction, cotangent: Instruction) -> Cotangents:
    return pullback_through(
        lambda *operands: [scaled_as_dot(instruction, operands)], instruction.operands, [cotangent]
    )
