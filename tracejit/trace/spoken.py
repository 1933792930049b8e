"""Calls that tell people something: print, warnings.warn, logging.

    if x > 0:
        print("positive:", x)       printed when a positive x comes, not while this is traced

While a statement on traced values is recorded, such a call becomes a callback of the program.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType, MethodType
from typing import Any

from tracejit import tree
from tracejit.sources import user_source
from tracejit.trace.table import Traced

Later = Callable[..., None]
"""Like ``debug.callback``: calls a function with the values of arrays, when they are known."""

_LEVELS = frozenset("critical debug error exception fatal info log warn warning".split())


class _State(threading.local):
    later: Later | None = None


_state = _State()


@contextmanager
def postponing(later: Later) -> Iterator[None]:
    """Inside, what traced functions tell is told when the program runs."""
    before, _state.later = _state.later, later
    try:
        yield
    finally:
        _state.later = before


def speaking(function: Any) -> Any:
    """What is called in place of a function that tells people something; others as they are."""
    if _state.later is None:
        return function
    plain = function.__func__ if type(function) is MethodType else function
    is_logging = type(plain) is FunctionType and plain.__module__ == "logging"
    if plain is print or plain is _warn() or (is_logging and plain.__name__ in _LEVELS):
        return functools.partial(_tell, _state.later, function)
    return function


def _warn() -> Any:
    """``warnings.warn`` as it is now: pytest and others replace it."""
    warnings = sys.modules.get("warnings")
    return None if warnings is None else warnings.warn


def _tell(later: Later, function: Any, *args: Any, **kwargs: Any) -> None:
    if function is _warn():
        function, args, kwargs = _at_line(*args, **kwargs)
    leaves, structure = tree.flatten((args, kwargs))
    unknown = [number for number, leaf in enumerate(leaves) if isinstance(leaf, Traced)]

    def told(*values: Any) -> None:
        known = list(leaves)
        for number, value in zip(unknown, values, strict=True):
            known[number] = value[()]  # an array without dimensions is a number
        known_args, known_kwargs = tree.unflatten(structure, known)
        function(*known_args, **known_kwargs)

    later(told, *(leaves[number] for number in unknown))


def _at_line(
    message: Any, category: Any = None, stacklevel: int = 1, source: Any = None, **kwargs: Any
) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """`warnings.warn_explicit` and its arguments, which name the user's line."""
    place = user_source()
    kind = type(message) if isinstance(message, Warning) else category or UserWarning
    file, line = ("<traced function>", 1) if place is None else (place.file, place.line)
    return sys.modules["warnings"].warn_explicit, (message, kind, file, line), {}
