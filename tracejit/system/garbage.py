"""The garbage collector waits while graphs are made."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collecting_garbage_later() -> Iterator[None]:
    """Pauses the cyclic garbage collector while many long-lived objects are allocated.

    Traces, graphs and kernels under construction are such: the collector takes as long to look
    through them as they take to make.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()
