"""The ops that move elements: the specification's examples, and what is refused."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tests.ops.evaluation import evaluated
from tracejit import ops
from tracejit.attributes import PaddingDimension, SliceDimension
from tracejit.errors import (
    AttributeValueError,
    DimensionError,
    ElementTypeError,
    ShapeError,
    TracejitError,
)
from tracejit.graph import Instruction
from tracejit.ops.base import make
from tracejit.ops.layout import BROADCAST_IN_DIM, PAD, RESHAPE, SLICE
from tracejit.shapes import ElementType, Shape

F32, S32, S64 = ElementType.F32, ElementType.S32, ElementType.S64

V = np.array([10, 11, 12, 15, 16, 17, 20, 21, 22, 25, 26, 27], np.float32)
V = np.concatenate([V, V + 20]).reshape(4, 2, 3)
VECTOR = np.arange(5, dtype=np.float32)
MATRIX = np.arange(12, dtype=np.float32).reshape(4, 3)


def array(*dimensions: int, element_type: ElementType = F32) -> Instruction:
    return ops.parameter(0, Shape(element_type, dimensions))


def index(element_type: ElementType = S32) -> Instruction:
    return ops.parameter(0, Shape(element_type))


def test_broadcast_of_a_scalar() -> None:
    made = evaluated(lambda x: ops.broadcast(x, (2, 3)), np.array(2, np.float32))
    assert_array_equal(made, np.full((2, 3), 2, np.float32))


def test_broadcast_adds_dimensions_on_the_left() -> None:
    made = evaluated(lambda x: ops.broadcast(x, (2,)), MATRIX)
    assert_array_equal(made, np.stack([MATRIX, MATRIX]))


@pytest.mark.parametrize(
    ("dimension", "expected"),
    [(1, [[7, 8, 9], [7, 8, 9], [7, 8, 9]]), (0, [[7, 7, 7], [8, 8, 8], [9, 9, 9]])],
)
def test_vector_matched_with_either_dimension(dimension: int, expected: list[list[int]]) -> None:
    values = np.array([7, 8, 9], np.int32)
    made = evaluated(lambda x: ops.broadcast_in_dim(x, (3, 3), (dimension,)), values)
    assert_array_equal(made, expected)


def test_stretching_drops_the_dimension_of_size_1_first() -> None:
    made = ops.broadcast_in_dim(array(1, 3), (2, 5, 3), (1, 2))
    assert made.shape == Shape(F32, (2, 5, 3))
    assert made.attributes["dimensions"] == (2,)
    assert made.operands[0].op is RESHAPE


def test_broadcast_to_its_own_shape_is_the_operand() -> None:
    x = array(2, 3)
    assert ops.broadcast_in_dim(x, (2, 3), (0, 1)) is x
    assert ops.reshape(x, (2, 3)) is x
    assert ops.collapse(x, (1,)) is x


def test_collapse() -> None:
    # The specification prints the results for {0,1} and {1,2} under each other's names.
    assert_array_equal(evaluated(lambda v: ops.collapse(v, (0, 1, 2)), V), V.reshape(24))
    assert_array_equal(
        evaluated(lambda v: ops.collapse(v, (1, 2)), V),
        [
            [10, 11, 12, 15, 16, 17],
            [20, 21, 22, 25, 26, 27],
            [30, 31, 32, 35, 36, 37],
            [40, 41, 42, 45, 46, 47],
        ],
    )
    assert_array_equal(
        evaluated(lambda v: ops.collapse(v, (0, 1)), V),
        [
            [10, 11, 12],
            [15, 16, 17],
            [20, 21, 22],
            [25, 26, 27],
            [30, 31, 32],
            [35, 36, 37],
            [40, 41, 42],
            [45, 46, 47],
        ],
    )


def test_reshape() -> None:
    rows = [[t + o, t + o + 1, t + o + 2] for t in (10, 20, 30, 40) for o in (0, 5)]
    assert_array_equal(
        evaluated(lambda v: ops.reshape(v, (24,)), V), [x for row in rows for x in row]
    )
    assert_array_equal(evaluated(lambda v: ops.reshape(v, (8, 3)), V), rows)


def test_reshape_between_scalars_and_arrays_of_one_element() -> None:
    five = np.array([[5]], np.float32)
    assert_array_equal(evaluated(lambda x: ops.reshape(x, ()), five), np.float32(5))
    assert_array_equal(evaluated(lambda x: ops.reshape(x, (1, 1)), np.float32(5)), five)


def test_reshape_to_an_explicit_shape() -> None:
    assert ops.reshape(array(2, 3), Shape(F32, (6,))).shape == Shape(F32, (6,))
    with pytest.raises(ElementTypeError, match=r"operand f32\[2,3\], result s32\[6\]"):
        ops.reshape(array(2, 3), Shape(S32, (6,)))


def test_transpose_takes_each_dimension_from_the_permutation() -> None:
    made = evaluated(lambda v: ops.transpose(v, (2, 0, 1)), V)
    assert made.shape == (3, 4, 2)
    assert made[1, 2, 0] == V[2, 0, 1]


def test_rev_mirrors_the_index() -> None:
    made = evaluated(lambda v: ops.rev(v, (0, 2)), V)
    assert made[0, 1, 0] == V[3, 1, 2]


def test_concatenate() -> None:
    parts = [np.array(p, np.int32) for p in ([2, 3], [4, 5], [6, 7])]
    made = evaluated(lambda *xs: ops.concatenate(xs, 0), *parts)
    assert_array_equal(made, [2, 3, 4, 5, 6, 7])
    a, b = np.array([[1, 2], [3, 4], [5, 6]], np.int32), np.array([[7, 8]], np.int32)
    made = evaluated(lambda *xs: ops.concat_in_dim(xs, 0), a, b)
    assert_array_equal(made, [[1, 2], [3, 4], [5, 6], [7, 8]])


def test_slice() -> None:
    assert_array_equal(evaluated(lambda a: ops.slice_(a, [2], [4]), VECTOR), [2, 3])
    made = evaluated(lambda b: ops.slice_(b, [2, 1], [4, 3]), MATRIX)
    assert_array_equal(made, [[7, 8], [10, 11]])


def test_dynamic_slice() -> None:
    start = np.array([2], np.int32)
    made = evaluated(lambda a, s: ops.dynamic_slice(a, s, [2]), VECTOR, start)
    assert_array_equal(made, [2, 3])
    start = np.array([2, 1], np.int32)
    made = evaluated(lambda b, s: ops.dynamic_slice(b, s, [2, 2]), MATRIX, start)
    assert_array_equal(made, [[7, 8], [10, 11]])


@pytest.mark.parametrize(("start", "first"), [(-9, 0), (0, 0), (3, 3), (4, 3), (2**31 - 1, 3)])
def test_dynamic_slice_clamps(start: int, first: int) -> None:
    made = evaluated(lambda a, s: ops.dynamic_slice(a, [s], [2]), VECTOR, np.array(start, np.int32))
    assert_array_equal(made, [first, first + 1])


def test_dynamic_update_slice() -> None:
    update, start = np.array([5, 6], np.float32), np.array([2], np.int32)
    made = evaluated(ops.dynamic_update_slice, VECTOR, update, start)
    assert_array_equal(made, [0, 1, 5, 6, 4])
    update = np.array([[12, 13], [14, 15], [16, 17]], np.float32)
    start = np.array([1, 1], np.int32)
    made = evaluated(ops.dynamic_update_slice, MATRIX, update, start)
    assert_array_equal(made, [[0, 1, 2], [3, 12, 13], [6, 14, 15], [9, 16, 17]])


def test_pad_between_before_and_after() -> None:
    # Interior padding comes first, so that negative padding may crop it.
    made = evaluated(
        lambda x, v: ops.pad(x, v, [(2, -1, 1)]), np.array([1, 2, 3], np.int32), np.int32(9)
    )
    assert_array_equal(made, [9, 9, 1, 9, 2, 9])
    made = evaluated(
        lambda x, v: ops.pad(x, v, [(-1, 2, 2)]), np.array([1, 2, 3], np.int32), np.int32(9)
    )
    assert_array_equal(made, [9, 9, 2, 9, 9, 3, 9, 9])


def test_pad_without_any_is_the_same() -> None:
    made = evaluated(lambda x, v: ops.pad(x, v, [(0, 0, 0)] * 2), MATRIX, np.float32(9))
    assert_array_equal(made, MATRIX)


def test_pad_of_a_scalar_is_the_scalar() -> None:
    x = array()
    assert ops.pad(x, array(), []) is x
    with pytest.raises(ShapeError, match=r"padding_value f32\[2\] must have rank 0"):
        ops.pad(x, array(2), [])


REFUSED: list[tuple[type[TracejitError], Callable[[], Instruction], str]] = [
    (
        ShapeError,
        lambda: ops.broadcast_in_dim(array(2, 3), (2, 4), (0, 1)),
        r"operand f32\[2,3\] dimension 1 is 3, result f32\[2,4\] dimension 1 is 4",
    ),
    (
        AttributeValueError,
        lambda: ops.broadcast_in_dim(array(2, 3), (3, 2), (1, 0)),
        r"broadcast_dimensions \(1, 0\) must be strictly increasing",
    ),
    (
        AttributeValueError,
        lambda: ops.broadcast_in_dim(array(2), (2, 3), (2,)),
        r"must be below the result's rank, f32\[2,3\]",
    ),
    (
        ShapeError,
        lambda: ops.broadcast_in_dim(array(2, 3), (2, 3, 4), (0,)),
        r"must name one result dimension for each dimension of operand f32\[2,3\]",
    ),
    (
        AttributeValueError,
        lambda: ops.broadcast(array(2), (-1,)),
        r"broadcast_in_dim: dimensions \(-1, 2\) must not be negative",
    ),
    (
        ShapeError,
        lambda: make(BROADCAST_IN_DIM, array(1), dimensions=(0,), shape=Shape(F32, (3,))),
        r"operand f32\[1\] dimension 0 is 1, result f32\[3\] dimension 0 is 3",
    ),
    (
        ShapeError,
        lambda: ops.reshape(array(2, 3), (4,)),
        r"operand f32\[2,3\] has 6 elements, \[4\] has 4",
    ),
    (
        AttributeValueError,
        lambda: ops.reshape(array(2), (-1, np.int64(-2))),
        r"reshape: dimensions \(-1, np.int64\(-2\)\) must not be negative",
    ),
    (
        AttributeValueError,
        lambda: ops.collapse(array(2, 3, 4), (1, 0)),
        r"dimensions \(1, 0\) must be consecutive and increasing",
    ),
    (AttributeValueError, lambda: ops.collapse(array(2, 3, 4), (0, 2)), "must be consecutive"),
    (AttributeValueError, lambda: ops.collapse(array(2, 3), (1, 2)), "below rank 2"),
    (
        AttributeValueError,
        lambda: ops.transpose(array(2, 3), (0, 0)),
        r"permutation \(0, 0\) must hold each dimension of operand f32\[2,3\] once",
    ),
    (AttributeValueError, lambda: ops.transpose(array(2, 3), (0,)), "must hold each dimension"),
    (AttributeValueError, lambda: ops.rev(array(2), (0, 0)), "distinct dimension numbers"),
    (AttributeValueError, lambda: ops.rev(array(2), (1,)), "below rank 1"),
    (
        ElementTypeError,
        lambda: ops.pad(array(2), array(element_type=S32), [(0, 0, 0)]),
        r"operand f32\[2\], padding_value s32\[\]",
    ),
    (
        AttributeValueError,
        lambda: ops.pad(array(2, 3), array(), [(0, 0, 0)]),
        r"padding_config has 1 dimensions, operand f32\[2,3\] has 2",
    ),
    (
        AttributeValueError,
        lambda: ops.pad(array(2), array(), [(0, 0, -1)]),
        "interior padding of dimension 0 is -1",
    ),
    (
        ShapeError,
        lambda: ops.pad(array(2), array(), [(-2, -1, 0)]),
        r"low -2 and high -1 crop more than operand f32\[2\] has in dimension 0, 2",
    ),
    (
        ShapeError,
        lambda: make(PAD, array(), array(), padding=()),
        r"operand f32\[\] has no dimension",
    ),
    (DimensionError, lambda: ops.pad_in_dim(array(2), array(), 1, 0, 0), "out of range for rank 1"),
    (ShapeError, lambda: ops.concatenate([], 0), "at least one operand"),
    (
        ShapeError,
        lambda: ops.concatenate([array(2, 3), array(2, 4)], 0),
        r"agree in every dimension but 0; operand 0 f32\[2,3\], operand 1 f32\[2,4\]",
    ),
    (ShapeError, lambda: ops.concatenate([array(2), array(2, 4)], 0), r"operand 1 f32\[2,4\]"),
    (
        ElementTypeError,
        lambda: ops.concatenate([array(2), array(2), array(2, element_type=S32)], 0),
        r"operand 0 f32\[2\], operand 2 s32\[2\]",
    ),
    (DimensionError, lambda: ops.concatenate([array()], 0), "out of range for rank 0"),
    (
        AttributeValueError,
        lambda: ops.slice_(array(4), [1], [5]),
        r"0 <= start <= limit <= 4 in dimension 0 of operand f32\[4\]",
    ),
    (AttributeValueError, lambda: ops.slice_(array(4), [-1], [2]), "start -1 and limit 2"),
    (AttributeValueError, lambda: ops.slice_(array(4), [3], [2]), "start 3 and limit 2"),
    (AttributeValueError, lambda: ops.slice_(array(4), [0], [2], [0]), "stride 0 of dimension 0"),
    (AttributeValueError, lambda: ops.slice_(array(4), [0], [2, 3]), "must be equally long"),
    (
        AttributeValueError,
        lambda: make(SLICE, array(4, 5), slice=(SliceDimension(0, 1),)),
        r"are for 1 dimensions, operand f32\[4,5\] has 2",
    ),
    (DimensionError, lambda: ops.slice_in_dim(array(4), 0, 1, 1, -2), "out of range for rank 1"),
    (
        AttributeValueError,
        lambda: ops.dynamic_slice(array(4), [index()], [5]),
        r"slice size 5 of dimension 0 must be between 0 and 4, operand is f32\[4\]",
    ),
    (
        ShapeError,
        lambda: ops.dynamic_slice(array(4, 5), [index()], [1, 1]),
        r"one start index for each dimension of operand f32\[4,5\], not 1",
    ),
    (
        ElementTypeError,
        lambda: ops.dynamic_slice(array(4, 5), [index(), index(S64)], [1, 1]),
        r"one element type; index 0 is s32\[\], index 1 is s64\[\]",
    ),
    (ElementTypeError, lambda: ops.dynamic_slice(array(4), [index(F32)], [1]), "element type f32"),
    (ShapeError, lambda: ops.dynamic_slice(array(4), array(1, 1), [1]), "must have rank 1"),
    (
        ShapeError,
        lambda: ops.dynamic_update_slice(array(4), array(5), [index()]),
        r"operand f32\[4\] dimension 0 is 4, update f32\[5\] dimension 0 is 5",
    ),
    (
        ShapeError,
        lambda: ops.dynamic_update_slice(array(4), array(1, 1), [index()]),
        r"ranks must be equal; operand f32\[4\], update f32\[1,1\]",
    ),
    (
        ElementTypeError,
        lambda: ops.dynamic_update_slice(array(4), array(2, element_type=S32), [index()]),
        r"operand f32\[4\], update s32\[2\]",
    ),
    (
        ShapeError,
        lambda: ops.transpose(ops.tuple_([array(2)]), (0,)),
        r"operand must be an array, not \(f32\[2\]\)",
    ),
]


@pytest.mark.parametrize(("error", "build", "message"), REFUSED)
def test_refused(
    error: type[TracejitError], build: Callable[[], Instruction], message: str
) -> None:
    with pytest.raises(error, match=message) as caught:
        build()
    assert "test_layout.py:" in str(caught.value)


def test_padding_and_slices_count_their_elements() -> None:
    assert PaddingDimension(1, -2, 3).padded(4) == 1 - 2 + 4 + 3 * 3
    assert PaddingDimension(1, 1, 5).padded(0) == 2
    assert [SliceDimension(1, n, 3).size for n in (1, 2, 4, 5)] == [0, 1, 1, 2]
