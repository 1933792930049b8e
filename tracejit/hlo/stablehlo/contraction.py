"""DotGeneral."""

from __future__ import annotations

from tracejit.graph import Instruction
from tracejit.hlo.stablehlo.text import enumeration, numbers
from tracejit.hlo.stablehlo.writer import Names, Writer, stablehlo
from tracejit.ops.contraction import DOT_GENERAL


def precisions(instruction: Instruction) -> dict[str, str]:
    """The attribute for the operands' precision, where one is given."""
    given = instruction.attributes["operand_precision"]
    if not given:
        return {}
    listed = ", ".join(enumeration("precision", name.upper()) for name in given)
    return {"precision_config": f"[{listed}]"}


@stablehlo.attach(DOT_GENERAL)
def dot_general(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    values = instruction.attributes
    fields = [
        f"{name} = {numbers(given)}"
        for name, given in (
            ("lhs_batching_dimensions", values["lhs_batch_dims"]),
            ("rhs_batching_dimensions", values["rhs_batch_dims"]),
            ("lhs_contracting_dimensions", values["lhs_contracting_dims"]),
            ("rhs_contracting_dimensions", values["rhs_contracting_dims"]),
        )
    ]
    attributes = {
        "dot_dimension_numbers": f"#stablehlo.dot<{', '.join(fields)}>",
        **precisions(instruction),
    }
    return writer.operation(instruction, "stablehlo.dot_general", operands, attributes)
