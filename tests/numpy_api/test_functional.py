"""Functions of functions, index brackets, folds, and what no protocol of NumPy reaches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy import r_, vectorize

import tracejit as tj
from tests.numpy_api.compare import check, same

RNG = np.random.default_rng(2)
V = RNG.normal(size=6)
M = RNG.normal(size=(3, 4))
WHOLE = RNG.integers(0, 9, (3, 4))
OUTSIDE = np.vectorize(lambda a, b: a * 2 + b)


def test_recorded_by_name() -> None:
    def function(v: Any) -> Any:
        return (
            np.r_[v, 1, v],
            np.c_[v, v],
            r_[0:3, v],
            np.r_["-1", v, v],
            np.kaiser(5, v[1]),
            OUTSIDE(v, 1.0),
            np.vectorize(lambda a: np.sin(a) + 1)(v),
            vectorize(lambda a, b: (a + b, a * b))(v, v[:1]),
            v[:4] * np.mgrid[0:4],
            v[:4] * np.ogrid[0:4],
            [x for _, x in np.ndenumerate(v)],
        )

    same(tj.jit(function)(V), function(V))


def test_many_elements_are_one_loop() -> None:
    x = np.arange(100.0)
    same(tj.jit(lambda x: np.vectorize(lambda a: a * a + 1)(x))(x), x * x + 1)
    rows = np.arange(120.0).reshape(60, 2)
    made = tj.jit(lambda x: np.apply_along_axis(lambda r: r[::-1] * 2, 1, x))(rows)
    same(made, rows[:, ::-1] * 2)


def test_vectorize_with_a_signature() -> None:
    function = np.vectorize(lambda a, b: (a * b).sum(), signature="(n),(n)->()")
    same(tj.jit(lambda x: function(x, x[0]))(M), function(M, M[0]))


def test_along_and_over_axes() -> None:
    def function(np: Any, x: Any) -> Any:
        return (
            np.apply_along_axis(lambda r: r[::-1] * 2, 0, x),
            np.apply_along_axis(lambda r: r.sum(), 1, x),
            np.apply_along_axis(lambda r: np.outer(r, r), 1, x),
            np.apply_over_axes(np.sum, x, [0, 1]),
            np.piecewise(x, [x < 0, x > 1], [-1, lambda t: t * 2, 5]),
        )

    check(function, M)


def test_folds_of_other_ufuncs() -> None:
    def function(np: Any, i: Any) -> Any:
        x = i + 1.0
        return (
            np.subtract.reduce(i),
            np.hypot.reduce(x, axis=1, keepdims=True),
            np.gcd.reduce(i, axis=1),
            np.logaddexp.reduce(x, axis=0),
            np.subtract.accumulate(i, 1),
            np.divide.accumulate(x),
            np.hypot.reduce(x, axis=0, where=i > 3, initial=0.0),
            np.power.outer(x[0], i[1]),
        )

    check(function, WHOLE)
    long = np.arange(80.0)
    check(lambda np, x: (np.subtract.reduce(x), np.subtract.accumulate(x)), long)
    with pytest.raises(ValueError, match="only for functions of two arguments"):
        tj.jit(lambda x: tj.numpy.sin.reduce(x))(V)
    with pytest.raises(ValueError, match="one axis must be given"):
        tj.jit(lambda x: tj.numpy.subtract.reduce(x, axis=None))(M)


def test_numpys_polynomials_record_as_they_are() -> None:
    coefficients = np.array([1.0, 2.0, 3.0])

    def function(x: Any) -> Any:
        return (
            np.polynomial.polynomial.polyval(x, coefficients),
            np.polynomial.chebyshev.chebval(x, coefficients),
        )

    same(tj.jit(function)(V), function(V))


def test_polynomials_known_and_unknown() -> None:
    same(tj.jit(lambda x: np.polydiv(x, np.array([1.0, 2.0])))(V)[0], np.polydiv(V, [1.0, 2.0])[0])
    with pytest.raises(ValueError, match="strip_zeros=False"):
        tj.jit(lambda x: np.roots(x))(V)
    found = tj.jit(lambda x: tj.numpy.roots(x, strip_zeros=False))(np.array([1.0, -3.0, 2.0]))
    np.testing.assert_allclose(np.sort(found.real), [1, 2])
    points = np.arange(6.0)
    made = tj.jit(lambda y: np.polyfit(points, y, 2, w=points + 1, cov=True))(V)
    expected = np.polyfit(points, V, 2, w=points + 1, cov=True)
    same(made, expected, rtol=1e-8)


def test_statistics_with_arguments() -> None:
    weights = np.abs(M[0])

    def function(np: Any, x: Any, w: Any) -> Any:
        return (
            np.quantile(x, [0.2, 0.5, 1.0], axis=1, weights=w, method="inverted_cdf"),
            np.cov(x, fweights=[1, 2, 0, 3]),
            np.cov(x, aweights=w),
            np.cov(x, fweights=[1, 2, 0, 3], aweights=w, ddof=0),
            np.cov(x, x, rowvar=False),
            np.gradient(x, [1.0, 2.0, 4.0], np.cumsum(w)),
            np.gradient(x, np.cumsum(w), axis=1, edge_order=2),
            np.histogram(x, 4, density=True),
            np.histogram(x, 5, (-1, 1.0), weights=x * 2),
            np.histogram2d(x[0], x[1], [2, 4], density=True),
            np.interp(x, np.sort(x[0]), w, period=2.0),
            np.searchsorted(np.sort(x[0]), x, "right"),
            np.unwrap(x * 7, period=3.0, axis=0),
        )

    check(function, M, weights)


METHODS = (
    "inverted_cdf averaged_inverted_cdf closest_observation interpolated_inverted_cdf hazen weibull"
    " linear median_unbiased normal_unbiased lower higher midpoint nearest"
).split()


@pytest.mark.parametrize("method", METHODS)
def test_quantiles_with_and_without_nan(method: str) -> None:
    x = M.copy()
    x[0, 1] = x[:, 2] = np.nan
    shares = [0.0, 0.1, 0.33, 0.5, 1.0]
    check(lambda np, x: np.quantile(x, shares, axis=1, method=method), M)
    check(lambda np, x: np.quantile(x, 0.4, method=method, keepdims=True), WHOLE)
    check(lambda np, x: np.nanquantile(x, shares, axis=1, method=method), x)
    check(lambda np, x: np.nanquantile(x, 0.3, axis=0, method=method, keepdims=True), x)


def test_long_searches_by_halves() -> None:
    edges = np.sort(RNG.integers(0, 40, 100))
    for side in ("left", "right"):
        check(lambda np, e, v, side=side: np.searchsorted(e, v, side), edges, np.arange(-3, 44))
    falling = edges[::-1].copy()
    check(lambda np, e, v: (np.digitize(v, e), np.digitize(v, e, True)), falling, np.arange(44))
