"""Ops that move elements without changing them."""

from __future__ import annotations

from tracejit.graph import Instruction
from tracejit.hlo.stablehlo.text import integer, integers
from tracejit.hlo.stablehlo.writer import Names, Writer, stablehlo
from tracejit.ops.layout import (
    BROADCAST_IN_DIM,
    CONCATENATE,
    DYNAMIC_SLICE,
    DYNAMIC_UPDATE_SLICE,
    PAD,
    RESHAPE,
    REV,
    SLICE,
    TRANSPOSE,
)


@stablehlo.attach(BROADCAST_IN_DIM)
def broadcast_in_dim(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    attributes = {"broadcast_dimensions": integers(instruction.attributes["dimensions"])}
    return writer.operation(instruction, "stablehlo.broadcast_in_dim", operands, attributes)


@stablehlo.attach(RESHAPE)
def reshape(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    if instruction.shape == instruction.operands[0].shape:
        return operands[0]
    return writer.operation(instruction, "stablehlo.reshape", operands)


@stablehlo.attach(TRANSPOSE)
def transpose(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    attributes = {"permutation": integers(instruction.attributes["dimensions"])}
    return writer.operation(instruction, "stablehlo.transpose", operands, attributes)


@stablehlo.attach(REV)
def rev(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    attributes = {"dimensions": integers(instruction.attributes["dimensions"])}
    return writer.operation(instruction, "stablehlo.reverse", operands, attributes)


@stablehlo.attach(PAD)
def pad(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    padding = instruction.attributes["padding"]
    attributes = {
        "edge_padding_low": integers([d.low for d in padding]),
        "edge_padding_high": integers([d.high for d in padding]),
        "interior_padding": integers([d.interior for d in padding]),
    }
    return writer.operation(instruction, "stablehlo.pad", operands, attributes)


@stablehlo.attach(CONCATENATE)
def concatenate(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    attributes = {"dimension": integer(instruction.attributes["dimensions"][0])}
    return writer.operation(instruction, "stablehlo.concatenate", operands, attributes)


@stablehlo.attach(SLICE)
def slice_(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    parts = instruction.attributes["slice"]
    attributes = {
        "start_indices": integers([d.start for d in parts]),
        "limit_indices": integers([d.limit for d in parts]),
        "strides": integers([d.stride for d in parts]),
    }
    return writer.operation(instruction, "stablehlo.slice", operands, attributes)


@stablehlo.attach(DYNAMIC_SLICE)
def dynamic_slice(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    attributes = {"slice_sizes": integers(instruction.attributes["dynamic_slice_sizes"])}
    return writer.operation(instruction, "stablehlo.dynamic_slice", operands, attributes)


@stablehlo.attach(DYNAMIC_UPDATE_SLICE)
def dynamic_update_slice(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    return writer.operation(instruction, "stablehlo.dynamic_update_slice", operands)
