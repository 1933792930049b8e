"""Arguments that share memory, in functions that write to their arguments.

g(x, x)             one array under two names: both see what is written, as in Python
g(x, x[1:])         arrays that overlap otherwise are refused where one of them is written to
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from tracejit.errors import ArgumentError, UnsupportedError
from tracejit.passes.input_layouts import Order, order_of_array
from tracejit.runtime.donation import are_apart, overlapping
from tracejit.trace.tracer import Tracer

Twins = Mapping[int, int]
"""The number of each leaf that is the same array as an earlier one, and that one's."""

EFFORT = 10_000
"""The limit of the search for a common element of two interleaved arrays."""


def twins(leaves: Sequence[Any], written: Collection[int]) -> dict[int, int]:
    """The leaves that are one array; none where nothing that is ``written`` is shared."""
    if not written or are_apart(leaves) or overlapping(leaves, [*written]) is None:
        return {}
    first: dict[Any, int] = {}
    found = {}
    for number, leaf in enumerate(leaves):
        if isinstance(leaf, np.ndarray) and leaf.size:
            key = leaf.ctypes.data, leaf.shape, leaf.strides, leaf.dtype
            at = first.setdefault(key, number)
            if at != number:
                found[number] = at
    return found


def are_guarded(leaves: Sequence[Any], written: Collection[int]) -> bool:
    """Whether no leaf that is ``written`` surely or maybe shares memory with another one."""
    return are_apart(leaves) or overlapping(leaves, [*written]) is None


def is_row_major(leaf: object) -> bool:
    """Whether a leaf lies in memory as arrays of traced functions do."""
    return not isinstance(leaf, np.ndarray) or leaf.flags.c_contiguous


def orders_in_memory(leaves: Sequence[Any], describe: Callable[[int], str]) -> tuple[Order, ...]:
    """The order in which each leaf lies in memory; none where all lie row by row.

    Raises `UnsupportedError` for an array that has gaps.
    """
    if all(map(is_row_major, leaves)):
        return ()
    orders = tuple(None if is_row_major(leaf) else order_of_array(leaf) for leaf in leaves)
    for number, (leaf, order) in enumerate(zip(leaves, orders, strict=True)):
        if order is None and not is_row_major(leaf):
            raise UnsupportedError(
                f"{describe(number)} has gaps in memory, and the function asks for the order of "
                f"memory (order='K' or 'A', or a write through ravel or reshape); pass "
                f"np.ascontiguousarray(x), or write the order, 'C' or 'F'"
            )
    return orders


def require_apart(
    leaves: Sequence[Any],
    written: Collection[int],
    describe: Callable[[int], str],
    same: Twins | None = None,
) -> None:
    """Raises `ArgumentError` where a leaf that is ``written`` overlaps another one.

    Those that are the ``same`` array may.
    """
    known = {} if same is None else same
    if not any(isinstance(leaf, Tracer) for leaf in leaves) and are_guarded(leaves, written):
        return
    for number in sorted(written):
        for other, leaf in enumerate(leaves):
            one = known.get(number, number) == known.get(other, other)
            if not one and _overlap(leaves[number], leaf):
                raise ArgumentError(
                    f"{describe(number)} is written to, and shares memory with {describe(other)}, "
                    f"which would not see it; pass a copy of one of them"
                )


def _overlap(one: Any, other: Any) -> bool:
    """Whether two leaves have memory in common, as far as that can be told in a short time."""
    if isinstance(one, Tracer) and isinstance(other, Tracer):
        return one.root is other.root
    if not (isinstance(one, np.ndarray) and isinstance(other, np.ndarray)):
        return False
    try:
        return np.shares_memory(one, other, max_work=EFFORT)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True
