"""Running jitted functions as plain Python, to look into them with a debugger or with `print`.

with disable_jit():
    step(x)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import get_ident

PLAIN_THREADS: list[int] = []
"""The threads that are inside of `disable_jit`, once for each time."""


@contextmanager
def disable_jit(disable: bool = True) -> Iterator[None]:
    """Inside, in this thread, calls of jitted functions run the functions themselves.

    Arrays that were to be donated stay whole. Loops and branches of `tracejit.lax` are recorded
    and interpreted as they are outside of `jit`. ``disable=False`` changes nothing. Also a
    decorator.

    >>> with tj.disable_jit():
    ...     tj.jit(lambda x: -x if x < 0 else x)(-3.0)
    3.0
    """
    if not disable:
        yield
        return
    PLAIN_THREADS.append(get_ident())
    try:
        yield
    finally:
        PLAIN_THREADS.remove(get_ident())
