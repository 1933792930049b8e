"""Constants and structure: Parameter, Constant, Iota, Tuple, GetTupleElement."""

from __future__ import annotations

from tracejit.graph import Instruction
from tracejit.hlo.stablehlo.text import integer, leaves, literal
from tracejit.hlo.stablehlo.writer import Names, Writer, stablehlo
from tracejit.ops.constants import CONSTANT, GET_TUPLE_ELEMENT, IOTA, PARAMETER, TUPLE
from tracejit.shapes import TupleShape

stablehlo.decline(PARAMETER, "is not among the computation's parameters")


@stablehlo.attach(CONSTANT)
def constant(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    value = {"value": literal(instruction.attributes["literal"])}
    return writer.operation(instruction, "stablehlo.constant", operands, value)


@stablehlo.attach(IOTA)
def iota(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    dimension = {"iota_dimension": integer(instruction.attributes["iota_dimension"])}
    return writer.operation(instruction, "stablehlo.iota", operands, dimension)


@stablehlo.attach(TUPLE)
def tuple_(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    return tuple(name for names in operands for name in names)


@stablehlo.attach(GET_TUPLE_ELEMENT)
def get_tuple_element(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    shape = instruction.operands[0].shape
    assert isinstance(shape, TupleShape)
    index = instruction.attributes["index"]
    first = sum(len(leaves(element)) for element in shape.elements[:index])
    return operands[0][first : first + len(leaves(instruction.shape))]
