"""Attention over sequences."""

from __future__ import annotations

import math
from typing import Any

from tracejit.nn.activations import softmax
from tracejit.numpy.diagonals import tri
from tracejit.numpy.manipulation import as_array
from tracejit.numpy.selecting import where
from tracejit.trace.public import public


@public
def dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    mask: Any = None,
    *,
    bias: Any = None,
    scale: float | None = None,
    is_causal: bool = False,
) -> Any:
    """softmax(query keyᵀ / √d + bias) value.

    The arrays are [..., length, d], with the dimensions of batches and heads in front: `jax.nn` has
    the heads between the length and d. ``mask`` and ``bias`` are stretched to [..., length of the
    query, length of the key]; ``scale`` stands for 1 / √d. A score is -inf where ``mask`` does not
    hold and, if ``is_causal``, where the key stands behind the query.
    """
    q, k, v = as_array(query), as_array(key), as_array(value)
    factor = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    logits = (q @ k.swapaxes(-1, -2)) * factor
    if bias is not None:
        logits = logits + bias
    if is_causal:
        rows, columns = logits.shape[-2:]
        logits = where(tri(rows, columns, dtype=bool), logits, -math.inf)
    if mask is not None:
        logits = where(mask, logits, -math.inf)
    return softmax(logits) @ v
