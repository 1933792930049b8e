"""Whether tracing a function runs loops of the user's: without any, none can be recorded once.

may_loop(function)                 as far as names lead, before it runs
is_looping(staged.__code__)        in what is running now
"""

from __future__ import annotations

import dis
import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any

from tracejit.trace.recording import is_users, is_users_module

MOST = 1000
"""The most values that are visited; beyond, a loop is assumed."""

_LOOPS = frozenset(
    number
    for name, number in dis.opmap.items()
    if name == "FOR_ITER" or "JUMP_BACKWARD" in name or name == "JUMP_ABSOLUTE"
)
_REWRITTEN = frozenset({"for_", "while_"})
"""The functions that replace loops in code that autograph has rewritten."""
_COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")


def may_loop(function: Callable[..., Any]) -> bool:
    """Whether a function of the user's that this one names, or one that those name, has a loop.

    Arguments may hold functions that no name leads to: `is_looping` sees those when they run.
    """
    waiting: list[Any] = [function]
    seen: set[int] = set()
    kept = []  # or others would be made in their places
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        kept.append(value)
        if len(seen) > MOST:
            return True
        if isinstance(value, FunctionType) and is_users(value.__code__):
            if has_loop(value.__code__):
                return True
        waiting.extend(_named_by(value))
    return False


def is_looping(until: CodeType) -> bool:
    """Whether a function of the user's with a loop is running, called from the code ``until``."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code is not until:
        if is_users(frame.f_code) and has_loop(frame.f_code):
            return True
        frame = frame.f_back
    return False


@functools.lru_cache(maxsize=4096)
def has_loop(code: CodeType) -> bool:
    """Whether there is a ``for`` or a ``while`` in a function, or in one inside of it.

    Comprehensions are none, where Python makes functions of them.
    """
    if code.co_name not in _COMPREHENSIONS and not _LOOPS.isdisjoint(code.co_code[::2]):
        return True
    if not _REWRITTEN.isdisjoint(code.co_names):
        return True
    return any(has_loop(one) for one in code.co_consts if isinstance(one, CodeType))


def _named_by(value: Any) -> Iterator[Any]:
    """What a value leads to that may be called, or may lead there."""
    if isinstance(value, FunctionType):
        for cell in value.__closure__ or ():
            with suppress(ValueError):  # not assigned yet
                yield cell.cell_contents
        yield from value.__defaults__ or ()
        yield from (value.__kwdefaults__ or {}).values()
        if is_users(value.__code__):
            yield from _globals_of(value.__code__, value.__globals__)
    elif isinstance(value, functools.partial):
        yield from (value.func, *value.args, *value.keywords.values())
    elif isinstance(value, MethodType):
        yield from (value.__func__, value.__self__)
    elif isinstance(value, list | tuple | set | frozenset):
        yield from value
    elif isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, staticmethod | classmethod):
        yield value.__func__
    elif isinstance(value, property):
        yield from (value.fget, value.fset)
    elif isinstance(value, type):
        for kind in value.__mro__:
            own = vars(kind).values()
            if any(isinstance(one, FunctionType) and is_users(one.__code__) for one in own):
                yield from own
    elif type(value).__module__.partition(".")[0] == "tracejit":
        yield getattr(value, "__wrapped__", None)
    elif not isinstance(value, ModuleType):
        yield type(value)
        yield from getattr(value, "__dict__", {}).values()


def _globals_of(code: CodeType, known: dict[str, Any]) -> Iterator[Any]:
    """The values of the names of a function and of those inside, and of attributes of modules."""
    found = [known[name] for name in code.co_names if name in known]
    yield from (value for value in found if not isinstance(value, ModuleType))
    for module in found:
        if isinstance(module, ModuleType) and is_users_module(module):
            yield from (vars(module)[name] for name in code.co_names if name in vars(module))
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from _globals_of(one, known)
