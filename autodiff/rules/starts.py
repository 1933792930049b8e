"""Collective ops in two halves: the second half's cotangent passes to the first half's result."""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.autodiff.reverse import Cotangents, Nested, differentiate
from tracejit.autodiff.rules.permutes import permuted_back
from tracejit.autodiff.rules.replicas import parts_of, scattered_sum, sum_over_devices
from tracejit.errors import DerivativeError
from tracejit.graph import Instruction
from tracejit.ops.computations import binary_op
from tracejit.ops.elementwise import ADD
from tracejit.ops.starts import (
    ALL_GATHER_DONE,
    ALL_GATHER_START,
    ALL_REDUCE_DONE,
    ALL_REDUCE_START,
    COLLECTIVE_PERMUTE_DONE,
    COLLECTIVE_PERMUTE_START,
)


@differentiate.attach(ALL_REDUCE_DONE)
def all_reduce_done_rule(instruction: Instruction, cotangent: Nested) -> Sequence[Nested]:
    return [cotangent]


@differentiate.attach(ALL_REDUCE_START)
def all_reduce_start_rule(instruction: Instruction, cotangent: Nested) -> Cotangents:
    if binary_op(instruction.attributes["to_apply"]) is not ADD:
        raise DerivativeError(
            "all_reduce_start: has no derivative but for sums", instruction.source
        )
    return sum_over_devices(parts_of(instruction.shape, cotangent), instruction)


@differentiate.attach(ALL_GATHER_DONE, COLLECTIVE_PERMUTE_DONE)
def second_element_rule(instruction: Instruction, cotangent: Nested) -> Sequence[Nested]:
    (operand,) = instruction.operands
    contexts: list[Nested] = [None] * (len(operand.element_shapes) - 2)
    return [[None, cotangent, *contexts]]


def _arrived(instruction: Instruction, cotangent: Sequence[Nested]) -> list[Instruction]:
    return parts_of(instruction.element_shapes[1], cotangent[1])


@differentiate.attach(ALL_GATHER_START)
def all_gather_start_rule(instruction: Instruction, cotangent: Sequence[Nested]) -> Cotangents:
    return scattered_sum(instruction, instruction.operands, _arrived(instruction, cotangent))


@differentiate.attach(COLLECTIVE_PERMUTE_START)
def collective_permute_start_rule(
    instruction: Instruction, cotangent: Sequence[Nested]
) -> Cotangents:
    if instruction.attributes["slice_sizes"]:
        raise DerivativeError(
            "collective_permute_start: has no derivative in its form with slices",
            instruction.source,
        )
    return permuted_back(instruction, _arrived(instruction, cotangent))
