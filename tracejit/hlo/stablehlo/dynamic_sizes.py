"""Sizes known when the program runs: GetDimensionSize, SetDimensionSize, DynamicReshape."""

from __future__ import annotations

from tracejit import ops
from tracejit.graph import Instruction
from tracejit.hlo.stablehlo.text import integer, leaves
from tracejit.hlo.stablehlo.writer import Names, Writer, stablehlo
from tracejit.ops.dynamic_sizes import DYNAMIC_RESHAPE, GET_DIMENSION_SIZE, SET_DIMENSION_SIZE
from tracejit.shapes import ElementType, Shape


@stablehlo.attach(GET_DIMENSION_SIZE)
def get_dimension_size(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    attributes = {"dimension": integer(instruction.attributes["dimensions"][0])}
    return writer.operation(instruction, "stablehlo.get_dimension_size", operands, attributes)


@stablehlo.attach(SET_DIMENSION_SIZE)
def set_dimension_size(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    attributes = {"dimension": integer(instruction.attributes["dimensions"][0])}
    return writer.operation(instruction, "stablehlo.set_dimension_size", operands, attributes)


@stablehlo.attach(DYNAMIC_RESHAPE)
def dynamic_reshape(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    """The dialect takes the sizes as one array."""
    sizes = instruction.operands[1:]
    if not sizes:
        return writer.operation(instruction, "stablehlo.reshape", operands)

    def joined(*values: Instruction) -> Instruction:
        return ops.concat_in_dim([ops.reshape(value, (1,)) for value in values], 0)

    together = writer.compose(operands[1:], [size.shape for size in sizes], joined)
    shapes = [*leaves(instruction.operands[0].shape), Shape(ElementType.S32, (len(sizes),))]
    flat = [*operands[0], *together]
    return writer.raw("stablehlo.dynamic_reshape", flat, shapes, instruction.shape)
