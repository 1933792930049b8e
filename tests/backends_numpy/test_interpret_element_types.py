"""Conversions at the ends of each type's range."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from tests.evaluation import evaluated
from tracejit import ops
from tracejit.shapes import ElementType

INTEGRAL = [t for t in ElementType if t.is_integral]
FLOATING = [t for t in ElementType if t.is_floating]


def limits(element_type: ElementType) -> tuple[int, int]:
    if element_type.is_signed:
        return -(2 ** (element_type.bits - 1)), 2 ** (element_type.bits - 1) - 1
    return 0, 2**element_type.bits - 1


@pytest.mark.parametrize("target", INTEGRAL, ids=str)
@pytest.mark.parametrize("source", FLOATING, ids=str)
def test_floats_saturate(source: ElementType, target: ElementType) -> None:
    low, high = limits(target)
    largest = float(ml_dtypes.finfo(source.dtype).max)  # type: ignore[no-untyped-call]
    values = np.array([np.nan, 1.75, 0.5, largest, -largest]).astype(source.dtype)
    converted = evaluated(lambda x: ops.convert_element_type(x, target), values)
    numbers = [0 if math.isnan(value) else int(value) for value in values.astype(np.float64)]
    assert [int(value) for value in converted] == [min(max(n, low), high) for n in numbers]


@pytest.mark.parametrize("target", INTEGRAL, ids=str)
def test_infinities_saturate(target: ElementType) -> None:
    infinite = np.array([np.inf, -np.inf], np.float32)
    converted = evaluated(lambda x: ops.convert_element_type(x, target), infinite)
    assert [int(value) for value in converted] == list(limits(target))[::-1]


def test_limits_that_floats_cannot_hold() -> None:
    """2**63 - 1 is not a float64; what rounds to 2**63 must still saturate."""
    values = np.array([2.0**63, np.nextafter(2.0**63, 0), -(2.0**63)])
    converted = evaluated(lambda x: ops.convert_element_type(x, ElementType.S64), values)
    assert [int(value) for value in converted] == [2**63 - 1, 2**63 - 1024, -(2**63)]


@pytest.mark.parametrize("target", INTEGRAL, ids=str)
def test_integers_keep_their_low_bits(target: ElementType) -> None:
    numbers = [300, -1, 2**40 + 5, -(2**40)]
    values = np.array(numbers, np.int64)
    converted = evaluated(lambda x: ops.convert_element_type(x, target), values)
    low, _ = limits(target)
    expected = [(number - low) % 2**target.bits + low for number in numbers]
    assert [int(value) for value in converted] == expected


@pytest.mark.parametrize("source", list(ElementType), ids=str)
def test_pred_is_whether_it_is_not_zero(source: ElementType) -> None:
    if source.is_complex:
        return
    values = np.array([0, 1]).astype(source.dtype)
    converted = evaluated(lambda x: ops.convert_element_type(x, ElementType.PRED), values)
    np.testing.assert_array_equal(converted, [not source.has_zero, True])


def test_small_and_nan_are_not_zero() -> None:
    values = np.array([np.nan, 0.25, -0.0])
    converted = evaluated(lambda x: ops.convert_element_type(x, ElementType.PRED), values)
    np.testing.assert_array_equal(converted, [True, True, False])


def test_fp8_overflow() -> None:
    values = np.array([448.0, 464.0, 480.0, np.inf, -np.inf], np.float32)
    e4m3 = evaluated(lambda x: ops.convert_element_type(x, ElementType.F8E4M3FN), values)
    expected = [448, 448, np.nan, np.nan, np.nan]
    np.testing.assert_array_equal(e4m3.astype(np.float32), expected)
    e5m2 = evaluated(lambda x: ops.convert_element_type(x, ElementType.F8E5M2), values * 128)
    np.testing.assert_array_equal(e5m2.astype(np.float32)[3:], [np.inf, -np.inf])


def test_four_bits_to_floats_and_back() -> None:
    values = np.arange(-8, 8).astype(ml_dtypes.int4)
    floats = evaluated(lambda x: ops.convert_element_type(x, ElementType.BF16), values)
    np.testing.assert_array_equal(floats.astype(np.float32), np.arange(-8, 8))
    back = evaluated(lambda x: ops.convert_element_type(x, ElementType.S4), floats)
    np.testing.assert_array_equal(back.astype(np.int8), np.arange(-8, 8))


def test_reduce_precision_of_fp8_goes_through_a_wider_type() -> None:
    """A 4-bit exponent of IEEE's kind ends at 240; f8e4m3fn itself goes on to 448."""
    values = np.array([240, 256, 1.75]).astype(ml_dtypes.float8_e4m3fn)
    reduced = evaluated(lambda x: ops.reduce_precision(x, 4, 3), values)
    np.testing.assert_array_equal(reduced.astype(np.float32), [240, np.nan, 1.75])
