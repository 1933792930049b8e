"""Promotion against NumPy 2, for every pair of dtypes and for Python numbers (NEP 50)."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tracejit as tj
from tests.numpy_api.compare import check, same
from tracejit.errors import ElementTypeError, ValueRangeError
from tracejit.trace.promotion import result_dtype, ufunc_dtypes

NUMPY = [
    np.dtype(t)
    for t in (
        np.bool_,
        np.int8,
        np.int16,
        np.int32,
        np.int64,
        np.uint8,
        np.uint16,
        np.uint32,
        np.uint64,
        np.float16,
        np.float32,
        np.float64,
        np.complex64,
        np.complex128,
    )
]
BF16 = np.dtype(ml_dtypes.bfloat16)
INT4 = np.dtype(ml_dtypes.int4)
FP8 = np.dtype(ml_dtypes.float8_e4m3fn)
PYTHON: list[Any] = [True, 3, 2.5, 1j]


def test_pairs_of_dtypes() -> None:
    for x, y in itertools.product(NUMPY, NUMPY):
        assert result_dtype([x, y]) == np.result_type(x, y)


@pytest.mark.parametrize("dtype", NUMPY, ids=str)
def test_with_python_numbers(dtype: np.dtype) -> None:
    x = np.ones(3, dtype)
    for number in PYTHON:
        check(lambda np, x, number=number: (x + number, number * x, np.maximum(x, number)), x)


@pytest.mark.parametrize("ufunc", [np.add, np.true_divide, np.sin, np.floor, np.equal, np.arctan2])
def test_loops_of_ufuncs(ufunc: np.ufunc) -> None:
    for dtypes in itertools.product(NUMPY, repeat=ufunc.nin):
        arrays = [np.ones(2, dtype) for dtype in dtypes]
        try:
            expected = ufunc(*arrays).dtype
        except TypeError:
            with pytest.raises(ElementTypeError, match="not defined for"):
                ufunc_dtypes(ufunc, dtypes)
            continue
        assert ufunc_dtypes(ufunc, dtypes)[1] == (expected,)


def test_extended_types_are_not_widened_by_python_numbers() -> None:
    for dtype in (BF16, FP8):
        x = np.ones(3, dtype)
        for number in (True, 3, 2.5):
            assert (tj.numpy.add(x, number)).dtype == dtype
    assert tj.numpy.add(np.ones(3, BF16), 1j).dtype == np.complex64
    assert tj.numpy.add(np.ones(3, BF16), np.float32(1)).dtype == np.float32
    assert tj.numpy.add(np.ones(3, INT4), 1).dtype == INT4
    assert tj.numpy.sin(np.ones(3, BF16)).dtype == BF16
    assert tj.numpy.matmul(np.ones((2, 2), BF16), np.ones((2, 2), BF16)).dtype == BF16
    with pytest.raises(ElementTypeError, match="no common element type"):
        tj.numpy.add(np.ones(3, BF16), np.ones(3, np.dtype(ml_dtypes.float8_e5m2)))


def test_python_numbers_as_arguments_are_weak() -> None:
    @tj.jit
    def function(x: Any, number: Any) -> Any:
        return x * number, number + 1, np.sin(number), number

    for number in (2, 2.5, 1j):
        result = function(np.ones(3, np.float32), number)
        expected = np.ones(3, np.float32) * number, number + 1, np.sin(number), number
        same(result, expected)
        assert type(result[1]) is type(number + 1)
        assert type(result[3]) is type(number)


def test_numpy_scalars_are_not_weak() -> None:
    result = tj.jit(lambda x, y: x * y)(np.ones(3, np.float32), np.float64(2))
    assert result.dtype == np.float64


def test_arithmetic_of_python_numbers_stays_weak() -> None:
    """Between Python numbers Python's rules hold: True + True is 2."""

    def function(x: Any, a: Any, b: Any) -> Any:
        return x * (a + b), x * (a / b), -a * x, abs(a) * x, (a == b) * x

    x = np.ones(3, np.float32)
    for a, b in ((2, 3), (2.5, 2), (True, True)):
        same(tj.jit(function)(x, a, b), function(x, a, b))


def test_integers_that_do_not_fit() -> None:
    with pytest.raises(ValueRangeError, match="300 does not fit into u8") as caught:
        tj.jit(lambda x: x + 300)(np.ones(3, np.uint8))
    assert isinstance(caught.value, OverflowError)
    with pytest.raises(OverflowError, match="does not fit"):
        tj.jit(lambda x, n: x + n)(np.ones(3), 2**70)


def test_astype() -> None:
    x = np.array([1.5, -2.5, 0.0])
    for dtype in NUMPY[:10]:
        if dtype.kind == "u":
            continue
        check(lambda np, x, dtype=dtype: x.astype(dtype), x)
    same(tj.jit(lambda x: x.astype(np.float32))(x + 2j), (x + 2j).real.astype(np.float32))
    same(tj.jit(lambda x: x.astype(bool))(x + 0j), (x + 0j).astype(bool))
    with pytest.raises(TypeError, match="cannot cast float64 to int64 by the rule 'safe'"):
        tj.jit(lambda x: x.astype(int, casting="safe"))(x)


def test_bits() -> None:
    x = np.array([[1.5, -2.5], [0.0, 3.25]])
    for dtype in (np.uint64, np.uint32, np.uint8, np.int16):
        check(lambda np, x, dtype=dtype: x.view(dtype), x)
    check(lambda np, x: x.view(np.float64), x.astype(np.float32))
