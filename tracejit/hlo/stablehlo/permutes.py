"""CollectivePermute and RaggedAllToAll."""

from __future__ import annotations

from tracejit.graph import Instruction
from tracejit.hlo.stablehlo.replicas import channel, require_whole
from tracejit.hlo.stablehlo.text import dictionary, integer, leaves, matrix, string
from tracejit.hlo.stablehlo.writer import Names, Writer, stablehlo
from tracejit.ops.permutes import COLLECTIVE_PERMUTE, RAGGED_ALL_TO_ALL


def permuted(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    """One operation for each operand: the dialect's takes one."""
    require_whole(instruction)
    pairs = matrix(instruction.attributes["source_target_pairs"], 2)
    attributes = {**channel(instruction), "source_target_pairs": pairs}
    made: Names = ()
    for operand, names in zip(instruction.operands, operands, strict=True):
        shapes = leaves(operand.shape)
        made += writer.raw("stablehlo.collective_permute", names, shapes, operand.shape, attributes)
    return made


@stablehlo.attach(COLLECTIVE_PERMUTE)
def collective_permute(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    return permuted(writer, instruction, operands)


@stablehlo.attach(RAGGED_ALL_TO_ALL)
def ragged_all_to_all(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    """The custom call that XLA reads as its own op; channel 0 is none."""
    values = instruction.attributes
    config = {
        "channel_id": integer(values["channel_id"] or 0),
        "replica_groups": matrix(values["replica_groups"]),
    }
    attributes = {
        "api_version": integer(4, 32),
        "backend_config": dictionary(config),
        "call_target_name": string("ragged_all_to_all"),
    }
    return writer.operation(instruction, "stablehlo.custom_call", operands, attributes)
