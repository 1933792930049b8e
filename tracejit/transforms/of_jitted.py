"""Transformations of jitted functions, called outside of every trace: compiled as well.

answered = as_compiled(function, transformed)

The first call is recorded and interpreted, which for one call takes less time than a compiler.
From the second on there is a program for each kind of arguments, as `jit` has them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tracejit.errors import TracejitError
from tracejit.trace.context import current_trace
from tracejit.transforms.jitted import JitFunction

Function = Callable[..., Any]


def as_compiled(function: Function, transformed: Function) -> Function:
    """``transformed``, a transformation of ``function`` that takes its arguments.

    Where that is no jitted function, or where it asks for values that a program does not have,
    every call is recorded and interpreted.
    """
    if not isinstance(function, JitFunction) or function.is_checked:
        return transformed
    program = function.like_it(transformed)
    calls = _Calls()

    @functools.wraps(transformed)
    def answered(*args: Any, **kwargs: Any) -> Any:
        if current_trace() is not None or calls.are_interpreted():
            return transformed(*args, **kwargs)
        try:
            return program(*args, **kwargs)
        except TracejitError:
            result = transformed(*args, **kwargs)
        # Not what it was called with is to blame.
        calls.refused = True
        return result

    return answered


class _Calls:
    """The calls of one function so far."""

    def __init__(self) -> None:
        self.refused = False
        self._is_first = True

    def are_interpreted(self) -> bool:
        """Whether the next one is."""
        is_first, self._is_first = self._is_first, False
        return is_first or self.refused
