"""Reduction kinds: which combiners are monoids, so that they may be reordered."""

from __future__ import annotations

from typing import Any

from tracejit.backends.tvm.analysis.argminmax import worst
from tracejit.graph import Computation, Op
from tracejit.ops import elementwise as binary
from tracejit.ops.computations import MONOIDS, binary_op, highest, identity_value
from tracejit.ops.reduction import extreme

_REPEATED = frozenset({binary.MAX, binary.MIN, binary.AND, binary.OR})


def monoid(computation: Computation) -> Op | None:
    """The op of a computation that is one associative op with an identity, else None."""
    op = binary_op(computation)
    return op if op in MONOIDS else None


def may_repeat(computation: Computation) -> bool:
    """Whether the combiner is idempotent, given increasing indices."""
    return monoid(computation) in _REPEATED or extreme(computation) is not None


def identities(computation: Computation) -> tuple[Any, ...] | None:
    """The identities of a combiner whose order does not matter, else None.

    These are monoids, and argmin and argmax.
    """
    types = [p.array_shape.element_type for p in computation.parameters]
    op, name = monoid(computation), extreme(computation)
    if op is not None:
        return (identity_value(op.function, types[0]),)
    return None if name is None else (worst(name, types[0]), highest(types[1]))
