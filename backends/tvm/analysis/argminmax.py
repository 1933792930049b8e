"""Recognises argmin and argmax: reductions that find the best value and its index.

Their combiner is associative and commutative, because ties are broken by the index. If elements
come in order of index it can be simpler: see `in_order`.
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
    """The identity of the comparison: no other value is worse."""
    return lowest(value) if name == "argmax" else highest(value)


def counted(reduce: Instruction) -> bool:
    """Whether the index operand of an argmin or argmax is an iota."""
    _, indices, _, start = reduce.operands
    return (
        indices.op is IOTA
        and reduce.attributes["dimensions"] == (indices.attributes["iota_dimension"],)
        and start.op is CONSTANT
        and not start.attributes["literal"].any()
    )


@functools.cache
def in_order(name: str, value_type: ElementType, index_type: ElementType) -> Computation:
    """The combiner for elements in increasing order of index.

    A new value replaces the old one if it is better, and the old one is not NaN.
    """
    best, best_index, value, index = parameters = tuple(
        parameter(i, Shape(t)) for i, t in enumerate([value_type, index_type] * 2)
    )
    take = not_(le(value, best) if name == "argmax" else ge(value, best))
    if value_type.is_floating:
        take = and_(take, eq(best, best))
    root = tuple_([select(take, value, best), select(take, index, best_index)])
    return Computation(f"{name}_in_order", parameters, root)
