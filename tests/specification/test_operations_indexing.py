"""The page "Operation semantics": Gather and Scatter, against their formal definitions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tests.specification.running import F32, S32, computation, expect, f32, s32, scalars
from tracejit.ops import GatherDimensionNumbers, ScatterDimensionNumbers
from tracejit.shapes import ElementType, Shape

TABLE = np.arange(16 * 11, dtype=np.float32).reshape(16, 11)


def gathered(
    operand: np.ndarray,
    indices: np.ndarray,
    numbers: GatherDimensionNumbers,
    sizes: Sequence[int],
    shape: Sequence[int],
) -> np.ndarray:
    """The page's formal definition, index by index."""
    vector_dim = numbers.index_vector_dim
    if vector_dim == indices.ndim:
        indices = indices[..., None]
    batch_dims = [d for d in range(len(shape)) if d not in numbers.offset_dims]
    remapped = [d for d in range(operand.ndim) if d not in numbers.collapsed_slice_dims]
    out = np.empty(shape, operand.dtype)
    for index in np.ndindex(*shape):
        batch = [index[d] for d in batch_dims]
        place = [0] * operand.ndim
        for k, dimension in enumerate(numbers.start_index_map):
            start = int(indices[tuple([*batch[:vector_dim], k, *batch[vector_dim:]])])
            place[dimension] = min(max(start, 0), operand.shape[dimension] - sizes[dimension])
        for dimension, offset in zip(remapped, numbers.offset_dims, strict=True):
            place[dimension] += index[offset]
        out[index] = operand[tuple(place)]
    return out


def check_gather(
    operand: np.ndarray,
    indices: np.ndarray,
    numbers: GatherDimensionNumbers,
    sizes: Sequence[int],
    shape: Sequence[int],
) -> None:
    expect(
        lambda b, x, i: b.gather(x, i, numbers, sizes),
        [operand, indices],
        gathered(operand, indices, numbers, sizes, shape),
    )


def test_gather_five_slices_of_a_matrix() -> None:
    indices = np.array([[0, 0], [8, 5], [3, 2], [1, 4], [20, -1]], np.int64)
    numbers = GatherDimensionNumbers((1, 2), (), (0, 1), 1)
    check_gather(TABLE, indices, numbers, (8, 6), (5, 8, 6))


def test_gather_along_two_batch_dimensions() -> None:
    indices = np.arange(40, dtype=np.int64).reshape(4, 5, 2) % 9
    numbers = GatherDimensionNumbers((2, 3), (), (0, 1), 2)
    check_gather(TABLE, indices, numbers, (8, 6), (4, 5, 8, 6))


def test_gather_nd_takes_whole_rows() -> None:
    indices = np.array([[[3], [0]], [[15], [7]], [[2], [2]]], np.int64)
    numbers = GatherDimensionNumbers((2,), (0,), (0,), 2)
    check_gather(TABLE, indices, numbers, (1, 11), (3, 2, 11))
    expect(
        lambda b, x, i: b.gather(x, i, numbers, (1, 11)), [TABLE, indices], TABLE[indices[..., 0]]
    )


def test_gather_by_single_numbers() -> None:
    """start_indices [6,7] with index_vector_dim 2 are taken for [6,7,1]."""
    indices = np.arange(42, dtype=np.int32).reshape(6, 7) % 16
    numbers = GatherDimensionNumbers((2,), (0,), (0,), 2)
    check_gather(TABLE, indices, numbers, (1, 11), (6, 7, 11))


def test_gather_remaps_offsets_past_collapsed_dimensions() -> None:
    """Four offset dimensions of six, {0, 2} collapsed: {0→1, 1→3, 2→4, 3→5}."""
    operand = np.arange(2 * 3 * 2 * 2 * 3 * 2, dtype=np.int32).reshape(2, 3, 2, 2, 3, 2)
    indices = s32([[0, 1], [1, 0], [1, 1]])
    numbers = GatherDimensionNumbers((1, 2, 3, 4), (0, 2), (0, 2), 1)
    check_gather(operand, indices, numbers, (1, 3, 1, 2, 3, 2), (3, 3, 2, 3, 2))
    wanted = operand[indices[:, 0], :, indices[:, 1]]
    expect(lambda b, x, i: b.gather(x, i, numbers, (1, 3, 1, 2, 3, 2)), [operand, indices], wanted)


def scattered(
    operand: np.ndarray, indices: np.ndarray, updates: np.ndarray, numbers: ScatterDimensionNumbers
) -> np.ndarray:
    """The page's formal definition with add, update by update."""
    out: np.ndarray = operand.copy()
    vector_dim = numbers.index_vector_dim
    batch_dims = [d for d in range(updates.ndim) if d not in numbers.update_window_dims]
    removed = {*numbers.inserted_window_dims, *numbers.input_batching_dims}
    window = [d for d in range(operand.ndim) if d not in removed]
    for index in np.ndindex(updates.shape):
        batch = [index[d] for d in batch_dims]
        place = [0] * operand.ndim
        for k, dimension in enumerate(numbers.scatter_dims_to_operand_dims):
            place[dimension] = int(indices[tuple([*batch[:vector_dim], k, *batch[vector_dim:]])])
        pairs = zip(numbers.input_batching_dims, numbers.scatter_indices_batching_dims, strict=True)
        for dimension, of_indices in pairs:
            place[dimension] = batch[of_indices - (of_indices > vector_dim)]
        for dimension, offset in zip(window, numbers.update_window_dims, strict=True):
            place[dimension] += index[offset]
        if all(0 <= p < size for p, size in zip(place, operand.shape, strict=True)):
            out[tuple(place)] += updates[index]
    return out


def test_scatter_windows_into_a_batch() -> None:
    """s32[2,3,4,2] receives s32[2,2,3,1,2] at s64[2,2,3,2]; what is outside is left out."""
    operand = np.arange(1, 49, dtype=np.int32).reshape(2, 3, 4, 2)
    indices = np.array(
        [
            [[[0, 0], [1, 0], [2, 1]], [[0, 1], [1, 1], [0, 9]]],
            [[[0, 0], [2, 1], [2, 2]], [[1, 2], [0, 1], [1, 0]]],
        ],
        np.int64,
    )
    updates = np.ones((2, 2, 3, 1, 2), np.int32)
    numbers = ScatterDimensionNumbers(
        update_window_dims=(3, 4),
        inserted_window_dims=(1,),
        scatter_dims_to_operand_dims=(2, 1),
        index_vector_dim=3,
        input_batching_dims=(0,),
        scatter_indices_batching_dims=(1,),
    )
    combine = scalars(lambda b, x, y: b.add(x, y), S32, S32)
    wanted = scattered(operand, indices, updates, numbers)
    assert (wanted - operand).sum() == 2 * 11  # one of twelve windows is outside
    expect(
        lambda b, x, i, u: b.scatter(x, i, u, combine, numbers), [operand, indices, updates], wanted
    )


def test_scatter_passes_the_present_value_first() -> None:
    combine = scalars(lambda b, present, update: b.sub(present, update), F32, F32)
    numbers = ScatterDimensionNumbers((), (0,), (0,), 1)
    expect(
        lambda b, x, i, u: b.scatter(x, i, u, combine, numbers),
        [f32([10, 20, 30]), s32([[2], [0]]), f32([1, 2])],
        f32([8, 20, 29]),
    )


def test_scatter_several_operands_at_once() -> None:
    combine = scalars(lambda b, x, y, u, v: b.tuple([b.add(x, u), b.mul(y, v)]), F32, S32, F32, S32)
    numbers = ScatterDimensionNumbers((), (0,), (0,), 1)
    expect(
        lambda b, x, y, i, u, v: b.scatter([x, y], i, [u, v], combine, numbers),
        [f32([1, 2]), s32([3, 4]), s32([1]), f32([5]), s32([6])],
        (f32([1, 7]), s32([3, 24])),
    )


def test_scatter_makes_the_operands_shape() -> None:
    numbers = ScatterDimensionNumbers((1,), (0,), (0,), 1)
    combine = scalars(lambda b, x, y: b.add(x, y), F32, F32)
    made = computation(
        lambda b, x, i, u: b.scatter(x, i, u, combine, numbers),
        Shape(F32, (4, 3)),
        Shape(ElementType.S32, (2, 1)),
        Shape(F32, (2, 3)),
    )
    assert made.root.shape == Shape(F32, (4, 3))
