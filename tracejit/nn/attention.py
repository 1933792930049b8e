"""Attention over sequences, with the arguments and layout of `jax.nn`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tracejit.errors import AttributeValueError, ShapeError
from tracejit.nn.activations import softmax
from tracejit.numpy.creation import array
from tracejit.numpy.logic import logical_and
from tracejit.numpy.manipulation import as_array
from tracejit.numpy.ranges import arange
from tracejit.numpy.selecting import where
from tracejit.trace.public import public
from tracejit.trace.tracer import Tracer


def _require_fits(q: Tracer, k: Tracer, v: Tracer) -> None:
    """Raises `ShapeError` unless three arrays [batch, length, heads, d] fit."""
    fits = q.ndim == k.ndim == v.ndim == 4 and k.shape[:3] == v.shape[:3]
    fits = fits and q.shape[0] == k.shape[0] and q.shape[3] == k.shape[3]
    if not fits or k.shape[2] == 0 or q.shape[2] % k.shape[2]:
        raise ShapeError(
            "dot_product_attention: query must be [..., t, n, d], key [..., s, k, d] and value "
            f"[..., s, k, e], n a multiple of k; query {q.shape}, key {k.shape}, value {v.shape}"
        )


def _wide(argument: str, given: Any, shape: tuple[int, ...]) -> Tracer:
    """A bias or mask [batch, heads, t, s] whose sizes may be 1; [heads, t, s] is for each batch."""
    made = as_array(given)
    made = made if made.ndim == 4 else made[(None,) * (4 - made.ndim)]
    if made.ndim != 4 or any(n not in (1, m) for n, m in zip(made.shape, shape, strict=True)):
        raise ShapeError(
            f"dot_product_attention: {argument} must broadcast to {shape}, [batch, heads, "
            f"length of query, length of key]; it is {made.shape}"
        )
    return made


def _window(size: int | tuple[int, int] | None) -> tuple[int, int] | None:
    if size is None or isinstance(size, tuple):
        return size
    return (size, size)


def _allowed(shape: tuple[int, int], is_causal: bool, window: tuple[int, int] | None) -> Any:
    """Which keys a query may see by place alone, [t, s]; None for all."""
    rows, columns = np.ogrid[: shape[0], : shape[1]]
    made = None
    if is_causal:
        made = rows >= columns
    if window is not None:
        near = (columns >= rows - window[0]) & (columns <= rows + window[1])
        made = near if made is None else made & near
    return made


@public
def dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    bias: Any = None,
    mask: Any = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: Any = None,
    key_value_seq_lengths: Any = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: str | None = None,
) -> Any:
    """softmax(scale · query keyᵀ + bias) value for each head; the layout is that of `jax.nn`.

    ``query`` is [batch, t, n, d] or [t, n, d], ``key`` [batch, s, k, d] and ``value``
    [batch, s, k, e]: the heads stand between the length and the depth. ``n`` is a multiple of
    ``k``: n / k heads of the query share one of the key. The result is [batch, t, n, e].

    ``bias`` and ``mask`` broadcast to [batch, n, t, s]; ``scale`` is 1 / √d unless given. A query
    sees the keys where ``mask`` holds, with ``is_causal`` those not behind it, with
    ``local_window_size`` those as far before and behind it, and those before
    ``key_value_seq_lengths`` [batch]. Results of queries from ``query_seq_lengths`` [batch] on are
    zero; a query that sees no key takes the mean of all values. Logits and softmax of elements of
    fewer than 32 bits are float32. ``implementation`` None or "xla" is the only one.

    Raises `ShapeError` for arrays that do not fit, `AttributeValueError` for another
    implementation.

    >>> tj.nn.dot_product_attention(*(np.ones((1, 4, 2, 8)),) * 3).shape
    (1, 4, 2, 8)
    """
    if implementation not in (None, "xla"):
        raise AttributeValueError(
            f"dot_product_attention: implementation must be None or 'xla', not {implementation!r}"
        )
    q, k, v = as_array(query), as_array(key), as_array(value)
    is_batch = q.ndim != 3
    if not is_batch:
        q, k, v = q[None], k[None], v[None]
    _require_fits(q, k, v)
    batch, rows, heads, depth = q.shape
    columns, groups = k.shape[1:3]
    shape = (batch, heads, rows, columns)
    factor = 1 / math.sqrt(depth) if scale is None else scale
    work = np.result_type(q.dtype, np.float32) if q.dtype.itemsize < 4 else q.dtype
    left = q.reshape(batch, rows, groups, heads // groups, depth).transpose(0, 2, 3, 1, 4)
    right = k.transpose(0, 2, 3, 1)[:, :, None]
    logits = (left.astype(work) @ right.astype(work)) * array(factor, work)
    logits = logits.reshape(shape)
    if bias is not None:
        logits = logits + _wide("bias", bias, shape).astype(work)
    seen = _allowed((rows, columns), is_causal, _window(local_window_size))
    if mask is not None:
        given = _wide("mask", mask, shape)
        seen = given if seen is None else logical_and(given, seen)
    if key_value_seq_lengths is not None:
        known = arange(columns) < as_array(key_value_seq_lengths)[:, None, None, None]
        seen = known if seen is None else logical_and(known, seen)
    if seen is not None:
        # Finite, so that a query which sees no key has a softmax.
        logits = where(seen, logits, array(_lowest(work), work))
    weights = softmax(logits).astype(v.dtype)
    weights = weights.reshape(batch, groups, heads // groups, rows, columns)
    made = weights @ v.transpose(0, 2, 1, 3)[:, :, None]
    made = made.transpose(0, 3, 1, 2, 4).reshape(batch, rows, heads, v.shape[3])
    if query_seq_lengths is not None:
        known = arange(rows)[:, None, None] < as_array(query_seq_lengths)[:, None, None, None]
        made = where(known, made, array(0, made.dtype))
    return made if is_batch else made[0]


def _lowest(dtype: np.dtype) -> float:
    return float(-0.7 * np.finfo(dtype).max)
