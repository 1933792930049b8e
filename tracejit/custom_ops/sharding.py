"""What kernels on the CPU use: checks of their arguments, and work split over threads.

require(x.ndim == 1, "expects a 1-D vector")
shard(lambda start, stop: np.sqrt(x[start:stop], out=y[start:stop]), len(x))
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tracejit.backends.machine import thread_count
from tracejit.errors import InvalidArgumentError


def require(condition: Any, *message: Any) -> None:
    """Raises `InvalidArgumentError` unless the condition holds; the op's name is put in front.

    The parts of ``message`` are joined: ``require(n >= 0, "Need n >= 0, got ", n)``.
    """
    if not condition:
        raise InvalidArgumentError("".join(map(str, message)) or "a requirement does not hold")


class _Pool:
    """The threads, started when they are first needed."""

    lock = threading.Lock()
    executor: ThreadPoolExecutor | None = None
    inside = threading.local()


def _executor() -> ThreadPoolExecutor:
    with _Pool.lock:
        if _Pool.executor is None:
            _Pool.executor = ThreadPoolExecutor(thread_count(), "tracejit-shard")
        return _Pool.executor


def shard(
    work: Callable[[int, int], Any],
    total: int,
    *,
    minimum: int = 1,
    max_parallelism: int | None = None,
) -> None:
    """Calls ``work(start, stop)`` for ranges that together are ``range(total)``, in threads.

    There are as many ranges as compiled code has threads, at most ``max_parallelism``, fewer when
    they would be shorter than ``minimum``. NumPy's functions run at once on several cores. What
    ``work`` raises is raised again, of the first range; a range is split no further inside.
    """
    most = thread_count() if max_parallelism is None else min(max_parallelism, thread_count())
    pieces = max(1, min(most, total // max(1, minimum)))
    if total <= 0:
        return
    if pieces == 1 or getattr(_Pool.inside, "busy", False):
        work(0, total)
        return

    def run(start: int, stop: int) -> None:
        _Pool.inside.busy = True
        try:
            work(start, stop)
        finally:
            _Pool.inside.busy = False

    edges = [total * piece // pieces for piece in range(pieces + 1)]
    first, *rest = itertools.pairwise(edges)
    others = [_executor().submit(run, start, stop) for start, stop in rest]
    try:
        run(*first)
    finally:
        errors = [future.exception() for future in others]
    for error in errors:
        if error is not None:
            raise error
