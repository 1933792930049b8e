"""DotGeneral and ConvGeneralDilated: the specification's examples, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tests.ops.evaluation import evaluated
from tracejit import ops
from tracejit.attributes import ConvDimensionNumbers
from tracejit.errors import AttributeValueError, ElementTypeError, ShapeError, TracejitError
from tracejit.graph import Instruction
from tracejit.ops import DotDimensionNumbers
from tracejit.ops.base import make
from tracejit.ops.convolution import default_conv_dimension_numbers
from tracejit.shapes import ElementType, Shape

F32, F64, S8, S32 = ElementType.F32, ElementType.F64, ElementType.S8, ElementType.S32
NHWC = ConvDimensionNumbers.from_labels("NHWC", "HWIO", "NHWC")


def array(*dimensions: int, element_type: ElementType = F32) -> Instruction:
    return ops.parameter(0, Shape(element_type, dimensions))


def with_rhs(product: Instruction, rhs: Instruction) -> Instruction:
    """The same op on another right operand."""
    return make(product.op, product.operands[0], rhs, **product.attributes)


def integers(*dimensions: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-4, 5, dimensions).astype(np.float32)


@pytest.mark.parametrize(
    ("lhs", "rhs", "result"),
    [((4,), (4,), ()), ((3, 4), (4,), (3,)), ((3, 4), (4, 2), (3, 2)), ((4,), (4, 2), (2,))],
)
def test_dot_by_rank(lhs: tuple[int, ...], rhs: tuple[int, ...], result: tuple[int, ...]) -> None:
    left, right = integers(*lhs), integers(*rhs, seed=1)
    product = evaluated(ops.dot, left, right)
    assert product.shape == result
    assert_array_equal(product, left @ right)


def test_dot_general_over_second_dimensions() -> None:
    lhs = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    rhs = np.array([[1, 1, 1], [2, 2, 2]], np.float32)
    numbers = DotDimensionNumbers((1,), (1,))
    product = evaluated(lambda x, y: ops.dot_general(x, y, numbers), lhs, rhs)
    assert_array_equal(product, [[6, 12], [15, 30]])


def test_dot_general_of_a_batch() -> None:
    lhs = np.array([[[1, 2], [3, 4]], [[5, 6], [7, 8]]], np.float32)
    rhs = np.array([[[1, 0], [0, 1]], [[1, 0], [0, 1]]], np.float32)
    numbers = DotDimensionNumbers((2,), (1,), (0,), (0,))
    product = evaluated(lambda x, y: ops.dot_general(x, y, numbers), lhs, rhs)
    assert_array_equal(product, [[[1, 2], [3, 4]], [[5, 6], [7, 8]]])


@pytest.mark.parametrize(
    ("lhs", "rhs", "result"),
    [
        (F32, F64, F64),
        (F64, F32, F64),
        (S8, F32, F32),
        (F32, ElementType.C64, ElementType.C64),
        (ElementType.F8E4M3FN, ElementType.F8E5M2, ElementType.F16),
    ],
)
def test_products_of_two_element_types(
    lhs: ElementType, rhs: ElementType, result: ElementType
) -> None:
    left, right = integers(2, 3).astype(lhs.dtype), integers(3, seed=1).astype(rhs.dtype)
    product = evaluated(ops.dot, left, right)
    assert product.dtype == result.dtype
    assert_array_equal(product, left.astype(result.dtype) @ right.astype(result.dtype))
    image, kernel = integers(1, 2, 5, 5).astype(lhs.dtype), integers(3, 2, 3, 3).astype(rhs.dtype)
    convolved = evaluated(lambda x, w: ops.conv(x, w, (1, 1), "SAME"), image, kernel)
    assert convolved.dtype == result.dtype
    wide = [array.astype(result.dtype) for array in (image, kernel)]
    assert_array_equal(convolved, evaluated(lambda x, w: ops.conv(x, w, (1, 1), "SAME"), *wide))


@pytest.mark.parametrize("batch", [(2,), (2, 3)])
def test_dot_general_puts_batch_dimensions_first(batch: tuple[int, ...]) -> None:
    rank = len(batch)
    numbers = DotDimensionNumbers((rank + 1,), (rank,), tuple(range(rank)), tuple(range(rank)))
    lhs, rhs = integers(*batch, 4, 5), integers(*batch, 5, 6, seed=1)
    product = evaluated(lambda x, y: ops.dot_general(x, y, numbers), lhs, rhs)
    assert_array_equal(product, lhs @ rhs)


def test_narrow_integers_wrap_unless_a_wider_type_is_preferred() -> None:
    lhs = rhs = np.full((1, 1), 100, np.int8)
    assert evaluated(ops.dot, lhs, rhs) == 100 * 100 - 39 * 256
    wide = evaluated(lambda x, y: ops.dot(x, y, preferred_element_type=S32), lhs, rhs)
    assert wide == 10000
    assert wide.dtype == np.int32


def test_conv_as_the_specification_spells_it_out() -> None:
    image, kernel = integers(2, 3, 5, 6), integers(4, 3, 3, 2, seed=1)
    stride_y, stride_x, low_y, low_x = 2, 1, 1, 2
    padding = [(low_y, 1), (low_x, 0)]
    result = evaluated(
        lambda x, w: ops.conv_with_general_padding(x, w, (stride_y, stride_x), padding),
        image,
        kernel,
    )
    assert result.shape == (2, 4, 3, 7)
    for b, oz, oy, ox in np.ndindex(result.shape):
        value = 0.0
        for iz, ky, kx in np.ndindex(kernel.shape[1:]):
            iy, ix = oy * stride_y + ky - low_y, ox * stride_x + kx - low_x
            if 0 <= iy < 5 and 0 <= ix < 6:
                value += image[b, iz, iy, ix] * kernel[oz, iz, ky, kx]
        assert result[b, oz, oy, ox] == value


def test_conv_same_keeps_the_size() -> None:
    result = evaluated(
        lambda x, w: ops.conv(x, w, (1, 1), "SAME"), integers(1, 1, 4, 5), integers(1, 1, 3, 2)
    )
    assert result.shape == (1, 1, 4, 5)


def test_depthwise_conv_convolves_each_channel_alone() -> None:
    channels, multiplier = 3, 2
    image = integers(1, 5, 5, channels)
    kernel = integers(2, 2, channels, multiplier, seed=1)

    def depthwise(x: Instruction, w: Instruction) -> Instruction:
        flat = ops.reshape(w, [2, 2, 1, channels * multiplier])
        return ops.conv_general(x, flat, (1, 1), "VALID", NHWC, feature_group_count=channels)

    result = evaluated(depthwise, image, kernel)
    for channel in range(channels):
        alone = evaluated(
            lambda x, w: ops.conv_general(x, w, (1, 1), "VALID", NHWC),
            image[..., channel : channel + 1],
            kernel[:, :, channel : channel + 1],
        )
        at = channel * multiplier
        assert_array_equal(result[..., at : at + multiplier], alone)


def test_batch_groups_pair_with_groups_of_output_features() -> None:
    groups, image, kernel = 2, integers(6, 3, 4), integers(4, 3, 2, seed=1)
    result = evaluated(
        lambda x, w: ops.conv(x, w, (1,), "VALID", batch_group_count=groups), image, kernel
    )
    parts = [
        evaluated(lambda x, w: ops.conv(x, w, (1,), "VALID"), x, w)
        for x, w in zip(np.split(image, groups), np.split(kernel, groups), strict=True)
    ]
    assert_array_equal(result, np.concatenate(parts, 1))


def test_lhs_dilation_is_padding_with_zeros_in_between() -> None:
    image, kernel = integers(1, 1, 4), integers(1, 1, 3, seed=1)
    spread = np.zeros((1, 1, 10), np.float32)
    spread[..., ::3] = image
    dilated = evaluated(
        lambda x, w: ops.conv_general_dilated(x, w, (1,), "VALID", lhs_dilation=(3,)),
        image,
        kernel,
    )
    assert_array_equal(
        dilated, evaluated(lambda x, w: ops.conv(x, w, (1,), "VALID"), spread, kernel)
    )


def test_window_reversal_turns_the_kernel_round() -> None:
    image, kernel = integers(1, 1, 5, 5), integers(1, 1, 2, 3, seed=1)
    turned = evaluated(
        lambda x, w: ops.conv_general_dilated(x, w, (1, 1), "VALID", window_reversal=(False, True)),
        image,
        kernel,
    )
    straight = evaluated(
        lambda x, w: ops.conv(x, w, (1, 1), "VALID"), image, kernel[..., ::-1].copy()
    )
    assert_array_equal(turned, straight)


def test_precision_config_is_kept_only_where_it_says_something() -> None:
    x, y = array(2, 3), array(3, 2)
    assert ops.dot(x, y).attributes["operand_precision"] == ()
    assert ops.dot(x, y, "DEFAULT").attributes["operand_precision"] == ()
    assert ops.dot(x, y, ("HIGH", "default")).attributes["operand_precision"] == (
        "high",
        "default",
    )


IMAGE, KERNEL = array(2, 4, 5, 5), array(6, 4, 3, 3)


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (
            lambda: ops.dot(array(2, 3), array(4, 5)),
            ShapeError,
            r"dot_general: contracting dimensions must have equal sizes; lhs f32\[2,3\] dimension "
            r"1 is 3, rhs f32\[4,5\] dimension 0 is 4 \(test_contraction.py:\d+\)",
        ),
        (
            lambda: ops.dot(array(2, 3, 4), array(4)),
            ShapeError,
            r"dot: operands must have rank 1 or 2; lhs f32\[2,3,4\]",
        ),
        (
            # ops.dot converts operands of two types; the op itself takes one type.
            lambda: with_rhs(ops.dot(array(2, 3), array(3)), array(3, element_type=F64)),
            ElementTypeError,
            r"dot_general: element types must be equal; lhs f32\[2,3\], rhs f64\[3\]",
        ),
        (
            lambda: ops.dot_general(
                array(2, 3), array(3, 3), DotDimensionNumbers((1,), (0,), (0,), (1,))
            ),
            ShapeError,
            r"dot_general: batch dimensions must have equal sizes; lhs f32\[2,3\] dimension 0 is 2",
        ),
        (
            lambda: ops.dot_general(array(2, 3), array(3), DotDimensionNumbers((1,), ())),
            AttributeValueError,
            r"dot_general: lhs and rhs must have equally many contracting dimensions",
        ),
        (
            lambda: ops.dot_general(array(2, 3), array(3), DotDimensionNumbers((2,), (0,))),
            AttributeValueError,
            r"dot_general: lhs_batch_dimensions and lhs_contracting_dimensions of f32\[2,3\] must "
            r"be distinct dimension numbers below rank 2, not \(2,\)",
        ),
        (
            lambda: ops.dot_general(
                array(2, 2), array(2, 2), DotDimensionNumbers((1,), (1,), (1,), (0,))
            ),
            AttributeValueError,
            r"dot_general: lhs_batch_dimensions and lhs_contracting_dimensions .* not \(1, 1\)",
        ),
        (
            lambda: ops.dot(array(2), array(2), precision_config="best"),
            AttributeValueError,
            r"dot_general: precision_config must be two of default, high, highest",
        ),
        (
            lambda: ops.dot(array(2), array(2), preferred_element_type=S32),
            ElementTypeError,
            r"dot_general: preferred_element_type s32 does not fit operands of element type f32",
        ),
        (
            lambda: ops.dot(
                array(2, element_type=S32), array(2, element_type=S32), None, ElementType.S8
            ),
            ElementTypeError,
            r"dot_general: preferred_element_type s8 does not fit operands of element type s32",
        ),
        (
            lambda: ops.conv(array(2, 3, 4), array(2, 3), (1,), "SAME"),
            ShapeError,
            r"conv_general_dilated: lhs and rhs must have equal ranks, at least 2; "
            r"lhs f32\[2,3,4\], rhs f32\[2,3\]",
        ),
        (
            lambda: ops.conv(IMAGE, array(6, 3, 3, 3), (1, 1), "SAME"),
            ShapeError,
            r"the kernel's input features times feature_group_count 1 must be the input's "
            r"features; lhs f32\[2,4,5,5\] dimension 1 is 4, rhs f32\[6,3,3,3\] dimension 1 is 3",
        ),
        (
            lambda: ops.conv(IMAGE, array(5, 2, 3, 3), (1, 1), "SAME", feature_group_count=2),
            ShapeError,
            r"output features must be a multiple of feature_group_count 2 .* dimension 0 is 5",
        ),
        (
            lambda: ops.conv(IMAGE, KERNEL, (1, 1), "SAME", batch_group_count=3),
            ShapeError,
            r"the input's batch must be a multiple of batch_group_count 3; lhs f32\[2,4,5,5\] "
            r"dimension 0 is 2",
        ),
        (
            lambda: ops.conv(
                IMAGE, array(6, 2, 3, 3), (1, 1), "SAME", feature_group_count=2, batch_group_count=2
            ),
            AttributeValueError,
            r"only one of feature_group_count and batch_group_count may exceed 1",
        ),
        (
            lambda: ops.conv(IMAGE, KERNEL, (1, 1), "SAME", feature_group_count=0),
            AttributeValueError,
            r"feature_group_count and batch_group_count must be positive, not 0 and 1",
        ),
        (
            lambda: ops.conv(IMAGE, KERNEL, (1,), "SAME"),
            AttributeValueError,
            r"conv_general_dilated: window_strides must be 2 positive numbers, not \(1,\)",
        ),
        (
            lambda: ops.conv(IMAGE, array(6, 4, 0, 3), (1, 1), "SAME"),
            AttributeValueError,
            r"conv_general_dilated: window_dimensions must be 2 positive numbers, not \(0, 3\)",
        ),
        (
            lambda: ops.conv_general(
                IMAGE,
                KERNEL,
                (1, 1),
                "SAME",
                replace(default_conv_dimension_numbers(4), input_batch_dimension=1),
            ),
            AttributeValueError,
            r"dimension_numbers must name every dimension of rank 4 once; input dimensions are "
            r"\(1, 1, 2, 3\)",
        ),
        (
            lambda: ops.conv_general_dilated(
                IMAGE, KERNEL, (1, 1), "SAME", window_reversal=(True,)
            ),
            AttributeValueError,
            r"conv_general_dilated: window_reversal must be 2 booleans, not \(True,\)",
        ),
        (
            lambda: with_rhs(
                ops.conv(IMAGE, KERNEL, (1, 1), "SAME"), array(6, 4, 3, 3, element_type=F64)
            ),
            ElementTypeError,
            r"conv_general_dilated: element types must be equal; lhs f32\[2,4,5,5\], rhs f64",
        ),
    ],
)
def test_refusals(
    build: Callable[[], Instruction], error: type[TracejitError], message: str
) -> None:
    with pytest.raises(error, match=message):
        build()
