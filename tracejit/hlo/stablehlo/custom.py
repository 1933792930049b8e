"""CustomCall."""

from __future__ import annotations

from tracejit.errors import UnsupportedError
from tracejit.graph import Instruction
from tracejit.hlo.stablehlo.text import boolean, integer, numbers, string
from tracejit.hlo.stablehlo.writer import Names, Writer, stablehlo
from tracejit.ops.custom import API_VERSIONS, CUSTOM_CALL
from tracejit.shapes import TupleShape

# What a custom call may have in HLO and not in StableHLO, with the value that says nothing.
_LACKING = {
    "window": None,
    "dim_labels": None,
    "feature_group_count": 1,
    "batch_group_count": 1,
    "operand_precision": (),
    "padding_type": "PADDING_INVALID",
    "schedule": "SCHEDULE_NONE",
}


def _require_expressible(instruction: Instruction) -> None:
    values = instruction.attributes
    target = values["custom_call_target"]
    given = [name for name, usual in _LACKING.items() if values[name] != usual]
    if given:
        raise UnsupportedError(
            f"to_stablehlo: CustomCall to {target} has {given[0]}, which StableHLO lacks",
            instruction.source,
        )
    nested = [o.shape for o in instruction.operands] + list(instruction.element_shapes)
    for shape in nested:
        if isinstance(shape, TupleShape):
            raise UnsupportedError(
                f"to_stablehlo: CustomCall to {target} takes or returns the tuple {shape}, and "
                "StableHLO text opens tuples",
                instruction.source,
            )


@stablehlo.attach(CUSTOM_CALL)
def custom_call(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    _require_expressible(instruction)
    values = instruction.attributes
    typed = values["api_version"] == "API_VERSION_TYPED_FFI"
    config = values["backend_config"]
    attributes = {
        "api_version": integer(API_VERSIONS.index(values["api_version"]) + 1, 32),
        "backend_config": (config or "{}") if typed else string(config),
        "call_target_name": string(values["custom_call_target"]),
        "has_side_effect": boolean(values["custom_call_has_side_effect"]),
    }
    if values["called_computations"]:
        called = ", ".join(f"@{writer.function(c)}" for c in values["called_computations"])
        attributes["called_computations"] = f"[{called}]"
    if values["output_to_operand_aliasing"]:
        aliases = ", ".join(
            "#stablehlo.output_operand_alias<"
            f"output_tuple_indices = {numbers(alias.output_index)}, "
            f"operand_index = {alias.operand}, "
            f"operand_tuple_indices = {numbers(alias.operand_index)}>"
            for alias in values["output_to_operand_aliasing"]
        )
        attributes["output_operand_aliases"] = f"[{aliases}]"
    return writer.operation(instruction, "stablehlo.custom_call", operands, attributes)
