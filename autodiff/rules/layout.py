"""Ops that move elements: each derivative moves them back."""

from __future__ import annotations

import numpy as np

from tracejit.attributes import PaddingDimension
from tracejit.autodiff.reverse import Cotangents, differentiate
from tracejit.graph import Instruction
from tracejit.ops.constants import constant
from tracejit.ops.elementwise import select
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
    broadcast_in_dim,
    dynamic_slice,
    dynamic_update_slice,
    full_like,
    pad,
    reshape,
    rev,
    scalar_like,
    slice_,
    slice_in_dim,
    transpose,
)
from tracejit.ops.reduction import reduce_sum


@differentiate.attach(BROADCAST_IN_DIM)
def broadcast_in_dim_rule(instruction: Instruction, cotangent: Instruction) -> Cotangents:
    kept = instruction.attributes["dimensions"]
    return [reduce_sum(cotangent, [d for d in range(cotangent.array_shape.rank) if d not in kept])]


@differentiate.attach(RESHAPE)
def reshape_rule(instruction: Instruction, cotangent: Instruction) -> Cotangents:
    return [reshape(cotangent, instruction.operands[0].array_shape.dimensions)]


@differentiate.attach(TRANSPOSE)
def transpose_rule(instruction: Instruction, cotangent: Instruction) -> Cotangents:
    return [transpose(cotangent, np.argsort(instruction.attributes["dimensions"]).tolist())]


@differentiate.attach(REV)
def rev_rule(instruction: Instruction, cotangent: Instruction) -> Cotangents:
    return [rev(cotangent, instruction.attributes["dimensions"])]


@differentiate.attach(PAD)
def pad_rule(instruction: Instruction, cotangent: Instruction) -> Cotangents:
    operand, padding = instruction.operands[0], instruction.attributes["padding"]
    # Crop the padding, pad the crop; the operand's elements lie interior + 1 apart.
    zero = scalar_like(cotangent, 0)
    spread = pad(cotangent, zero, [PaddingDimension(-p.low, -p.high) for p in padding])
    sizes = spread.array_shape.dimensions
    back = slice_(spread, [0] * len(sizes), sizes, [p.interior + 1 for p in padding])
    inside = broadcast_in_dim(constant(True), operand.array_shape.dimensions, ())
    added = select(pad(inside, constant(False), padding), full_like(cotangent, 0), cotangent)
    return [back, reduce_sum(added)]


@differentiate.attach(CONCATENATE)
def concatenate_rule(instruction: Instruction, cotangent: Instruction) -> Cotangents:
    (dimension,) = instruction.attributes["dimensions"]
    ends = np.cumsum([o.array_shape.dimensions[dimension] for o in instruction.operands]).tolist()
    return [
        slice_in_dim(cotangent, start, end, 1, dimension)
        for start, end in zip([0, *ends], ends, strict=False)
    ]


@differentiate.attach(SLICE)
def slice_rule(instruction: Instruction, cotangent: Instruction) -> Cotangents:
    sizes = instruction.operands[0].array_shape.dimensions
    padding = []
    for size, part in zip(sizes, instruction.attributes["slice"], strict=True):
        inner = PaddingDimension(part.start, 0, part.stride - 1)
        rest = size - inner.padded(part.size)
        padding.append(PaddingDimension(part.start, rest, part.stride - 1))
    return [pad(cotangent, scalar_like(cotangent, 0), padding)]


@differentiate.attach(DYNAMIC_SLICE)
def dynamic_slice_rule(instruction: Instruction, cotangent: Instruction) -> Cotangents:
    operand, *starts = instruction.operands
    back = dynamic_update_slice(full_like(operand, 0), cotangent, starts)
    return [back, *[None] * len(starts)]


@differentiate.attach(DYNAMIC_UPDATE_SLICE)
def dynamic_update_slice_rule(instruction: Instruction, cotangent: Instruction) -> Cotangents:
    _, update, *starts = instruction.operands
    # Read first, so that the zeros may be written where the cotangent lies.
    written = dynamic_slice(cotangent, starts, update.array_shape.dimensions)
    kept = dynamic_update_slice(cotangent, full_like(update, 0), starts)
    return [kept, written, *[None] * len(starts)]
