"""DotGeneral and ConvGeneralDilated: the gradients of a contraction are contractions again."""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.attributes import ConvDimensionNumbers, Window, WindowDimension
from tracejit.autodiff.reverse import Cotangent, Cotangents, differentiate, is_differentiable
from tracejit.autodiff.rules.windows import transposed_window
from tracejit.graph import Instruction
from tracejit.ops.contraction import (
    CONV_GENERAL_DILATED,
    DOT_GENERAL,
    DotDimensionNumbers,
    conv_with_window,
    dot_general,
)
from tracejit.ops.element_types import convert_element_type
from tracejit.ops.layout import reshape, rev, transpose


def _like_cotangent(cotangent: Instruction, other: Instruction) -> tuple[Instruction, Instruction]:
    """Both in the wider of their types: a preferred_element_type may differ from the operands'."""
    given, wanted = (i.array_shape.element_type for i in (cotangent, other))
    wider = given if given.bits > wanted.bits else wanted
    return convert_element_type(cotangent, wider), convert_element_type(other, wider)


def _others(rank: int, *taken: Sequence[int]) -> tuple[int, ...]:
    return tuple(d for d in range(rank) if not any(d in some for some in taken))


@differentiate.attach(DOT_GENERAL)
def dot_general_rule(instruction: Instruction, cotangent: Instruction) -> Cotangents:
    lhs, rhs = instruction.operands
    a = instruction.attributes
    lhs_sides = (a["lhs_batch_dims"], a["lhs_contracting_dims"])
    rhs_sides = (a["rhs_batch_dims"], a["rhs_contracting_dims"])
    batch = len(lhs_sides[0])
    lhs_rest = lhs.array_shape.rank - batch - len(lhs_sides[1])
    # The result has the batch dimensions first, then those left of lhs, then those left of rhs.
    of_lhs = tuple(range(batch, batch + lhs_rest))
    of_rhs = tuple(range(batch + lhs_rest, cotangent.array_shape.rank))
    precision = a["operand_precision"] or None
    return (
        _dot_gradient(cotangent, of_rhs, lhs, lhs_sides, rhs, rhs_sides, precision),
        _dot_gradient(cotangent, of_lhs, rhs, rhs_sides, lhs, lhs_sides, precision),
    )


def _dot_gradient(
    cotangent: Instruction,
    summed: tuple[int, ...],
    wanted: Instruction,
    wanted_sides: tuple[tuple[int, ...], tuple[int, ...]],
    other: Instruction,
    other_sides: tuple[tuple[int, ...], tuple[int, ...]],
    precision: Sequence[str] | None,
) -> Cotangent:
    """The cotangent of ``wanted``: the result's times ``other``, summed over what is other's alone.

    The sum's dimensions are batch, what is wanted's alone, then the once contracted dimensions in
    other's order; the transposition brings them where ``wanted`` has them.
    """
    if not is_differentiable(wanted):
        return None
    wanted_batch, wanted_contracting = wanted_sides
    other_batch, other_contracting = other_sides
    left, right = _like_cotangent(cotangent, other)
    numbers = DotDimensionNumbers(
        summed,
        _others(other.array_shape.rank, other_batch, other_contracting),
        tuple(range(len(other_batch))),
        other_batch,
    )
    product = dot_general(left, right, numbers, precision)
    contracted = [w for _, w in sorted(zip(other_contracting, wanted_contracting, strict=True))]
    places = [
        *wanted_batch,
        *_others(wanted.array_shape.rank, wanted_batch, wanted_contracting),
        *contracted,
    ]
    order = [places.index(d) for d in range(len(places))]
    moved = product if order == sorted(order) else transpose(product, order)
    return convert_element_type(moved, wanted.array_shape.element_type)


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
    gradient, kernel = _like_cotangent(cotangent, rhs)
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
    gradient, base = _like_cotangent(cotangent, lhs)
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
