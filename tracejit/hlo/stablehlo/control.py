"""Ops that run computations: Call, Map, Conditional, While."""

from __future__ import annotations

from tracejit.graph import Instruction
from tracejit.hlo.stablehlo.text import integers
from tracejit.hlo.stablehlo.writer import Names, Writer, stablehlo
from tracejit.ops.control import CALL, CONDITIONAL, MAP, WHILE


@stablehlo.attach(CALL)
def call(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    return writer.call(instruction.attributes["to_apply"], operands, instruction.shape)


@stablehlo.attach(MAP)
def map_(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    attributes = {"dimensions": integers(instruction.attributes["dimensions"])}
    regions = [writer.region(instruction.attributes["to_apply"])]
    return writer.operation(instruction, "stablehlo.map", operands, attributes, regions)


@stablehlo.attach(CONDITIONAL)
def conditional(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    """The branches take no arguments: they use what is outside of them."""
    branches = instruction.computations
    name = "case" if instruction.attributes["branch_computations"] else "if"
    regions = [
        writer.region(branch, [names]) for branch, names in zip(branches, operands[1:], strict=True)
    ]
    shapes = [instruction.operands[0].array_shape]
    return writer.raw(f"stablehlo.{name}", operands[0], shapes, instruction.shape, regions=regions)


@stablehlo.attach(WHILE)
def while_(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    values = instruction.attributes
    regions = [writer.region(values["condition"]), writer.region(values["body"])]
    return writer.operation(instruction, "stablehlo.while", operands, regions=regions)
