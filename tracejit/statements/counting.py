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


class Counting:
    """How many loops were recorded once, and why others cannot be, by code and depth of nesting.

    ``depth`` loops are being recorded.
    """

    def __init__(self) -> None:
        self.depth = 0
        self.count = 0
        self.refused: dict[tuple[CodeType, int], str] = {}


_counting: contextvars.ContextVar[Counting | None] = contextvars.ContextVar(
    "counting", default=None
)


@contextmanager
def counted_loops() -> Iterator[Counting]:
    """Inside, long loops of rewritten functions are recorded once where that makes no difference.

    Gives what was found.
    """
    made = Counting()
    token = _counting.set(made)
    try:
        yield made
    finally:
        _counting.reset(token)


def current_counting() -> Counting | None:
    """What was found so far, where loops are recorded once."""
    return _counting.get()


def is_inside_counted() -> bool:
    """Whether a step is being recorded that stands for many."""
    counting = _counting.get()
    return counting is not None and counting.depth > 0
