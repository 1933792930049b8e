"""How much memory derivatives of loops may take for the states that they keep."""

from __future__ import annotations

import contextvars
from collections.abc import Iterator
from contextlib import contextmanager

DEFAULT_BUDGET = 64 << 20
"""Bytes that the kept states of one loop may take."""

_budget: contextvars.ContextVar[int] = contextvars.ContextVar("budget", default=DEFAULT_BUDGET)


@contextmanager
def memory_budget(nbytes: int | None) -> Iterator[None]:
    """Bytes that kept states may take in derivatives made inside; None leaves it as it is."""
    if nbytes is None:
        yield
        return
    token = _budget.set(nbytes)
    try:
        yield
    finally:
        _budget.reset(token)


def current_budget() -> int:
    """Bytes that the kept states of one loop may take in a derivative that is made now."""
    return _budget.get()
