"""Matrix products of arrays, as LLVM's text: their edges, copies, blocks, layouts and batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit
from tests.lowered import lower
from tracejit.backends.tvm.cpu.llvm.tir_to_llvm import translate_kernels
from tracejit.backends.tvm.cpu.machine import Machine
from tracejit.backends.tvm.cpu.objects import build as building

Function = Callable[[Any, Any], Any]

# Whole and moved tiles of rows, columns that fill no vector, blocks of steps; one matrix and a
# batch; blocks of columns, the last with less than a vector, and rows that are left over.
SHAPES = [
    ((100, 51), (51, 37)),
    ((13, 300), (300, 33)),
    ((40, 2500), (2500, 70)),
    ((129, 70), (70, 1030)),
    ((3, 200, 131), (3, 131, 161)),
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


def transposed(x: Any, y: Any) -> Any:
    return np.matrix_transpose(x) @ np.matrix_transpose(y)


def check(function: Function, x: np.ndarray, y: np.ndarray) -> None:
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


@pytest.mark.parametrize(("left", "right"), SHAPES)
def test_products_are_translated_without_passes_of_llvm(
    left: tuple[int, ...], right: tuple[int, ...]
) -> None:
    """All but sums of rows that passes of LLVM keep in registers."""
    module = tracejit.jit(product).lower(np.ones(left), np.ones(right)).module
    kernels = lower(module.entry, Machine(64, 2)).kernels
    names = {kernel.name for kernel in kernels}
    assert translate_kernels(kernels, names).kernels == (names if right != (50, 47) else set())


@pytest.mark.parametrize(
    ("function", "left", "right"),
    [
        (transposed, (64, 64), (64, 64)),
        (transposed, (51, 100), (37, 51)),
        (transposed, (2, 128, 33), (2, 1037, 128)),
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


def test_computed_operands_and_results() -> None:
    x, y = whole("float32", 65, 96), whole("float32", 96, 40)
    check(lambda x, y: np.maximum(2 * x @ y, 0), x, y)
    check(lambda x, y: (1.5 * x) @ y, x, y[:, 0].copy())


def test_convolutions_by_one_element() -> None:
    image, window = whole("float32", 2, 64, 40, 40), whole("float32", 128, 64)

    def convolved(image: Any, window: Any) -> Any:
        return tracejit.lax.conv(image, window[:, :, None, None], (1, 1), "SAME")

    found = tracejit.jit(convolved)(image, window)
    np.testing.assert_array_equal(found, np.einsum("bchw,oc->bohw", image, window))


@pytest.mark.filterwarnings("ignore:no linker found")
def test_without_a_linker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "can_link", lambda: False)
    x, y = whole("float32", 131, 73), whole("float32", 73, 91)
    compiled = tracejit.jit(product).lower(x, y).compile()
    np.testing.assert_array_equal(compiled(x, y), x @ y)


def test_what_is_not_a_number_stays_in_its_row() -> None:
    x = np.ones((6, 5), np.float32)
    x[2, 3] = np.nan
    y = np.ones((5, 3), np.float32)
    check(product, x, y)
    check(product, x, y[:, 0].copy())
