"""Sums of exponentials by their logarithms, spelled as in `jax.lax`."""

from __future__ import annotations

import math
from typing import Any

from tracejit.lax import elementwise as lax
from tracejit.lax.scanning import associative_scan
from tracejit.lax.shapes import full_like
from tracejit.lax.stopping import stop_gradient
from tracejit.trace.convert import operand
from tracejit.trace.public import public
from tracejit.trace.tracer import lift


@public
def cumlogsumexp(operand_: Any, axis: int = 0, reverse: bool = False) -> Any:
    """log(sum(exp(x))) of each element and all before it (after it, if ``reverse``).

    Shape and dtype are the operand's. Raises `ElementTypeError` for elements that are not floating.

    >>> tj.lax.cumlogsumexp(np.zeros(3)).round(4)
    array([0.    , 0.6931, 1.0986])
    """

    def combine(x: Any, y: Any) -> Any:
        # The maximum cancels, so that its derivative does not count.
        top = stop_gradient(lax.max(x, y))
        top = lax.select(lax.is_finite(top), top, full_like(top, 0))
        total = lax.add(lax.exp(lax.sub(x, top)), lax.exp(lax.sub(y, top)))
        none = lax.eq(total, full_like(total, 0))
        known = lax.log(lax.select(none, full_like(total, 1), total))
        return lax.add(lax.select(none, full_like(total, -math.inf), known), top)

    return associative_scan(combine, lift(operand(operand_).natural, False), reverse, axis)
