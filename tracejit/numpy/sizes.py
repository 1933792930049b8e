"""Results whose size depends on elements: known while tracing, or fixed by ``size=``.

With ``size=`` that number of results is kept, and missing ones are ``fill_value``. Without, the
elements that decide must be known while tracing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracejit.errors import AttributeValueError, ConcretizationError
from tracejit.numpy.building import integer
from tracejit.numpy.manipulation import as_array
from tracejit.ops.constants import constant, elements_of, iota
from tracejit.ops.layout import concatenate
from tracejit.ops.reduction import sort, sort_order
from tracejit.shapes import ElementType, Shape
from tracejit.trace.concrete import dependence
from tracejit.trace.convert import operand
from tracejit.trace.evaluation import known_value
from tracejit.trace.tracer import Tracer, lift


def known_or_none(value: Any) -> np.ndarray | None:
    """The elements, if they are known while tracing."""
    return known_value(operand(value).natural)


def known(function: str, value: Any, advice: str) -> np.ndarray:
    """The elements, which decide the result's shape.

    Raises `ConcretizationError` with ``advice`` when they are not known while tracing.
    """
    instruction = operand(value).natural
    found = known_value(instruction)
    if found is None:
        raise ConcretizationError(
            f"{function}: the result's size depends on {dependence(instruction)}, unknown while "
            f"tracing; {advice}"
        )
    return found


def checked_size(function: str, size: Any) -> int:
    """``size=`` as a number. Raises `AttributeValueError` for a negative one."""
    count = integer(function, "size", size)
    if count < 0:
        raise AttributeValueError(f"{function}: size must not be negative, not {count}")
    return count


def listed(values: np.ndarray) -> Tracer:
    """Known values as an array."""
    return lift(constant(values), False)


def places_where(mask: Tracer, size: int, missing: int) -> tuple[Tracer, Tracer]:
    """The first ``size`` places at which a vector of truth values holds, and how many there are.

    Where there are fewer, the rest is ``missing``.
    """
    places, count = narrow_places_where(mask, size, missing)
    return places.astype(np.int64), count


def narrow_places_where(mask: Tracer, size: int, missing: int) -> tuple[Tracer, Tracer]:
    """What `places_where` returns, the places as 32-bit integers where all fit into these."""
    holds = mask.astype(np.bool_)
    length = holds.size
    # Half as many bytes pass by, and are divided.
    narrow = max(length, size, missing) < np.iinfo(np.int32).max
    element_type = ElementType.S32 if narrow else ElementType.S64
    count = holds.sum(dtype=element_type.dtype).astype(np.int64)
    order = sort_order(ElementType.PRED, element_type, descending=True)
    numbers = iota(Shape(element_type, (length,)), 0)
    sorted_ = sort([holds.instruction, numbers], order, 0, is_stable=True)
    first = lift(elements_of(sorted_)[1], False)[:size]
    places = padded(first, count, missing)
    if size > length:
        rest = listed(np.full(size - length, missing, element_type.dtype))
        places = lift(concatenate([places.instruction, rest.instruction], 0), False)
    return places, count


def padded(values: Tracer, count: Tracer, fill_value: Any) -> Tracer:
    """The first ``count`` rows, and ``fill_value`` after them."""
    is_there = np.arange(values.shape[0]) < count
    column = is_there.reshape((-1,) + (1,) * (values.ndim - 1))
    made: Any = np.where(column, values, as_array(fill_value).astype(values.dtype))
    kept: Tracer = made
    return kept
