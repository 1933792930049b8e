"""How the results of array functions lie in memory, given how their arguments do.

@implements(np.where, layout=elementwise)

A function without a rule of its own gives arrays that lie row by row where its arguments do, and
in an unknown order where one of them does not. Results that are views need no rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tracejit.trace.convert import operand
from tracejit.trace.memory_order import (
    UNKNOWN,
    Layout,
    column_major,
    is_dense,
    is_row_by_row,
    is_vector,
    iteration_order,
    row_major,
)
from tracejit.trace.tracer import Tracer

Rule = Callable[[tuple[Any, ...], Mapping[str, Any], Tracer], Layout | None]
"""From the arguments, by place and by name, and a result: the memory order of the result."""


def lay_out(rule: Rule, result: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Says how the arrays of a function's result lie in memory, those that are its own."""
    if type(result) is Tracer:
        if len(result.shape) > 1 and result.path is None:
            if not any(one is result for one in (*args, *kwargs.values())):
                result.lay(rule(args, kwargs, result))
    elif isinstance(result, tuple | list):
        for one in result:
            lay_out(rule, one, args, kwargs)


def by_default(args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Tracer) -> Layout | None:
    """Row by row, where all arguments are."""
    return UNKNOWN if _any_permuted(args) or _any_permuted(kwargs.values()) else None


def unknown(args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Tracer) -> Layout | None:
    """In any order."""
    return UNKNOWN


def by_columns(args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Tracer) -> Layout | None:
    """Column by column."""
    return column_major(result.ndim)


def by_rows(args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Tracer) -> Layout | None:
    """Row by row, however the arguments lie."""
    return row_major(result.ndim)


def of_products(args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Tracer) -> Layout | None:
    """A matrix row by row; a stack of them as its operands."""
    return row_major(2) if result.ndim == 2 else by_default(args, kwargs, result)


def as_first(args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Tracer) -> Layout | None:
    """As a copy of the first argument that keeps its order."""
    first = args[0] if args else None
    if isinstance(first, Tracer) and first.ndim == result.ndim:
        return first.copied_layout("K")
    return by_default(args, kwargs, result)


def elementwise(args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Tracer) -> Layout | None:
    """As NumPy's nditer goes through the operands; ``order`` says otherwise."""
    order = kwargs.get("order", "K")
    if order == "C":
        return row_major(result.ndim)
    if order == "F":
        return column_major(result.ndim)
    if not _any_permuted(args):
        return None
    if order != "K":
        return UNKNOWN
    known = _operands(args)
    if known is None:
        return UNKNOWN
    operands, is_certain = known
    return Layout(iteration_order(result.shape, operands), is_certain)


def joined(args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Tracer) -> Layout | None:
    """As the arrays that are joined lie, where all lie alike."""
    arrays = args[0] if args else ()
    if not _any_permuted(args) or not isinstance(arrays, list | tuple):
        return by_default(args, kwargs, result)
    known = _operands(arrays)
    if known is None or any(len(shape) != result.ndim for shape, _ in known[0]):
        return UNKNOWN
    operands, is_certain = known
    order = iteration_order(result.shape, operands)
    for shape, strides in operands:
        # Strides along a dimension of size 1 do not say where it lies.
        is_thin = any(size == 1 != whole for size, whole in zip(shape, result.shape, strict=True))
        if is_thin or not is_row_by_row([shape[d] for d in order], [strides[d] for d in order]):
            return UNKNOWN
    return Layout(order, is_certain)


def padded(args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Tracer) -> Layout | None:
    """Column by column where the first argument fills its memory so, else row by row."""
    first = args[0] if args else None
    if not isinstance(first, Tracer) or not first.is_permuted:
        return by_default(args, kwargs, result)
    strides, layout = first.strides_in_elements(), first.layout
    if strides is None:
        return UNKNOWN
    is_turned = is_dense(first.shape[::-1], strides[::-1])
    order = range(result.ndim)[:: -1 if is_turned else 1]
    return Layout(tuple(order), layout is not None and layout.is_certain)


Operands = list[tuple[Sequence[int], Sequence[int]]]


def _operands(args: Iterable[Any]) -> tuple[Operands, bool] | None:
    """The shapes and strides of arrays, and whether these are certain; None if not known."""
    operands: Operands = []
    is_certain = True
    for one in args:
        if isinstance(one, Tracer):
            strides = one.strides_in_elements()
            if strides is None:
                if is_vector(one.shape):
                    continue
                return None
            operands.append((one.shape, strides))
            is_certain &= one.layout is not None and one.layout.is_certain
        elif isinstance(one, np.ndarray):
            operands.append((one.shape, one.strides))
        elif isinstance(one, list | tuple):
            array = np.empty(operand(one).dimensions)
            operands.append((array.shape, array.strides))
    return operands, is_certain


def _any_permuted(values: Iterable[Any]) -> bool:
    for value in values:
        if type(value) is Tracer:
            if value.is_permuted:
                return True
        elif isinstance(value, np.ndarray):
            if value.ndim > 1 and not is_row_by_row(value.shape, value.strides):
                return True
        elif isinstance(value, list | tuple) and _any_permuted(value):
            return True
    return False
