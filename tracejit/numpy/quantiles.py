"""Quantiles, the median, covariances and correlations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tracejit.errors import AttributeValueError
from tracejit.numpy import arithmetic, joining, manipulation, products, rounding, selecting, sorting
from tracejit.numpy.building import Axis, axes_of, is_nan
from tracejit.numpy.means import mean
from tracejit.numpy.storing import finish
from tracejit.trace.convert import operand
from tracejit.trace.promotion import result_dtype
from tracejit.trace.public import implements
from tracejit.trace.tracer import Tracer, lift


def _sorted_flat(function: str, a: Any, axis: Axis) -> tuple[Tracer, tuple[int, ...]]:
    """The array sorted along one last dimension, into which ``axis`` is gathered; of float type."""
    x = lift(operand(a).natural, False)
    axes = axes_of(function, axis, x.ndim)
    kept = [d for d in range(x.ndim) if d not in axes]
    rows = manipulation.transpose(x, [*kept, *axes])
    rows = rows.reshape([*(x.shape[d] for d in kept), math.prod(x.shape[a] for a in axes)])
    if not rows.element_type.is_inexact:
        rows = rows.astype(np.float64)
    return sorting.sort(rows, -1), axes


_POSITIONS = {
    # Where in n sorted elements the quantile q lies, counted from 0.
    "linear": lambda q, n: (n - 1) * q,
    "weibull": lambda q, n: (n + 1) * q - 1,
    "hazen": lambda q, n: n * q - 0.5,
    "median_unbiased": lambda q, n: n * q + (q + 1) / 3 - 1,
    "normal_unbiased": lambda q, n: n * q + (q / 4 + 3 / 8) - 1,
    "interpolated_inverted_cdf": lambda q, n: n * q - 1,
    "lower": lambda q, n: (n - 1) * q,
    "higher": lambda q, n: (n - 1) * q,
    "midpoint": lambda q, n: (n - 1) * q,
    "nearest": lambda q, n: (n - 1) * q,
}


@implements(np.quantile)
def quantile(
    a: Any,
    q: Any,
    axis: Axis = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> Any:
    """The value below which a share ``q`` of the elements lies, NaN if one of them is NaN.

    Methods: linear, lower, higher, midpoint, nearest, weibull, hazen, median_unbiased,
    normal_unbiased, interpolated_inverted_cdf. Raises `AttributeValueError` for another.
    """
    if method not in _POSITIONS or weights is not None:
        raise AttributeValueError(
            f"quantile: method must be one of {', '.join(_POSITIONS)}, without weights"
        )
    rows, axes = _sorted_flat("quantile", a, axis)
    count = rows.shape[-1]
    share = lift(operand(q).to(rows.element_type), False)
    position = _POSITIONS[method](share, count)
    below = rounding.floor(position)
    part = arithmetic.subtract(position, below)
    if method == "lower":
        part = arithmetic.multiply(part, 0)
    elif method == "higher":
        part = rounding.ceil(part)
    elif method == "midpoint":
        part = arithmetic.multiply(rounding.ceil(part), 0.5)
    elif method == "nearest":
        below, part = rounding.rint(position), arithmetic.multiply(part, 0)
    last = count - 1
    low = selecting.clip(below, 0, last).astype(np.int64)
    high = selecting.clip(arithmetic.add(below, 1), 0, last).astype(np.int64)
    part = selecting.where(position < 0, 0, part)
    first, second = rows[..., low], rows[..., high]
    made = first + (second - first) * part
    # A NaN is sorted last.
    bad = selecting.where(is_nan_of(rows[..., -1:]), np.nan, 0)
    for _ in range(share.ndim - 1):
        bad = bad[..., None]
    if share.ndim == 0:
        bad = bad[..., 0]
    made = made + bad.astype(made.dtype)
    made = manipulation.moveaxis(
        made, list(range(made.ndim - share.ndim, made.ndim)), list(range(share.ndim))
    )
    if keepdims:
        for d in sorted(axes):
            made = manipulation.expand_dims(made, share.ndim + d)
    return finish("quantile", made.instruction, out)


def is_nan_of(x: Tracer) -> Tracer:
    """Which elements are NaN."""
    return lift(is_nan(x.instruction), False)


@implements(np.percentile)
def percentile(
    a: Any,
    q: Any,
    axis: Axis = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> Any:
    """`quantile` with ``q`` in hundredths."""
    share = arithmetic.divide(lift(operand(q).natural, False), 100)
    return quantile(a, share, axis, out, overwrite_input, method, keepdims, weights=weights)


@implements(np.median)
def median(
    a: Any,
    axis: Axis = None,
    out: Any = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Any:
    """The middle element along ``axis``, or the mean of the two middle ones."""
    rows, axes = _sorted_flat("median", a, axis)
    count = rows.shape[-1]
    middle = rows[..., (count - 1) // 2 : count // 2 + 1]
    made = mean(middle, -1)
    made = selecting.where(is_nan_of(rows[..., -1]), made.dtype.type(np.nan), made)
    if keepdims:
        for d in sorted(axes):
            made = manipulation.expand_dims(made, d)
    return finish("median", made.instruction, out)


@implements(np.cov)
def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
) -> Any:
    """The covariance matrix of variables in rows (in columns, if not ``rowvar``)."""
    if fweights is not None or aweights is not None:
        raise AttributeValueError("cov: weights are not supported")
    rows = manipulation.atleast_2d(m)
    if not rowvar and rows.shape[0] != 1:
        rows = rows.T
    if y is not None:
        more = manipulation.atleast_2d(y)
        if not rowvar and more.shape[0] != 1:
            more = more.T
        rows = joining.concatenate([rows, more], 0)
    rows = rows.astype(dtype or result_dtype([rows.dtype, np.dtype(np.float64)]))
    freedom = rows.shape[1] - (ddof if ddof is not None else int(not bias))
    centred = rows - mean(rows, 1, keepdims=True)
    other = centred.T.conj()
    made = products.matmul(centred, other) / freedom
    return manipulation.squeeze(made)


@implements(np.corrcoef)
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Any:
    """The matrix of correlation coefficients; see `cov`."""
    covariance = cov(x, y, rowvar, dtype=dtype)
    if covariance.ndim == 0:
        return covariance / covariance
    deviation = arithmetic.sqrt(selecting.diagonal(covariance).real)
    return covariance / deviation[:, None] / deviation[None, :]
