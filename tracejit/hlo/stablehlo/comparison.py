"""Compare."""

from __future__ import annotations

from tracejit.graph import Instruction
from tracejit.hlo.stablehlo.text import enumeration
from tracejit.hlo.stablehlo.writer import Names, Writer, stablehlo
from tracejit.ops.comparison import COMPARE


@stablehlo.attach(COMPARE)
def compare(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    values = instruction.attributes
    attributes = {"comparison_direction": enumeration("comparison_direction", values["direction"])}
    if values["type"] is not None:
        attributes["compare_type"] = enumeration("comparison_type", values["type"])
    return writer.operation(instruction, "stablehlo.compare", operands, attributes)
