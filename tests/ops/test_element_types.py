"""ConvertElementType, BitcastConvertType and ReducePrecision: examples, and what is refused."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.evaluation import evaluated, given
from tracejit import ops
from tracejit.errors import AttributeValueError, ElementTypeError, ShapeError
from tracejit.ops.base import make
from tracejit.ops.element_types import BITCAST_CONVERT_TYPE, CONVERT_ELEMENT_TYPE
from tracejit.shapes import ElementType, Shape

F32, F64, S32, U8, C64 = (ElementType(t) for t in ("f32", "f64", "s32", "u8", "c64"))


def test_convert_example() -> None:
    converted = evaluated(lambda a: ops.convert_element_type(a, F32), np.array([0, 1, 2], np.int32))
    assert converted.dtype == np.float32
    np.testing.assert_array_equal(converted, [0.0, 1.0, 2.0])


def test_convert_rounds_integers_to_nearest_even() -> None:
    large = np.array([2**24 + 1, 2**24 + 3, -(2**24) - 1], np.int32)
    converted = evaluated(lambda a: ops.convert_element_type(a, F32), large)
    np.testing.assert_array_equal(converted, [2.0**24, 2.0**24 + 4, -(2.0**24)])


def test_convert_to_its_own_type_is_nothing() -> None:
    operand = given("f32[2]")
    assert ops.convert_element_type(operand, F32) is operand
    assert ops.bitcast_convert_type(operand, F32) is operand


@pytest.mark.parametrize("target", ["f32", "s8", "pred"])
def test_convert_refuses_complex_to_real(target: str) -> None:
    message = f"convert_element_type: a complex operand has no {target} value"
    with pytest.raises(ElementTypeError, match=message):
        ops.convert_element_type(given("c64[2]"), ElementType(target))


def test_convert_refuses_other_dimensions() -> None:
    with pytest.raises(ShapeError, match="convert_element_type: dimensions must be equal"):
        make(CONVERT_ELEMENT_TYPE, given("f32[2]"), shape=Shape(F64, (3,)))


def test_convert_refuses_tuples() -> None:
    pair = ops.tuple_([given("f32[2]")])
    for function in (ops.convert_element_type, ops.bitcast_convert_type):
        with pytest.raises(ShapeError, match="operand must be an array"):
            function(pair, F64)


@pytest.mark.parametrize(
    ("operand", "target", "result"),
    [
        ("f32[10]", "f16", "f16[10,2]"),
        ("f32[]", "f16", "f16[2]"),
        ("f16[10,2]", "f32", "f32[10]"),
        ("f16[2]", "f32", "f32[]"),
        ("s32[3]", "f32", "f32[3]"),
        ("s32[]", "s8", "s8[4]"),
        ("f64[2,0]", "u4", "u4[2,0,16]"),
        ("u4[5,2]", "s8", "s8[5]"),
        ("bf16[0,4]", "u64", "u64[0]"),
    ],
)
def test_bitcast_shapes_of_the_page(operand: str, target: str, result: str) -> None:
    assert str(ops.bitcast_convert_type(given(operand), ElementType(target)).shape) == result


def test_bitcast_keeps_the_bits() -> None:
    one = np.array([1.0, -2.0], np.float32)
    bits = evaluated(lambda x: ops.bitcast_convert_type(x, S32), one)
    np.testing.assert_array_equal(bits, [0x3F800000, -0x40000000])
    parts = evaluated(lambda x: ops.bitcast_convert_type(x, U8), one)
    np.testing.assert_array_equal(parts, [[0, 0, 0x80, 0x3F], [0, 0, 0, 0xC0]])
    np.testing.assert_array_equal(evaluated(lambda x: ops.bitcast_convert_type(x, F32), parts), one)


def test_bitcast_of_four_bits_takes_the_low_ones_first() -> None:
    nibbles = evaluated(
        lambda x: ops.bitcast_convert_type(x, ElementType.U4), np.array([0x2F, 0x80], np.uint8)
    )
    np.testing.assert_array_equal(nibbles.astype(np.uint8), [[15, 2], [0, 8]])


@pytest.mark.parametrize(
    ("operand", "target", "error", "message"),
    [
        ("f16[10]", "f32", ShapeError, "from f16 to f32 the last dimension must be 2"),
        ("f16[]", "f32", ShapeError, "from f16 to f32 the last dimension must be 2"),
        ("u8[2,3]", "f32", ShapeError, "from u8 to f32 the last dimension must be 4"),
        ("c64[2]", "u64", ElementTypeError, "complex bits cannot be read as another type"),
        ("f32[2,2]", "c64", ElementTypeError, "complex bits cannot be read as another type"),
        ("pred[8]", "u8", ElementTypeError, "pred has no bits to read as another type"),
        ("u8[8]", "pred", ElementTypeError, "pred has no bits to read as another type"),
    ],
)
def test_bitcast_refuses(operand: str, target: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(f"bitcast_convert_type: {message}")):
        ops.bitcast_convert_type(given(operand), ElementType(target))


def test_bitcast_refuses_another_result() -> None:
    with pytest.raises(ShapeError, match=r"operand f32\[2\] makes s32\[2\], result is s32\[3\]"):
        make(BITCAST_CONVERT_TYPE, given("f32[2]"), shape=Shape(S32, (3,)))


def test_reduce_precision_to_half() -> None:
    values = np.array([1 / 3, 65504, 65520, -1e5, 2.0**-14, 2.0**-15, np.nan], np.float32)
    reduced = evaluated(lambda x: ops.reduce_precision(x, 5, 10), values)
    half = np.float32(np.float16(1 / 3))
    # 65520 rounds beyond the greatest half; 2**-15 lies below the smallest normal one.
    expected = [half, 65504, np.inf, -np.inf, 2.0**-14, 0, np.nan]
    np.testing.assert_array_equal(reduced, expected)


def test_reduce_precision_rounds_ties_to_even() -> None:
    values = np.array([1.25, 1.75, -1.25, 1.26], np.float64)
    reduced = evaluated(lambda x: ops.reduce_precision(x, 11, 1), values)
    np.testing.assert_array_equal(reduced, [1.0, 2.0, -1.0, 1.5])


def test_reduce_precision_beyond_its_own_is_nothing() -> None:
    values = np.array([1 / 3, 1e-45, 3e38, -np.inf], np.float32)
    reduced = evaluated(lambda x: ops.reduce_precision(x, 9, 24), values)
    np.testing.assert_array_equal(reduced, values)


@pytest.mark.parametrize(
    ("operand", "exponent_bits", "mantissa_bits", "error", "message"),
    [
        ("f32[2]", 0, 10, AttributeValueError, "exponent_bits must be at least 1, not 0"),
        ("f32[2]", 5, -1, AttributeValueError, "mantissa_bits must not be negative, not -1"),
        ("s32[2]", 5, 10, ElementTypeError, "operand s32[2] has element type s32"),
        ("c64[2]", 5, 10, ElementTypeError, "operand c64[2] has element type c64"),
    ],
)
def test_reduce_precision_refuses(
    operand: str, exponent_bits: int, mantissa_bits: int, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=re.escape(f"reduce_precision: {message}")):
        ops.reduce_precision(given(operand), exponent_bits, mantissa_bits)


def test_complex_to_wider_complex() -> None:
    value = np.array([1 + 2j], np.complex64)
    widened = evaluated(lambda x: ops.convert_element_type(x, ElementType.C128), value)
    assert widened.dtype == np.complex128
    np.testing.assert_array_equal(widened, value)
