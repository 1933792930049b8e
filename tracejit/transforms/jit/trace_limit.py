"""Functions whose loops unroll into long traces: recorded again, with loops that stay loops.

Most programs record some hundreds of instructions. A loop of thousands of steps would record as
many as it has steps, each at the price of a Python call, and all of them would have to be compiled.
"""

from __future__ import annotations

import ast
import contextvars
import functools
import linecache
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FunctionType
from typing import TYPE_CHECKING, Any

from tracejit.errors import ArgumentError, ConcretizationError, UnsupportedError
from tracejit.graph import Module
from tracejit.loading import load
from tracejit.sources import Source, is_internal, user_source, warn
from tracejit.trace.context import Limit, LongTraceError
from tracejit.transforms.jit.staging import Staged
from tracejit.traversal import called_computations, instructions

if TYPE_CHECKING:
    from tracejit.transforms.autograph.capture_policy import Counting

LONGEST = 1024
"""The most instructions of a trace that is recorded without searching for loops."""
LONGEST_WITHOUT_SOURCE = 16384
"""The most instructions of a trace that is recorded without a word where loops cannot be searched.
"""
MOST_WITHOUT_SOURCE = 1 << 18
"""The most instructions of such a trace: more would take minutes to record and to compile."""
LEAST_OF_NESTS = (4, 2)
"""How many steps a loop around loops must have to be recorded once; the second where the trace is
still long.
"""

Function = Callable[..., Any]

_again: contextvars.ContextVar[bool] = contextvars.ContextVar("again", default=False)


@contextmanager
def _recorded_again(least_of_nests: int, is_asked: bool) -> Iterator[Counting]:
    token = _again.set(True)
    try:
        with load("tracejit.transforms.autograph").counted_loops(least_of_nests, is_asked) as found:
            yield found
    finally:
        _again.reset(token)


def as_recorded(function: Function) -> Function:
    """``function``, or the rewritten one where loops are recorded once.

    For the argument of a transformation, or a jitted function inside. Raises `ConcretizationError`
    in a step that is recorded once for many, if the function may do more than compute.
    """
    made: Function = (
        load("tracejit.transforms.autograph").called(function) if _again.get() else function
    )
    return made


def with_loops(function: Function) -> Function | None:
    """``function`` rewritten so that its loops may be recorded once, if its source can be read.

    A transformation of one is left as it is: it asks for what is inside itself.
    """
    if isinstance(function, FunctionType) and is_internal(function.__code__):
        return function
    rewritten: Function
    try:
        rewritten = load("tracejit.transforms.autograph").autograph(function)
    except (ArgumentError, UnsupportedError):
        return None
    return rewritten


def staged(
    function: Function,
    rewritten: Callable[[], Function | None],
    record: Callable[[Function, Limit | None], Staged],
) -> Staged:
    """What ``record`` makes of ``function``, or of the ``rewritten`` one if the trace gets long.

    It is given the function and a limit, at which it raises `LongTraceError`: not for a function
    that writes to what is not its own, which recording again would do twice. Where there seem to be
    no loops it goes on, and looks again when the trace is twice as long. A ``while`` whose test is
    unknown is recorded as in a long trace. Raises `UnsupportedError` for a trace of more than
    `MOST_WITHOUT_SOURCE` instructions where loops cannot be searched.
    """
    others: list[Function] = []
    asked: list[bool] = []
    is_readable = True
    is_warned = False

    def without_source() -> float:
        """Warns of a trace that is long, and raises for one that is too long."""
        nonlocal is_warned
        name = getattr(function, "__qualname__", repr(function))
        why = (
            f"since loops of Python are recorded step by step where the source of {name} cannot "
            "be read; define it in a file or in a notebook, or write the loop with lax.fori_loop"
        )
        if is_warned:
            raise UnsupportedError(
                f"jit of {name}: more than {MOST_WITHOUT_SOURCE:,} operations are recorded, {why}",
                user_source(),
            )
        is_warned = True
        count = LONGEST_WITHOUT_SOURCE
        warn(f"jit of {name}: {count:,} operations are recorded so far, {why}", RuntimeWarning)
        return float(MOST_WITHOUT_SOURCE - count)

    def more() -> float:
        nonlocal is_readable
        if not is_readable:
            return without_source()
        reachable = load("tracejit.transforms.autograph.reachable")
        asked.append(asked[0] if asked else reachable.may_loop(function))
        if not asked[0] and not reachable.is_looping(staged.__code__):
            return float(LONGEST << len(asked) - 1)
        other = rewritten()
        if other is None:
            is_readable = False
            return float(LONGEST_WITHOUT_SOURCE)
        if not load("tracejit.transforms.autograph").keeps_to_itself(function):
            return math.inf
        others.append(other)
        return 0

    try:
        return record(function, Limit(LONGEST, more))
    except ConcretizationError as error:
        other = rewritten() if is_test_of_while(error.source) else None
        if other is None or not load("tracejit.transforms.autograph").keeps_to_itself(function):
            raise
        with _recorded_again(LEAST_OF_NESTS[0], is_asked=False):
            return record(other, None)
    except LongTraceError:
        statements = load("tracejit.transforms.autograph")

    def again(least_of_nests: int, is_tried: bool = False) -> tuple[Staged | None, bool]:
        """What is recorded with loops, None where that is refused; and whether it is to be used.

        A trace that ``is_tried`` ends with `LongTraceError` where it is not.
        """
        # What was rewritten before is left as it is.
        is_asked = others[0] == function
        with _recorded_again(least_of_nests, is_asked) as found, suppress(*statements.REFUSALS):
            # What goes wrong may be for want of a known number of a step: it is known below.
            made = record(others[0], _of_short_ones(found) if is_tried else None)
            return made, not found.count or is_short(made.module)
        return None, True

    few, fewer = LEAST_OF_NESTS
    made: Staged | None = None
    is_used = False
    with suppress(LongTraceError):
        made, is_used = again(few, is_tried=True)
    if not is_used:
        shorter, _ = again(fewer)
        # The first was ended, or is long.
        made = shorter or made or again(few)[0]
    return record(function, None) if made is None else made


def is_test_of_while(source: Source | None) -> bool:
    """Whether a line is in the test of a ``while``."""
    if source is None:
        return False
    tests = _tests_of_while("".join(linecache.getlines(source.file)))
    return any(first <= source.line <= last for first, last in tests)


@functools.lru_cache(maxsize=16)
def _tests_of_while(text: str) -> list[tuple[int, int]]:
    """The first and the last line of the test of each ``while``."""
    try:
        module = ast.parse(text)
    except SyntaxError:
        return []
    tests = [node.test for node in ast.walk(module) if isinstance(node, ast.While)]
    return [(test.lineno, test.end_lineno or test.lineno) for test in tests]


def _of_short_ones(found: Counting) -> Limit:
    """Ends a trace with loops that is recorded again in any case, for it is not short.

    Half of the recorded instructions may be left out in the end.
    """
    return Limit(2 * LONGEST, lambda: 0 if found.count else LONGEST)


def is_short(module: Module) -> bool:
    """Whether there are no more instructions than are recorded without looking for loops."""
    computations = called_computations(module)
    return sum(len(instructions(computation)) for computation in computations) <= LONGEST
