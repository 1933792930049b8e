"""Tracebacks that end at the user's own line: frames of tracejit are left out of them.

@api_boundary
def vmap(function): ...

``TRACEJIT_TRACEBACK=full`` keeps every frame. So do exceptions that are bugs of tracejit itself.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from types import TracebackType
from typing import ParamSpec, TypeVar

from tracejit.errors import TracejitError
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
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    return traceback is not None and is_internal(traceback.tb_frame.f_code)


def _outside(traceback: TracebackType | None) -> TracebackType | None:
    """The traceback without frames of tracejit."""
    entries = []
    while traceback is not None:
        entries.append(traceback)
        traceback = traceback.tb_next
    kept: TracebackType | None = None
    for entry in reversed(entries):
        if not is_internal(entry.tb_frame.f_code):
            entry.tb_next = kept
            kept = entry
    if entries and kept is not entries[0]:
        # Python 3.10 raises with the first entry, the boundary's own, whatever is set here.
        entries[0].tb_next = kept
    return kept
