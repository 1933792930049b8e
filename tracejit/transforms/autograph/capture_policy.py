"""Whether long loops over known ranges are recorded once: `counted_loops`.

with counted_loops():       # in rewritten functions called inside, where nobody notices
    ...

`jit` asks for it when a trace becomes long.
"""

from __future__ import annotations

import contextvars
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType

LEAST_OF_NESTS = 4
"""The least steps of a loop with loops inside that is recorded once."""


class Counting:
    """How many loops were recorded once, and why others cannot be, by code and depth of nesting.

    ``depth`` loops are being recorded. Loops with loops inside need ``least_of_nests`` steps.
    ``is_asked`` says that the user has asked for recorded control flow, in which a number that is
    a place outside of an array is clamped or dropped.
    """

    def __init__(self, least_of_nests: int, is_asked: bool) -> None:
        self.least_of_nests = least_of_nests
        self.is_asked = is_asked
        self.depth = 0
        self.count = 0
        self.refused: dict[tuple[CodeType, int, bool], str] = {}


_counting: contextvars.ContextVar[Counting | None] = contextvars.ContextVar(
    "counting", default=None
)


@contextmanager
def counted_loops(least_of_nests: int | None = None, is_asked: bool = False) -> Iterator[Counting]:
    """Inside, long loops of rewritten functions are recorded once where that makes no difference.

    Gives what was found.
    """
    made = Counting(LEAST_OF_NESTS if least_of_nests is None else least_of_nests, is_asked)
    token = _counting.set(made)
    try:
        yield made
    finally:
        _counting.reset(token)


def current_counting() -> Counting | None:
    """What was found so far, where loops are recorded once."""
    return _counting.get()


def is_inside_counted() -> bool:
    """Whether one step is being recorded for many."""
    counting = _counting.get()
    return counting is not None and counting.depth > 0
