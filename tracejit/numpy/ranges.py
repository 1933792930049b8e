"""Numbers counting up, evenly spaced, or of one ratio."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracejit.errors import AttributeValueError
from tracejit.numpy.building import fill, where
from tracejit.numpy.creation import require_cpu
from tracejit.numpy.manipulation import broadcast_to, moveaxis
from tracejit.numpy.sizes import known
from tracejit.ops import comparison, elementwise, elementwise_unary
from tracejit.ops.constants import constant, iota
from tracejit.shapes import ElementType, Shape, element_type_of
from tracejit.trace.convert import PYTHON_SCALARS, converted, operand
from tracejit.trace.promotion import result_dtype
from tracejit.trace.public import implements
from tracejit.trace.result_layouts import unknown
from tracejit.trace.table import Traced
from tracejit.trace.tracer import Tracer, lift

_ADVICE = "make the argument static: jit(f, static_argnums=...), or use a known size and np.where"
_FEW_INTEGERS = 16
_FEW_FLOATS = 1025
"""Ranges of fewer known numbers are NumPy's own; of more, the graph says how they are counted."""


@implements(np.arange, creates=True)
def arange(
    start: Any,
    stop: Any = None,
    step: Any = None,
    dtype: Any = None,
    *,
    device: Any = None,
    like: Any = None,
) -> Any:
    """Numbers from ``start`` (0 by default) up to, not with, ``stop``; all three must be known.

    Raises `ArgumentError` for what is no array of numbers and `ConcretizationError` for an
    option that is unknown while tracing.

    >>> tnp.arange(2, 10, 3)
    array([2, 5, 8])
    """
    require_cpu("arange", device)
    if stop is None:
        start, stop = 0, start
    bounds = [_known_size("arange", bound) for bound in (start, stop, 1 if step is None else step)]
    start, stop, step = bounds
    counted = _counted(start, stop, step)
    # A range of integers may be too long to be made here; two of them say what the rest is.
    values = np.arange(start, start + 2 * step if counted else stop, step)
    values = values if dtype is None else values.astype(dtype)
    count = counted or len(values)
    element_type = element_type_of(values.dtype)
    few = _FEW_FLOATS if element_type.is_floating else _FEW_INTEGERS
    if count < few or element_type.bits < 32:
        own = element_type.dtype if element_type.dtype.kind != "V" else None
        values = np.arange(start, stop, step, dtype=own)
        return lift(constant(values, element_type), False)
    # As NumPy counts: first + step * position.
    position = converted(iota(Shape(ElementType.S64, (count,))), element_type)
    made = elementwise.mul(position, fill(position, values[1] - values[0]))
    return lift(elementwise.add(made, fill(made, values[0])), False)


def _known_size(function: str, value: Any) -> Any:
    """A number that must be known while tracing, since a size depends on it."""
    return known(function, value, _ADVICE)[()] if isinstance(value, Traced) else value


def _counted(start: Any, stop: Any, step: Any) -> int:
    """How many numbers a range of Python's integers has; 0 for what only NumPy can count."""
    if any(type(bound) is not int or abs(bound) >> 61 for bound in (start, stop, step)):
        return 0
    return len(range(start, stop, step)) if step else 0


@implements(np.linspace, creates=True, layout=unknown)
def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    """``num`` numbers evenly spaced from ``start`` to ``stop``, which may be arrays and traced.

    Raises `ArgumentError` for what is no array of numbers, `AttributeValueError` for an option
    or a size out of range and `ConcretizationError` for an option that is unknown while
    tracing.

    >>> tnp.linspace(0, 1, 5)
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    require_cpu("linspace", device)
    count = int(_known_size("linspace", num))
    if count < 0:
        raise AttributeValueError(f"linspace: the number of samples must not be negative: {count}")
    if _is_made_here(start, stop, count, dtype):
        values, known_step = np.linspace(
            start, stop, count, endpoint=endpoint, retstep=True, dtype=dtype, axis=axis
        )
        few = lift(constant(values), False)
        return (few, known_step) if retstep else few
    ends = operand(start), operand(stop)
    work = result_dtype([*(o.type for o in ends), float])
    element_type = element_type_of(work)
    first, last = (lift(o.to(element_type), False) for o in ends)
    first, last = first + 0 * last, last + 0 * first
    gaps = count - 1 if endpoint else count
    position = lift(converted(iota(Shape(ElementType.S64, (count,))), element_type), False)
    position = position.reshape((count, *[1] * first.ndim))
    step = (last - first) / gaps if gaps > 0 else (last - first) * np.nan
    made = position * step + first if gaps > 0 else position * (last - first) + first
    if endpoint and count > 1:
        made = _ending_in(last, made, position, count)
    if axis != 0:
        made = moveaxis(made, 0, axis)
    wanted = element_type if dtype is None else element_type_of(dtype)
    result = made.instruction
    if wanted.is_integral and element_type.is_floating:
        result = elementwise_unary.floor(result)
    result = converted(result, wanted)
    return (lift(result, False), step) if retstep else lift(result, False)


def _is_made_here(start: Any, stop: Any, count: int, dtype: Any) -> bool:
    """Whether numbers from ``start`` to ``stop`` are known, few, and of a dtype of NumPy's."""
    if not all(type(end) in PYTHON_SCALARS or isinstance(end, np.number) for end in (start, stop)):
        return False
    if any(type(end) is int and end.bit_length() > 63 for end in (start, stop)):
        return False
    kinds = [np.result_type(start, stop), *([] if dtype is None else [np.dtype(dtype)])]
    return count < _FEW_FLOATS and all(kind.kind in "iufc" for kind in kinds)


def _ending_in(last: Tracer, made: Tracer, position: Tracer, count: int) -> Tracer:
    """``made`` with ``last`` in place of the last of ``count`` numbers, which may be rounded."""
    at = position.instruction
    at_end = lift(comparison.eq(at, fill(at, count - 1)), False)
    ends, value = (broadcast_to(x, made.shape).instruction for x in (at_end, last))
    return lift(where(ends, value, made.instruction), False)


@implements(np.logspace, creates=True, layout=unknown)
def logspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: int = 0,
) -> Any:
    """``base`` to the powers that `linspace` gives.

    Raises `ArgumentError` for what is no array of numbers, `AttributeValueError` for an option
    or a size out of range and `ConcretizationError` for an option that is unknown while
    tracing.

    >>> tnp.logspace(0, 2, 3)
    array([  1.,  10., 100.])
    """
    made = np.power(base, linspace(start, stop, num, endpoint, axis=axis))
    return made if dtype is None else made.astype(dtype)


@implements(np.geomspace, creates=True, layout=unknown)
def geomspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> Any:
    """Numbers of one ratio from ``start`` to ``stop``, both positive or both negative.

    Raises `ArgumentError` for what is no array of numbers, `DimensionError` for an axis that
    the array lacks, `AttributeValueError` for an option or a size out of range and
    `ConcretizationError` for an option that is unknown while tracing.

    >>> tnp.geomspace(1, 100, 3)
    array([  1.,  10., 100.])
    """
    first, last = lift(operand(start).natural), lift(operand(stop).natural)
    sign = np.sign(first)
    ends = np.log10(first * sign), np.log10(last * sign)
    made = sign * logspace(*ends, num, endpoint, 10.0, axis=axis)
    return made if dtype is None else made.astype(dtype)
