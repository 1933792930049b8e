"""Scratch memory for programs, kept warm between calls.

Fresh memory of more than 32 MiB comes from the system zeroed page by page, which takes longer than
many a kernel. A workspace is therefore taken from what earlier calls gave back. Calls that run at
once, in threads or one inside another's callback, each take their own.
"""

from __future__ import annotations

import numpy as np

from tracejit.backends.abi import ALIGNMENT

KEPT_BYTES = 256 << 20
"""A larger workspace goes back to the system after the call."""

KEPT = 4
"""The most workspaces that are kept for the next calls."""

_free: list[np.ndarray] = []  # append and pop are atomic


def take(nbytes: int) -> np.ndarray:
    """At least ``nbytes`` bytes behind the first multiple of `ALIGNMENT`; they hold anything."""
    try:
        memory = _free.pop()
    except IndexError:
        return np.empty(nbytes + ALIGNMENT, np.uint8)
    if memory.nbytes >= nbytes + ALIGNMENT:
        return memory
    return np.empty(nbytes + ALIGNMENT, np.uint8)


def give(memory: np.ndarray) -> None:
    """Memory that `take` made and that nothing uses any more."""
    if memory.nbytes <= KEPT_BYTES and len(_free) < KEPT:
        _free.append(memory)
