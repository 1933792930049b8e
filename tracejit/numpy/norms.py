"""Norms of vectors and matrices, with derivatives that are zero where the norm is zero."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracejit.errors import AttributeValueError
from tracejit.lax import factorizations
from tracejit.numpy import arithmetic, comparison
from tracejit.numpy.building import axes_of
from tracejit.numpy.manipulation import as_array, expand_dims, moveaxis, ravel
from tracejit.numpy.selecting import where
from tracejit.trace.tracer import Tracer

Axis = int | tuple[int, ...] | None


def floating(x: Any) -> Tracer:
    """The array, integers and truth values as float64."""
    array = as_array(x)
    return array if array.element_type.is_inexact else array.astype(np.float64)


def norm(x: Any, order: Any, axis: Axis, keepdims: bool) -> Any:
    """`numpy.linalg.norm`."""
    array = floating(x)
    rank = array.ndim
    if axis is None and (
        order is None or (order in ("f", "fro") and rank == 2) or (order == 2 and rank == 1)
    ):
        made = _root(_squares(ravel(array)).sum())
        return made.reshape((1,) * rank) if keepdims else made
    axes = axes_of("norm", axis, rank)
    if len(axes) == 1:
        return vector_norm(array, order, axes, keepdims)
    if len(axes) == 2:
        return matrix_norm(array, order, axes, keepdims)
    raise AttributeValueError(
        f"norm: norms are of one axis or two, not of {len(axes)}; axis {axis}, x {array.shape}"
    )


def vector_norm(x: Tracer, order: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """The norm over some axes together. Raises `AttributeValueError` for an order there is not."""
    if order in (None, 2):
        return _root(_squares(x).sum(axes, keepdims=keepdims))
    if isinstance(order, str):
        raise AttributeValueError(f"norm: {order!r} is no order of a vector's norm")
    if order == 0:
        counted = comparison.not_equal(x, 0).astype(x.real.dtype)
        return counted.sum(axes, keepdims=keepdims)
    magnitudes = arithmetic.absolute(x)
    if order == np.inf:
        return magnitudes.max(axes, keepdims=keepdims)
    if order == -np.inf:
        return magnitudes.min(axes, keepdims=keepdims)
    if order == 1:
        return magnitudes.sum(axes, keepdims=keepdims)
    total = (magnitudes**order).sum(axes, keepdims=keepdims)
    if order < 0:
        return total ** (1 / order)
    empty = total == 0
    return _number(where(empty, total, where(empty, 1, total) ** (1 / order)), total)


def matrix_norm(x: Tracer, order: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """The norm over two axes. Raises `AttributeValueError` for an order there is not."""
    if axes[0] == axes[1]:
        raise AttributeValueError("norm: the two axes of a matrix's norm must be different")
    if order in (None, "fro", "f"):
        return _root(_squares(x).sum(axes, keepdims=keepdims))
    matrices = moveaxis(x, axes, (-2, -1))
    if order in (1, -1, np.inf, -np.inf):
        sums = arithmetic.absolute(matrices).sum(-2 if abs(order) == 1 else -1)
        made = sums.max(-1) if order > 0 else sums.min(-1)
    elif order in (2, -2, "nuc"):
        (values,) = factorizations.svdvals(matrices)
        made = values.sum(-1) if order == "nuc" else values.max(-1) if order > 0 else values.min(-1)
    else:
        raise AttributeValueError(f"norm: {order!r} is no order of a matrix's norm")
    return expand_dims(made, axes) if keepdims else made


def _squares(x: Tracer) -> Any:
    """|x|², without a root whose derivative would be infinite at zero."""
    if x.element_type.is_complex:
        return x.real * x.real + x.imag * x.imag
    return x * x


def _root(total: Any) -> Any:
    """The square root, with the derivative 0 at 0."""
    empty = total == 0
    return _number(where(empty, total, arithmetic.sqrt(where(empty, 1, total))), total)


def _number(made: Any, like: Any) -> Any:
    """In the dtype of ``like``; of rank 0 a number, which `where` does not make."""
    return made.astype(like.dtype)[()]
