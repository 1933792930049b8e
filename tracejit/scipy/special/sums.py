"""SciPy's functions that are no ufuncs: sums of exponentials, factorials, polygamma, zeta."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.special as scipy_special

from tracejit.errors import ArgumentError, AttributeValueError
from tracejit.numpy.building import Axis
from tracejit.numpy.manipulation import as_array
from tracejit.numpy.storing import finish
from tracejit.scipy.special import betas, gammas
from tracejit.scipy.special.functions import floats
from tracejit.scipy.special.gammas import gammaln, hurwitz, polygamma_of, riemann
from tracejit.scipy.special.terms import Term, known_derivative, where
from tracejit.trace.public import adopted, implements
from tracejit.trace.tracer import Tracer, lift


def _number(x: Any) -> Tracer:
    array = as_array(x)
    return array if array.element_type.is_inexact else array.astype(np.float64)


@implements(scipy_special.logsumexp)
def logsumexp(
    a: Any, axis: Axis = None, b: Any = None, keepdims: bool = False, return_sign: bool = False
) -> Any:
    """log(sum(b * exp(a))) without overflow; with ``return_sign`` also the sum's sign.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tj.scipy.special.logsumexp([0.0, 1.0]).round(4)
    np.float64(1.3133)
    """
    x = _number(a)
    scale = None if b is None else as_array(b)
    if scale is not None:
        x, scale = np.broadcast_arrays(x, scale)  # type: ignore[assignment]
        x = np.where(scale == 0, -np.inf, x)  # type: ignore[assignment]
    top: Any = (
        x.max(axis, keepdims=True, initial=-np.inf) if not x.size else x.max(axis, keepdims=True)
    )
    top = np.where(np.isfinite(top), top, 0)
    shifted = np.exp(x - top)
    total = (shifted if scale is None else scale * shifted).sum(axis, keepdims=True)
    sign = np.sign(total)
    if return_sign:
        total = np.absolute(total)
    # Where nothing is added up the derivative is zero, not NaN.
    made: Any = np.where(total == 0, -np.inf, np.log(total)) + top
    if not return_sign and scale is not None:
        made = np.where(total < 0, np.nan, made)
    if not keepdims:
        axes = tuple(range(x.ndim)) if axis is None else axis
        made, sign = np.squeeze(made, axes), np.squeeze(sign, axes)
        made, sign = lift(made.instruction), lift(sign.instruction)
    return (made, sign) if return_sign else made


@implements(scipy_special.softmax)
def softmax(x: Any, axis: Axis = None) -> Any:
    """exp(x) / sum(exp(x)) along ``axis``, by default over all elements.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tj.scipy.special.softmax([0.0, 1.0]).round(4)
    array([0.2689, 0.7311])
    """
    array = _number(x)
    powers = np.exp(array - array.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


@implements(scipy_special.log_softmax)
def log_softmax(x: Any, axis: Axis = None) -> Any:
    """The logarithm of `softmax`.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tj.scipy.special.log_softmax([0.0, 1.0]).round(4)
    array([-1.3133, -0.3133])
    """
    array = _number(x)
    top = array.max(axis, keepdims=True)
    shifted = array - np.where(np.isfinite(top), top, 0)
    return shifted - np.log(np.exp(shifted).sum(axis, keepdims=True))


@implements(scipy_special.softplus)
def softplus(x: Any) -> Any:
    """log(1 + exp(x)).

    Raises `ArgumentError` for arguments that it does not take.

    >>> tj.scipy.special.softplus([0.0, 1.0]).round(4)
    array([0.6931, 1.3133])
    """
    return np.logaddexp(0, x)


def _refuse_exact(name: str, exact: Any) -> None:
    if exact:
        raise AttributeValueError(
            f"{name}: exact=True counts in Python's integers, of any size; traced values are "
            f"floating numbers here"
        )


@implements(scipy_special.comb)
def comb(N: Any, k: Any, *, exact: bool = False, repetition: bool = False) -> Any:
    """How many ways there are to choose k of N things; 0 unless 0 <= k <= N.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tj.scipy.special.comb(5, 2).round(4)
    np.float64(10.0)
    """
    _refuse_exact("comb", exact)
    n, chosen = as_array(N), as_array(k)
    if repetition:
        return comb(n + chosen - 1, chosen)
    usual = (chosen <= n) & (n >= 0) & (chosen >= 0)
    a, b = np.where(usual, n, 1), np.where(usual, chosen, 0)
    made = 1.0 / ((a + 1.0) * betas.beta(a - b + 1.0, b + 1.0))
    return np.where(usual, made, 0.0)


@implements(scipy_special.perm)
def perm(N: Any, k: Any, exact: bool = False) -> Any:
    """How many ordered choices of k of N things there are; 0 unless 0 <= k <= N.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tj.scipy.special.perm(5, 2).round(4)
    np.float64(20.0)
    """
    _refuse_exact("perm", exact)
    n, chosen = as_array(N), as_array(k)
    usual = (chosen <= n) & (n >= 0) & (chosen >= 0)
    a, b = np.where(usual, n, 1), np.where(usual, chosen, 0)
    return np.where(usual, betas.poch(a - b + 1.0, b * 1.0), 0.0)


@implements(scipy_special.factorial)
def factorial(n: Any, exact: bool = False, extend: str = "zero") -> Any:
    """gamma(n + 1); 0 for negative numbers.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tj.scipy.special.factorial([3, 5]).round(4)
    array([  6., 120.])
    """
    _refuse_exact("factorial", exact)
    if extend != "zero":
        raise AttributeValueError(f"factorial: extend must be 'zero', not {extend!r}")
    x = _number(n)
    negative = x < 0
    return np.where(negative, 0.0, gammas.gamma(np.where(negative, 0, x) + 1)).astype(x.dtype)


@implements(scipy_special.polygamma)
def polygamma(n: Any, x: Any) -> Any:
    """The derivative of order ``n`` of digamma: whole numbers from 0 on, x > 0 for n > 0.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tj.lax.polygamma(1, np.array([1.0, 2.0])).round(4)
    array([1.6449, 0.6449])
    """
    order, at = floats("polygamma", n, x)

    def slope(order: Term, at: Term) -> Term:
        return Term(_polygamma(order + 1, at).value)

    made = known_derivative("polygamma", _polygamma, [None, slope], [order, at])
    return lift(made.value, None)


def _polygamma(order: Term, at: Term) -> Term:
    first = order == 0
    above = where(first, 1.0, order)
    return where(first, gammas.digamma_of(at), polygamma_of(above, at))


@implements(scipy_special.zeta)
def zeta(x: Any, q: Any = None, out: Any = None) -> Any:
    """Riemann's zeta function, or with ``q`` the one of Hurwitz, for x > 1 and q >= 0.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tj.lax.zeta(np.array([2.0, 3.0]), 1.0).round(4)
    array([1.6449, 1.2021])
    """
    if q is None:
        (only,) = floats("zeta", x)
        return finish("zeta", riemann(only).value, out)
    s, at = floats("zeta", x, q)
    return finish("zeta", hurwitz(s, at).value, out)


@implements(scipy_special.multigammaln)
def multigammaln(a: Any, d: int) -> Any:
    """The logarithm of the gamma function of ``d`` dimensions, for a > (d - 1) / 2.

    Raises `ArgumentError` for what is no array of numbers, `AttributeValueError` for an option
    or a size out of range and `ConcretizationError` for an option that is unknown while
    tracing.

    >>> tj.scipy.special.multigammaln(3.0, 2).round(4)
    np.float64(1.5502)
    """
    if d < 1 or int(d) != d:
        raise AttributeValueError(f"multigammaln: d must be a positive whole number, not {d}")
    x = _number(a)
    made: Any = d * (d - 1) * 0.25 * math.log(math.pi)
    for j in range(int(d)):
        made = made + gammaln(x - j / 2)
    return made


@implements(scipy_special.bernoulli, creates=True)
def bernoulli(n: int) -> Any:
    """The Bernoulli numbers from 0 to a known ``n``.

    Raises `ArgumentError` for arguments that it does not take.

    >>> tj.scipy.special.bernoulli(4).round(4)
    array([ 1.    , -0.5   ,  0.1667,  0.    , -0.0333])
    """
    if isinstance(n, Tracer):
        raise ArgumentError("bernoulli: n decides the result's size and must be known")
    return adopted(scipy_special.bernoulli(n))
