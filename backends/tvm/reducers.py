"""Which reductions may be reordered and started from an identity."""

from __future__ import annotations

from tracejit.graph import Computation, Op
from tracejit.ops import elementwise as binary
from tracejit.ops.computations import binary_op

_MONOIDS = frozenset(
    {binary.ADD, binary.MUL, binary.MAX, binary.MIN, binary.AND, binary.OR, binary.XOR}
)


def monoid(computation: Computation) -> Op | None:
    """The op of a computation that is one associative op with a known identity, else None."""
    op = binary_op(computation)
    return op if op in _MONOIDS else None
