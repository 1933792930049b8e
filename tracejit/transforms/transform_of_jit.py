"""Transformations of jitted functions, called outside of every trace: compiled as well.

answered = as_compiled(function, transformed, ("grad", 0))

The first call is recorded and interpreted, which for one call takes less time than a compiler.
From the second on there is a program for each kind of arguments, as `jit` has them. They belong to
the jitted function, so that ``grad(f)(x)`` in every step of a script finds them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

from tracejit.errors import TracejitError
from tracejit.trace.context import current_trace
from tracejit.tracebacks import api_boundary
from tracejit.transforms.jit.jitted import JitFunction

Function = Callable[..., Any]
Key = tuple[Hashable, ...]

MOST = 64
"""The most transformations of one function that are remembered."""


class _Answer(NamedTuple):
    """The attributes of a transformed function: the jitted function below, and its
    transformations.
    """

    function: Function
    jitted: JitFunction[..., Any]
    key: Key


def as_compiled(function: Function, transformed: Function, key: Key) -> Function:
    """``transformed``, a transformation of ``function`` that takes its arguments.

    Equal ones have equal keys. Where the function is no jitted one, nor such a transformation of
    one, or where it asks for values that a program does not have, every call is recorded and
    interpreted.
    """
    answer = getattr(function, "tracejit_answer", None)
    if isinstance(function, JitFunction):
        jitted = function
    elif isinstance(answer, _Answer) and answer.function is function:
        jitted, key = answer.jitted, (*key, answer.key)
    else:
        return transformed
    if jitted.is_checked:
        return transformed
    found: _Programs | None = jitted.derived.get(key)
    if found is None:
        if len(jitted.derived) >= MOST:
            jitted.derived.clear()
        found = jitted.derived[key] = _Programs(jitted.like_it(transformed))
    return _answering(transformed, found, jitted, key)


def _answering(
    transformed: Function, found: _Programs, jitted: JitFunction[..., Any], key: Key
) -> Function:

    @api_boundary
    @functools.wraps(transformed)
    def answered(*args: Any, **kwargs: Any) -> Any:
        if current_trace() is not None or found.are_interpreted():
            return transformed(*args, **kwargs)
        try:
            return found.program(*args, **kwargs)
        except TracejitError:
            result = transformed(*args, **kwargs)
        # Not what it was called with is to blame.
        found.refused = True
        return result

    answered.tracejit_answer = _Answer(answered, jitted, key)  # type: ignore[attr-defined]
    return answered


class _Programs:
    """What answers the calls of one transformation."""

    def __init__(self, program: JitFunction[..., Any]) -> None:
        self.program = program
        self.refused = False
        self._is_first = True

    def are_interpreted(self) -> bool:
        """Whether the next call is."""
        is_first, self._is_first = self._is_first, False
        return is_first or self.refused
