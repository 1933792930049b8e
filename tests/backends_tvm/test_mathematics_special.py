"""Zeros, infinities, NaN, subnormal numbers and the ends of the range, bit for bit."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from tests.backends_tvm.mathematics_harness import FLOATS, TARGETS, any_bits, evaluate
from tracejit.backends.tvm.cpu import mathematics

INF, NAN = math.inf, math.nan
HALF_PI, PI = math.pi / 2, math.pi

# Arguments and results; a result of NaN may have any sign and payload.
UNARY: dict[str, list[tuple[float, float]]] = {
    "exp": [(-INF, 0.0), (INF, INF), (0.0, 1.0), (-0.0, 1.0), (1e30, INF), (-1e30, 0.0)],
    "exp2": [(-INF, 0.0), (INF, INF), (0.0, 1.0), (-0.0, 1.0), (1e30, INF), (-1e30, 0.0)],
    "expm1": [(-INF, -1.0), (INF, INF), (0.0, 0.0), (-0.0, -0.0), (1e30, INF), (-1e30, -1.0)],
    "logistic": [(-INF, 0.0), (INF, 1.0), (0.0, 0.5), (-0.0, 0.5), (1e30, 1.0), (-1e30, 0.0)],
    "tanh": [(-INF, -1.0), (INF, 1.0), (0.0, 0.0), (-0.0, -0.0), (1e30, 1.0), (-1e30, -1.0)],
    "sinh": [(-INF, -INF), (INF, INF), (0.0, 0.0), (-0.0, -0.0), (1e30, INF)],
    "cosh": [(-INF, INF), (INF, INF), (0.0, 1.0), (-0.0, 1.0), (1e30, INF), (-1e30, INF)],
    "log": [(0.0, -INF), (-0.0, -INF), (1.0, 0.0), (INF, INF), (-1.0, NAN), (-INF, NAN)],
    "log10": [(0.0, -INF), (-0.0, -INF), (1.0, 0.0), (INF, INF), (-1.0, NAN), (-INF, NAN)],
    "log2": [(0.0, -INF), (-0.0, -INF), (1.0, 0.0), (INF, INF), (-1.0, NAN), (-INF, NAN)],
    "log1p": [(0.0, 0.0), (-0.0, -0.0), (-1.0, -INF), (INF, INF), (-1.5, NAN), (-INF, NAN)],
    "asinh": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF)],
    "acosh": [(1.0, 0.0), (INF, INF), (0.5, NAN), (-2.0, NAN), (-1e35, NAN), (-INF, NAN)],
    "atanh": [(0.0, 0.0), (-0.0, -0.0), (1.0, INF), (-1.0, -INF), (1.5, NAN), (INF, NAN)],
    "sin": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN)],
    "cos": [(0.0, 1.0), (-0.0, 1.0), (INF, NAN), (-INF, NAN)],
    "tan": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN)],
    "asin": [(0.0, 0.0), (-0.0, -0.0), (1.0, HALF_PI), (-1.0, -HALF_PI), (1.5, NAN), (INF, NAN)],
    "acos": [(1.0, 0.0), (-1.0, PI), (0.0, HALF_PI), (1.5, NAN), (-INF, NAN)],
    "atan": [(0.0, 0.0), (-0.0, -0.0), (INF, HALF_PI), (-INF, -HALF_PI), (1e30, HALF_PI)],
    "erf": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (7.0, 1.0), (-7.0, -1.0)],
    "sqrt": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-1.0, NAN), (-INF, NAN)],
    "rsqrt": [(0.0, INF), (-0.0, -INF), (INF, 0.0), (-1.0, NAN), (-INF, NAN)],
    "cbrt": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (8.0, 2.0), (-27.0, -3.0)],
    "floor": [(-0.0, -0.0), (INF, INF), (-0.5, -1.0), (1e30, 1e30), (2.5, 2.0)],
    "ceil": [(-0.0, -0.0), (-INF, -INF), (-0.5, -0.0), (1e30, 1e30), (2.5, 3.0)],
    "round_nearest_even": [(-0.0, -0.0), (INF, INF), (0.5, 0.0), (-0.5, -0.0), (2.5, 2.0)],
    "round_nearest_afz": [(-0.0, -0.0), (-INF, -INF), (0.5, 1.0), (-0.5, -1.0), (2.5, 3.0)],
    "sign": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (1e-40, 1.0), (-3.0, -1.0)],
}


def assert_same(actual: np.ndarray, expected: np.ndarray) -> None:
    """Equal with the sign of zero; NaN where NaN is."""
    np.testing.assert_array_equal(actual, expected)
    sign = np.where(np.isnan(expected), False, np.signbit(actual) ^ np.signbit(expected))
    assert not sign.any(), (actual[sign], expected[sign])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", UNARY)
def test_special_values(name: str, dtype: str, target: str) -> None:
    cases = [*UNARY[name], (NAN, NAN)]
    if dtype == "float64":
        # What overflows in f32 does not in f64.
        cases = [case for case in cases if abs(case[0]) != 1e30 or name in ("floor", "ceil")]
    arguments, results = zip(*cases, strict=True)
    x = np.array(arguments, dtype)
    function = getattr(mathematics, name)
    actual = evaluate(lambda v: function(v, dtype), x, target=TARGETS[target])
    assert_same(actual, np.array(results, dtype))


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_ends_of_the_range_of_exp(dtype: str) -> None:
    """The last argument with a finite result, the last with a result that is not zero."""
    kind = FLOATS[dtype].type
    info = np.finfo(kind)
    highest = kind(math.log(float(info.max)))
    if float(np.exp(np.longdouble(highest))) > float(info.max):
        highest = np.nextafter(highest, kind(0))
    lowest = kind(float(np.log(np.longdouble(info.smallest_subnormal) / 2)))
    x = np.array([highest, highest + 1, lowest + kind(0.1), lowest - kind(0.1)], kind)
    actual = evaluate(lambda v: mathematics.exp(v, dtype), x)
    assert np.isfinite(actual[0])
    assert actual[0] > info.max / 2
    assert_same(actual[1:], np.array([INF, info.smallest_subnormal, 0], kind))


IDENTITY_NEAR_ZERO = (
    *("expm1", "log1p", "sinh", "tanh", "asinh", "atanh"),
    *("sin", "tan", "asin", "atan"),
)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", IDENTITY_NEAR_ZERO)
def test_subnormal_numbers_come_through(name: str, dtype: str) -> None:
    info = np.finfo(dtype)
    x = np.arange(1, 5000, 7).astype(dtype) * info.smallest_subnormal
    x = np.concatenate([x, -x, [info.tiny, -info.tiny]]).astype(dtype)
    function = getattr(mathematics, name)
    assert_same(evaluate(lambda v: function(v, dtype), x), x)


@pytest.mark.parametrize("dtype", FLOATS)
def test_rounding_equals_numpys(dtype: str) -> None:
    x = any_bits(4000, FLOATS[dtype])
    halves = np.arange(-1001, 1001).astype(dtype) / 2
    near = np.nextafter(halves, np.array([INF, -INF], dtype)[:, None]).ravel()
    x = np.concatenate([x, halves, near])
    away = np.copysign(np.floor(np.abs(x)) + (np.abs(x) - np.floor(np.abs(x)) >= 0.5), x)
    for name, expected in {
        "floor": np.floor(x),
        "ceil": np.ceil(x),
        "round_nearest_even": np.rint(x),
        "round_nearest_afz": away.astype(dtype),
    }.items():
        function = getattr(mathematics, name)
        actual = evaluate(lambda v, function=function: function(v, dtype), x)
        assert_same(actual, expected)


@pytest.mark.parametrize("dtype", FLOATS)
def test_is_finite(dtype: str) -> None:
    x = np.array([0, -0.0, 1, np.finfo(dtype).max, INF, -INF, NAN, 5e-324], dtype)
    actual = evaluate(lambda v: mathematics.is_finite(v, dtype), x, returns=np.bool_)
    np.testing.assert_array_equal(actual, np.isfinite(x))


EDGES = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 2.5, -2.5, INF, -INF, NAN)
ENDS = {
    "float32": (1e-45, -1e-45, 1e-39, 3e38, -3e38, 16777215.0, 16777216.0, 0.99999994),
    "float64": (5e-324, -5e-324, 1e-310, 1e308, -1e308, 2.0**53 - 1, 2.0**53, 1 - 2.0**-53),
}


def edge_pairs(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    first, second = zip(*itertools.product((*EDGES, *ENDS[dtype]), repeat=2), strict=True)
    return np.array(first, dtype), np.array(second, dtype)


def by_element(function: Callable[[float, float], float]) -> Callable[..., np.ndarray]:
    def apply(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        values: Sequence[float] = [function(*p) for p in zip(x.tolist(), y.tolist(), strict=True)]
        return np.array(values).astype(x.dtype)

    return apply


def larger(x: float, y: float) -> float:
    if math.isnan(x) or math.isnan(y):
        return NAN
    return x if x > y or (x == y and math.copysign(1, x) > 0) else y


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("max", by_element(larger)),
        ("min", by_element(lambda x, y: -larger(-x, -y))),
        ("rem", np.fmod),
        ("atan2", np.arctan2),
        ("pow", np.power),
        ("div", np.divide),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_special_values_of_two(name: str, expected: Callable[..., np.ndarray], dtype: str) -> None:
    x, y = edge_pairs(dtype)
    function = getattr(mathematics, name)
    actual = evaluate(lambda a, b: function(a, b, dtype), x, y)
    with np.errstate(all="ignore"):
        wanted = expected(x, y)
    if name in ("atan2", "pow"):
        close = np.isfinite(wanted) & (wanted != 0) & (actual != 0)
        np.testing.assert_allclose(actual[close], wanted[close], rtol=2 * np.finfo(dtype).eps)
        actual, wanted = actual[~close], wanted[~close]
    assert_same(actual, wanted)
