"""Loops that are known, recorded once as a While: `recorded_once`, `rest_recorded_once`.

A loop stays a loop of Python where its body does something besides computing, asks for a number
that depends on the step, or may be out of range.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from tracejit import tree
from tracejit.errors import ConcretizationError, TracejitError, dismiss
from tracejit.trace.affine_bounds import with_places_free
from tracejit.trace.context import are_differentiated, current_trace
from tracejit.trace.table import call as numpy_call
from tracejit.trace.tracer import ForeignWriteError, Tracer
from tracejit.transforms.autograph.capture_policy import Counting, current_counting
from tracejit.transforms.autograph.hidden_writes import with_hidden_writes
from tracejit.transforms.autograph.loops import run_loop
from tracejit.transforms.autograph.objects import is_loud, seen_by
from tracejit.transforms.autograph.parts import Action, Get, Put
from tracejit.transforms.autograph.purity import is_quiet_call
from tracejit.transforms.autograph.ranges import TracedRange
from tracejit.transforms.autograph.values import containers_in

LEAST_STEPS = 16
"""Shorter loops are recorded step by step, if they have no loops inside."""

REFUSALS = (
    TracejitError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NameError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""What recording a step with an unknown counter may raise where a known one works."""


def require_quiet(function: Any) -> None:
    """Raises `ConcretizationError` if a step that is recorded once for many must not call
    ``function``.
    """
    while isinstance(function, functools.partial):
        function = function.func
    if not is_quiet_call(function):
        name = getattr(function, "__qualname__", None) or type(function).__name__
        raise ConcretizationError(f"{name}: may do more than compute a value")


def recorded_once(
    iterable: Any,
    goes_on: Action | None,
    body: Action,
    get: Get,
    put: Put,
    names: tuple[str, ...],
    unbound: tuple[str, ...],
    live: Sequence[str],
    known: tuple[str | None, bool] | None,
) -> bool:
    """Whether the loop was recorded as one While; if not, nothing has happened.

    The names that are ``live`` may be read after it. ``known`` are the loop's target, if it is one
    variable, and whether there are loops inside; None if the statements do more than compute.
    """
    counting = current_counting()
    if counting is None or known is None:
        return False
    target, is_nest = known
    steps = _steps(iterable, counting.least_of_nests if is_nest else LEAST_STEPS)
    if steps is None:
        return False
    action = body if isinstance(iterable, range) else _of_rows(iterable, body)
    run = functools.partial(run_loop, "for", steps, goes_on, action, target=target, wanted=live)
    ways = (False, True) if counting.is_asked else (False,)
    return any(_is_recorded(counting, free, run, body, get, put, names, unbound) for free in ways)


def rest_recorded_once(
    test: Action,
    body: Action,
    get: Get,
    put: Put,
    names: tuple[str, ...],
    unbound: tuple[str, ...],
    live: Sequence[str],
) -> bool:
    """Whether the steps that are left of a ``while`` were recorded as one While.

    Only if the user has requested it: its numbers are not known to be valid indices. Not under
    differentiation, which such a loop does not support.
    """
    counting = current_counting()
    if counting is None or not counting.is_asked or are_differentiated():
        return False
    run = functools.partial(run_loop, "while", None, test, body, wanted=live, is_known=True)
    return _is_recorded(counting, True, run, body, get, put, names, unbound)


def _is_recorded(
    counting: Counting,
    are_places_free: bool,
    run: Callable[[Get, Put, tuple[str, ...]], None],
    body: Action,
    get: Get,
    put: Put,
    names: tuple[str, ...],
    unbound: tuple[str, ...],
) -> bool:
    """Whether ``run`` records the loop of a ``body``; if not, nothing has happened."""
    key = (body.__code__, counting.depth, are_places_free)
    if key in counting.refused:
        return False
    if _holds_memory(dict(zip(names, get(), strict=True)), unbound):
        return False
    bound = [value for name, value in zip(names, get(), strict=True) if name not in unbound]
    if _has_two_names(bound, seen_by(body, names)) or any(map(is_loud, seen_by(body, ()))):
        return False
    counting.depth += 1
    try:
        with with_places_free() if are_places_free else nullcontext():
            with_hidden_writes(run, [body], get, put, names, unbound, does_run=True)
    except REFUSALS as error:
        if isinstance(error, ForeignWriteError) and error.array.owner is not current_trace():
            # The loop around this one lends the array, and comes again.
            raise
        counting.refused[key] = str(error)
        dismiss(error)
        return False
    finally:
        counting.depth -= 1
    counting.count += 1
    return True


def _steps(iterable: Any, least: int) -> TracedRange | None:
    """The counter's range, for what is worth it and can be indexed by an unknown number."""
    if isinstance(iterable, range):
        if len(iterable) < least:
            return None
        return TracedRange(iterable.start, iterable.stop, iterable.step, iterable)
    if isinstance(iterable, Tracer | np.ndarray) and iterable.ndim:
        size = len(iterable)
        return None if size < least else TracedRange(0, size, 1, range(size))
    return None


def _of_rows(array: Any, body: Action) -> Action:
    """``body`` of the row of a number."""

    def action(number: Any) -> None:
        body((array if isinstance(array, Tracer) else numpy_call(np.asarray, array))[number])

    return action


def _holds_memory(variables: dict[str, Any], written: Sequence[str]) -> bool:
    """Whether something that the loop writes into is memory outside of the graph."""
    return any(
        isinstance(leaf, np.ndarray) for name in written for leaf in tree.leaves(variables[name])
    )


def _has_two_names(variables: Sequence[Any], others: Sequence[Any]) -> bool:
    """Whether a list or a dictionary of the ``variables`` is in two of them, or in others."""
    mine = [id(one) for one in containers_in(variables)]
    return len(set(mine)) < len(mine) or not {id(one) for one in containers_in(others)}.isdisjoint(
        mine
    )
