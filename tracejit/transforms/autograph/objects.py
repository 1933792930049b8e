"""Objects of the user's classes that a step of a loop sees: whether using them can be noticed.

An operator or a property may write to its object. In a loop that is recorded once it would do so
once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from contextlib import suppress
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from tracejit.trace.recording import is_users

DEEPEST = 4
"""So far into the attributes of objects is looked."""

_HARMLESS = frozenset(
    {
        "__class_getitem__", "__copy__", "__deepcopy__", "__del__", "__delattr__", "__dir__",
        "__doc__", "__getnewargs__", "__getstate__", "__init__", "__init_subclass__", "__new__",
        "__post_init__", "__reduce__", "__reduce_ex__", "__repr__", "__setattr__", "__setstate__",
        "__set_name__", "__sizeof__", "__str__",
    }
)  # fmt: skip
"""Methods that no expression calls, or that calls of these names are looked at for."""


_PLAIN = frozenset({bool, int, float, complex, str, type(None), np.ndarray})


class _Hook:
    keeps: Callable[[Any], bool] = staticmethod(lambda function: False)


def use_reader(keeps: Callable[[Any], bool]) -> None:
    """Sets what tells whether a function writes to its own variables only, by its text."""
    _Hook.keeps = staticmethod(keeps)


def seen_by(action: Any, names: Collection[str]) -> list[Any]:
    """The values that ``action`` sees, but for those of ``names``."""
    while isinstance(action, functools.partial):
        action = action.func
    code: CodeType = action.__code__
    found = []
    for name in code.co_names:
        with suppress(KeyError):  # an attribute, or a name of Python's
            found.append(action.__globals__[name])
    for name, cell in zip(code.co_freevars, action.__closure__ or (), strict=True):
        if name not in names:
            with suppress(ValueError):  # not assigned yet
                found.append(cell.cell_contents)
    return found


def is_loud(value: Any, depth: int = 0) -> bool:
    """Whether an operator or a property of an object, or of one that it holds, may write to it."""
    if type(value) in (list, tuple, dict):
        inside = value.values() if type(value) is dict else value
        kinds = set(map(type, inside)) - _PLAIN
        return bool(kinds) and depth < DEEPEST and any(is_loud(one, depth + 1) for one in inside)
    if not _is_users_class(type(value)):
        return False
    if not _is_quiet_class(type(value)):
        return True
    held = getattr(value, "__dict__", {})
    return depth < DEEPEST and any(is_loud(one, depth + 1) for one in held.values())


def _is_users_class(kind: type) -> bool:
    if kind.__module__.partition(".")[0] in ("builtins", "numpy", "tracejit"):
        return False
    return any(_functions(one) for one in kind.__mro__)


def _is_quiet_class(kind: type) -> bool:
    return all(_Hook.keeps(one) for base in kind.__mro__ for one in _operators(base))


def _functions(kind: type) -> dict[str, FunctionType]:
    """The functions of the user's in the text of a class, properties' too; not those of Python's
    own making, as dataclasses have."""
    found = {}
    for name, value in vars(kind).items():
        inner = getattr(value, "fget", None) or getattr(value, "func", None) or value
        if isinstance(inner, FunctionType) and is_users(inner.__code__):
            if inner.__code__.co_filename != "<string>":
                found[name] = inner
    return found


def _operators(kind: type) -> list[FunctionType]:
    """Those of them that are called without being named as functions."""
    return [
        function
        for name, function in _functions(kind).items()
        if (name.startswith("__") and name not in _HARMLESS)
        or not isinstance(vars(kind)[name], FunctionType)
    ]
