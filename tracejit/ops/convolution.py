"""The convolution of neural networks, ConvGeneralDilated, with XLA's shorter forms of it.

conv_general(x, w, (1, 1), "SAME", ConvDimensionNumbers.from_labels("NHWC", "HWIO", "NHWC"))
"""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.attributes import Attribute, ConvDimensionNumbers, Kind, Window
from tracejit.errors import AttributeValueError, ShapeError
from tracejit.graph import Instruction
from tracejit.ops.base import define, make, require_array, require_same_element_type
from tracejit.ops.contraction import precisions, require_precisions, require_preferred
from tracejit.ops.mixed_types import of_one_type
from tracejit.ops.windows import Padding, make_window, window_output_sizes
from tracejit.shapes import AnyShape, ElementType, Shape


def _require_conv_numbers(base: Shape, kernel: Shape, numbers: ConvDimensionNumbers) -> None:
    function, rank = "conv_general_dilated", base.rank
    if rank != kernel.rank or rank < 2:
        raise ShapeError(
            f"{function}: lhs and rhs must have equal ranks, at least 2; lhs {base}, rhs {kernel}"
        )
    for side, first, second in (
        ("input", "batch", "feature"),
        ("kernel", "input_feature", "output_feature"),
        ("output", "batch", "feature"),
    ):
        roles = (
            getattr(numbers, f"{side}_{first}_dimension"),
            getattr(numbers, f"{side}_{second}_dimension"),
            *getattr(numbers, f"{side}_spatial_dimensions"),
        )
        if sorted(roles) != list(range(rank)):
            raise AttributeValueError(
                f"{function}: dimension_numbers must name every dimension of rank {rank} once; "
                f"{side} dimensions are {roles}"
            )


def _conv_sizes(
    lhs: AnyShape,
    rhs: AnyShape,
    numbers: ConvDimensionNumbers,
    window: Window,
    feature_group_count: int,
    batch_group_count: int,
) -> list[int]:
    """The result's dimensions; every constraint on the operands is checked here."""
    function = "conv_general_dilated"
    base = require_array(function, "lhs", lhs)
    kernel = require_array(function, "rhs", rhs)
    require_same_element_type(function, lhs=base, rhs=kernel)
    _require_conv_numbers(base, kernel, numbers)
    if feature_group_count < 1 or batch_group_count < 1:
        raise AttributeValueError(
            f"{function}: feature_group_count and batch_group_count must be positive, "
            f"not {feature_group_count} and {batch_group_count}"
        )
    if feature_group_count > 1 and batch_group_count > 1:
        raise AttributeValueError(
            f"{function}: only one of feature_group_count and batch_group_count may exceed 1; "
            f"they are {feature_group_count} and {batch_group_count}"
        )
    batch = base.dimensions[numbers.input_batch_dimension]
    features = base.dimensions[numbers.input_feature_dimension]
    kernel_features = kernel.dimensions[numbers.kernel_input_feature_dimension]
    out_features = kernel.dimensions[numbers.kernel_output_feature_dimension]
    if kernel_features * feature_group_count != features:
        raise ShapeError(
            f"{function}: the kernel's input features times feature_group_count "
            f"{feature_group_count} must be the input's features; lhs {base} dimension "
            f"{numbers.input_feature_dimension} is {features}, rhs {kernel} dimension "
            f"{numbers.kernel_input_feature_dimension} is {kernel_features}"
        )
    if out_features % feature_group_count or out_features % batch_group_count:
        raise ShapeError(
            f"{function}: the kernel's output features must be a multiple of feature_group_count "
            f"{feature_group_count} and batch_group_count {batch_group_count}; rhs {kernel} "
            f"dimension {numbers.kernel_output_feature_dimension} is {out_features}"
        )
    if batch % batch_group_count:
        raise ShapeError(
            f"{function}: the input's batch must be a multiple of batch_group_count "
            f"{batch_group_count}; lhs {base} dimension {numbers.input_batch_dimension} is {batch}"
        )
    spatial = [kernel.dimensions[d] for d in numbers.kernel_spatial_dimensions]
    if [entry.size for entry in window] != spatial:
        raise ShapeError(
            f"{function}: the window's sizes {[entry.size for entry in window]} must be the "
            f"kernel's spatial dimensions; rhs {kernel} has {spatial}"
        )
    positions = window_output_sizes(
        function,
        "lhs",
        base,
        [base.dimensions[d] for d in numbers.input_spatial_dimensions],
        window,
    )
    sizes = [0] * base.rank
    sizes[numbers.output_batch_dimension] = batch // batch_group_count
    sizes[numbers.output_feature_dimension] = out_features
    for dimension, size in zip(numbers.output_spatial_dimensions, positions, strict=True):
        sizes[dimension] = size
    return sizes


@define(
    "ConvGeneralDilated",
    "convolution",
    Attribute("window", Kind.WINDOW, ()),
    Attribute("dim_labels", Kind.DIM_LABELS),
    Attribute("feature_group_count", Kind.INT, 1),
    Attribute("batch_group_count", Kind.INT, 1),
    Attribute("operand_precision", Kind.PRECISIONS, ()),
    Attribute("shape", Kind.SHAPE),
)
def CONV_GENERAL_DILATED(
    lhs: AnyShape,
    rhs: AnyShape,
    *,
    window: Window,
    dim_labels: ConvDimensionNumbers,
    feature_group_count: int,
    batch_group_count: int,
    operand_precision: tuple[str, ...],
    shape: Shape,
) -> Shape:
    function = "conv_general_dilated"
    sizes = _conv_sizes(lhs, rhs, dim_labels, window, feature_group_count, batch_group_count)
    require_precisions(function, operand_precision)
    require_preferred(function, require_array(function, "lhs", lhs), shape.element_type)
    if list(shape.dimensions) != sizes:
        raise ShapeError(
            f"{function}: the result of lhs {lhs} and rhs {rhs} has dimensions {sizes}, not {shape}"
        )
    return shape.with_dimensions(sizes)


def conv_general_dilated(
    lhs: Instruction,
    rhs: Instruction,
    window_strides: Sequence[int] | None,
    padding: Padding,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvDimensionNumbers | None = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision_config: Sequence[str] | str | None = None,
    preferred_element_type: ElementType | None = None,
    window_reversal: Sequence[bool] | None = None,
) -> Instruction:
    """The convolution of neural networks, in full generality (XLA: ConvGeneralDilated).

    ``lhs`` is the input, ``rhs`` the kernel; ``dimension_numbers`` default to batch, feature,
    spatial… for input and output and output feature, input feature, spatial… for the kernel.
    ``padding`` is SAME, VALID or (low, high) for each spatial dimension, negative to crop.
    Padding and the holes of dilation take no part in sums: an infinity or a NaN opposite to them
    leaves the result alone, where XLA may multiply it with zero and make NaN. Raises `ShapeError`
    or `AttributeValueError` when something does not fit.
    """
    function = "conv_general_dilated"
    base = require_array(function, "lhs", lhs.shape)
    kernel = require_array(function, "rhs", rhs.shape)
    numbers = dimension_numbers or default_conv_dimension_numbers(base.rank)
    _require_conv_numbers(base, kernel, numbers)
    window = make_window(
        function,
        [base.dimensions[d] for d in numbers.input_spatial_dimensions],
        [kernel.dimensions[d] for d in numbers.kernel_spatial_dimensions],
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        window_reversal,
    )
    return conv_with_window(
        lhs,
        rhs,
        window,
        numbers,
        feature_group_count,
        batch_group_count,
        precision_config,
        preferred_element_type,
    )


def conv_with_window(
    lhs: Instruction,
    rhs: Instruction,
    window: Window,
    dimension_numbers: ConvDimensionNumbers,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision_config: Sequence[str] | str | None = None,
    preferred_element_type: ElementType | None = None,
) -> Instruction:
    """`conv_general_dilated` with its strides, padding, dilations and reversals in a window."""
    lhs, rhs = of_one_type(lhs, rhs, preferred_element_type)
    sizes = _conv_sizes(
        lhs.shape, rhs.shape, dimension_numbers, window, feature_group_count, batch_group_count
    )
    element_type = preferred_element_type or lhs.array_shape.element_type
    return make(
        CONV_GENERAL_DILATED,
        lhs,
        rhs,
        window=window,
        dim_labels=dimension_numbers,
        feature_group_count=feature_group_count,
        batch_group_count=batch_group_count,
        operand_precision=precisions(precision_config),
        shape=Shape(element_type, tuple(sizes)),
    )


def default_conv_dimension_numbers(rank: int) -> ConvDimensionNumbers:
    """(batch, feature, spatial…) for input and output, (output, input, spatial…) for the kernel."""
    spatial = tuple(range(2, rank))
    return ConvDimensionNumbers(0, 1, spatial, 1, 0, spatial, 0, 1, spatial)


def conv_general(
    lhs: Instruction,
    rhs: Instruction,
    window_strides: Sequence[int] | None,
    padding: Padding,
    dimension_numbers: ConvDimensionNumbers | None = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision_config: Sequence[str] | str | None = None,
    preferred_element_type: ElementType | None = None,
) -> Instruction:
    """`conv_general_dilated` without dilation (XLA: ConvGeneral)."""
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        None,
        None,
        dimension_numbers,
        feature_group_count,
        batch_group_count,
        precision_config,
        preferred_element_type,
    )


def conv_with_general_dimensions(
    lhs: Instruction,
    rhs: Instruction,
    window_strides: Sequence[int] | None,
    padding: str,
    dimension_numbers: ConvDimensionNumbers,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision_config: Sequence[str] | str | None = None,
    preferred_element_type: ElementType | None = None,
) -> Instruction:
    """`conv_general` padded SAME or VALID (XLA: ConvWithGeneralDimensions)."""
    return conv_general(
        lhs,
        rhs,
        window_strides,
        padding,
        dimension_numbers,
        feature_group_count,
        batch_group_count,
        precision_config,
        preferred_element_type,
    )


def conv_with_general_padding(
    lhs: Instruction,
    rhs: Instruction,
    window_strides: Sequence[int] | None,
    padding: Sequence[Sequence[int]],
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision_config: Sequence[str] | str | None = None,
    preferred_element_type: ElementType | None = None,
) -> Instruction:
    """`conv_general` with default dimension numbers (XLA: ConvWithGeneralPadding)."""
    return conv_general(
        lhs,
        rhs,
        window_strides,
        padding,
        None,
        feature_group_count,
        batch_group_count,
        precision_config,
        preferred_element_type,
    )


def conv(
    lhs: Instruction,
    rhs: Instruction,
    window_strides: Sequence[int] | None,
    padding: str,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision_config: Sequence[str] | str | None = None,
    preferred_element_type: ElementType | None = None,
) -> Instruction:
    """`conv_general` with default dimension numbers, padded SAME or VALID (XLA: Conv)."""
    return conv_general(
        lhs,
        rhs,
        window_strides,
        padding,
        None,
        feature_group_count,
        batch_group_count,
        precision_config,
        preferred_element_type,
    )
