"""Covariances and correlations."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracejit.errors import ElementTypeError, ShapeError
from tracejit.numpy import arithmetic, diagonals, joining, manipulation, products
from tracejit.numpy.manipulation import as_array
from tracejit.numpy.means import mean
from tracejit.trace.promotion import result_dtype
from tracejit.trace.public import implements
from tracejit.trace.tracer import Tracer


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
    """The covariance matrix of variables in rows (in columns, if not ``rowvar``).

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tnp.cov([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    rows = manipulation.atleast_2d(m)
    if not rowvar and rows.shape[0] != 1:
        rows = rows.T
    if y is not None:
        more = manipulation.atleast_2d(y)
        if not rowvar and more.shape[0] != 1:
            more = more.T
        rows = joining.concatenate([rows, more], 0)
    rows = rows.astype(dtype or result_dtype([rows.dtype, np.dtype(np.float64)]))
    delta = ddof if ddof is not None else int(not bias)
    weights = _observations(fweights, aweights, rows)
    if weights is None:
        centred = rows - mean(rows, 1, keepdims=True)
        scale: Any = max(rows.shape[1] - delta, 0)
        other = centred
    else:
        total = weights.sum()
        centred = rows - ((rows * weights).sum(1) / total)[:, None]
        other = centred * weights
        if delta == 0:
            scale = total
        elif aweights is None:
            scale = total - delta
        else:
            scale = total - delta * (weights * as_array(aweights)).sum() / total
        scale = np.maximum(scale, 0)
    made = products.matmul(centred, other.T.conj()) / scale
    return manipulation.squeeze(made)


def _observations(fweights: Any, aweights: Any, rows: Tracer) -> Any:
    """The weight of each observation, or None when all are equal."""
    given = [as_array(w) for w in (fweights, aweights) if w is not None]
    for weights in given:
        if weights.shape != rows.shape[1:]:
            raise ShapeError(
                f"cov: weights {weights.shape} must be as many as observations {rows.shape[1:]}"
            )
    if fweights is not None and not as_array(fweights).element_type.is_integral:
        raise ElementTypeError("cov: fweights must be integers")
    if not given:
        return None
    return given[0] * given[1] if len(given) == 2 else given[0]


@implements(np.corrcoef)
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Any:
    """The matrix of correlation coefficients; see `cov`.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tnp.corrcoef([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    covariance = cov(x, y, rowvar, dtype=dtype)
    if covariance.ndim == 0:
        return covariance / covariance
    deviation = arithmetic.sqrt(diagonals.diagonal(covariance).real)
    return covariance / deviation[:, None] / deviation[None, :]
