"""Ops that order side effects: AfterAll, AddDependency, Infeed, Outfeed."""

from __future__ import annotations

from tracejit.graph import Instruction
from tracejit.hlo.stablehlo.text import leaves, string
from tracejit.hlo.stablehlo.writer import Names, Writer, stablehlo
from tracejit.ops.tokens import ADD_DEPENDENCY, AFTER_ALL, INFEED, OUTFEED
from tracejit.shapes import TupleShape


@stablehlo.attach(AFTER_ALL)
def after_all(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    return writer.operation(instruction, "stablehlo.after_all", operands)


@stablehlo.attach(ADD_DEPENDENCY)
def add_dependency(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    """A barrier that value and token pass together."""
    both = TupleShape(tuple(o.shape for o in instruction.operands))
    flat = [*operands[0], *operands[1]]
    passed = writer.raw("stablehlo.optimization_barrier", flat, leaves(both), both)
    return passed[:-1]


@stablehlo.attach(INFEED)
def infeed(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    attributes = {"infeed_config": string(instruction.attributes["infeed_config"])}
    return writer.operation(instruction, "stablehlo.infeed", operands, attributes)


@stablehlo.attach(OUTFEED)
def outfeed(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    attributes = {"outfeed_config": string(instruction.attributes["outfeed_config"])}
    return writer.operation(instruction, "stablehlo.outfeed", operands, attributes)
