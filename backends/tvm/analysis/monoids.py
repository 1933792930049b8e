"""Recognises reduction combiners that are monoids, for passes and kernels that reorder them."""

from __future__ import annotations

from typing import Any

from tracejit.backends.tvm.analysis.argminmax import worst
from tracejit.graph import Computation, Op
from tracejit.ops.computations import highest, identity_value, monoid
from tracejit.ops.elementwise import MUL, SUB
from tracejit.ops.reduction import extreme


def is_sum(op: Op) -> bool:
    """Whether a reduction of a loop's steps by this op may be reordered.

    Products are not: a product of some factors may overflow where the product of all does not.
    """
    return op is SUB or (op.is_monoid and op is not MUL)


def may_repeat(computation: Computation) -> bool:
    """Whether the combiner is idempotent, given increasing indices."""
    op = monoid(computation)
    return (op is not None and op.is_idempotent) or extreme(computation) is not None


def identities(computation: Computation) -> tuple[Any, ...] | None:
    """The identities of a combiner whose order does not matter, else None.

    These are monoids, and argmin and argmax.
    """
    types = [p.array_shape.element_type for p in computation.parameters]
    op, name = monoid(computation), extreme(computation)
    if op is not None:
        return (identity_value(op.function, types[0]),)
    return None if name is None else (worst(name, types[0]), highest(types[1]))
