"""DotGeneral takes the batch as a batch dimension; Conv as more images, features or groups."""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.batching.axes import batch_into, batch_out_of, later
from tracejit.batching.batch import Batched, batching
from tracejit.graph import Instruction
from tracejit.ops.contraction import (
    CONV_GENERAL_DILATED,
    DOT_GENERAL,
    DotDimensionNumbers,
    conv_with_window,
    dot_general,
)
from tracejit.ops.dimensions import moved


@batching.attach(DOT_GENERAL)
def dot_general_rule(
    instruction: Instruction, operands: Sequence[Batched], size: int
) -> Instruction:
    lhs, rhs = operands
    a = instruction.attributes
    lhs_contracting, rhs_contracting = a["lhs_contracting_dims"], a["rhs_contracting_dims"]
    lhs_batch, rhs_batch = a["lhs_batch_dims"], a["rhs_batch_dims"]
    if lhs.is_batched:
        lhs_contracting, lhs_batch = later(lhs_contracting), later(lhs_batch)
    if rhs.is_batched:
        rhs_contracting, rhs_batch = later(rhs_contracting), later(rhs_batch)
    # The result has batch dimensions, then what is left of lhs, then of rhs, each in its order.
    place = len(lhs_batch)
    if lhs.is_batched and rhs.is_batched:
        lhs_batch, rhs_batch, place = (0, *lhs_batch), (0, *rhs_batch), 0
    elif rhs.is_batched:
        place = lhs.value.array_shape.rank - len(lhs_contracting)
    product = dot_general(
        lhs.value,
        rhs.value,
        DotDimensionNumbers(lhs_contracting, rhs_contracting, lhs_batch, rhs_batch),
        a["operand_precision"] or None,
        instruction.array_shape.element_type,
    )
    return moved(product, place, 0)


@batching.attach(CONV_GENERAL_DILATED)
def conv_rule(instruction: Instruction, operands: Sequence[Batched], size: int) -> Instruction:
    lhs, rhs = operands
    a = instruction.attributes
    numbers = a["dim_labels"]
    feature_groups, batch_groups = a["feature_group_count"], a["batch_group_count"]
    groups = feature_groups * batch_groups
    image, kernel = lhs.value, rhs.value
    if lhs.is_batched and rhs.is_batched:
        # Each element of the batch is a group of its own, or several of them.
        dimension = (
            numbers.input_batch_dimension if batch_groups > 1 else numbers.input_feature_dimension
        )
        image = batch_into(image, dimension)
        kernel = batch_into(kernel, numbers.kernel_output_feature_dimension)
        if batch_groups > 1:
            batch_groups *= size
        else:
            feature_groups *= size
        result, inner = numbers.output_feature_dimension, 1
    elif lhs.is_batched:
        image = batch_into(image, numbers.input_batch_dimension, batch_groups)
        result, inner = numbers.output_batch_dimension, 1
    else:
        kernel = batch_into(kernel, numbers.kernel_output_feature_dimension, groups)
        result, inner = numbers.output_feature_dimension, groups
    made = conv_with_window(
        image,
        kernel,
        a["window"],
        numbers,
        feature_groups,
        batch_groups,
        a["operand_precision"] or None,
        instruction.array_shape.element_type,
    )
    return batch_out_of(made, result, size, inner)
