"""ConvGeneralDilated takes the batch as more images, features or groups."""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.batching.axes import batch_into, batch_out_of
from tracejit.batching.batch import Batched, batching
from tracejit.graph import Instruction
from tracejit.ops.convolution import CONV_GENERAL_DILATED, conv_with_window


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
