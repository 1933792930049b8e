"""Batch normalisation."""

from __future__ import annotations

from tracejit.graph import Instruction
from tracejit.hlo.stablehlo.text import integer
from tracejit.hlo.stablehlo.writer import Names, Writer, stablehlo
from tracejit.ops.normalisation import (
    BATCH_NORM_GRAD,
    BATCH_NORM_INFERENCE,
    BATCH_NORM_TRAINING,
)

_NAMES = {
    BATCH_NORM_TRAINING: "batch_norm_training",
    BATCH_NORM_INFERENCE: "batch_norm_inference",
    BATCH_NORM_GRAD: "batch_norm_grad",
}


@stablehlo.attach(*_NAMES)
def batch_norm(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    values = instruction.attributes
    attributes = {
        "epsilon": f"{values['epsilon']:.9e} : f32",
        "feature_index": integer(values["feature_index"]),
    }
    return writer.operation(
        instruction, f"stablehlo.{_NAMES[instruction.op]}", operands, attributes
    )
