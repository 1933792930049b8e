"""Small products, and those with a vector, are LLVM's text: their edges, layouts and ranges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit
from tests.lowered import lower
from tracejit.backends.tvm.cpu.llvm.tir_to_llvm import translate_kernels
from tracejit.backends.tvm.cpu.machine import Machine

Function = Callable[[Any, Any], Any]

# Whole and moved tiles of rows, columns that fill no vector, steps written out and not; one matrix
# and a batch; blocks of columns, the last with less than a vector, and rows that are left over.
SHAPES = [
    ((3, 3), (3, 3)),
    ((70, 16), (16, 17)),
    ((4000, 5), (5, 3)),
    ((6, 4, 4), (6, 4, 4)),
    ((5, 33, 17), (5, 17, 31)),
    ((300, 1, 37), (300, 37, 5)),
    ((47, 50), (50,)),
    ((301, 611), (611,)),
    ((5, 7, 37), (5, 37, 1)),
    ((50,), (50, 47)),
    ((611,), (611, 2053)),
    ((8,), (8, 1030)),
    ((1,), (1, 1100)),
]


def product(x: Any, y: Any) -> Any:
    return x @ y


def check(function: Function, x: np.ndarray, y: np.ndarray) -> None:
    module = tracejit.jit(function).lower(x, y).module
    kernels = lower(module.entry, Machine(64, 2)).kernels
    assert {kernel.name for kernel in kernels} <= {*translate_kernels(kernels).kernels}
    np.testing.assert_array_equal(tracejit.jit(function)(x, y), function(x, y))


def whole(dtype: str, *shape: int) -> np.ndarray:
    """Small integers: their products have exact sums in any order."""
    return np.random.default_rng(len(shape)).integers(-8, 9, shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("left", "right"), SHAPES)
def test_every_number_is_the_sum_of_its_products(
    left: tuple[int, ...], right: tuple[int, ...], dtype: str
) -> None:
    check(product, whole(dtype, *left), whole(dtype, *right))


@pytest.mark.parametrize(
    ("function", "left", "right"),
    [
        (lambda x, y: x.T @ y, (7, 90), (7, 5)),
        (lambda x, y: x.T @ y, (40, 30), (40,)),
        (lambda x, y: x @ y.T, (40,), (30, 40)),
        (lambda x, y: x[3:20, 5:25] @ y[10:30, 7:19], (30, 40), (50, 60)),
        (lambda x, y: x[3:20, 5:25] @ y[10:30], (30, 40), (60,)),
        (lambda x, y: x[10:27] @ y[3:20, 5:25], (60,), (30, 40)),
    ],
)
def test_operands_are_read_where_they_lie(
    function: Function, left: tuple[int, ...], right: tuple[int, ...]
) -> None:
    check(function, whole("float32", *left), whole("float32", *right))


def test_what_is_not_a_number_stays_in_its_row() -> None:
    x = np.ones((6, 5), np.float32)
    x[2, 3] = np.nan
    y = np.ones((5, 3), np.float32)
    check(product, x, y)
    check(product, x, y[:, 0].copy())
