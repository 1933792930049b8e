"""Collective ops in two parts: the first does it all, the second hands out the result."""

from __future__ import annotations

from tracejit.graph import Instruction
from tracejit.hlo.stablehlo.dumps import zeros
from tracejit.hlo.stablehlo.permutes import permuted
from tracejit.hlo.stablehlo.replicas import collective, gathered
from tracejit.hlo.stablehlo.text import leaves
from tracejit.hlo.stablehlo.writer import Names, Writer, stablehlo
from tracejit.ops.starts import (
    ALL_GATHER_DONE,
    ALL_GATHER_START,
    ALL_REDUCE_DONE,
    ALL_REDUCE_START,
    COLLECTIVE_PERMUTE_DONE,
    COLLECTIVE_PERMUTE_START,
)
from tracejit.shapes import TupleShape


@stablehlo.attach(ALL_REDUCE_START)
def all_reduce_start(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    regions = [writer.region(instruction.attributes["to_apply"])]
    attributes = collective(instruction)
    return writer.operation(instruction, "stablehlo.all_reduce", operands, attributes, regions)


@stablehlo.attach(ALL_REDUCE_DONE)
def all_reduce_done(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    return operands[0]


@stablehlo.attach(ALL_GATHER_START)
def all_gather_start(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    made = gathered(writer, instruction, operands, instruction.element_shapes[1])
    flat = [name for names in operands for name in names]
    return (*flat, *made, *zeros(writer, instruction.element_shapes[2:]))


@stablehlo.attach(COLLECTIVE_PERMUTE_START)
def collective_permute_start(
    writer: Writer, instruction: Instruction, operands: list[Names]
) -> Names:
    made = permuted(writer, instruction, operands)
    flat = [name for names in operands for name in names]
    return (*flat, *made, *zeros(writer, instruction.element_shapes[2:]))


@stablehlo.attach(ALL_GATHER_DONE, COLLECTIVE_PERMUTE_DONE)
def second(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    bundle = instruction.operands[0].shape
    assert isinstance(bundle, TupleShape)
    first, result = (len(leaves(part)) for part in bundle.elements[:2])
    return operands[0][first : first + result]
