"""Whether a jitted program answers what Python answers, or refuses in words for its user.

answered(seed, text, plain, jitted, calls)     "right", "no program", or the name of the refusal
bounded(seed)                                  inside, a minute of processor time is an error
"""

from __future__ import annotations

import signal
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tests.fuzz.compile_times import MOST_SECONDS
from tracejit import tree
from tracejit.errors import TracejitError, TracerLeakError
from tracejit.trace.tracer import ForeignWriteError


def answered(
    seed: int,
    text: str,
    plain: Callable[..., Any],
    jitted: Callable[..., Any],
    calls: Iterable[Callable[[], tuple[Any, ...]]],
    may_write_outside: bool = False,
) -> str:
    """What becomes of the program ``text``, each call of which makes its arguments anew.

    Raises `AssertionError` for another answer than that of ``plain``, for a refusal that says
    nothing to a user, and after a minute of processor time. Calls that Python does not survive
    are left out. ``may_write_outside``: functions that are given to ``lax`` may be refused for
    what they write to.
    """
    found = "no program"
    for number, arguments in enumerate(calls):
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                right = plain(*arguments())
            except Exception:
                continue
            try:
                with bounded(seed):
                    ours = jitted(*arguments())
            except TracerLeakError as error:
                raise AssertionError(f"seed {seed}: {error!r} says nothing to a user") from error
            except ForeignWriteError as error:
                if not may_write_outside:
                    raise AssertionError(f"seed {seed}: {error!r}\n{text}") from error
                return "ForeignWriteError"
            except TracejitError as error:
                return type(error).__name__
        for place, (one, two) in enumerate(zip(tree.leaves(right), tree.leaves(ours), strict=True)):
            if not np.allclose(one, two, 1e-9, 1e-9, equal_nan=True):
                where = f"seed {seed}, call {number}, result {place}"
                raise AssertionError(f"{where}: {one} is right, not {two}\n{text}")
        found = "right"
    return found


@contextmanager
def bounded(seed: int) -> Iterator[None]:
    """Inside, a minute of processor time is an `AssertionError`."""

    def end(*_: Any) -> None:
        raise AssertionError(f"seed {seed}: not compiled within {MOST_SECONDS:.0f} s")

    before = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
