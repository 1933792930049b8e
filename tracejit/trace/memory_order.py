"""The order in which the elements of an array lie in memory, by NumPy's rules.

An array of its own is dense: its layout is a permutation of its dimensions, outermost first. What
an elementwise function returns lies as its operands do (`iteration_order`), a copy as the array
does (`copied_order`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from tracejit.trace.views import Strides, row_major_strides


class Layout(NamedTuple):
    """The dimensions of an array that is no view, outermost first; None if that is not known.

    ``is_certain``: it lies so however the arguments of the trace lie. ``has_gaps``: it may be
    a view whose elements do not lie one behind the other, such as ``x[::2]`` or ``x[::-1]``.
    """

    order: tuple[int, ...] | None
    is_certain: bool = False
    has_gaps: bool = False


UNKNOWN = Layout(None)


def row_major(rank: int) -> Layout:
    """The layout of an array that lies row by row, whatever the arguments do."""
    return Layout(tuple(range(rank)), True)


def column_major(rank: int) -> Layout:
    """The layout of an array that lies column by column, whatever the arguments do."""
    return Layout(tuple(reversed(range(rank))), True)


def is_vector(shape: Sequence[int]) -> bool:
    """Whether the elements lie in one order only: at most one dimension has more than one."""
    return 0 in shape or sum(size != 1 for size in shape) < 2


def given_layout(array: np.ndarray) -> Layout | None:
    """How a given array lies in memory; None if row by row."""
    if array.flags.c_contiguous or is_vector(array.shape):
        return None
    return Layout(copied_order(array.strides), True)


def dense_strides(shape: Sequence[int], order: Sequence[int]) -> Strides:
    """The strides of an array that fills its memory with its dimensions in this order."""
    made = [0] * len(shape)
    step = 1
    for d in reversed(order):
        made[d] = step
        step *= shape[d]
    return tuple(made)


def is_row_by_row(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether the dimensions lie in their own order, with gaps or without."""
    steps = [abs(step) for size, step in zip(shape, strides, strict=True) if size != 1]
    return 0 in shape or all(a >= b for a, b in pairwise(steps))


def is_dense(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether elements lie one behind the other, row by row; steps of single ones do not count."""
    dense = row_major_strides(shape)
    return 0 in shape or all(
        step == wanted or size == 1
        for step, wanted, size in zip(strides, dense, shape, strict=True)
    )


def leaves_gaps(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether elements do not lie one behind the other in any order of the dimensions."""
    order = copied_order(strides)
    return not is_dense([shape[d] for d in order], [strides[d] for d in order])


def copied_order(strides: Sequence[int]) -> tuple[int, ...]:
    """The order of a copy that keeps the order of an array: NumPy's PyArray_NewLikeArray."""
    return tuple(sorted(range(len(strides)), key=lambda d: -abs(strides[d])))


def iteration_order(
    shape: Sequence[int], operands: Iterable[tuple[Sequence[int], Sequence[int]]]
) -> tuple[int, ...]:
    """The order in which NumPy's nditer goes through operands that are stretched to ``shape``.

    Each operand is its shape and strides. This is npyiter_find_best_axis_ordering: an insertion
    sort of the dimensions, from the last one on; a dimension goes outwards past another where some
    operand has larger strides along it, and none has smaller or equal ones.
    """
    rank = len(shape)
    stretched = [
        [0] * (rank - len(sizes))
        + [0 if size == 1 else abs(step) for size, step in zip(sizes, strides, strict=True)]
        for sizes, strides in operands
    ]
    found: list[int] = []
    for d in reversed(range(rank)):
        place = len(found)
        for position in reversed(range(len(found))):
            inner = found[position]
            in_order = [one[inner] <= one[d] for one in stretched if one[d] and one[inner]]
            if any(in_order):
                break
            if in_order:
                place = position
        found.insert(place, d)
    return tuple(reversed(found))
