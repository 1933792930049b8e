"""The polynomials of vector mathematics are as good as they say, and about the best there are."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np
import pytest

from tests.backends_tvm.minimax import Real, Target, fit
from tracejit.backends.tvm.cpu.mathematics import (
    error_function,
    exponential,
    inverse_trigonometric,
    logarithm,
    power,
    trigonometric,
)

SQRT_HALF = mpmath.sqrt(mpmath.mpf(1) / 2)


def near_zero(function: Callable[[Real], Real], at_zero: Real) -> Callable[[Real], Real]:
    """``function``, whose formula fails at 0, with its limit there."""
    return lambda x: at_zero if abs(x) < mpmath.mpf("1e-25") else function(x)


def odd(function: Callable[[Real], Real], third: Real) -> Callable[[Real], Real]:
    """(function(x) / x - 1) / x**2 in terms of x**2, for a function x + third x**3 + …"""

    def tail(square: Real) -> Real:
        x = mpmath.sqrt(square)
        return (function(x) / x - 1) / square

    return near_zero(tail, third)


def against(function: Callable[[Real], Real]) -> Callable[[Real], Real]:
    """What makes an error of `odd` relative to the function's value."""

    def weight(square: Real) -> Real:
        x = mpmath.sqrt(square)
        return square * x / function(x) if square else mpmath.mpf(0)

    return weight


def expm1_tail(r: Real) -> Real:
    return (mpmath.expm1(r) - r) / r**2


def log1p_tail(f: Real) -> Real:
    return (mpmath.log1p(f) - f + f**2 / 2) / f**3


def log_ratio(square: Real) -> Real:
    """log((1 + s) / (1 - s)) / s."""
    s = mpmath.sqrt(square)
    return 2 * mpmath.atanh(s) / s


def cos_tail(square: Real) -> Real:
    return (mpmath.cos(mpmath.sqrt(square)) - 1 + square / 2) / square**2


def erf_near(square: Real) -> Real:
    x = mpmath.sqrt(square)
    return mpmath.erf(x) / x - 1


@dataclass(frozen=True)
class Polynomial:
    """Coefficients by element type, the bits to which each is claimed to be good, and for what."""

    name: str
    coefficients: dict[str, Sequence[float]]
    good_to: tuple[float, float]
    target: Callable[[str], Target]


def same(target: Target) -> Callable[[str], Target]:
    return lambda dtype: target


def log1p_target(dtype: str) -> Target:
    if dtype == "float32":
        return Target(
            near_zero(log1p_tail, mpmath.mpf(1) / 3),
            lambda f: abs(f**3 / mpmath.log1p(f)) if f else mpmath.mpf(0),
            SQRT_HALF - 1,
            1 / SQRT_HALF - 1,
        )
    third = mpmath.mpf(2) / 3
    return Target(
        near_zero(lambda z: (log_ratio(z) - 2) / z, third), lambda z: z / 2, 0, ratio_limit()
    )


def ratio_limit() -> Real:
    """The square of s = f / (2 + f) at the end of the range of f."""
    return ((1 / SQRT_HALF - 1) / (1 / SQRT_HALF + 1)) ** 2


def only_f64(coefficients: Sequence[float]) -> dict[str, Sequence[float]]:
    return {"float64": coefficients}


HALF_LN2 = mpmath.log(2) / 2
QUARTER_PI = mpmath.mpf("0.79")
POLYNOMIALS = [
    Polynomial(
        "expm1",
        dict(exponential.EXPM1_TAIL),
        (30, 61),
        same(
            Target(
                near_zero(expm1_tail, mpmath.mpf(1) / 2),
                lambda r: abs(r**2 / mpmath.expm1(r)) if r else mpmath.mpf(0),
                -HALF_LN2,
                HALF_LN2,
            )
        ),
    ),
    Polynomial(
        "sinh",
        dict(exponential.SINH_TAIL),
        (31, 61),
        same(Target(odd(mpmath.sinh, mpmath.mpf(1) / 6), against(mpmath.sinh), 0, 1)),
    ),
    Polynomial("log1p", dict(logarithm.LOG1P_TAIL), (30, 59), log1p_target),
    Polynomial(
        "sin",
        dict(trigonometric.SIN_TAIL),
        (27, 57),
        same(Target(odd(mpmath.sin, -mpmath.mpf(1) / 6), against(mpmath.sin), 0, QUARTER_PI**2)),
    ),
    Polynomial(
        "cos",
        dict(trigonometric.COS_TAIL),
        (32, 63),
        same(
            Target(
                near_zero(cos_tail, mpmath.mpf(1) / 24),
                lambda z: z**2 / mpmath.cos(mpmath.sqrt(z)),
                0,
                QUARTER_PI**2,
            )
        ),
    ),
    Polynomial(
        "tan",
        dict(trigonometric.TAN_TAIL),
        (28, 59),
        same(Target(odd(mpmath.tan, mpmath.mpf(1) / 3), against(mpmath.tan), 0, QUARTER_PI**2)),
    ),
    Polynomial(
        "asin",
        dict(inverse_trigonometric.ASIN_TAIL),
        (27, 55),
        same(
            Target(odd(mpmath.asin, mpmath.mpf(1) / 6), against(mpmath.asin), 0, mpmath.mpf(1) / 4)
        ),
    ),
    Polynomial(
        "atan",
        dict(inverse_trigonometric.ATAN_TAIL),
        (30, 59),
        same(
            Target(
                odd(mpmath.atan, -mpmath.mpf(1) / 3),
                against(mpmath.atan),
                0,
                mpmath.tan(mpmath.pi / 8) ** 2,
            )
        ),
    ),
    Polynomial(
        "erf near 0",
        dict(error_function.ERF_NEAR),
        (29, 56),
        same(
            Target(
                near_zero(erf_near, 2 / mpmath.sqrt(mpmath.pi) - 1),
                lambda z: mpmath.mpf(1),
                0,
                1,
            )
        ),
    ),
    Polynomial(
        "erf far out",
        dict(error_function.ERF_FAR),
        (26, 56),
        lambda dtype: Target(
            lambda t: -mpmath.log(mpmath.erfc(t + 1)),
            lambda t: mpmath.erfc(t + 1),
            0,
            error_function.ONE_FROM[dtype] - 1,
        ),
    ),
    Polynomial(
        "log2",
        only_f64(power.LOG2_SERIES),
        (45, 45),
        same(
            Target(
                near_zero(lambda z: log_ratio(z) / mpmath.log(2), 2 / mpmath.log(2)),
                lambda z: mpmath.log(2) / 2,
                0,
                ratio_limit(),
            )
        ),
    ),
    Polynomial(
        "exp2",
        only_f64(power.EXP2_SERIES),
        (34, 34),
        same(
            Target(
                lambda r: mpmath.power(2, r),
                lambda r: mpmath.power(2, -r),
                -mpmath.mpf(1) / 2,
                mpmath.mpf(1) / 2,
            )
        ),
    ),
    Polynomial(
        "log, extended",
        only_f64(power.LOG_TAIL),
        (73, 73),
        same(
            Target(
                near_zero(lambda z: (log_ratio(z) - 2 - 2 * z / 3) / z**2, mpmath.mpf(2) / 5),
                lambda z: z**2 / 2,
                0,
                ratio_limit(),
            )
        ),
    ),
]
CASES = [
    pytest.param(p, dtype, id=f"{p.name}, {dtype}") for p in POLYNOMIALS for dtype in p.coefficients
]


@pytest.fixture(autouse=True)
def precision() -> Any:
    with mpmath.workdps(60):
        yield


@pytest.mark.parametrize(("polynomial", "dtype"), CASES)
def test_each_is_as_good_as_it_says(polynomial: Polynomial, dtype: str) -> None:
    coefficients = [float(np.dtype(dtype).type(c)) for c in polynomial.coefficients[dtype]]
    error = polynomial.target(dtype).error(coefficients)
    assert error < 2.0 ** -polynomial.good_to[dtype == "float64"]


@pytest.mark.parametrize(("polynomial", "dtype"), CASES)
def test_none_of_its_degree_is_much_better(polynomial: Polynomial, dtype: str) -> None:
    coefficients = [float(np.dtype(dtype).type(c)) for c in polynomial.coefficients[dtype]]
    target = polynomial.target(dtype)
    best = fit(target, len(coefficients), 24 if dtype == "float32" else 53)
    assert target.error(coefficients) < 1.3 * target.error(best)


def parts(number: Real, dtype: str, count: int) -> list[float]:
    """The floats that a number is the sum of, from the largest on."""
    found = []
    for _ in range(count):
        found.append(float(np.dtype(dtype).type(float(number))))
        number -= found[-1]
    return found


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_constants_in_parts(dtype: str) -> None:
    def as_floats(values: Sequence[float]) -> list[float]:
        return [float(np.dtype(dtype).type(v)) for v in values]

    angles = inverse_trigonometric
    assert as_floats(exponential.LN2[dtype]) == parts(mpmath.log(2), dtype, 2)
    assert as_floats(trigonometric.HALF_PI[dtype]) == parts(mpmath.pi / 2, dtype, 3)
    assert as_floats(angles.HALF_PI[dtype]) == parts(mpmath.pi / 2, dtype, 2)
    assert as_floats(angles.QUARTER_PI[dtype]) == parts(mpmath.pi / 4, dtype, 2)


def test_constants_of_the_extended_logarithm() -> None:
    assert list(power.TWO_THIRDS) == parts(mpmath.mpf(2) / 3, "float64", 2)
    high, low = power.LN2
    assert low == float(mpmath.log(2) - high)
    # Its product with every exponent is exact.
    mantissa, _ = math.frexp(high)
    assert (mantissa * 2**42).is_integer()


def test_the_bits_of_two_over_pi() -> None:
    bits = trigonometric.TWO_OVER_PI_BITS
    with mpmath.workprec(2 * bits):
        assert int(mpmath.floor(2 / mpmath.pi * mpmath.mpf(2) ** bits)) == trigonometric.TWO_OVER_PI
