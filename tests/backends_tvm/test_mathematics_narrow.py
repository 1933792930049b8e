"""All floats of 16 bits, held as f32 in registers: each result is the f32 result, rounded once."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.backends_tvm.mathematics_harness import TARGETS, evaluate
from tests.backends_tvm.test_mathematics_accuracy import FUNCTIONS
from tracejit.backends.tvm.cpu import mathematics

NARROW = {"float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)}
NAMES = [*(f.name for f in FUNCTIONS), "floor", "ceil", "round_nearest_even", "sign"]


def every(dtype: str) -> np.ndarray:
    return np.arange(1 << 16, dtype=np.uint16).view(NARROW[dtype])


def codes(x: np.ndarray) -> np.ndarray:
    """The bits of each number, with one code for all NaNs."""
    return np.where(np.isnan(x.astype(np.float32)), 0xFFFF, x.view(np.uint16))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("name", NAMES)
def test_every_number(name: str, dtype: str, target: str) -> None:
    x = every(dtype)
    function = getattr(mathematics, name)
    actual = evaluate(lambda v: function(v, "float32"), x, lanes=16, target=TARGETS[target])
    wide = evaluate(
        lambda v: function(v, "float32"), x.astype(np.float32), lanes=16, target=TARGETS[target]
    )
    with np.errstate(all="ignore"):
        expected = wide.astype(NARROW[dtype])
    np.testing.assert_array_equal(codes(actual), codes(expected))


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("name", ["max", "min", "pow", "rem", "atan2"])
def test_functions_of_two(name: str, dtype: str) -> None:
    generator = np.random.default_rng(1)
    x, y = (generator.permutation(every(dtype)) for _ in range(2))
    function = getattr(mathematics, name)
    actual = evaluate(lambda a, b: function(a, b, "float32"), x, y)
    wide = evaluate(
        lambda a, b: function(a, b, "float32"), x.astype(np.float32), y.astype(np.float32)
    )
    with np.errstate(all="ignore"):
        expected = wide.astype(NARROW[dtype])
    np.testing.assert_array_equal(codes(actual), codes(expected))


@pytest.mark.parametrize("dtype", NARROW)
def test_is_finite(dtype: str) -> None:
    x = every(dtype)
    actual = evaluate(lambda v: mathematics.is_finite(v, "float32"), x, returns=np.bool_, lanes=16)
    np.testing.assert_array_equal(actual, np.isfinite(x.astype(np.float32)))
