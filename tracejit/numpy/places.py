"""Takes elements at known indices along one dimension, for roll, repeat, pad, insert and delete.

A list of places is cut into runs that count up, count down or stand still; each run is a slice, a
reversed slice or a repetition. Only a list without such order becomes a Gather.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tracejit.graph import Instruction
from tracejit.ops import indexing, layout
from tracejit.ops.constants import constant

MOST_RUNS = 16
"""With more runs than this a Gather is the shorter graph."""


def take_places(x: Instruction, places: Sequence[int] | np.ndarray, axis: int) -> Instruction:
    """``x`` at ``places``, each within the dimension, along ``axis``."""
    listed = np.asarray(places, np.int64)
    size = x.array_shape.dimensions[axis]
    if listed.size == size and (listed == np.arange(size)).all():
        return x
    runs = _runs(listed)
    if len(runs) > MOST_RUNS:
        return _gather(x, listed, axis)
    if not runs:
        return layout.slice_in_dim(x, 0, 0, 1, axis)
    parts = [_run(x, listed[start:stop], axis) for start, stop in runs]
    return layout.concatenate(parts, axis) if len(parts) > 1 else parts[0]


def _runs(places: np.ndarray) -> list[tuple[int, int]]:
    """Bounds of the longest stretches in which places change by one fixed step of 1, -1 or 0."""
    runs = []
    start = 0
    while start < len(places):
        stop = start + 1
        if stop < len(places) and abs(int(places[stop] - places[start])) <= 1:
            step = places[stop] - places[start]
            while stop < len(places) and places[stop] - places[stop - 1] == step:
                stop += 1
        runs.append((start, stop))
        start = stop
        if len(runs) > MOST_RUNS:
            break
    return runs


def _run(x: Instruction, places: np.ndarray, axis: int) -> Instruction:
    low, high = int(places.min()), int(places.max())
    part = layout.slice_in_dim(x, low, high + 1, 1, axis)
    if len(places) == 1 or places[0] < places[1]:
        return part
    if places[0] > places[1]:
        return layout.rev(part, [axis])
    dimensions = list(part.array_shape.dimensions)
    dimensions[axis] = len(places)
    return layout.broadcast_in_dim(part, dimensions, range(len(dimensions)))


def _gather(x: Instruction, places: np.ndarray, axis: int) -> Instruction:
    dimensions = x.array_shape.dimensions
    rank = len(dimensions)
    numbers = indexing.GatherDimensionNumbers(
        offset_dims=tuple(d for d in range(rank) if d != axis),
        collapsed_slice_dims=(axis,),
        start_index_map=(axis,),
        index_vector_dim=1,
    )
    sizes = [1 if d == axis else size for d, size in enumerate(dimensions)]
    sorted_places = bool((np.diff(places) >= 0).all())
    return indexing.gather(x, constant(places), numbers, sizes, sorted_places)
