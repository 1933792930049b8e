"""Tracebacks that end at the user's own line: frames of tracejit are left out of them.

@api_boundary
def vmap(function): ...

``TRACEJIT_TRACEBACK=full`` keeps every frame. So do exceptions that are bugs of tracejit itself.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from types import FrameType, TracebackType
from typing import Any, ParamSpec, TypeVar

import numpy as np

from tracejit.errors import (
    ArgumentError,
    AttributeValueError,
    DimensionError,
    MatrixError,
    StaticIndexError,
    TracejitError,
    ValueRangeError,
)
from tracejit.sources import is_internal

P = ParamSpec("P")
R = TypeVar("R")


def api_boundary(function: Callable[P, R]) -> Callable[P, R]:
    """The function, whose exceptions reach the user's code without the frames of tracejit.

    Only the outermost boundary removes frames, so that calls between parts of tracejit are free
    to use public functions.
    """

    @functools.wraps(function)
    def bounded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            hide_internal_frames(error)
            raise

    return bounded


def names_misuse(function: Callable[P, R]) -> Callable[P, R]:
    """`api_boundary` that names function and arguments in exceptions that no check foresaw."""

    @functools.wraps(function)
    def bounded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            instead = misuse(error, function, args, kwargs)
            hide_internal_frames(error)
            if instead is not None:
                raise instead from error
            raise

    return bounded


_BOUNDED = api_boundary(lambda: None).__code__


def inside_boundary(function: Callable[P, R]) -> Callable[P, R]:
    """The function that was given to `api_boundary`; any other is itself."""
    if getattr(function, "__code__", None) is not _BOUNDED:
        return function
    inner: Callable[P, R] = function.__wrapped__  # type: ignore[attr-defined]
    return inner


def hide_internal_frames(error: BaseException) -> None:
    """Removes the frames of tracejit from an exception, called in the ``except`` of a boundary.

    The exceptions that it was raised from are treated alike. Nothing changes where the caller of
    the boundary is tracejit itself, and where the exception is no error of the user's: one that
    tracejit did not mean to raise keeps all frames, for a report.
    """
    if is_internal(sys._getframe(2).f_code) or os.environ.get("TRACEJIT_TRACEBACK") == "full":
        return
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        waiting += [one.__cause__, None if one.__suppress_context__ else one.__context__]
        if isinstance(one, TracejitError) or not _ends_inside(one.__traceback__):
            one.__traceback__ = _outside(one.__traceback__)


def _ends_inside(traceback: TracebackType | None) -> bool:
    """Whether the frame that raised is one of tracejit's."""
    entries = list(_entries(traceback))
    return bool(entries) and is_internal(entries[-1].tb_frame.f_code)


def _outside(traceback: TracebackType | None) -> TracebackType | None:
    """The traceback without frames of tracejit."""
    entries = list(_entries(traceback))
    kept: TracebackType | None = None
    for entry in reversed(entries):
        if not is_internal(entry.tb_frame.f_code):
            entry.tb_next = kept
            kept = entry
    if entries and kept is not entries[0]:
        # Python 3.10 raises with the first entry, the boundary's own, whatever is set here.
        entries[0].tb_next = kept
    return kept


_KINDS: tuple[tuple[type[Exception], type[TracejitError]], ...] = (
    (np.exceptions.AxisError, DimensionError),
    (np.linalg.LinAlgError, MatrixError),
    (IndexError, StaticIndexError),
    (OverflowError, ValueRangeError),
    (ValueError, AttributeValueError),
    (TypeError, ArgumentError),
    (AttributeError, ArgumentError),
    (KeyError, ArgumentError),
    (ZeroDivisionError, ArgumentError),
    (AssertionError, ArgumentError),
)
"""What takes the place of an exception that no check foresaw: the first whose kind it is."""


def misuse(
    error: Exception, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> TracejitError | None:
    """The error that names ``function`` and its arguments, in place of one that no check foresaw.

    Called in the ``except`` of a boundary. None for the errors that stay: those that tracejit
    raises on purpose, and those of code of the user's that the function called.
    """
    if isinstance(error, TracejitError) or is_internal(sys._getframe(2).f_code):
        return None
    kind = next((ours for theirs, ours in _KINDS if isinstance(error, theirs)), None)
    inner = error.__traceback__.tb_next if error.__traceback__ is not None else None
    if kind is None or not all(_is_below(entry.tb_frame) for entry in _entries(inner)):
        return None
    given = [_described(value) for value in args]
    given += [f"{name}={_described(value)}" for name, value in kwargs.items()]
    owner = getattr(function, "__self__", function)  # a ufunc, whose method records
    name = getattr(owner, "__name__", function.__name__).removeprefix("_")
    text = str(error).replace(f"{function.__qualname__}()", f"{name}()")
    head = "" if text.startswith(f"{name}()") else f"{name}: "
    return kind(f"{head}{text}; it was called with ({', '.join(given)})")


_BELOW = frozenset({"collections", "contextlib", "enum", "functools", "numpy", "optree", "scipy"})


def _is_below(frame: FrameType) -> bool:
    """Whether a frame is of tracejit, or of a package that it calls and that calls no user."""
    package = str(frame.f_globals.get("__name__")).partition(".")[0]
    return package in _BELOW or is_internal(frame.f_code)


def _entries(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _described(value: Any) -> str:
    """An argument in a message: f64[3] for an array, else the beginning of its ``repr``."""
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape:
        return f"{value.dtype}[{','.join(map(str, shape))}]"
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
