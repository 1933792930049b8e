"""Polynomials given by their coefficients, the highest power first."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracejit.errors import AttributeValueError, ShapeError
from tracejit.numpy import joining, signals
from tracejit.numpy.manipulation import as_array, ravel
from tracejit.numpy.sizes import known_or_none, listed
from tracejit.trace.convert import operand
from tracejit.trace.promotion import result_dtype
from tracejit.trace.public import implements
from tracejit.trace.table import call
from tracejit.trace.tracer import Tracer


def _coefficients(function: str, p: Any) -> Tracer:
    x = np.atleast_1d(as_array(p))
    if x.ndim != 1:
        raise ShapeError(f"{function}: coefficients {x.shape} must have one dimension")
    return x  # type: ignore[return-value]


@implements(np.poly)
def poly(seq_of_zeros: Any) -> Any:
    """The polynomial with given roots, or the characteristic one of a matrix.

    Complex roots give complex coefficients.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tnp.poly([1.0, 2.0])
    array([ 1., -3.,  2.])
    """
    zeros = np.atleast_1d(as_array(seq_of_zeros))
    if zeros.ndim == 2 and zeros.shape[0] == zeros.shape[1] and zeros.shape[0]:
        zeros = call(np.linalg.eigvals, zeros)
    elif zeros.ndim != 1:
        raise ShapeError(f"poly: {zeros.shape} must be a vector or a square matrix")
    work = result_dtype([zeros.dtype, np.dtype(np.float64)])
    if not zeros.shape[0]:
        return listed(np.array(1.0))[()]
    if np.issubdtype(zeros.dtype, np.inexact):
        work = zeros.dtype
    made = listed(np.ones(1, work))
    for i in range(zeros.shape[0]):
        root = zeros[i].astype(work)
        one = listed(np.ones(1, work))
        made = signals.convolve(made, joining.concatenate([one, -root.reshape(1)]))
    return made


@implements(np.polyval)
def polyval(p: Any, x: Any) -> Any:
    """The polynomial's value at ``x``, by Horner's rule.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tnp.polyval([1, 2, 3], 2)
    np.int64(11)
    """
    coefficients = _coefficients("polyval", p)
    at = as_array(x)
    made: Any = at * 0
    for i in range(coefficients.shape[0]):
        made = made * at + coefficients[i]
    return made


def _summed(function: str, a1: Any, a2: Any, sign: int) -> Any:
    first, second = _coefficients(function, a1), _coefficients(function, a2)
    size = max(first.shape[0], second.shape[0])
    parts = []
    for x in (first, second):
        missing = listed(np.zeros(size - x.shape[0], x.dtype))
        parts.append(joining.concatenate([missing, x]) if missing.size else x)
    return parts[0] + parts[1] if sign > 0 else parts[0] - parts[1]


@implements(np.polyadd)
def polyadd(a1: Any, a2: Any) -> Any:
    """The sum of two polynomials.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tnp.polyadd([1, 2], [3])
    array([1, 5])
    """
    return _summed("polyadd", a1, a2, 1)


@implements(np.polysub)
def polysub(a1: Any, a2: Any) -> Any:
    """The difference of two polynomials.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tnp.polysub([1, 2], [3])
    array([ 1, -1])
    """
    return _summed("polysub", a1, a2, -1)


@implements(np.polymul)
def polymul(a1: Any, a2: Any) -> Any:
    """The product of two polynomials. Known leading zeros are left off, unknown ones count.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tnp.polymul([1, 1], [1, -1])
    array([ 1,  0, -1])
    """
    factors = [_without_zeros(_coefficients("polymul", a)) for a in (a1, a2)]
    return signals.convolve(factors[0], factors[1])


def _without_zeros(x: Tracer) -> Tracer:
    values = known_or_none(x)
    if values is None:
        return x
    places = np.flatnonzero(values)
    return x[int(places[0]) if len(places) else x.shape[0] - 1 :]  # type: ignore[no-any-return]


@implements(np.polydiv)
def polydiv(u: Any, v: Any) -> Any:
    """(quotient, remainder) of two polynomials; the remainder keeps its leading zeros.

    Known polynomials lose the remainder's leading zeros, as in NumPy.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tnp.polydiv([1.0, 3.0, 2.0], [1.0, 1.0])
    (array([1., 2.]), array([0.]))
    """
    dividend, divisor = _coefficients("polydiv", u), _coefficients("polydiv", v)
    values = known_or_none(dividend), known_or_none(divisor)
    work = result_dtype([dividend.dtype, divisor.dtype, np.dtype(np.float64)])
    if np.issubdtype(result_dtype([dividend.dtype, divisor.dtype]), np.inexact):
        work = result_dtype([dividend.dtype, divisor.dtype])
    n, m = dividend.shape[0], divisor.shape[0]
    rest = dividend.astype(work).copy()
    scale = 1.0 / divisor[0].astype(work)
    quotient = listed(np.zeros(max(n - m + 1, 1), work)).copy()
    for k in range(n - m + 1):
        factor = scale * rest[k]
        quotient[k] = factor
        rest[k : k + m] -= factor * divisor.astype(work)
    if values[0] is not None and values[1] is not None:
        left = known_or_none(rest)
        assert left is not None
        start = 0
        while start < len(left) - 1 and np.allclose(left[start], 0, rtol=1e-14):
            start += 1
        rest = rest[start:]
    return quotient, rest


@implements(np.polyder)
def polyder(p: Any, m: int = 1) -> Any:
    """The derivative of order ``m``.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tnp.polyder([1, 2, 3])
    array([2, 2])
    """
    if m < 0:
        raise AttributeValueError(f"polyder: order of derivative must not be negative, not {m}")
    x = _coefficients("polyder", p)
    for _ in range(m):
        x = x[:-1] * np.arange(x.shape[0] - 1, 0, -1)
    return x


@implements(np.polyint)
def polyint(p: Any, m: int = 1, k: Any = None) -> Any:
    """The antiderivative of order ``m``, with constants ``k``.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tnp.polyint([2.0, 2.0])
    array([1., 2., 0.])
    """
    if m < 0:
        raise AttributeValueError(f"polyint: order of integral must not be negative, not {m}")
    x = _coefficients("polyint", p)
    constants = ravel(np.zeros(m) if k is None else k)
    if constants.shape[0] == 1 and m > 1:
        constants = constants * listed(np.ones(m))
    if constants.shape[0] < m:
        raise AttributeValueError(f"polyint: k must be a number or {m} numbers")
    for order in range(m):
        divided = x / np.arange(x.shape[0], 0, -1)
        x = joining.concatenate([divided, constants[order].reshape(1)])
    return x


@implements(np.polyfit)
def polyfit(
    x: Any,
    y: Any,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: Any = None,
    cov: bool | str = False,
) -> Any:
    """The polynomial of degree ``deg`` that fits points best, by least squares.

    With ``full`` also the residuals, rank, singular values and rcond; with ``cov`` the covariance
    matrix of the coefficients.

    Raises `ArgumentError` for what is no array of numbers, `ShapeError` for shapes that do not
    fit and `ConcretizationError` for an option that is unknown while tracing.

    >>> tnp.polyfit([0.0, 1.0, 2.0], [1.0, 3.0, 5.0], 1).round(6)
    array([2., 1.])
    """
    points, values = as_array(x) + 0.0, as_array(y) + 0.0
    order = int(deg) + 1
    if order < 1 or points.ndim != 1 or not points.size:
        raise ShapeError(f"polyfit: x {points.shape} must be a vector, deg not negative: {deg}")
    if values.ndim not in (1, 2) or values.shape[0] != points.shape[0]:
        raise ShapeError(f"polyfit: y {values.shape} must be as long as x {points.shape}")
    if rcond is None:
        rcond = points.shape[0] * float(np.finfo(points.dtype).eps)
    lhs, rhs = np.vander(points, order), values
    if w is not None:
        weights = as_array(w) + 0.0
        lhs = lhs * weights[:, None]
        rhs = rhs * (weights[:, None] if rhs.ndim == 2 else weights)
    scale = np.sqrt((lhs * lhs).sum(0))
    solution, residuals, rank, singular = call(np.linalg.lstsq, lhs / scale, rhs, rcond)
    made = (solution.T / scale).T
    if full:
        return made, residuals, rank, singular, rcond
    if not cov:
        return made
    inverse = call(np.linalg.inv, np.dot((lhs / scale).T, lhs / scale)) / np.outer(scale, scale)
    if cov == "unscaled":
        factor: Any = 1
    else:
        if points.shape[0] <= order:
            raise AttributeValueError("polyfit: too few points to scale the covariance matrix")
        factor = ((rhs - np.dot(lhs, made)) ** 2).sum(0) / (points.shape[0] - order)
    return made, inverse * factor if values.ndim == 1 else inverse[:, :, None] * factor


@implements(np.roots)
def roots(p: Any, *, strip_zeros: bool = True) -> Any:
    """The roots of a polynomial: the eigenvalues of its companion matrix.

    Leading and trailing zeros shorten the result where the coefficients are known; unknown ones
    must start with one that is not zero, said by ``strip_zeros=False``.

    Raises `ArgumentError` for what is no array of numbers, `ShapeError` for shapes that do not
    fit and `AttributeValueError` for an option or a size out of range.

    >>> tnp.roots([1.0, -3.0, 2.0])
    array([2.+0.j, 1.+0.j])
    """
    x = _coefficients("roots", p)
    values = known_or_none(x)
    zeros = 0
    if values is not None and strip_zeros:
        places = np.flatnonzero(values)
        if not len(places):
            return listed(np.zeros(0))
        zeros = len(values) - int(places[-1]) - 1
        x = x[int(places[0]) : int(places[-1]) + 1]
    elif strip_zeros:
        raise AttributeValueError(
            "roots: how many roots there are depends on leading zeros unknown while tracing; "
            "call tracejit.numpy.roots(p, strip_zeros=False) if the first coefficient is not zero"
        )
    count = x.shape[0] - 1
    if count < 1:
        return listed(np.zeros(zeros))
    work = result_dtype([operand(x).type, np.dtype(np.float64)])
    companion = listed(np.eye(count, k=-1, dtype=work)).copy()
    companion[0, :] = -x[1:] / x[0]
    found = call(np.linalg.eigvals, companion)
    return joining.concatenate([found, listed(np.zeros(zeros, found.dtype))]) if zeros else found
