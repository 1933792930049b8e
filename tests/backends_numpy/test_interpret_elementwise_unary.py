"""Functions of one operand against 60-digit arithmetic, and bits counted one by one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import mpmath
import numpy as np
import pytest

from tests.evaluation import evaluated
from tracejit import ops

# Domains are chosen so that neither the argument nor the result leaves the normal numbers.
FUNCTIONS: dict[str, tuple[Callable[..., mpmath.mpf], float, float]] = {
    "acos": (mpmath.acos, -1, 1),
    "acosh": (mpmath.acosh, 1, 1e6),
    "asin": (mpmath.asin, -1, 1),
    "asinh": (mpmath.asinh, -1e6, 1e6),
    "atanh": (mpmath.atanh, -1, 1),
    "cbrt": (lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)), -1e3, 1e3),
    "cos": (mpmath.cos, -20, 20),
    "cosh": (mpmath.cosh, -80, 80),
    "erf": (mpmath.erf, -4, 4),
    "exp": (mpmath.exp, -80, 80),
    "expm1": (mpmath.expm1, -5, 80),
    "log": (mpmath.log, 1e-6, 1e6),
    "log1p": (mpmath.log1p, -0.99, 1e6),
    "logistic": (lambda x: 1 / (1 + mpmath.exp(-x)), -80, 80),
    "rsqrt": (lambda x: 1 / mpmath.sqrt(x), 1e-6, 1e6),
    "sin": (mpmath.sin, -20, 20),
    "sinh": (mpmath.sinh, -80, 80),
    "sqrt": (mpmath.sqrt, 0, 1e6),
    "tan": (mpmath.tan, -20, 20),
    "tanh": (mpmath.tanh, -20, 20),
}


def units_off(name: str, values: np.ndarray) -> float:
    """The greatest error of the interpreter, in units of the last place of the exact result."""
    results = evaluated(getattr(ops, name), values)
    function = FUNCTIONS[name][0]
    worst = 0.0
    with mpmath.workdps(60):
        for value, result in zip(values, results, strict=True):
            exact = function(mpmath.mpf(float(value)))
            unit = np.spacing(np.abs(values.dtype.type(float(exact))))
            worst = max(worst, float(abs(mpmath.mpf(float(result)) - exact) / float(unit)))
    return worst


def spread(name: str, dtype: Any) -> np.ndarray:
    _, low, high = FUNCTIONS[name]
    rng = np.random.default_rng(0)
    small = rng.uniform(1e-5, 1, 100) * rng.choice([-1, 1], 100)
    values = np.concatenate([rng.uniform(low, high, 200), small[(small > low) & (small < high)]])
    return values.astype(dtype)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_f32_is_rounded_once(name: str) -> None:
    assert units_off(name, spread(name, np.float32)) < 0.501


@pytest.mark.parametrize("name", FUNCTIONS)
def test_f64_within_two_units(name: str) -> None:
    assert units_off(name, spread(name, np.float64)) < 2


def test_cube_roots_are_as_exact_without_avx512() -> None:
    """NumPy's own are almost three units off then; also at both ends of the numbers."""
    code = (
        "import numpy as np\n"
        "from tests.backends_numpy.test_interpret_elementwise_unary import units_off, cubes\n"
        "assert units_off('cbrt', cubes()) < 0.6\n"
    )
    known = np._core._multiarray_umath.__cpu_features__  # type: ignore[attr-defined]
    newer = [name for name, has in known.items() if has and name in ("X86_V4", "AVX512_SKX")]
    environment = os.environ | {"NPY_DISABLE_CPU_FEATURES": " ".join(newer)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env=environment,
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def cubes() -> np.ndarray:
    edges = [5e-324, 2.3e-308, 1.7e308, -1e-320, 8.0, -27.0, 0.999999]
    rng = np.random.default_rng(0)
    return np.concatenate([rng.uniform(-1e3, 1e3, 3000), 10 ** rng.uniform(-300, 300, 500), edges])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_logistic_at_the_far_end(dtype: Any) -> None:
    """exp(-x) overflows before the result underflows."""
    x = np.array([-87.0, -700.0][dtype is np.float64], dtype)
    np.testing.assert_allclose(evaluated(ops.logistic, x), np.exp(x), rtol=1e-6)
    extremes = np.array([-np.inf, np.inf, np.nan], dtype)
    np.testing.assert_array_equal(evaluated(ops.logistic, extremes), [0, 1, np.nan])


def test_complex_log1p_near_zero() -> None:
    z = np.array([1e-12 + 1e-9j, -1e-9 + 1e-12j, 0.25 - 0.25j, 3 + 4j])
    with mpmath.workdps(60):
        expected = [complex(mpmath.log(1 + mpmath.mpc(value))) for value in z]
    np.testing.assert_allclose(evaluated(ops.log1p, z), expected, rtol=1e-14)
    parts = evaluated(ops.log1p, z)
    np.testing.assert_allclose(parts.real, np.real(expected), rtol=1e-7)


def test_complex_rsqrt_at_infinity() -> None:
    infinite = np.array([complex(np.inf, 1), complex(0, np.inf), complex(-np.inf, np.nan)])
    np.testing.assert_array_equal(evaluated(ops.rsqrt, infinite), [0, 0, 0])


def test_complex_sign_and_abs() -> None:
    z = np.array([3 - 4j, 0j, -2 + 0j])
    np.testing.assert_allclose(evaluated(ops.sign, z), [0.6 - 0.8j, 0, -1])
    np.testing.assert_array_equal(evaluated(ops.abs, z), [5, 0, 2])


@pytest.mark.parametrize(
    "dtype", [np.int8, np.uint8, np.int16, np.uint32, np.int64, np.uint64, ml_dtypes.int4]
)
def test_bits_are_counted(dtype: Any) -> None:
    width = 4 if dtype is ml_dtypes.int4 else np.dtype(dtype).itemsize * 8
    signed = dtype is ml_dtypes.int4 or np.issubdtype(dtype, np.signedinteger)
    numbers = [0, 1, 2, 5, 2 ** (width - 1) - 1] + ([-1, -2, -(2 ** (width - 1))] if signed else [])
    texts = [f"{number % 2**width:0{width}b}" for number in numbers]
    operand = np.array(numbers).astype(dtype)
    wide = np.int64 if signed else np.uint64
    ones = evaluated(ops.population_count, operand).astype(wide)
    leading = evaluated(ops.clz, operand).astype(wide)
    # The counts are of the operand's own type, so four zeros of s4 are still 4.
    assert list(ones) == [text.count("1") for text in texts]
    assert list(leading) == [len(text) - len(text.lstrip("0")) for text in texts]


def test_most_negative_integer() -> None:
    low = np.array([-128], np.int8)
    assert evaluated(ops.abs, low) == -128
    assert evaluated(ops.sign, low) == -1
    assert evaluated(ops.not_, low) == 127


def test_not_of_four_bits_and_pred() -> None:
    nibbles = evaluated(ops.not_, np.array([0, 5, 15], ml_dtypes.uint4))
    np.testing.assert_array_equal(nibbles.astype(np.uint8), [15, 10, 0])
    np.testing.assert_array_equal(evaluated(ops.not_, np.array([True, False])), [False, True])


def test_rounding_keeps_the_sign_of_zero() -> None:
    operand = np.array([-0.25, -0.0, 0.25])
    for function in (ops.round_nearest_even, ops.round_nearest_afz):
        np.testing.assert_array_equal(np.signbit(evaluated(function, operand)), [True, True, False])
    assert np.signbit(evaluated(ops.ceil, operand)[0])
