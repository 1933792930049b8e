"""`jit(fast_math=True)`: off by default, other numbers within its bound, NaN and infinity kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.runtime.processes import python

pytestmark = pytest.mark.usefixtures("machine_code")


def polynomial(x: Any) -> Any:
    return (x * 3.3 * x * 1.7 + x - x * 0.25) / 7.0


def power(x: Any, y: Any) -> Any:
    return x**y


def test_off_by_default() -> None:
    x = np.random.default_rng(0).standard_normal(10_000, dtype=np.float32)
    np.testing.assert_array_equal(tj.jit(polynomial)(x), tj.jit(polynomial, fast_math=False)(x))


def test_sums_and_products_are_reordered() -> None:
    x = np.random.default_rng(0).standard_normal(10_000, dtype=np.float32)
    strict, fast = tj.jit(polynomial)(x), tj.jit(polynomial, fast_math=True)(x)
    assert (strict != fast).any()
    # A few roundings, each of half an ulp, of terms no larger than this.
    assert (np.abs(strict - fast) <= 4 * np.spacing(x * x + np.abs(x))).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_powers_stay_within_their_bound(dtype: type[np.floating[Any]]) -> None:
    rng = np.random.default_rng(0)
    x, y = np.exp(rng.uniform(-5, 5, 50_000)).astype(dtype), rng.uniform(-12, 12, 50_000)
    y = y.astype(dtype)
    strict, fast = tj.jit(power)(x, y), tj.jit(power, fast_math=True)(x, y)
    assert (strict != fast).mean() > 0.2
    # The strict result is itself within 1.5 ulp.
    bound = 3.5 + 3 * np.abs(y * np.log(x))
    assert (np.abs(fast - strict) <= bound * np.spacing(strict)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_special_values(dtype: type[np.floating[Any]]) -> None:
    values = np.array([0, 1, 2, 0.5, 3, np.inf, np.nan], dtype)
    x, y = (each.ravel() for each in np.meshgrid(*[np.r_[values, -values]] * 2))
    expected = tj.jit(power)(x, y)
    np.testing.assert_allclose(tj.jit(power, fast_math=True)(x, y), expected, 1e-6)

    def several(x: Any) -> Any:
        return x * 2 + x, np.maximum(x, 0), x - x, x / 3

    for found, wanted in zip(tj.jit(several, fast_math=True)(x), tj.jit(several)(x), strict=True):
        np.testing.assert_allclose(found, wanted, 1e-6)


def test_the_disk_cache_keeps_both(tmp_path: Path) -> None:
    code = (
        "import numpy as np, tracejit as tj\n"
        "x = np.linspace(1, 2, 99, dtype=np.float32)\n"
        "for fast in (False, True):\n"
        "    print(tj.jit(lambda x: x ** (9 * x), fast_math=fast)(x).tobytes().hex())"
    )
    first, second = (python(code, TRACEJIT_CACHE_DIR=str(tmp_path)) for _ in range(2))
    assert first == second
    strict, fast = first.split()
    assert strict != fast


def test_compile_has_it_as_a_target() -> None:
    x = np.linspace(1, 2, 99, dtype=np.float32)
    module = tj.jit(lambda x: x ** (9 * x)).lower(x).module
    fast = tj.jit(lambda x: x ** (9 * x), fast_math=True)(x)
    np.testing.assert_array_equal(tj.compile(module, fast_math=True)(x), fast)
