"""Results whose size depends on elements: known while tracing, or fixed by ``size=``.

With ``size=`` the first so many results are kept, and what is missing is ``fill_value``. Without,
the elements that decide must be known while tracing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracejit.errors import AttributeValueError, ConcretizationError
from tracejit.numpy.manipulation import as_array
from tracejit.ops.constants import constant
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
    count = int(size.__index__())
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
    holds = mask.astype(np.bool_)
    # Half as many bytes pass by where places fit into 32 bits.
    dtype = np.int32 if max(holds.size, size, missing) < np.iinfo(np.int32).max else np.int64
    number = holds.cumsum(dtype=dtype)
    count = number[-1].astype(np.int64) if holds.size else listed(np.array(0, np.int64))
    # One place behind the result takes what does not count.
    target = np.where(holds & (number <= dtype(size)), number - dtype(1), dtype(size))
    made = listed(np.full(size + 1, missing, dtype)).copy()
    made[target] = np.arange(holds.size, dtype=dtype)
    return made[:size].astype(np.int64), count


def padded(values: Tracer, count: Tracer, fill_value: Any) -> Tracer:
    """The first ``count`` rows, and ``fill_value`` after them."""
    is_there = np.arange(values.shape[0]) < count
    column = is_there.reshape((-1,) + (1,) * (values.ndim - 1))
    made: Any = np.where(column, values, as_array(fill_value).astype(values.dtype))
    kept: Tracer = made
    return kept
