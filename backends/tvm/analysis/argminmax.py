"""Recognises reductions that find the extreme value and its index: argmax and argmin.

Their combination is associative and commutative, because equal values are told apart by their
index. Walked through in order of index it is simpler still: see `in_order`.
"""

from __future__ import annotations

import functools
from typing import Any

from tracejit.graph import Computation, Instruction
from tracejit.ops.comparison import eq, ge, le
from tracejit.ops.computations import highest, lowest
from tracejit.ops.constants import CONSTANT, IOTA, parameter, tuple_
from tracejit.ops.elementwise import and_, select
from tracejit.ops.elementwise_unary import not_
from tracejit.shapes import ElementType, Shape


def worst(name: str, value: ElementType) -> Any:
    """The value that no other is worse than."""
    return lowest(value) if name == "argmax" else highest(value)


def counted(reduce: Instruction) -> bool:
    """Whether a Reduce with such a combination takes indices that count up from 0."""
    _, indices, _, start = reduce.operands
    return (
        indices.op is IOTA
        and reduce.attributes["dimensions"] == (indices.attributes["iota_dimension"],)
        and start.op is CONSTANT
        and not start.attributes["literal"].any()
    )


@functools.cache
def in_order(name: str, value_type: ElementType, index_type: ElementType) -> Computation:
    """What remains of the combination when every new index is higher than all before.

    The new value must be better than the old one, which must not be NaN.
    """
    best, best_index, value, index = parameters = tuple(
        parameter(i, Shape(t)) for i, t in enumerate([value_type, index_type] * 2)
    )
    take = not_(le(value, best) if name == "argmax" else ge(value, best))
    if value_type.is_floating:
        take = and_(take, eq(best, best))
    root = tuple_([select(take, value, best), select(take, index, best_index)])
    return Computation(f"{name}_in_order", parameters, root)
