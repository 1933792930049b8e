"""ConvGeneralDilated: the gradients of a convolution are convolutions."""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.attributes import ConvDimensionNumbers, Window, WindowDimension
from tracejit.autodiff.reverse import Cotangent, Cotangents, differentiate, is_differentiable
from tracejit.autodiff.rules.contraction import like_cotangent
from tracejit.autodiff.rules.windows import transposed_window
from tracejit.graph import Instruction
from tracejit.ops.convolution import CONV_GENERAL_DILATED, conv_with_window
from tracejit.ops.element_types import convert_element_type
from tracejit.ops.layout import reshape, rev, transpose

# In one spatial dimension, with stride s, dilations b of the input and d of the kernel, K kernel
# elements and padding low:
#
#     out[n, o, p] = sum over c, k of x[n, c, i] * w[o, c, k],      p*s + k*d = i*b + low
#
# (a reversed kernel counts k backwards). Both gradients are sums over two of the three:
#
#     gx[n, c, i] = sum over o, p of g[n, o, p] * w[o, c, k]
#     gw[o, c, k] = sum over n, p of g[n, o, p] * x[n, c, i]
#
# gx is a convolution of g with w, its features o, over the window of `transposed_window`.
# gw is a convolution of x, c as its batch and n as its features, with g as the kernel, o as its
# output features: stride and kernel dilation change places, i*b + low = k*d + p*s.


@differentiate.attach(CONV_GENERAL_DILATED)
def conv_general_dilated_rule(instruction: Instruction, cotangent: Instruction) -> Cotangents:
    lhs, rhs = instruction.operands
    if not lhs.array_shape.size or not rhs.array_shape.size or not cotangent.array_shape.size:
        return None, None
    return _input_gradient(instruction, cotangent), _kernel_gradient(instruction, cotangent)


def _input_gradient(instruction: Instruction, cotangent: Instruction) -> Cotangent:
    """gx. In groups g[n, (j,o)] meets w[(j,o), c], so w becomes a kernel of o to (j,c) features.

    With feature groups x's features are (j,c). With batch groups its batch is (j,n), so the
    convolution's features (j,c) are split and j joined to the batch.
    """
    lhs, rhs = instruction.operands
    if not is_differentiable(lhs):
        return None
    attributes, numbers = instruction.attributes, instruction.attributes["dim_labels"]
    feature_groups, batch_groups = _group_counts(instruction)
    groups = feature_groups * batch_groups
    gradient, kernel = like_cotangent(cotangent, rhs)
    kernel = _move_groups(
        kernel,
        numbers.kernel_output_feature_dimension,
        numbers.kernel_input_feature_dimension,
        groups,
    )
    window = transposed_window(
        attributes["window"],
        [lhs.array_shape.dimensions[d] for d in numbers.input_spatial_dimensions],
        [cotangent.array_shape.dimensions[d] for d in numbers.output_spatial_dimensions],
    )
    swapped = ConvDimensionNumbers(
        input_batch_dimension=numbers.output_batch_dimension,
        input_feature_dimension=numbers.output_feature_dimension,
        input_spatial_dimensions=numbers.output_spatial_dimensions,
        kernel_input_feature_dimension=numbers.kernel_output_feature_dimension,
        kernel_output_feature_dimension=numbers.kernel_input_feature_dimension,
        kernel_spatial_dimensions=numbers.kernel_spatial_dimensions,
        output_batch_dimension=numbers.input_batch_dimension,
        output_feature_dimension=numbers.input_feature_dimension,
        output_spatial_dimensions=numbers.input_spatial_dimensions,
    )
    result = conv_with_window(
        gradient,
        kernel,
        window,
        swapped,
        feature_group_count=groups,
        precision_config=attributes["operand_precision"] or None,
    )
    result = _move_groups(
        result, numbers.input_feature_dimension, numbers.input_batch_dimension, batch_groups
    )
    return convert_element_type(result, lhs.array_shape.element_type)


def _kernel_gradient(instruction: Instruction, cotangent: Instruction) -> Cotangent:
    """gw. Feature groups x[n, (j,c)] become groups of the new batch c, batch groups those of n."""
    lhs, rhs = instruction.operands
    if not is_differentiable(rhs):
        return None
    attributes, numbers = instruction.attributes, instruction.attributes["dim_labels"]
    feature_groups, batch_groups = _group_counts(instruction)
    gradient, base = like_cotangent(cotangent, lhs)
    sizes = [lhs.array_shape.dimensions[d] for d in numbers.input_spatial_dimensions]
    positions = [cotangent.array_shape.dimensions[d] for d in numbers.output_spatial_dimensions]
    window = _kernel_window(attributes["window"], sizes, positions)
    swapped = ConvDimensionNumbers(
        input_batch_dimension=numbers.input_feature_dimension,
        input_feature_dimension=numbers.input_batch_dimension,
        input_spatial_dimensions=numbers.input_spatial_dimensions,
        kernel_input_feature_dimension=numbers.output_batch_dimension,
        kernel_output_feature_dimension=numbers.output_feature_dimension,
        kernel_spatial_dimensions=numbers.output_spatial_dimensions,
        output_batch_dimension=numbers.kernel_input_feature_dimension,
        output_feature_dimension=numbers.kernel_output_feature_dimension,
        output_spatial_dimensions=numbers.kernel_spatial_dimensions,
    )
    result = conv_with_window(
        base,
        gradient,
        window,
        swapped,
        feature_group_count=batch_groups,
        batch_group_count=feature_groups,
        precision_config=attributes["operand_precision"] or None,
    )
    backwards = [
        dimension
        for dimension, entry in zip(
            numbers.kernel_spatial_dimensions, attributes["window"], strict=True
        )
        if entry.reversal
    ]
    result = rev(result, backwards) if backwards else result
    return convert_element_type(result, rhs.array_shape.element_type)


def _kernel_window(window: Window, sizes: Sequence[int], positions: Sequence[int]) -> Window:
    """As wide as there are positions, with room for one step per kernel element."""
    entries = []
    for entry, size, count in zip(window, sizes, positions, strict=True):
        needed = entry.dilated_size + (count - 1) * entry.stride
        entries.append(
            WindowDimension(
                count,
                stride=entry.window_dilation,
                padding_low=entry.padding_low,
                padding_high=needed - entry.dilated_base(size) - entry.padding_low,
                window_dilation=entry.stride,
                base_dilation=entry.base_dilation,
            )
        )
    return tuple(entries)


def _group_counts(instruction: Instruction) -> tuple[int, int]:
    attributes = instruction.attributes
    return attributes["feature_group_count"], attributes["batch_group_count"]


def _move_groups(array: Instruction, source: int, target: int, groups: int) -> Instruction:
    """``source``, which counts (group, x), loses the group to ``target``, which gets (group, y)."""
    if groups == 1:
        return array
    sizes = list(array.array_shape.dimensions)
    rank = len(sizes)
    split = [*sizes[:source], groups, sizes[source] // groups, *sizes[source + 1 :]]
    # After the split the group is dimension `source`; it goes in front of the target.
    rest = [d for d in range(rank + 1) if d != source]
    place = rest.index(target if target < source else target + 1)
    order = [*rest[:place], source, *rest[place:]]
    sizes[source] //= groups
    sizes[target] *= groups
    return reshape(transpose(reshape(array, split), order), sizes)
