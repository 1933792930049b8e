"""Ops that move elements: the batch is one more dimension, in front, that stays where it is."""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.attributes import PaddingDimension, SliceDimension
from tracejit.batching.axes import later
from tracejit.batching.batch import Batched, batching
from tracejit.graph import Instruction
from tracejit.ops.base import make
from tracejit.ops.constants import constant
from tracejit.ops.element_types import convert_element_type
from tracejit.ops.elementwise import clamp, select
from tracejit.ops.indexing import (
    GatherDimensionNumbers,
    ScatterDimensionNumbers,
    gather,
    replace_computation,
    scatter,
)
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
    concatenate,
    dynamic_slice,
    dynamic_update_slice,
    full,
    pad,
    reshape,
    rev,
    transpose,
)
from tracejit.shapes import ElementType, Shape


@batching.attach(BROADCAST_IN_DIM)
def broadcast_rule(instruction: Instruction, operands: Sequence[Batched], size: int) -> Instruction:
    dimensions = (0, *later(instruction.attributes["dimensions"]))
    sizes = (size, *instruction.array_shape.dimensions)
    return broadcast_in_dim(operands[0].value, sizes, dimensions)


@batching.attach(RESHAPE)
def reshape_rule(instruction: Instruction, operands: Sequence[Batched], size: int) -> Instruction:
    return reshape(operands[0].value, (size, *instruction.array_shape.dimensions))


@batching.attach(TRANSPOSE)
def transpose_rule(instruction: Instruction, operands: Sequence[Batched], size: int) -> Instruction:
    return transpose(operands[0].value, (0, *later(instruction.attributes["dimensions"])))


@batching.attach(REV)
def rev_rule(instruction: Instruction, operands: Sequence[Batched], size: int) -> Instruction:
    return rev(operands[0].value, later(instruction.attributes["dimensions"]))


@batching.attach(PAD)
def pad_rule(instruction: Instruction, operands: Sequence[Batched], size: int) -> Instruction:
    operand, value = operands
    padding = (PaddingDimension(), *instruction.attributes["padding"])
    stretched = operand.stretched(size)
    if not value.is_batched:
        return pad(stretched, value.value, padding)
    # One value for each element of the batch: it goes where the operand does not.
    truth = Shape(ElementType.PRED, stretched.array_shape.dimensions)
    inside = pad(full(truth, 1), constant(False), padding)
    zero = constant(0, stretched.array_shape.element_type)
    around = broadcast_in_dim(value.value, inside.array_shape.dimensions, (0,))
    return select(inside, pad(stretched, zero, padding), around)


@batching.attach(CONCATENATE)
def concatenate_rule(
    instruction: Instruction, operands: Sequence[Batched], size: int
) -> Instruction:
    (dimension,) = instruction.attributes["dimensions"]
    return concatenate([operand.stretched(size) for operand in operands], dimension + 1)


@batching.attach(SLICE)
def slice_rule(instruction: Instruction, operands: Sequence[Batched], size: int) -> Instruction:
    parts = (SliceDimension(0, size), *instruction.attributes["slice"])
    return make(SLICE, operands[0].value, slice=parts)


@batching.attach(DYNAMIC_SLICE)
def dynamic_slice_rule(
    instruction: Instruction, operands: Sequence[Batched], size: int
) -> Instruction:
    operand, *starts = operands
    sizes = instruction.attributes["dynamic_slice_sizes"]
    if not starts:
        return operand.value
    if not any(start.is_batched for start in starts):
        first = constant(0, starts[0].value.array_shape.element_type)
        values = [first, *(start.value for start in starts)]
        return dynamic_slice(operand.value, values, (size, *sizes))
    # Starts of their own for each element of the batch; Gather clamps them as DynamicSlice does.
    own = int(operand.is_batched)
    rank = len(sizes)
    numbers = GatherDimensionNumbers(
        offset_dims=tuple(range(1, rank + 1)),
        collapsed_slice_dims=(),
        start_index_map=tuple(range(own, rank + own)),
        operand_batching_dims=(0,) * own,
        start_indices_batching_dims=(0,) * own,
        index_vector_dim=1,
    )
    return gather(operand.value, _vectors(starts, size), numbers, (1,) * own + tuple(sizes))


@batching.attach(DYNAMIC_UPDATE_SLICE)
def dynamic_update_slice_rule(
    instruction: Instruction, operands: Sequence[Batched], size: int
) -> Instruction:
    operand, update, *starts = operands
    whole, part = operand.stretched(size), update.stretched(size)
    if not any(start.is_batched for start in starts):
        if not starts:
            return part
        first = constant(0, starts[0].value.array_shape.element_type)
        return dynamic_update_slice(whole, part, [first, *(start.value for start in starts)])
    rank = len(starts)
    sizes, parts = whole.array_shape.dimensions[1:], part.array_shape.dimensions[1:]
    starts_made = _vectors(starts, size)
    indices = starts_made.array_shape
    # Scatter drops what DynamicUpdateSlice moves inside.
    last = [total - one for total, one in zip(sizes, parts, strict=True)]
    highest = concatenate([reshape(constant(n, indices.element_type), (1,)) for n in last], 0)
    inside = clamp(
        full(indices, 0), starts_made, broadcast_in_dim(highest, indices.dimensions, (1,))
    )
    numbers = ScatterDimensionNumbers(
        update_window_dims=tuple(range(1, rank + 1)),
        inserted_window_dims=(),
        scatter_dims_to_operand_dims=tuple(range(1, rank + 1)),
        input_batching_dims=(0,),
        scatter_indices_batching_dims=(0,),
        index_vector_dim=1,
    )
    replace = replace_computation(whole.array_shape.element_type)
    return scatter(whole, inside, part, replace, numbers, True, True)


def _vectors(starts: Sequence[Batched], size: int) -> Instruction:
    """The start indices side by side: one row for each element of the batch."""
    wide = [convert_element_type(start.stretched(size), ElementType.S64) for start in starts]
    return concatenate([reshape(column, (size, 1)) for column in wide], 1)
