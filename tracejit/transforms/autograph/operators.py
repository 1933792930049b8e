"""Operators of Python that decide: ``and``, ``or``, ``not``, ``in``, chains of comparisons, and
``a if test else b``.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit.trace.table import call as numpy_call
from tracejit.trace.tracer import Tracer, lift
from tracejit.transforms.autograph.branches import if_
from tracejit.transforms.autograph.hidden_writes import without_hidden_writes
from tracejit.transforms.autograph.optional import narrowed, settled
from tracejit.transforms.autograph.parts import Action
from tracejit.transforms.autograph.values import NO_VALUE, dtype_kind, is_unknown, truth


def and_(first: Any, *others: Action) -> Any:
    """``first and other() and ...``; the others are worked out as well behind an unknown one."""
    value = first
    for other in others:
        if is_unknown(value):
            right = _speculated(value, True, "and", other)
            value = _combined(value, right, np.logical_and)
        elif value:
            value = other()
        else:
            return value
    return value


def or_(first: Any, *others: Action) -> Any:
    """``first or other() or ...``."""
    value = first
    for other in others:
        if is_unknown(value):
            right = _speculated(value, False, "or", other)
            value = _combined(value, right, np.logical_or)
        elif not value:
            value = other()
        else:
            return value
    return value


def _speculated(left: Any, holds: bool, statement: str, other: Action) -> Any:
    """``other()``, which counts only where ``left`` holds, or does not."""
    with settled(truth(left, statement), holds, is_speculative=True):
        return narrowed(without_hidden_writes(statement, other))


def _combined(left: Any, right: Any, function: Any) -> Any:
    """Truth values are combined; of numbers one is chosen, as Python does."""
    test = lift(truth(left, "and, or"))
    if dtype_kind(left) == dtype_kind(right) == "b":
        return numpy_call(function, left, right)
    if function is np.logical_and:
        return either(test, lambda: right, lambda: left)
    return either(test, lambda: left, lambda: right)


def not_(value: Any) -> Any:
    """``not value``."""
    if not is_unknown(value):
        return not value
    return numpy_call(np.logical_not, lift(truth(value, "not")))


def either(test: Any, body: Action, orelse: Action) -> Any:
    """``body() if test else orelse()``."""
    if not is_unknown(test):
        return body() if test else orelse()
    state: list[Any] = [NO_VALUE]

    def put(values: Sequence[Any]) -> None:
        state[0] = values[0]

    if_(
        test,
        lambda: put([body()]),
        lambda: put([orelse()]),
        lambda: (state[0],),
        put,
        ("autograph_value",),
        parts=(body, orelse),
    )
    return state[0]


def contains(value: Any, container: Any) -> Any:
    """``value in container``."""
    if isinstance(container, Tracer) or (is_unknown(value) and isinstance(container, np.ndarray)):
        return numpy_call(np.any, container == value)
    if is_unknown(value) and isinstance(container, list | tuple | range):
        return or_(False, *(functools.partial(operator.eq, value, item) for item in container))
    return value in container


def _lacks(value: Any, container: Any) -> Any:
    return not_(contains(value, container))


_COMPARISONS: dict[str, Any] = {"contains": contains, "lacks": _lacks}


def compare(operators: tuple[str, ...], first: Any, *others: Action) -> Any:
    """``first < second() < third()``, each worked out once."""
    left, value = first, True
    for name, other in zip(operators, others, strict=True):
        right = _speculated(value, True, "and", other) if is_unknown(value) else other()
        compared = _COMPARISONS.get(name) or getattr(operator, name)
        result = compared(left, right)
        value = result if value is True else and_(value, functools.partial(_same, result))
        if not is_unknown(value) and not value:
            return value
        left = right
    return value


def _same(value: Any) -> Any:
    return value
