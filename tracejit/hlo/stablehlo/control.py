"""Ops that run computations (Call, Map, Conditional, While), and OptimizationBarrier."""

from __future__ import annotations

from tracejit.graph import Instruction
from tracejit.hlo.stablehlo.text import integer, integers, string
from tracejit.hlo.stablehlo.writer import Names, Writer, stablehlo
from tracejit.ops.control import (
    CALL,
    COMPOSITE_ATTRIBUTES,
    COMPOSITE_NAME,
    COMPOSITE_VERSION,
    CONDITIONAL,
    MAP,
    OPTIMIZATION_BARRIER,
    WHILE,
)


@stablehlo.attach(CALL)
def call(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    computation = instruction.attributes["to_apply"]
    if not instruction.attributes["is_composite"]:
        return writer.call(computation, operands, instruction.shape)
    given = dict(instruction.attributes["frontend_attributes"])
    attributes = {
        "composite_attributes": given.get(COMPOSITE_ATTRIBUTES, "{}"),
        "decomposition": f"@{writer.function(computation)}",
        "name": string(given[COMPOSITE_NAME]),
        "version": integer(int(given.get(COMPOSITE_VERSION, "0")), 32),
    }
    return writer.operation(instruction, "stablehlo.composite", operands, attributes)


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


@stablehlo.attach(OPTIMIZATION_BARRIER)
def optimization_barrier(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    return writer.operation(instruction, "stablehlo.optimization_barrier", operands)
