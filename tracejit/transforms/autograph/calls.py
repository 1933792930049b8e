"""What is called for a function: its rewritten form, and for some builtins one that takes traced
numbers.
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit import tree
from tracejit.errors import ConcretizationError
from tracejit.trace.boolean_indexing import Masked
from tracejit.trace.convert import operand
from tracejit.trace.int_overflow import require_exact
from tracejit.trace.outside_world import note_change
from tracejit.trace.spoken import speaking
from tracejit.trace.table import call as numpy_call
from tracejit.trace.tracer import Tracer
from tracejit.transforms.autograph.capture_policy import is_inside_counted
from tracejit.transforms.autograph.loop_capture import require_quiet
from tracejit.transforms.autograph.purity import is_users_function
from tracejit.transforms.autograph.ranges import TracedRange
from tracejit.transforms.autograph.values import is_unknown


class _Conversion:
    called: Callable[[Any], Any] = staticmethod(lambda function: function)


def use_conversion(called: Callable[[Any], Any]) -> None:
    """Sets what rewrites the functions that a rewritten function calls."""
    _Conversion.called = staticmethod(called)


def call(function: Any) -> Any:
    """What is called for ``function``."""
    note_change(function)
    function = speaking(function)
    replacement = _BUILTINS.get(function) if type(function) in _BUILTIN_KINDS else None
    if is_inside_counted():
        if function is isinstance or function is type:
            return functools.partial(_of_kind, function)
        if not is_users_function(function):
            require_quiet(function)
    return _Conversion.called(function) if replacement is None else replacement


def _of_kind(function: Any, value: Any, *kinds: Any) -> Any:
    """``isinstance`` and ``type`` in a step that is recorded once for many, whose numbers are not
    Python's.

    Raises `ConcretizationError` for these.
    """
    if isinstance(value, Tracer) and value.is_weak:
        raise ConcretizationError(f"{function.__name__}: a step's number is not the counter itself")
    return function(value, *kinds)


def _range(*limits: Any) -> Any:
    if not any(is_unknown(limit) for limit in limits):
        return range(*limits)
    return TracedRange.of(*limits)


def _converting(kind: type, dtype: Any) -> Any:
    def convert(*args: Any) -> Any:
        if len(args) == 1 and is_unknown(args[0]) and not args[0].ndim:
            made = args[0].astype(dtype).weakened()
            require_exact(np.positive, args, made)
            return made
        return kind(*args)

    return convert


def _extreme(function: Any, ufunc: Any, reduction: Any) -> Any:
    def extreme(*args: Any, **kwargs: Any) -> Any:
        if kwargs or not any(is_unknown(leaf) for leaf in tree.leaves(args)):
            return function(*args, **kwargs)
        if len(args) == 1 and isinstance(args[0], Tracer):
            return numpy_call(reduction, args[0])
        values = args if len(args) > 1 else tuple(args[0])
        return functools.reduce(functools.partial(_chosen, ufunc), values)

    return extreme


def _length(value: Any) -> Any:
    if isinstance(value, Masked) and not value.axis:
        return value.count.weakened()
    return len(value)


def _chosen(ufunc: Any, a: Any, b: Any) -> Any:
    made = numpy_call(ufunc, a, b)
    if not (operand(a).is_weak and operand(b).is_weak):
        return made
    made = made.weakened()
    require_exact(ufunc, (a, b), made)
    return made


_BUILTIN_KINDS = (type, type(len))
_BUILTINS: dict[Any, Any] = {
    builtins.range: _range,
    builtins.int: _converting(int, np.int64),
    builtins.float: _converting(float, np.float64),
    builtins.bool: _converting(bool, np.bool_),
    builtins.min: _extreme(min, np.minimum, np.min),
    builtins.len: _length,
    builtins.max: _extreme(max, np.maximum, np.max),
}
