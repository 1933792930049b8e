"""Calls that give another value each time: clocks, random bits, files that are read.

A trace keeps what they give for ever, so they warn. In a body that is recorded once for many
iterations they raise: ``require_no_calls`` says which there were.
"""

from __future__ import annotations

import builtins
import datetime
import functools
import os
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from tracejit.errors import ConcretizationError
from tracejit.sources import user_source, warn
from tracejit.trace.context import running_traces
from tracejit.trace.table import function_name

FROZEN_MODULES = frozenset({"numpy.random", "random", "secrets", "time"})
"""Modules whose functions give another value at each call."""

_NAMED = (
    *(getattr(os, name) for name in ("urandom", "getrandom", "times") if hasattr(os, name)),
    *(uuid.uuid1, uuid.uuid4),
    *(np.load, np.loadtxt, np.genfromtxt, np.fromfile),
)
_OTHERS = frozenset(map(id, _NAMED))
_NOW = frozenset({"now", "today", "utcnow"})


_CHANGING: dict[str, str] = {
    "posix": "_exit abort chdir chmod fchdir kill link makedirs mkdir putenv remove rename replace "
    "rmdir symlink system truncate umask unlink unsetenv utime write",
    "os": "makedirs popen putenv removedirs renames unsetenv",
    "sys": "setrecursionlimit setswitchinterval settrace setprofile",
    "numpy": "save savetxt savez savez_compressed set_printoptions seterr seterrcall",
}
"""Functions that change what other programs, or all of this one, can see, by module."""
_CHANGING_MODULES = frozenset({"shutil", "socket", "subprocess"})


class FrozenValueWarning(UserWarning):
    """A clock, a random generator or a file was asked for a value while tracing."""


class _Calls(threading.local):
    """The names of the functions that were called while this thread traced, in order."""

    def __init__(self) -> None:
        self.names: list[str] = []


_calls = _Calls()


def warning(function: Callable[..., Any], name: str | None = None) -> Callable[..., Any]:
    """``function``, which warns that its value is frozen."""
    shown = name or function_name(function).replace("posix.", "os.")
    return functools.partial(_call_and_warn, function, shown)


def _call_and_warn(function: Callable[..., Any], name: str, *args: Any, **kwargs: Any) -> Any:
    if name.endswith("default_rng") and _is_seeded(args, kwargs):
        return function(*args, **kwargs)
    trace = next(iter(running_traces()), None)
    if trace is None:  # in a callback, while the program runs
        return function(*args, **kwargs)
    _calls.names.append(name)
    # Once for each place of a function that is traced, however often a loop comes by.
    place = (name, user_source())
    if place not in trace.warned:
        trace.warned.add(place)
        warn(
            f"{name} is called while tracing: its value is frozen into the compiled function; "
            f"pass the value as an argument",
            FrozenValueWarning,
        )
    return function(*args, **kwargs)


def calls_so_far() -> int:
    """A moment, for `require_no_calls`."""
    return len(_calls.names)


def require_no_calls(before: int, title: str) -> None:
    """Raises `ConcretizationError` where a body that is recorded once for many has called for a
    value that is another one each time.
    """
    for name in _calls.names[before:]:
        raise ConcretizationError(
            f"{title}: {name} is called, which would happen once while tracing, however often this "
            f"runs; call it before, pass the values as arguments, or draw with tracejit.random"
        )


def note_change(function: Any) -> None:
    """Notes that a function is called, for `require_no_calls`, if it changes the outside world."""
    if isinstance(getattr(function, "__self__", None), type(os.environ)):
        return
    module = getattr(function, "__module__", None)
    name = getattr(function, "__name__", "")
    if module is None:
        own = getattr(function, "__self__", None)
        module = getattr(own, "__name__", None)
    if module in _CHANGING_MODULES or name in _CHANGING.get(str(module), "").split():
        _calls.names.append(f"{str(module).replace('posix', 'os')}.{name}")


def is_outside(function: Any) -> bool:
    """Whether a function gives another value at each call."""
    if id(function) in _OTHERS:
        return True
    own = getattr(function, "__self__", None)
    return (getattr(own, "__name__", None) or getattr(function, "__module__", None)) in (
        FROZEN_MODULES
    )


@functools.wraps(builtins.open)
def open_and_warn(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
    """``open`` as traced functions see it: what is read from a file is frozen, and no body that is
    recorded once for many iterations may write one.
    """
    if set(mode) & {"r", "+"}:
        return _call_and_warn(open, "open", file, mode, *args, **kwargs)
    _calls.names.append("open")
    return open(file, mode, *args, **kwargs)


class _Clock(type):
    """The class of `_Datetime` and `_Date`: everywhere else they are datetime's own."""

    own: type

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return cls.own(*args, **kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.own)

    def __subclasscheck__(cls, subclass: Any) -> bool:
        return issubclass(getattr(subclass, "own", subclass), cls.own)

    def __getattribute__(cls, name: str) -> Any:
        own = type.__getattribute__(cls, "own")
        if name == "own":
            return own
        value = getattr(own, name)
        return warning(value, f"{own.__name__}.{name}") if name in _NOW else value


class _Datetime(metaclass=_Clock):
    own = datetime.datetime


class _Date(metaclass=_Clock):
    own = datetime.date


class _Seedable(_Clock):
    """A class of random generators as traced functions see it."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if _is_seeded(args, kwargs):
            return cls.own(*args, **kwargs)
        return _call_and_warn(cls.own, function_name(cls.own), *args, **kwargs)


def _is_seeded(args: Iterable[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether a generator made with these arguments draws the same numbers each time."""
    return any(value is not None for value in (*args, *kwargs.values()))


@functools.cache
def seedable(kind: type) -> Any:
    """What a traced function sees of a class: a random generator made without a seed warns."""
    if not (kind.__module__ == "random" or kind.__module__.startswith("numpy.random")):
        return kind
    return _Seedable(kind.__name__, (), {"own": kind})


CLOCKS: dict[type, Any] = {datetime.datetime: _Datetime, datetime.date: _Date}
"""Classes that tell the time, and what traced functions see in their place."""
