"""Pseudo-inverses, least squares, ranks: what is decided by how small singular values are."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracejit import ops
from tracejit.errors import AttributeValueError, MatrixError
from tracejit.lax import factorizations
from tracejit.numpy import products
from tracejit.numpy.manipulation import as_array, broadcast_to
from tracejit.numpy.matrices import (
    common,
    epsilon_of,
    hermitian_of,
    linear,
    matrices_of,
    require_matrices,
)
from tracejit.shapes import Shape
from tracejit.trace.tracer import Tracer, lift


@linear(np.linalg.pinv)
def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = np._NoValue) -> Any:
    """The pseudo-inverses; singular values up to ``rcond`` times the largest count as zero.

    Raises `ArgumentError` for arguments that it does not take and `MatrixError` for arrays that
    are no such matrices.

    >>> tnp.linalg.pinv([[2.0, 0.0], [0.0, 0.0]])
    array([[0.5, 0. ],
           [0. , 0. ]])
    """
    array = matrices_of("pinv", a, square=hermitian)
    if rcond is None:
        given = 1e-15 if rtol is np._NoValue else rtol
        rcond = max(array.shape[-2:]) * epsilon_of(array) if given is None else given
    elif rtol is not np._NoValue:
        raise AttributeValueError("pinv: rtol and rcond cannot both be set")
    return _pinv(hermitian_of(array) if hermitian else array, rcond)


def _pinv(array: Tracer, rcond: Any) -> Any:
    if 0 in array.shape:
        return lift(ops.full(_like(array, array.shape[-1], array.shape[-2]), 0), False)
    cutoff = broadcast_to(as_array(rcond).astype(np.float64), array.shape[:-2])
    return factorizations.pinv(array, cutoff)[0]


def _like(array: Tracer, *dimensions: int) -> Shape:
    return Shape(array.element_type, (*array.shape[:-2], *dimensions))


@linear(np.linalg.lstsq)
def lstsq(a: Any, b: Any, rcond: float | None = None) -> Any:
    """(x, residuals, rank, singular values) of the least squares problem a x = b.

    Raises `ArgumentError` for what is no array of numbers and `MatrixError` for arrays that are
    no such matrices.

    >>> tnp.linalg.lstsq([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]], [1.0, 3.0, 5.0])[0].round(6)
    array([1., 2.])
    """
    left, right = common("lstsq", a, b)
    if left.ndim != 2 or right.ndim not in (1, 2):
        raise MatrixError(
            f"lstsq: a must have two dimensions and b one or two; a {left.shape}, b {right.shape}"
        )
    rows, columns = left.shape
    if right.shape[0] != rows:
        raise MatrixError(f"lstsq: a and b must have as many rows; a {left.shape}, b {right.shape}")
    epsilon = epsilon_of(left)
    cutoff = epsilon * max(rows, columns) if rcond is None else epsilon if rcond == -1 else rcond
    x, values = _least_squares(left, right, cutoff)
    rank = _rank(values, cutoff).astype(np.int32)
    missing = right - products.matmul(left, x)
    squares = (missing * missing.conj()).real.sum(0, keepdims=right.ndim == 1)
    if rows <= columns:
        squares = squares[:0]
    return x, squares, rank, values


def _least_squares(left: Tracer, right: Tracer, cutoff: Any) -> tuple[Any, Tracer]:
    """The solution, and the singular values of ``left``."""
    if left.element_type.is_complex and 0 not in left.shape:
        # LAPACK's, which makes no singular vectors.
        columns = right[:, None] if right.ndim == 1 else right
        share = as_array(cutoff).astype(np.float64)
        x, values = factorizations.lstsq(left, columns, share)
        return (x[:, 0] if right.ndim == 1 else x), values
    (values,) = factorizations.svdvals(left)
    return products.matmul(_pinv(left, cutoff), right), values


def _rank(values: Tracer, relative: Any) -> Any:
    if values.shape[-1] == 0:
        return values.sum(-1)
    limit = values.max(-1, keepdims=True) * relative
    return (values > limit).sum(-1)


@linear(np.linalg.matrix_rank)
def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    """The number of singular values above ``tol``, or above ``rtol`` times the largest.

    Raises `ArgumentError` for arguments that it does not take.

    >>> tnp.linalg.matrix_rank([[1.0, 2.0], [2.0, 4.0]])
    np.int64(1)
    """
    if rtol is not None and tol is not None:
        raise AttributeValueError("matrix_rank: tol and rtol cannot both be set")
    (array,) = common("matrix_rank", A)
    if array.ndim < 2:
        return (array != 0).any().astype(np.int64)
    if hermitian:
        require_matrices("matrix_rank", array, square=True)
        array = hermitian_of(array)
    (values,) = factorizations.svdvals(array)
    if tol is not None:
        return (values > as_array(tol)[..., None]).sum(-1)
    relative = (
        max(array.shape[-2:]) * epsilon_of(array) if rtol is None else as_array(rtol)[..., None]
    )
    return _rank(values, relative)
