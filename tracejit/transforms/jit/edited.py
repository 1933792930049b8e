"""Notebooks: jitted functions follow edits of the functions that they call.

watch(jitted)        after it was traced; before each later cell its helpers are compared

A helper is edited where its cell is run again, or its module loaded again (``%autoreload``). Then
the jitted function forgets its programs and is traced anew. A global number or array that has
another value is named in a warning at the next call: the programs hold the value of the trace.
Outside of IPython nothing is compared.
"""

from __future__ import annotations

import functools
import hashlib
import sys
import weakref
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from tracejit.trace.recording import is_users, is_users_module

MOST = 2000
"""The most objects that are visited."""
_PLAIN = (bool, int, float, complex, str, bytes, type(None))


class Reached(NamedTuple):
    """The code that a function reaches, and the values of globals that this code reads."""

    codes: dict[str, CodeType]
    values: dict[str, Any]


def reached(function: Any) -> Reached:
    """What a function reaches by names, through its helpers in cells and modules of the user's."""
    found = Reached({}, {})
    waiting: list[tuple[str, Any]] = [("", function)]
    seen: set[int] = set()
    while waiting and len(seen) < MOST:
        name, value = waiting.pop()
        value = _inner(value)
        if not isinstance(value, FunctionType):
            known = _fingerprint(value)
            if known is not None and name:
                found.values[name] = known
            continue
        if id(value) in seen:
            continue
        seen.add(id(value))
        cells = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
        waiting += [(n, cell.cell_contents) for n, cell in cells if _is_filled(cell)]
        if not is_users(value.__code__):
            continue
        found.codes[f"{value.__module__}.{value.__qualname__}"] = value.__code__
        names = _names(value.__code__)
        for each in names & value.__globals__.keys():
            given = value.__globals__[each]
            if isinstance(given, ModuleType):
                if is_users_module(given):
                    waiting += [(f"{each}.{n}", vars(given)[n]) for n in names & vars(given).keys()]
            else:
                waiting.append((each, given))
    return found


def _inner(value: Any) -> Any:
    """The function within a jitted one, a method or a partial application."""
    for _ in range(20):
        if isinstance(value, functools.partial):
            value = value.func
        elif isinstance(value, MethodType):
            value = value.__func__
        elif not isinstance(value, (FunctionType, type)) and callable(value):
            inner = getattr(value, "__wrapped__", None)
            if inner is None:
                return value
            value = inner
        else:
            return value
    return value


def _names(code: CodeType) -> set[str]:
    inside = [each for each in code.co_consts if isinstance(each, CodeType)]
    return set(code.co_names).union(*map(_names, inside))


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _fingerprint(value: Any) -> Any:
    """What tells two values of a global apart; None for values that are not compared."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
        digest = hashlib.blake2b(np.ascontiguousarray(value).tobytes(), digest_size=16)
        return str(value.dtype), value.shape, digest.hexdigest()
    if isinstance(value, (*_PLAIN, np.generic)):
        return type(value).__name__, repr(value)
    return None


_shells: weakref.WeakSet[Any] = weakref.WeakSet()
_watched: weakref.WeakKeyDictionary[Any, Reached] = weakref.WeakKeyDictionary()


def watch(jitted: Any) -> None:
    """Compares what a jitted function reaches before each later cell, in a shell of IPython's."""
    shell = _shell()
    if shell is None:
        return
    if shell not in _shells:
        _shells.add(shell)
        shell.events.register("post_run_cell", _look_last)
        _look_last()
    _watched[jitted] = reached(jitted.__wrapped__)


def _shell() -> Any:
    get = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return None if get is None else get()


def _look_last(*_: object) -> None:
    """Puts `look` behind the other functions that run before a cell, as autoreload's."""
    shell = _shell()
    if shell is None:
        return
    try:
        shell.events.unregister("pre_run_cell", look)
    except ValueError:  # it was not there
        pass
    shell.events.register("pre_run_cell", look)


def look(*_: object) -> None:
    """Compares all watched functions with what they reached when they were traced."""
    for jitted, before in list(_watched.items()):
        now = reached(jitted.__wrapped__)
        if now.codes != before.codes:
            jitted.forget()
            del _watched[jitted]
        elif now.values != before.values:
            names = sorted(n for n, v in now.values.items() if before.values.get(n, v) != v)
            if names:
                jitted.warn_of(names)
            _watched[jitted] = now
