"""Arguments whose memory is given to results: which arrays may be written over.

An argument can be written over if it is a writable array that shares no memory with another one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter

import numpy as np
from numpy.lib.array_utils import byte_bounds

from tracejit.errors import ArgumentError, ReadOnlyError

_ARRAYS = {np.ndarray}
_base = attrgetter("base")


def are_apart(arguments: Sequence[object]) -> bool:
    """Whether the arguments surely share no memory, which is quick to see of most.

    They do not if each is an array with memory of its own, or a view of an array that is not given,
    which settles it.
    """
    if {*map(type, arguments)} != _ARRAYS:
        return False
    arrays: Sequence[np.ndarray] = arguments  # type: ignore[assignment]
    bases = [*map(_base, arrays)]
    try:
        # Compared by identity first: an array, which is no None, is never equal to it.
        own = bases == [None] * len(bases)
    except ValueError:
        own = False
    owners = arrays
    if not own:
        owners = [a if b is None else b for a, b in zip(arrays, bases, strict=True)]
        if any(type(owner) is not np.ndarray or owner.base is not None for owner in owners):
            return False
    return len({*map(id, owners)}) == len(arrays)


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
    if not are_apart(arguments):
        if any(type(arguments[number]) is not np.ndarray for number in donated):
            return False
        if overlapping(arguments, donated) is not None:
            return False
    return all([arguments[n].flags.writeable for n in donated])  # type: ignore[attr-defined]


def to_write_over(
    arguments: Sequence[object], arrays: Sequence[np.ndarray], donated: Sequence[int]
) -> list[np.ndarray]:
    """``arrays``, from ``arguments``, with copies for those that must not be written over."""
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
