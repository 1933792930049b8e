"""Gather and Scatter, evaluated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tracejit.backends.numpy.interpreter import Value, interpret
from tracejit.backends.numpy.scalars import evaluate_elementwise
from tracejit.graph import Computation, Instruction
from tracejit.ops.computations import binary_op
from tracejit.ops.elementwise import ADD
from tracejit.ops.indexing import GATHER, SCATTER


@interpret.attach(GATHER)
def gather(instruction: Instruction, operand: np.ndarray, start_indices: np.ndarray) -> Value:
    attributes = instruction.attributes
    result = instruction.array_shape
    sizes = attributes["slice_sizes"]
    offset_dims = attributes["offset_dims"]
    starts = _starts(
        start_indices,
        attributes["index_vector_dim"],
        attributes["start_index_map"],
        attributes["operand_batching_dims"],
        attributes["start_indices_batching_dims"],
        operand.ndim,
    )
    removed = {*attributes["collapsed_slice_dims"], *attributes["operand_batching_dims"]}
    offsets = iter(offset_dims)
    places = []
    for dimension, start in enumerate(starts):
        limit = operand.shape[dimension] - sizes[dimension]
        place = np.expand_dims(np.clip(start, 0, limit), offset_dims)
        if dimension not in removed:
            along = [1] * result.rank
            along[next(offsets)] = sizes[dimension]
            place = place + np.arange(sizes[dimension]).reshape(along)
        places.append(place)
    return operand[tuple(np.broadcast_arrays(*places))] if places else operand


@interpret.attach(SCATTER)
def scatter(instruction: Instruction, *arrays: np.ndarray) -> Value:
    attributes = instruction.attributes
    count = len(arrays) // 2
    results = [operand.copy() for operand in arrays[:count]]
    window_dims = attributes["update_window_dims"]
    starts = _starts(
        arrays[count],
        attributes["index_vector_dim"],
        attributes["scatter_dims_to_operand_dims"],
        attributes["input_batching_dims"],
        attributes["scatter_indices_batching_dims"],
        results[0].ndim,
    )
    # The updates with the windows last: one window after the other, in the order of the indices.
    outer = [d for d in range(arrays[-1].ndim) if d not in window_dims]
    updates = [update.transpose([*outer, *window_dims]) for update in arrays[count + 1 :]]

    removed = {*attributes["inserted_window_dims"], *attributes["input_batching_dims"]}
    windows = iter(updates[0].shape[len(outer) :])
    kept = [d for d in range(results[0].ndim) if d not in removed]
    inside = np.ones(updates[0].shape[: len(outer)], bool)
    places = []
    for dimension, start in enumerate(starts):
        size = next(windows) if dimension in kept else 1
        inside &= (start >= 0) & (start <= results[0].shape[dimension] - size)
        place = start.reshape(start.shape + (1,) * len(kept))
        if dimension in kept:
            along = [1] * len(kept)
            along[kept.index(dimension)] = size
            place = place + np.arange(size).reshape(along)
        places.append(place)
    shape = updates[0].shape
    taken = [np.broadcast_to(p, shape)[inside].reshape(-1) for p in places]
    values = [update[inside].reshape(-1) for update in updates]

    where: np.ndarray = np.zeros(values[0].size, np.int64)
    for size, index in zip(results[0].shape, taken, strict=True):
        where = where * size + index
    flat = [result.reshape(-1) for result in results]
    _combine(flat, where, values, attributes["to_apply"])
    final = tuple(a.reshape(r.shape) for a, r in zip(flat, results, strict=True))
    return final if count > 1 else final[0]


def _combine(
    arrays: Sequence[np.ndarray],
    where: np.ndarray,
    values: Sequence[np.ndarray],
    computation: Computation,
) -> None:
    """Combines ``values`` into the vectors ``arrays`` at ``where``, one after the other."""
    if computation.root is computation.parameters[-1]:
        arrays[0][where] = values[0]
        return
    if binary_op(computation) is ADD and arrays[0].dtype.isbuiltin == 1:
        np.add.at(arrays[0], where, values[0])
        return
    for chosen in _rounds(where):
        target = where[chosen]
        old = [array[target] for array in arrays]
        made = evaluate_elementwise(computation, [*old, *(v[chosen] for v in values)])
        news = made if isinstance(made, tuple) else (made,)
        for array, new in zip(arrays, news, strict=True):
            array[target] = new


def _starts(
    indices: np.ndarray,
    vector_dim: int,
    index_map: Sequence[int],
    operand_batching_dims: Sequence[int],
    indices_batching_dims: Sequence[int],
    rank: int,
) -> list[np.ndarray]:
    """For each operand dimension the start of every slice; 0 where no index is for it."""
    if vector_dim == indices.ndim:
        indices = indices[..., np.newaxis]
    if indices.dtype == np.uint64:  # the greatest are beyond int64, and out of range either way
        indices = np.minimum(indices, np.uint64(np.iinfo(np.int64).max))
    vectors = np.moveaxis(indices, vector_dim, 0)
    starts = [np.zeros(vectors.shape[1:], np.int64)] * rank
    for number, dimension in enumerate(index_map):
        starts[dimension] = vectors[number].astype(np.int64)
    for dimension, batching in zip(operand_batching_dims, indices_batching_dims, strict=True):
        axis = batching - (batching > vector_dim)
        along = [1] * (vectors.ndim - 1)
        along[axis] = -1
        counted = np.arange(indices.shape[batching]).reshape(along)
        starts[dimension] = np.broadcast_to(counted, vectors.shape[1:])
    return starts


def _rounds(where: np.ndarray) -> Iterator[np.ndarray]:
    """Positions in ``where`` whose values are all different, the earliest of each value first."""
    order = np.argsort(where, kind="stable")
    ranked = where[order]
    first = np.ones(len(ranked), bool)
    first[1:] = ranked[1:] != ranked[:-1]
    begin = np.flatnonzero(first)
    turn = np.arange(len(ranked)) - np.repeat(begin, np.diff([*begin, len(ranked)]))
    by_turn = np.argsort(turn, kind="stable")
    yield from np.split(order[by_turn], np.flatnonzero(np.diff(turn[by_turn])) + 1)
