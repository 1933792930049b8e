"""Reductions, cumulative functions and statistics against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.numpy_api.arrays import BOOL, C64, COUNT, CUBE, F16, F32, F64, ROW, S64, SPECIAL, U8
from tests.numpy_api.compare import check

ALONG_AXES = """
    sum prod max min mean var std all any ptp count_nonzero nansum nanprod nanmax nanmin nanmean
    nanvar nanstd median
""".split()
ALONG_ONE = "argmax argmin nanargmax nanargmin".split()
CUMULATIVE = "cumsum cumprod nancumsum nancumprod".split()
METHODS = """
    linear lower higher midpoint nearest hazen weibull median_unbiased normal_unbiased
    interpolated_inverted_cdf
""".split()


def call(name: str, **kwargs: Any) -> Any:
    return lambda np, x: getattr(np, name)(x, **kwargs)


@pytest.mark.parametrize("name", ALONG_AXES)
def test_along_axes(name: str) -> None:
    for x in (F64, F32, S64, BOOL, U8, CUBE, F16):
        if x is BOOL and name in ("ptp", "median"):
            continue
        check(call(name), x)
        check(call(name, axis=-1), x)
        check(call(name, axis=0, keepdims=True), x)
        check(call(name, axis=(0, 1)), x)
    check(call(name, axis=1), SPECIAL)


@pytest.mark.parametrize("name", ALONG_ONE)
def test_places(name: str) -> None:
    for x in (F64, S64, BOOL, U8, CUBE):
        check(call(name), x)
        check(call(name, axis=1), x)
        check(call(name, axis=-1, keepdims=True), x)
    nan_first = np.array([[1.0, np.nan, np.nan], [np.nan, 2.0, 0.0]])
    check(call(name, axis=1), nan_first)


@pytest.mark.parametrize("name", CUMULATIVE)
def test_cumulative(name: str) -> None:
    for x in (F64, F32, S64, BOOL, U8, CUBE, F16, SPECIAL):
        check(call(name), x)
        check(call(name, axis=1), x)


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "std", "cumsum", "cumprod"])
def test_complex(name: str) -> None:
    check(call(name, axis=0), C64)


def test_arguments() -> None:
    mask = np.array([True, False, True, True])
    check(lambda np, x: np.sum(x, axis=0, where=mask, initial=2.0), F64)
    check(lambda np, x: np.sum(x, dtype=np.float32), F64)
    check(lambda np, x: np.mean(x, where=x > 0), F64)
    check(lambda np, x: np.max(x, initial=0.0, where=x > 0, axis=1), F64)
    check(lambda np, x: np.var(x, ddof=1), F64)
    check(lambda np, x: np.std(x, axis=1, correction=1), F64)
    check(lambda np, x: np.average(x, axis=0, weights=np.array([1.0, 2, 3])), F64)
    check(lambda np, x: np.average(x), F64)


def test_methods_of_arrays() -> None:
    for name in ("sum", "mean", "max", "argmin", "cumsum", "std", "all", "trace"):
        check(lambda np, x, name=name: getattr(x, name)(1), F64)


def test_of_nothing() -> None:
    empty = np.zeros((0, 3))
    check(call("sum", axis=0), empty)
    check(call("prod"), empty)
    check(call("mean", axis=0), empty)
    check(call("max", axis=1), empty)
    check(call("all"), empty)
    check(call("cumsum", axis=0), empty)


@pytest.mark.parametrize("method", METHODS)
def test_quantiles(method: str) -> None:
    q = np.array([0.1, 0.5, 0.93])
    check(lambda np, x: np.quantile(x, q, axis=1, method=method), F64)
    check(lambda np, x: np.quantile(x, 0.3, method=method), F64)


def test_order_statistics() -> None:
    check(lambda np, x: np.percentile(x, [10, 50], axis=(0, 1)), CUBE)
    check(lambda np, x: np.percentile(x, 10, keepdims=True, axis=1), CUBE)
    check(lambda np, x: np.median(x, axis=0), SPECIAL)
    check(lambda np, x: np.cov(x), F64)
    check(lambda np, x: np.corrcoef(x), F64)


def test_differences_and_integrals() -> None:
    check(lambda np, x: np.diff(x), F64)
    check(lambda np, x: np.diff(x, 2, axis=0, prepend=0.0), F64)
    check(lambda np, x: np.diff(x > 0), F64)
    check(lambda np, x: np.ediff1d(x, to_end=[9.0]), F64)
    check(lambda np, x: np.trapezoid(x, dx=0.5), F64)
    check(lambda np, x, y: np.trapezoid(x, y), F64, ROW)
    check(lambda np, x: np.gradient(x), F64)
    check(lambda np, x: np.gradient(x, 0.5, axis=1), F64)


def test_methods_of_ufuncs() -> None:
    check(lambda np, x: np.add.reduce(x), F64)
    check(lambda np, x: np.add.reduce(x, axis=None), F64)
    check(lambda np, x: np.logical_and.reduce(x, axis=1), S64)
    check(lambda np, x: np.minimum.reduce(x, axis=1), S64)
    check(lambda np, x: np.add.accumulate(x, axis=1), F64)
    check(lambda np, x: np.maximum.accumulate(x), F64)
    check(lambda np, x: np.multiply.outer(x, x), COUNT)
    check(lambda np, x: np.subtract.outer(x, x), F64)
    check(lambda np, x: np.add.reduceat(x, [0, 2, 1]), COUNT)
