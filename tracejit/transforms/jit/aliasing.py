"""Arguments that share memory, in functions that write to their arguments.

g(x, x)             one array under two names: both see what is written, as in Python
g(x, x[1:])         arrays that overlap otherwise are refused where one of them is written to
g(table)            so is an array that the function closes over, which is frozen while tracing
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any
from weakref import ref

import numpy as np

from tracejit.errors import ArgumentError, UnsupportedError
from tracejit.passes.input_layouts import Order, order_of_array
from tracejit.runtime.donation import are_apart, overlapping
from tracejit.trace.object_state import frozen_values
from tracejit.trace.tracer import Tracer

Twins = Mapping[int, int]
"""The number of each leaf that is the same array as an earlier one, and that one's."""

Frozen = Sequence[tuple[str, "ref[np.ndarray]"]]
"""The arrays that a function closes over, by their variables' names."""

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


def frozen_arrays(function: Callable[..., Any]) -> Frozen:
    """The arrays in the variables that a function closes over, and in containers there."""
    return tuple((name, ref(array)) for name, array in _arrays(frozen_values(function)))


def _arrays(values: Mapping[Any, Any]) -> Iterator[tuple[str, np.ndarray]]:
    for name, value in values.items():
        inside = value.values() if isinstance(value, dict) else value
        for one in inside if isinstance(value, dict | list) else (value,):
            if isinstance(one, np.ndarray) and one.size:
                yield name, one


def are_guarded(leaves: Sequence[Any], written: Collection[int], frozen: Frozen = ()) -> bool:
    """Whether no leaf that is ``written`` surely or maybe shares memory with another one, with a
    ``frozen`` array or among its own elements.
    """
    if not (are_apart(leaves) or overlapping(leaves, [*written]) is None):
        return False
    if any([overlaps_itself(leaves[number]) for number in written]):
        return False
    return not frozen or _frozen_in(leaves, written, frozen) is None


def _frozen_in(
    leaves: Sequence[Any], written: Collection[int], frozen: Frozen
) -> tuple[int, str] | None:
    """A written leaf that shares memory with a frozen array, and that one's name."""
    for name, array in frozen:
        known = array()
        for number in written if known is not None else ():
            if _overlap(leaves[number], known):
                return number, name
    return None


def overlaps_itself(leaf: Any) -> bool:
    """Whether two elements of an array lie at one place in memory, or may do so."""
    if not isinstance(leaf, np.ndarray) or leaf.flags.forc or leaf.size < 2:
        return False
    steps = sorted((abs(s), n) for s, n in zip(leaf.strides, leaf.shape, strict=True) if n > 1)
    extent = leaf.itemsize
    for step, size in steps:
        if step < extent:
            return True
        extent += step * (size - 1)
    return False


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
    frozen: Frozen = (),
) -> None:
    """Raises `ArgumentError` where a leaf that is ``written`` overlaps another one, a ``frozen``
    array, or itself.

    Those that are the ``same`` array may.
    """
    known = {} if same is None else same
    is_traced = any(isinstance(leaf, Tracer) for leaf in leaves)
    if not is_traced and are_guarded(leaves, written, frozen):
        return
    found = _frozen_in(leaves, written, frozen)
    if found is not None:
        raise ArgumentError(
            f"{describe(found[0])} is written to, and shares memory with {found[1]}, which is "
            f"frozen into the compiled function and would not see it; pass {found[1]} as an "
            f"argument, or a copy of one of them"
        )
    for number in sorted(written):
        if overlaps_itself(leaves[number]):
            raise ArgumentError(
                f"{describe(number)} is written to, and some of its elements share memory, or may, "
                f"with others of it; pass a copy"
            )
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
