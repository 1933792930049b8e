"""What rewritten functions call in place of Python's statements and operators.

Each looks whether what decides is traced: if not, Python's own behaviour follows.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.callbacks import callback
from tracejit.errors import ConcretizationError, dismiss
from tracejit.trace.tracer import lift
from tracejit.transforms.autograph.branches import if_
from tracejit.transforms.autograph.calls import call
from tracejit.transforms.autograph.capture_policy import is_inside_counted
from tracejit.transforms.autograph.hidden_writes import with_hidden_writes
from tracejit.transforms.autograph.loop_capture import (
    recorded_once,
    require_quiet,
    rest_recorded_once,
)
from tracejit.transforms.autograph.loops import ShortenedError, run_loop
from tracejit.transforms.autograph.operators import and_, compare, contains, either, not_, or_
from tracejit.transforms.autograph.optional import (
    Undefined,
    fail,
    is_none,
)
from tracejit.transforms.autograph.parts import Action, Get, Put
from tracejit.transforms.autograph.ranges import TracedRange
from tracejit.transforms.autograph.values import (
    NO_VALUE,
    NoValue,
    is_in_branch,
    is_unknown,
    truth,
    use,
)

UNROLLED = 16
"""The most steps of a ``while``, and of a known range with a traced ``break``, that are recorded
one by one.
"""
PEELED = 2
"""The most steps that are recorded in front of a loop whose arrays a mask shortens: the first
shortens the arrays of before, the second those that are made in a step.
"""


def peek(read: Callable[[], Any], name: str) -> Any:
    """A variable's value, or `Undefined` when it has none."""
    try:
        return read()
    except NameError:
        return Undefined(name)


def while_(
    test: Action,
    body: Action,
    get: Get,
    put: Put,
    names: tuple[str, ...],
    unbound: tuple[str, ...],
    live: tuple[str, ...],
    is_quiet: bool = False,
) -> None:
    """``while test(): body()``; recorded from where ``test()`` is unknown.

    The names that are ``live`` may be read after it.

    The same where many steps are known, and nobody notices because the loop ``is_quiet``.
    """
    peeled = 0
    for step in itertools.count():
        condition = test()
        if is_unknown(condition):
            truth(condition, "while")
            run = functools.partial(
                run_loop, "while", None, test, body, wanted=live, first=condition
            )
            try:
                with_hidden_writes(run, (test, body), get, put, names, unbound)
                return
            except ShortenedError as error:
                if peeled == PEELED:
                    raise
                dismiss(error)
            # Behind the first step arrays have the sizes that they have behind all others.
            peeled += 1
            if_(condition, body, _nothing, get, put, names, unbound)
            continue
        if not condition:
            return
        if is_quiet and step == UNROLLED:
            if rest_recorded_once(test, body, get, put, names, unbound, live):
                return
        body()


def for_(
    iterable: Any,
    goes_on: Action | None,
    body: Action,
    get: Get,
    put: Put,
    names: tuple[str, ...],
    unbound: tuple[str, ...],
    live: tuple[str, ...],
    known: tuple[str | None, bool] | None = None,
) -> None:
    """``for item in iterable: body(item)``, as long as ``goes_on()``; as for `recorded_once`."""
    if recorded_once(iterable, goes_on, body, get, put, names, unbound, live, known):
        return
    if isinstance(iterable, TracedRange):
        run = functools.partial(run_loop, "for", iterable, goes_on, body, wanted=live)
        try:
            with_hidden_writes(run, (goes_on, body), get, put, names, unbound)
        except ShortenedError as error:
            if iterable.peeled == PEELED:
                raise
            dismiss(error)
            condition = iterable.goes_on(iterable.start)
            first = functools.partial(body, iterable.start)
            if_(condition, first, _nothing, get, put, names, unbound)
            for_(iterable.rest(), goes_on, body, get, put, names, unbound, live)
        return
    peeled = 0
    for position, item in enumerate(iterable):
        condition = True if goes_on is None else goes_on()
        if is_unknown(condition):
            if isinstance(iterable, range) and len(iterable) - position > UNROLLED:
                rest = TracedRange(item, iterable.stop, iterable.step)
                run = functools.partial(
                    run_loop, "for", rest, goes_on, body, wanted=live, first=condition
                )
                try:
                    with_hidden_writes(run, (goes_on, body), get, put, names, unbound)
                    return
                except ShortenedError as error:
                    if peeled == PEELED:
                        raise
                    dismiss(error)
                peeled += 1
            if_(condition, functools.partial(body, item), _nothing, get, put, names, unbound)
            continue
        if not condition:
            return
        body(item)


def _nothing() -> None:
    """The branch that is not there."""


def assert_(test: Any, message: Action | None) -> None:
    """``assert test, message``; an unknown test is looked at when the program runs."""
    if not is_unknown(test):
        if not test:
            raise AssertionError(*([] if message is None else [message()]))
        return
    given = () if message is None else (message(),)
    callback(functools.partial(_require, given), lift(truth(test, "assert")))


def _require(given: tuple[Any, ...], test: np.ndarray) -> None:
    if not test:
        raise AssertionError(*given)


def raise_(error: Action, cause: Action | None = None) -> None:
    """``raise error() from cause()`` under control flow that may be recorded.

    In a recorded branch it happens when the program runs and comes there. Raises
    `ConcretizationError` in a step that is recorded once for many.
    """
    made = error()
    if is_in_branch():
        if is_inside_counted():
            require_quiet(callback)
        fail(made)
        return
    if cause is None:
        raise made
    raise made from cause()


def returned(value: Any, flag: Any) -> Any:
    """What a function returns. Raises `ConcretizationError` when it may end without a return."""
    if isinstance(value, NoValue) or (not is_unknown(flag) and not flag):
        return None
    if is_unknown(flag) and value is not None:
        raise ConcretizationError(
            "return: on some ways, which depend on a traced condition, the function returns "
            "nothing; end it with a return"
        )
    return use(value)


__all__ = [
    "NO_VALUE",
    "and_",
    "assert_",
    "call",
    "compare",
    "contains",
    "either",
    "for_",
    "if_",
    "is_none",
    "not_",
    "or_",
    "peek",
    "raise_",
    "returned",
    "use",
    "while_",
]
