"""Convolutions, spelled as in `jax.lax`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit.attributes import ConvDimensionNumbers
from tracejit.errors import AttributeValueError
from tracejit.lax.contraction import Precision, preferred
from tracejit.lax.elementwise import operands
from tracejit.ops import convolution, layout
from tracejit.ops.windows import Padding
from tracejit.trace.public import public
from tracejit.trace.tracer import lift
from tracejit.tracebacks import names_misuse

ConvLabels = ConvDimensionNumbers | tuple[str, str, str] | None


@names_misuse
def conv_dimension_numbers(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], dimension_numbers: ConvLabels
) -> ConvDimensionNumbers:
    """What each dimension means, from labels such as ("NHWC", "HWIO", "NHWC").

    None means NC…, OI…, NC…. Raises `AttributeValueError` for labels of another length.

    >>> tj.lax.conv_dimension_numbers(
    ...     (1, 8, 8, 3), (3, 3, 3, 4), ("NHWC", "HWIO", "NHWC")
    ... ).input_feature_dimension
    3
    """
    rank = len(lhs_shape)
    if dimension_numbers is None:
        return convolution.default_conv_dimension_numbers(rank)
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    if any(len(set(labels)) != rank for labels in dimension_numbers) or len(rhs_shape) != rank:
        raise AttributeValueError(
            f"conv: labels {dimension_numbers} must each name {rank} dimensions"
        )
    lhs, rhs, out = dimension_numbers
    return ConvDimensionNumbers.from_labels(lhs, rhs, out)


@public
def conv_general_dilated(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: Padding,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvLabels = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: Precision = None,
    preferred_element_type: Any = None,
) -> Any:
    """The convolution of neural networks: ``lhs`` is the input, ``rhs`` the kernel.

    Raises `ArgumentError` for what is no array of numbers, `ShapeError` for shapes that do not
    fit and `AttributeValueError` for an option or a size out of range.

    >>> tj.lax.conv_general_dilated(np.ones((1, 1, 4)), np.ones((1, 1, 2)), (2,), "VALID").ravel()
    array([2., 2.])
    """
    x, y = operands(lhs, rhs)
    numbers = conv_dimension_numbers(
        x.array_shape.dimensions, y.array_shape.dimensions, dimension_numbers
    )
    made = convolution.conv_general_dilated(
        x,
        y,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        numbers,
        feature_group_count,
        batch_group_count,
        precision,
        preferred(preferred_element_type),
    )
    return lift(made, False)


@public
def conv(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: str,
    precision: Precision = None,
    preferred_element_type: Any = None,
) -> Any:
    """`conv_general_dilated` of NC… with OI…, padded SAME or VALID.

    Raises `ArgumentError` for what is no array of numbers, `ShapeError` for shapes that do not
    fit and `AttributeValueError` for an option or a size out of range.

    >>> tj.lax.conv(np.ones((1, 1, 4)), np.ones((1, 1, 2)), (1,), "VALID").ravel()
    array([2., 2., 2.])
    """
    x, y = operands(lhs, rhs)
    element_type = preferred(preferred_element_type)
    made = convolution.conv_general_dilated(
        x,
        y,
        window_strides,
        padding,
        precision_config=precision,
        preferred_element_type=element_type,
    )
    return lift(made, False)


@public
def conv_transpose(
    lhs: Any,
    rhs: Any,
    strides: Sequence[int],
    padding: Padding,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvLabels = None,
    transpose_kernel: bool = False,
    precision: Precision = None,
    preferred_element_type: Any = None,
) -> Any:
    """A convolution that makes the input larger by ``strides``.

    With ``transpose_kernel`` it is the gradient of the convolution with that kernel: spatially
    flipped, features exchanged. Without labels they are NHWC, HWIO, NHWC and the like.

    Raises `ArgumentError` for what is no array of numbers, `ShapeError` for shapes that do not
    fit and `AttributeValueError` for an option or a size out of range.

    >>> tj.lax.conv_transpose(
    ...     np.ones((1, 2, 1)),
    ...     np.ones((2, 1, 1)),
    ...     (2,),
    ...     "VALID",
    ...     dimension_numbers=("NHC", "HIO", "NHC"),
    ... ).ravel()
    array([1., 1., 1., 1.])
    """
    x, y = operands(lhs, rhs)
    rank = x.array_shape.rank
    spatial = {3: "H", 4: "HW", 5: "DHW"}.get(rank, "")
    labels = dimension_numbers or (f"N{spatial}C", f"{spatial}IO", f"N{spatial}C")
    numbers = conv_dimension_numbers(x.array_shape.dimensions, y.array_shape.dimensions, labels)
    kernel = [y.array_shape.dimensions[d] for d in numbers.kernel_spatial_dimensions]
    dilation = list(rhs_dilation or [1] * len(kernel))
    extents = [(k - 1) * r + 1 for k, r in zip(kernel, dilation, strict=True)]
    pads = (
        [_transpose_padding(k, s, padding) for k, s in zip(extents, strides, strict=True)]
        if isinstance(padding, str)
        else [(int(low), int(high)) for low, high in padding]
    )
    if transpose_kernel:
        y = layout.rev(y, numbers.kernel_spatial_dimensions)
        order = list(range(rank))
        first = numbers.kernel_input_feature_dimension
        second = numbers.kernel_output_feature_dimension
        order[first], order[second] = second, first
        y = layout.transpose(y, order)
    made = convolution.conv_general_dilated(
        x,
        y,
        [1] * len(kernel),
        pads,
        strides,
        dilation,
        numbers,
        precision_config=precision,
        preferred_element_type=preferred(preferred_element_type),
    )
    return lift(made, False)


def _transpose_padding(extent: int, stride: int, padding: str) -> tuple[int, int]:
    if padding == "SAME":
        total = extent + stride - 2
        low = extent - 1 if stride > extent - 1 else int(np.ceil(total / 2))
    else:
        total = extent + stride - 2 + max(extent - stride, 0)
        low = extent - 1
    return low, total - low
