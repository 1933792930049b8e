"""What the interpreter does where element types and operators have edges of their own."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.evaluation import evaluated
from tracejit import ops

INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
SIGNED = INTEGERS[:4]
NARROW_FLOATS = [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_wrap(dtype: Any) -> None:
    info = np.iinfo(dtype)
    high, low, one = (np.array(x, dtype) for x in (info.max, info.min, 1))
    assert evaluated(ops.add, high, one) == info.min
    assert evaluated(ops.sub, low, one) == info.max
    assert evaluated(ops.mul, high, high) == 1
    assert evaluated(ops.neg, low) == info.min


def test_four_bits_wrap() -> None:
    lhs, rhs = np.array([7, -8, 4], ml_dtypes.int4), np.array([1, 1, 4], ml_dtypes.int4)
    for function, expected in (
        (ops.add, [-8, -7, -8]),
        (ops.sub, [6, 7, 0]),
        (ops.mul, [7, -8, 0]),
    ):
        np.testing.assert_array_equal(evaluated(function, lhs, rhs).astype(np.int8), expected)
    unsigned = np.array([15, 0], ml_dtypes.uint4), np.array([2, 1], ml_dtypes.uint4)
    np.testing.assert_array_equal(evaluated(ops.add, *unsigned).astype(np.uint8), [1, 1])
    np.testing.assert_array_equal(evaluated(ops.sub, *unsigned).astype(np.uint8), [13, 15])


@pytest.mark.parametrize("dtype", SIGNED)
def test_signed_division(dtype: Any) -> None:
    low = np.iinfo(dtype).min
    lhs = np.array([7, -7, 7, -7, 5, -5, 0, low], dtype)
    rhs = np.array([2, 2, -2, -2, 0, 0, 0, -1], dtype)
    np.testing.assert_array_equal(evaluated(ops.div, lhs, rhs), [3, -3, -3, 3, -1, -1, -1, low])
    np.testing.assert_array_equal(evaluated(ops.rem, lhs, rhs), [1, -1, 1, -1, 5, -5, 0, 0])


@pytest.mark.parametrize("dtype", [np.uint8, np.uint64])
def test_unsigned_division_by_zero(dtype: Any) -> None:
    lhs, zero = np.array([9, 0], dtype), np.zeros(2, dtype)
    np.testing.assert_array_equal(evaluated(ops.div, lhs, zero), [np.iinfo(dtype).max] * 2)
    np.testing.assert_array_equal(evaluated(ops.rem, lhs, zero), lhs)


def test_shifts_beyond_the_width() -> None:
    lhs = np.array([1, -1, -8, 3, 1, -5], np.int32)
    amount = np.array([32, 33, 40, -1, 31, 2], np.int32)
    low = np.iinfo(np.int32).min
    np.testing.assert_array_equal(evaluated(ops.shift_left, lhs, amount), [0, 0, 0, 0, low, -20])
    np.testing.assert_array_equal(
        evaluated(ops.shift_right_logical, lhs, amount), [0, 0, 0, 0, 0, 2**30 - 2]
    )
    np.testing.assert_array_equal(
        evaluated(ops.shift_right_arithmetic, lhs, amount), [0, -1, -1, 0, 0, -2]
    )


def test_shifts_of_four_bits() -> None:
    lhs, amount = np.array([-8, -8, 3], ml_dtypes.int4), np.array([1, 4, 3], ml_dtypes.int4)
    expected = {
        "shift_left": [0, 0, -8],
        "shift_right_logical": [4, 0, 0],
        "shift_right_arithmetic": [-4, -1, 0],
    }
    for name, values in expected.items():
        shifted = evaluated(getattr(ops, name), lhs, amount).astype(np.int8)
        np.testing.assert_array_equal(shifted, values, err_msg=name)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_powers(dtype: Any) -> None:
    base, exponent = np.array([0, 0, 3, 2, 5], dtype), np.array([0, 4, 4, 6, 1], dtype)
    np.testing.assert_array_equal(evaluated(ops.pow, base, exponent), [1, 0, 81, 64, 5])


def test_integer_powers_wrap() -> None:
    base, exponent = np.array([3, -3, 2], np.int32), np.array([40, 33, 32], np.int32)
    expected = [(3**40 + 2**31) % 2**32 - 2**31, -((3**33 + 2**31) % 2**32 - 2**31), 0]
    np.testing.assert_array_equal(evaluated(ops.pow, base, exponent), expected)


def test_negative_integer_powers() -> None:
    base = np.array([1, -1, -1, 2, 0], np.int32)
    exponent = np.array([-5, -3, -2, -1, -1], np.int32)
    np.testing.assert_array_equal(evaluated(ops.pow, base, exponent), [1, -1, 1, 0, 0])


@pytest.mark.parametrize("dtype", [*NARROW_FLOATS, np.float32, np.float64])
def test_max_and_min_keep_nan_and_order_zeros(dtype: Any) -> None:
    lhs = np.array([0.0, -0.0, np.nan, 1.0, 2.0]).astype(dtype)
    rhs = np.array([-0.0, 0.0, 1.0, np.nan, -3.0]).astype(dtype)
    greater = evaluated(ops.max, lhs, rhs).astype(np.float64)
    less = evaluated(ops.min, lhs, rhs).astype(np.float64)
    np.testing.assert_array_equal(greater, [0, 0, np.nan, np.nan, 2])
    np.testing.assert_array_equal(less, [0, 0, np.nan, np.nan, -3])
    assert not np.signbit(greater[:2]).any()
    assert np.signbit(less[:2]).all()


def test_clamp_keeps_nan_of_any_operand() -> None:
    nan = np.float32(np.nan)
    low, operand, high = (np.array(x, np.float32) for x in ([0, nan, 0], [nan, 1, 1], [2, 2, nan]))
    assert np.isnan(evaluated(ops.clamp, low, operand, high)).all()


def test_pred_arithmetic_is_logic() -> None:
    lhs, rhs = np.array([True, True, False, False]), np.array([True, False, True, False])
    for function, expected in (
        (ops.add, lhs | rhs),
        (ops.mul, lhs & rhs),
        (ops.max, lhs | rhs),
        (ops.min, lhs & rhs),
        (ops.xor, lhs ^ rhs),
    ):
        np.testing.assert_array_equal(evaluated(function, lhs, rhs), expected)


@pytest.mark.parametrize("dtype", NARROW_FLOATS)
def test_narrow_floats_round_once(dtype: Any) -> None:
    """Every pair of 256 values: the nearest to the exact sum, product and quotient."""
    width = np.dtype(dtype).itemsize
    bits = np.arange(256, dtype=f"u{width}") << (8 * (width - 1))
    values = bits.view(dtype)
    lhs, rhs = np.repeat(values, 256), np.tile(values, 256)
    with np.errstate(all="ignore"):
        exact = lhs.astype(np.float64), rhs.astype(np.float64)
        for function, operator in ((ops.add, np.add), (ops.mul, np.multiply), (ops.div, np.divide)):
            expected = operator(*exact).astype(dtype)
            actual = evaluated(function, lhs, rhs)
            np.testing.assert_array_equal(actual.astype(np.float32), expected.astype(np.float32))


def test_complex_division_at_infinity_and_zero() -> None:
    lhs = np.array([complex(np.inf, 1), 1 + 1j, 0j, 1 - 2j, 1j])
    rhs = np.array([2 - 1j, complex(np.inf, -np.inf), 0j, 0j, complex(-0.0, 0.0)])
    quotient = evaluated(ops.div, lhs, rhs)
    assert np.isinf(quotient[0])
    assert quotient[1] == 0
    assert np.isnan(quotient[2])
    assert quotient[3] == complex(np.inf, -np.inf)
    assert quotient[4].imag == -np.inf


def test_select_takes_nothing_from_the_other_side() -> None:
    pred, nan = np.array([True, False]), np.full(2, np.nan)
    selected = evaluated(ops.select, pred, np.ones(2), nan)
    np.testing.assert_array_equal(selected, [1, np.nan])


def test_compare_of_narrow_types() -> None:
    lhs, rhs = np.array([-8, 7], ml_dtypes.int4), np.array([7, -8], ml_dtypes.int4)
    np.testing.assert_array_equal(evaluated(ops.lt, lhs, rhs), [True, False])
    nan = np.array([np.nan]).astype(ml_dtypes.float8_e4m3fn)
    assert not evaluated(ops.eq, nan, nan)
    assert evaluated(ops.eq_total_order, nan, nan)
