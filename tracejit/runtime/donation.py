"""Arguments whose memory is given to results: which arrays may be written over.

An argument can be written over if it is a writable array that shares no memory with another one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.lib.array_utils import byte_bounds

from tracejit.errors import ArgumentError, ReadOnlyError

_ARRAYS = {np.ndarray}
_NO_BASE = {id(None)}


def are_apart(arguments: Sequence[object], donated: Sequence[int]) -> bool:
    """Whether the ``donated`` arguments are surely writable and apart from all others.

    Quick: no for anything but arrays, each of which has memory of its own or is a view of an array
    that is not given, which settles it.
    """
    if {*map(type, arguments)} != _ARRAYS:
        return False
    arrays: Sequence[np.ndarray] = arguments  # type: ignore[assignment]
    bases = [array.base for array in arrays]
    owners = arrays
    if {*map(id, bases)} != _NO_BASE:
        owners = [
            array if base is None else base for array, base in zip(arrays, bases, strict=True)
        ]
        if any(type(owner) is not np.ndarray or owner.base is not None for owner in owners):
            return False
    if len({*map(id, owners)}) != len(arrays):
        return False
    return all([arrays[number].flags.writeable for number in donated])


def overlapping(arguments: Sequence[object], donated: Sequence[int]) -> tuple[int, int] | None:
    """A donated argument that shares memory with another one, and that one; None without any."""
    arrays = [(n, a) for n, a in enumerate(arguments) if isinstance(a, np.ndarray) and a.size]
    spans = sorted((*byte_bounds(array), number) for number, array in arrays)
    given = set(donated)
    # Where what has begun so far ends, and the arguments that reach furthest.
    end, last, given_end, last_given = 0, -1, 0, -1
    for begin, stop, number in spans:
        if begin < given_end:
            return last_given, number
        if number in given and begin < end:
            return number, last
        end, last = max((end, last), (stop, number))
        if number in given:
            given_end, last_given = max((given_end, last_given), (stop, number))
    return None


def are_donatable(arguments: Sequence[object], donated: Sequence[int]) -> bool:
    """Whether the ``donated`` arguments may be written over."""
    if are_apart(arguments, donated):
        return True
    for number in donated:
        argument = arguments[number]
        if type(argument) is not np.ndarray or not argument.flags.writeable:
            return False
    return overlapping(arguments, donated) is None


def to_write_over(
    arguments: Sequence[object], arrays: Sequence[np.ndarray], donated: Sequence[int]
) -> list[np.ndarray]:
    """``arrays``, made of ``arguments``, with copies for those that must not be written over."""
    if are_donatable(arguments, donated):
        return [*arrays]
    return [np.array(array) if n in donated else array for n, array in enumerate(arrays)]


def require_donatable(
    arguments: Sequence[object], donated: Sequence[int], describe: Callable[[int], str]
) -> None:
    """Raises `ReadOnlyError` or `ArgumentError` for arrays that were given and cannot be taken."""
    for number in donated:
        argument = arguments[number]
        if isinstance(argument, np.ndarray) and not argument.flags.writeable:
            raise ReadOnlyError(
                f"{describe(number)} is donated, but is read-only; its memory cannot become a "
                "result's"
            )
    pair = overlapping(arguments, donated)
    if pair is not None:
        raise ArgumentError(
            f"{describe(pair[0])} is donated, but shares memory with {describe(pair[1])}, which "
            "would be overwritten; copy one of them"
        )
