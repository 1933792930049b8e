"""Gather and Scatter: the specification's examples, out-of-range rules, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tests.building import computation
from tests.ops.evaluation import evaluated
from tracejit import ops
from tracejit.errors import AttributeValueError, ElementTypeError, ShapeError, TracejitError
from tracejit.graph import Instruction
from tracejit.shapes import ElementType, Shape, TupleShape

F32, S32, S64 = ElementType.F32, ElementType.S32, ElementType.S64

ROWS = ops.GatherDimensionNumbers((1,), (0,), (0,), 1)
INTO_ROWS = ops.ScatterDimensionNumbers((1,), (0,), (0,), 1)
ELEMENTS = ops.ScatterDimensionNumbers((), (0,), (0,), 1)
ADD = ops.scalar_computation("add", F32)
REPLACE = ops.replace_computation(F32)


def array(*dimensions: int, element_type: ElementType = F32) -> Instruction:
    return ops.parameter(0, Shape(element_type, dimensions))


def indices(*dimensions: int) -> Instruction:
    return array(*dimensions, element_type=S64)


OPERAND = np.arange(16 * 11, dtype=np.float32).reshape(16, 11)


def test_gather_of_windows() -> None:
    """Five windows of 8x6: result[g, o0, o1] is operand[x + o0, y + o1]."""
    places = np.array([[0, 0], [8, 5], [3, 1], [2, 2], [8, 0]])
    numbers = ops.GatherDimensionNumbers((1, 2), (), (0, 1), 1)
    made = evaluated(lambda x, i: ops.gather(x, i, numbers, (8, 6)), OPERAND, places)
    assert_array_equal(made, [OPERAND[x : x + 8, y : y + 6] for x, y in places])


def test_gather_with_two_index_dimensions() -> None:
    places = np.arange(40).reshape(4, 5, 2) % 6
    numbers = ops.GatherDimensionNumbers((2, 3), (), (0, 1), 2)
    made = evaluated(lambda x, i: ops.gather(x, i, numbers, (8, 6)), OPERAND, places)
    assert made.shape == (4, 5, 8, 6)
    x, y = places[3, 2]
    assert_array_equal(made[3, 2], OPERAND[x : x + 8, y : y + 6])


def test_gather_of_whole_rows() -> None:
    """TensorFlow's gather_nd: an index of one number picks a row."""
    rows = np.array([[3, 0, 15], [15, 7, 7]])
    numbers = ops.GatherDimensionNumbers((2,), (0,), (0,), 2)
    made = evaluated(lambda x, i: ops.gather(x, i, numbers, (1, 11)), OPERAND, rows)
    assert_array_equal(made, OPERAND[rows])


def test_gather_places_offsets_and_batch_as_told() -> None:
    # Of 6 operand dimensions {0, 2} collapsed, the offsets run over 1, 3, 4 and 5.
    shape = ops.gather(
        array(5, 2, 6, 3, 4, 7),
        indices(9, 2),
        ops.GatherDimensionNumbers((0, 2, 3, 4), (0, 2), (2, 0), 1),
        (1, 2, 1, 3, 4, 7),
    ).shape
    assert shape == Shape(F32, (2, 9, 3, 4, 7))


@pytest.mark.parametrize(("row", "found"), [(-5, 0), (4, 4), (5, 4), (2**40, 4)])
def test_gather_clamps(row: int, found: int) -> None:
    operand = np.arange(15, dtype=np.float32).reshape(5, 3)
    made = evaluated(lambda x, i: ops.gather(x, i, ROWS, (1, 3)), operand, np.array([[row]]))
    assert_array_equal(made, operand[[found]])


def test_gather_takes_the_greatest_u64_as_beyond_the_end() -> None:
    operand = np.arange(15, dtype=np.float32).reshape(5, 3)
    far = np.array([[2**64 - 1], [2**63]], np.uint64)
    made = evaluated(lambda x, i: ops.gather(x, i, ROWS, (1, 3)), operand, far)
    assert_array_equal(made, operand[[4, 4]])


def test_scatter_of_the_page() -> None:
    """The page's picture: batching, window and index dimensions together; the last is outside."""
    operand = np.arange(1, 49, dtype=np.int32).reshape(2, 3, 4, 2)
    places = np.array(
        [
            [[[0, 0], [1, 0], [2, 1]], [[0, 1], [1, 1], [0, 2]]],
            [[[0, 0], [2, 1], [2, 2]], [[1, 2], [0, 1], [9, 0]]],
        ]
    )
    updates = np.ones((2, 2, 3, 1, 2), np.int32)
    numbers = ops.ScatterDimensionNumbers((3, 4), (1,), (2, 1), 3, (0,), (1,))
    add = ops.scalar_computation("add", S32)
    made = evaluated(lambda x, i, u: ops.scatter(x, i, u, add, numbers), operand, places, updates)
    expected = operand.copy()
    for first, second, third in np.ndindex(2, 2, 3):
        column, row = places[first, second, third]
        if column < 4:
            expected[second, row, column] += 1
    assert_array_equal(made, expected)


@pytest.mark.parametrize("row", [-1, 3, 2**40])
def test_scatter_drops(row: int) -> None:
    operand = np.arange(6, dtype=np.float32).reshape(3, 2)
    made = evaluated(
        lambda x, i, u: ops.scatter(x, i, u, ADD, INTO_ROWS),
        operand,
        np.array([[row], [1]]),
        np.ones((2, 2), np.float32),
    )
    assert_array_equal(made, [[0, 1], [3, 4], [4, 5]])


def test_scatter_drops_a_window_whole() -> None:
    numbers = ops.ScatterDimensionNumbers((1,), (), (0,), 1)
    made = evaluated(
        lambda x, i, u: ops.scatter(x, i, u, ADD, numbers),
        np.zeros(5, np.float32),
        np.array([[3], [1], [-1]]),
        np.ones((3, 3), np.float32),
    )
    assert_array_equal(made, [0, 1, 1, 1, 0])


def test_scatter_applies_repeated_updates_in_order() -> None:
    """The old value is the computation's first argument: here 2 old - new, three times."""
    combine = computation(
        "combine", lambda old, new: ops.sub(ops.add(old, old), new), Shape(F32), Shape(F32)
    )
    made = evaluated(
        lambda x, i, u: ops.scatter(x, i, u, combine, ELEMENTS),
        np.array([1, 10], np.float32),
        np.array([[1], [0], [1], [1]]),
        np.array([3, 5, 1, 2], np.float32),
    )
    assert_array_equal(made, [2 * 1 - 5, 2 * (2 * (2 * 10 - 3) - 1) - 2])


def test_scatter_that_replaces_keeps_the_last() -> None:
    made = evaluated(
        lambda x, i, u: ops.scatter(x, i, u, REPLACE, ELEMENTS),
        np.zeros(3, np.float32),
        np.array([[1], [1], [0]]),
        np.array([1, 2, 3], np.float32),
    )
    assert_array_equal(made, [3, 2, 0])


def test_scatter_with_a_computation_that_is_not_elementwise() -> None:
    """Each element is computed by itself when the computation cannot take whole arrays."""

    def combine(old: Instruction, new: Instruction) -> Instruction:
        pair = ops.concatenate([ops.reshape(old, (1,)), ops.reshape(new, (1,))], 0)
        return ops.reshape(ops.slice_(ops.rev(pair, (0,)), [0], [1]), ())

    made = evaluated(
        lambda x, i, u: ops.scatter(
            x, i, u, computation("last", combine, Shape(F32), Shape(F32)), ELEMENTS
        ),
        np.zeros(3, np.float32),
        np.array([[2], [0]]),
        np.array([1, 2], np.float32),
    )
    assert_array_equal(made, [2, 0, 1])


def test_scatter_of_two_operands_makes_a_tuple() -> None:
    def combine(*scalars: Instruction) -> Instruction:
        old, count, new, more = scalars
        return ops.tuple_([ops.max(old, new), ops.add(count, more)])

    both = computation("both", combine, *[Shape(F32), Shape(S32)] * 2)
    greatest, counts = evaluated(
        lambda x, y, i, u, v: ops.scatter([x, y], i, [u, v], both, ELEMENTS),
        np.array([0, 5], np.float32),
        np.array([0, 0], np.int32),
        np.array([[1], [0], [1]]),
        np.array([3, -1, 7], np.float32),
        np.array([1, 1, 1], np.int32),
    )
    assert_array_equal(greatest, [0, 7])
    assert_array_equal(counts, [1, 2])


def gathered(
    numbers: ops.GatherDimensionNumbers,
    slice_sizes: tuple[int, ...] = (1, 3),
    operand: Instruction | None = None,
    start_indices: Instruction | None = None,
) -> Instruction:
    return ops.gather(
        array(5, 3) if operand is None else operand,
        indices(4, 1) if start_indices is None else start_indices,
        numbers,
        slice_sizes,
    )


def scattered(
    numbers: ops.ScatterDimensionNumbers,
    updates: Instruction | None = None,
    operand: Instruction | None = None,
    scatter_indices: Instruction | None = None,
) -> Instruction:
    return ops.scatter(
        array(5, 3) if operand is None else operand,
        indices(4, 1) if scatter_indices is None else scatter_indices,
        array(4, 3) if updates is None else updates,
        ADD,
        numbers,
    )


BATCHED = ops.GatherDimensionNumbers((1,), (), (1,), 1, (0,), (0,))

REFUSED: list[tuple[type[TracejitError], Callable[[], Instruction], str]] = [
    (
        ElementTypeError,
        lambda: gathered(ROWS, start_indices=array(4, 1)),
        r"start_indices f32\[4,1\] has element type f32",
    ),
    (
        AttributeValueError,
        lambda: gathered(replace(ROWS, index_vector_dim=3)),
        r"index_vector_dim 3 must be between 0 and the rank of start_indices s64\[4,1\]",
    ),
    (
        AttributeValueError,
        lambda: gathered(replace(ROWS, start_index_map=(0, 1))),
        r"start_index_map \(0, 1\) must have one dimension for each of 1 numbers",
    ),
    (
        AttributeValueError,
        lambda: gathered(replace(ROWS, start_index_map=(2,))),
        "start_index_map must be distinct dimension numbers below rank 2",
    ),
    (
        AttributeValueError,
        lambda: gathered(replace(ROWS, collapsed_slice_dims=(1, 0)), (1, 1)),
        r"collapsed_slice_dims \(1, 0\) must be strictly increasing",
    ),
    (
        AttributeValueError,
        lambda: gathered(replace(ROWS, collapsed_slice_dims=())),
        "for each of 2 slice dimensions that are neither collapsed nor batching",
    ),
    (
        AttributeValueError,
        lambda: gathered(replace(ROWS, offset_dims=(2,))),
        r"offset_dims \(2,\) must be strictly increasing and below rank 2",
    ),
    (AttributeValueError, lambda: gathered(ROWS, (1,)), "slice_sizes .* one size for each"),
    (
        AttributeValueError,
        lambda: gathered(ROWS, (1, 4)),
        r"slice size 4 of dimension 1 must be between 0 and 3, operand is f32\[5,3\]",
    ),
    (
        AttributeValueError,
        lambda: gathered(ROWS, (2, 3)),
        "slice size 2 of dimension 0 must be 1, because it is collapsed",
    ),
    (AttributeValueError, lambda: gathered(ROWS, (0, 3)), "slice size 0 of dimension 0 must be 1"),
    (
        AttributeValueError,
        lambda: gathered(replace(BATCHED, start_indices_batching_dims=())),
        "must be equally long",
    ),
    (
        AttributeValueError,
        lambda: gathered(replace(BATCHED, start_indices_batching_dims=(1,))),
        r"must not hold index_vector_dim 1",
    ),
    (
        AttributeValueError,
        lambda: gathered(replace(BATCHED, start_index_map=(0,))),
        r"operand_batching_dims \(0,\) must not be indexed as well",
    ),
    (
        ShapeError,
        lambda: gathered(BATCHED),
        r"operand f32\[5,3\] dimension 0 is 5, indices s64\[4,1\] dimension 0 is 4",
    ),
    (
        AttributeValueError,
        lambda: gathered(
            ops.GatherDimensionNumbers((), (0,), (1,), 1, (0,), (0,)), (1, 1), array(4, 3)
        ),
        r"\(0,\) and operand_batching_dims \(0,\) must have no dimension in common",
    ),
    (
        ElementTypeError,
        lambda: scattered(INTO_ROWS, array(4, 3, element_type=S32)),
        r"operand 0 f32\[5,3\], update 0 s32\[4,3\]",
    ),
    (
        ShapeError,
        lambda: scattered(INTO_ROWS, array(4, 3, 1)),
        r"updates f32\[4,3,1\] must have rank 2, 1 window dimensions and 1 of scatter_indices",
    ),
    (
        ShapeError,
        lambda: scattered(INTO_ROWS, array(4, 9)),
        r"updates f32\[4,9\] dimension 1 is 9; the window must fit into operand f32\[5,3\]",
    ),
    (
        ShapeError,
        lambda: scattered(INTO_ROWS, array(7, 3)),
        r"updates f32\[7,3\] dimensions \(0,\) must be those of scatter_indices s64\[4,1\]",
    ),
    (
        AttributeValueError,
        lambda: scattered(replace(INTO_ROWS, inserted_window_dims=())),
        "for each of 2 operand dimensions that are neither inserted nor batching",
    ),
    (
        AttributeValueError,
        lambda: scattered(replace(INTO_ROWS, update_window_dims=(2,))),
        r"update_window_dims \(2,\) must be strictly increasing and below rank 2",
    ),
    (
        ShapeError,
        lambda: ops.scatter([array(5, 3)] * 2, indices(4, 1), array(4, 3), ADD, INTO_ROWS),
        "2 operands need as many updates, not 1",
    ),
    (ShapeError, lambda: ops.scatter([], indices(4, 1), [], ADD, INTO_ROWS), "needs N operands"),
    (
        ShapeError,
        lambda: ops.scatter(
            [array(5, 3), array(5, 4)], indices(4, 1), [array(4, 3)] * 2, ADD, INTO_ROWS
        ),
        r"all operands must have the same dimensions; 0 is f32\[5,3\], 1 is f32\[5,4\]",
    ),
    (
        ShapeError,
        lambda: ops.scatter(
            [array(5, 3)] * 2, indices(4, 1), [array(4, 3), array(4, 2)], ADD, INTO_ROWS
        ),
        r"all updates must have the same dimensions; 0 is f32\[4,3\], 1 is f32\[4,2\]",
    ),
    (
        ShapeError,
        lambda: ops.scatter(
            array(5, 3), indices(4, 1), array(4, 3), ops.scalar_computation("add", S32), INTO_ROWS
        ),
        r"must be a computation \(f32\[\], f32\[\]\) -> f32\[\]; add_s32 is \(s32\[\], s32\[\]\)",
    ),
]


@pytest.mark.parametrize(("error", "build", "message"), REFUSED)
def test_refused(
    error: type[TracejitError], build: Callable[[], Instruction], message: str
) -> None:
    with pytest.raises(error, match=message) as caught:
        build()
    assert "test_indexing.py:" in str(caught.value)


def test_index_vector_dim_of_the_rank_means_single_numbers() -> None:
    numbers = ops.GatherDimensionNumbers((2,), (0,), (0,), 2)
    assert gathered(numbers, start_indices=indices(6, 7)).shape == Shape(F32, (6, 7, 3))


def test_shape_of_a_scatter_of_several_operands() -> None:
    pair = computation(
        "pair",
        lambda a, b, c, d: ops.tuple_([c, d]),
        *[Shape(F32), Shape(S32)] * 2,
    )
    made = ops.scatter(
        [array(5, 3), array(5, 3, element_type=S32)],
        indices(4, 1),
        [array(4, 3), array(4, 3, element_type=S32)],
        pair,
        INTO_ROWS,
    )
    assert made.shape == TupleShape((Shape(F32, (5, 3)), Shape(S32, (5, 3))))
