"""Windows side by side, read as whole vectors or as every second number of two."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tracejit as tj

TYPES = [
    np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int8, np.uint16, np.int32, np.int64,
    np.complex64,
]  # fmt: skip
# Complex numbers are in no order.
WAYS = [("add", kind) for kind in TYPES]
WAYS += [(how, kind) for how in ("max", "min") for kind in TYPES[:-1]]
COMBINED = {"add": 0, "max": -99, "min": 99}
WINDOWS = [((2, 2), (2, 2)), ((3, 3), (2, 2)), ((3, 3), (1, 1)), ((1, 5), (1, 2)), ((8, 9), (2, 1))]


@pytest.mark.parametrize(("how", "kind"), WAYS)
@pytest.mark.parametrize(("sizes", "strides"), WINDOWS)
def test_windows_of_an_image(how: str, sizes: Any, strides: Any, kind: type) -> None:
    for shape in [(3, 19, 24), (2, 16, 75), (1, 40, 80), (2, 9, 17)]:
        x: np.ndarray = np.random.default_rng(0).integers(0, 2, shape).astype(kind)

        def function(x: Any) -> Any:
            start: np.ndarray = np.asarray(COMBINED[how]).astype(kind)
            combine = getattr(tj.lax, how)
            return tj.lax.reduce_window(x, start, combine, (1, *sizes), (1, *strides), "VALID")

        expected = tj.interpret(tj.jit(function).lower(x).module, x)
        np.testing.assert_array_equal(tj.jit(function)(x), expected)


@pytest.mark.parametrize("rows", [7, 8, 33, 1000])
def test_pairs_of_neighbours(rows: int) -> None:
    x = np.random.default_rng(0).integers(-9, 9, (rows, 2)).astype(np.float32)
    x[5, 1] = np.nan
    for function in (np.sum, np.max, np.argmax, np.prod):
        found = tj.jit(lambda x, function=function: function(x, axis=1))(x)
        np.testing.assert_array_equal(found, function(x, axis=1))


@pytest.mark.parametrize(
    ("columns", "schedule"), [(64, "column reduction"), (16, "narrow column reduction")]
)
def test_narrow_images_are_told(columns: int, schedule: str) -> None:
    """Their vectors are not whole, and are left to LLVM's passes."""
    x = np.ones((64, columns), np.float32)
    compiled = tj.jit(lambda x: pooled(x), target="cpu:x86-64-v4").lower(x).compile()
    assert [kernel.schedule for kernel in compiled.explain().kernels] == [schedule]


def test_the_best_of_windows_is_not_a_number() -> None:
    x = np.random.default_rng(0).standard_normal((32, 64)).astype(np.float32)
    x[::3, ::7] = np.nan
    expected = x.reshape(16, 2, 32, 2).max((1, 3))
    np.testing.assert_array_equal(tj.jit(pooled)(x), expected)


def pooled(x: Any) -> Any:
    return tj.lax.reduce_window(x, -np.inf, tj.lax.max, (2, 2), (2, 2), padding="VALID")
