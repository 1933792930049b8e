"""ConvertElementType, BitcastConvertType, ReducePrecision."""

from __future__ import annotations

from tracejit.graph import Instruction
from tracejit.hlo.stablehlo.text import integer
from tracejit.hlo.stablehlo.writer import Names, Writer, stablehlo
from tracejit.ops.element_types import (
    BITCAST_CONVERT_TYPE,
    CONVERT_ELEMENT_TYPE,
    REDUCE_PRECISION,
)


@stablehlo.attach(CONVERT_ELEMENT_TYPE)
def convert_element_type(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    return writer.operation(instruction, "stablehlo.convert", operands)


@stablehlo.attach(BITCAST_CONVERT_TYPE)
def bitcast_convert_type(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    return writer.operation(instruction, "stablehlo.bitcast_convert", operands)


@stablehlo.attach(REDUCE_PRECISION)
def reduce_precision(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    values = instruction.attributes
    attributes = {n: integer(values[n], 32) for n in ("exponent_bits", "mantissa_bits")}
    return writer.operation(instruction, "stablehlo.reduce_precision", operands, attributes)
