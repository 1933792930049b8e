"""The page "Operation semantics": ops that move elements, and constants."""

from __future__ import annotations

import numpy as np
import pytest

from tests.specification.running import F32, S32, computation, expect, f32, s32
from tracejit.errors import AttributeValueError
from tracejit.shapes import ElementType, Shape, TupleShape

CUBOID = f32(
    [
        [[10, 11, 12], [15, 16, 17]],
        [[20, 21, 22], [25, 26, 27]],
        [[30, 31, 32], [35, 36, 37]],
        [[40, 41, 42], [45, 46, 47]],
    ]
)
ROWS = f32([[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]])
LINE = f32([0, 1, 2, 3, 4])
FLAT = [10, 11, 12, 15, 16, 17, 20, 21, 22, 25, 26, 27]
FLAT += [30, 31, 32, 35, 36, 37, 40, 41, 42, 45, 46, 47]
EIGHT_BY_THREE = [[10, 11, 12], [15, 16, 17], [20, 21, 22], [25, 26, 27]]
EIGHT_BY_THREE += [[30, 31, 32], [35, 36, 37], [40, 41, 42], [45, 46, 47]]


def test_broadcast_adds_dimensions_on_the_left() -> None:
    expect(lambda b, x: b.broadcast(x, (2, 3)), [f32(2.0)], np.full((2, 3), 2, np.float32))
    wanted = np.broadcast_to(LINE, (2, 3, 5)).copy()
    expect(lambda b, x: b.broadcast(x, (2, 3)), [LINE], wanted)


def test_broadcast_in_dim_adds_dimensions_anywhere_and_stretches_those_of_size_one() -> None:
    column = f32([[1], [2]])
    wanted = np.broadcast_to(column[:, None, :], (2, 4, 3)).copy()
    expect(lambda b, x: b.broadcast_in_dim(x, (2, 4, 3), (0, 2)), [column], wanted)


def test_collapse_to_one_dimension() -> None:
    expect(lambda b, v: b.collapse(v, (0, 1, 2)), [CUBOID], f32(FLAT))


def test_collapse_the_two_lower_dimensions() -> None:
    """The page prints this result for {1,2}, against its own rule and against XLA."""
    expect(lambda b, v: b.collapse(v, (0, 1)), [CUBOID], f32(EIGHT_BY_THREE))


def test_collapse_the_two_higher_dimensions() -> None:
    """The page prints this result for {0,1}, against its own rule and against XLA."""
    wanted = [[10, 11, 12, 15, 16, 17], [20, 21, 22, 25, 26, 27]]
    wanted += [[30, 31, 32, 35, 36, 37], [40, 41, 42, 45, 46, 47]]
    expect(lambda b, v: b.collapse(v, (1, 2)), [CUBOID], f32(wanted))


@pytest.mark.parametrize("dimensions", [(1, 0), (0, 2)])
def test_collapse_takes_consecutive_dimensions_in_order(dimensions: tuple[int, int]) -> None:
    with pytest.raises(AttributeValueError, match="must be consecutive and increasing"):
        computation(lambda b, v: b.collapse(v, dimensions), Shape(F32, (4, 2, 3)))


def test_concatenate_vectors() -> None:
    parts = [f32([2, 3]), f32([4, 5]), f32([6, 7])]
    expect(lambda b, *v: b.concatenate(v, 0), parts, f32([2, 3, 4, 5, 6, 7]))
    expect(lambda b, *v: b.concat_in_dim(v, dimension=0), parts, f32([2, 3, 4, 5, 6, 7]))


def test_concatenate_matrices() -> None:
    a, b = f32([[1, 2], [3, 4], [5, 6]]), f32([[7, 8]])
    expect(
        lambda builder, *v: builder.concatenate(v, 0), [a, b], f32([[1, 2], [3, 4], [5, 6], [7, 8]])
    )


def test_dynamic_slice_of_a_vector() -> None:
    expect(lambda b, a, s: b.dynamic_slice(a, s, (2,)), [LINE, s32([2])], f32([2, 3]))


def test_dynamic_slice_of_a_matrix() -> None:
    wanted = f32([[7, 8], [10, 11]])
    expect(lambda b, a, s: b.dynamic_slice(a, s, (2, 2)), [ROWS, s32([2, 1])], wanted)
    starts = [s32(2), s32(1)]
    expect(lambda b, a, i, j: b.dynamic_slice(a, [i, j], (2, 2)), [ROWS, *starts], wanted)


def test_dynamic_slice_stays_inside() -> None:
    expect(lambda b, a, s: b.dynamic_slice(a, s, (2, 2)), [ROWS, s32([9, -5])], ROWS[2:, :2].copy())


def test_dynamic_update_slice_of_a_vector() -> None:
    arrays = [LINE, f32([5, 6]), s32([2])]
    expect(lambda b, a, u, s: b.dynamic_update_slice(a, u, s), arrays, f32([0, 1, 5, 6, 4]))


def test_dynamic_update_slice_of_a_matrix() -> None:
    update = f32([[12, 13], [14, 15], [16, 17]])
    wanted = f32([[0, 1, 2], [3, 12, 13], [6, 14, 15], [9, 16, 17]])
    expect(lambda b, a, u, s: b.dynamic_update_slice(a, u, s), [ROWS, update, s32([1, 1])], wanted)


def test_dynamic_update_slice_stays_inside() -> None:
    arrays = [LINE, f32([5, 6]), s32([4])]
    expect(lambda b, a, u, s: b.dynamic_update_slice(a, u, s), arrays, f32([0, 1, 2, 5, 6]))


@pytest.mark.parametrize(
    ("dimension", "wanted"), [(0, [[i] * 8 for i in range(4)]), (1, [[*range(8)]] * 4)]
)
def test_iota(dimension: int, wanted: list[list[int]]) -> None:
    expect(lambda b: b.iota(Shape(S32, (4, 8)), dimension), [], s32(wanted))
    floating = np.array(wanted, np.float16)
    expect(lambda b: b.iota(Shape(ElementType.F16, (4, 8)), dimension), [], floating)


def test_pad_adds_around_and_between() -> None:
    expect(
        lambda b, x, v: b.pad(x, v, [(1, 2, 0), (0, 1, 2)]),
        [f32([[1, 2], [3, 4]]), f32(0)],
        f32(
            [
                [0, 0, 0, 0, 0],
                [1, 0, 0, 2, 0],
                [3, 0, 0, 4, 0],
                [0, 0, 0, 0, 0],
                [0, 0, 0, 0, 0],
            ]
        ),
    )


def test_pad_removes_after_padding_between() -> None:
    expect(lambda b, x, v: b.pad(x, v, [(-1, -2, 1)]), [LINE, f32(9)], f32([9, 1, 9, 2, 9, 3]))


def test_pad_by_nothing_changes_nothing() -> None:
    expect(lambda b, x, v: b.pad(x, v, [(0, 0, 0)]), [LINE, f32(9)], LINE)


def test_reshape_to_a_vector_and_to_a_matrix() -> None:
    expect(lambda b, v: b.reshape(v, (24,)), [CUBOID], f32(FLAT))
    expect(lambda b, v: b.reshape(v, (8, 3)), [CUBOID], f32(EIGHT_BY_THREE))


def test_reshape_between_one_element_and_a_scalar() -> None:
    expect(lambda b, x: b.reshape(x, ()), [f32([[5]])], f32(5))
    expect(lambda b, x: b.reshape(x, (1, 1)), [f32(5)], f32([[5]]))


def test_reshape_to_an_explicit_shape() -> None:
    expect(lambda b, v: b.reshape(Shape(F32, (24,)), v), [CUBOID], f32(FLAT))


def test_rev_turns_indices_round() -> None:
    expect(lambda b, x: b.rev(x, (0, 1)), [ROWS], ROWS[::-1, ::-1].copy())
    expect(lambda b, x: b.rev(x, (1,)), [ROWS], ROWS[:, ::-1].copy())


def test_slice_of_a_vector() -> None:
    expect(lambda b, a: b.slice(a, (2,), (4,)), [LINE], f32([2, 3]))


def test_slice_of_a_matrix() -> None:
    expect(lambda b, a: b.slice(a, (2, 1), (4, 3)), [ROWS], f32([[7, 8], [10, 11]]))


def test_slice_takes_every_strideth_element() -> None:
    expect(lambda b, a: b.slice(a, (0,), (5,), (2,)), [LINE], f32([0, 2, 4]))


def test_transpose_permutes_dimensions() -> None:
    permutation = (2, 0, 1)
    made = computation(lambda b, v: b.transpose(v, permutation), Shape(F32, (4, 2, 3)))
    given, result = (4, 2, 3), made.root.array_shape.dimensions
    assert all(given[permutation[i]] == result[i] for i in range(3))
    wanted = np.ascontiguousarray(CUBOID.transpose(permutation))
    expect(lambda b, v: b.transpose(v, permutation), [CUBOID], wanted)


def test_tuples_are_made_and_taken_apart() -> None:
    v, s = np.arange(10, dtype=np.float32), s32(5)
    made = computation(lambda b, v, s: b.tuple([v, s]), Shape(F32, (10,)), Shape(S32))
    assert made.root.shape == TupleShape((Shape(F32, (10,)), Shape(S32)))
    expect(lambda b, v, s: b.tuple([v, s]), [v, s], (v, s))
    expect(lambda b, v, s: b.get_tuple_element(b.tuple([v, s]), 1), [v, s], s)


def test_constant_is_its_literal() -> None:
    expect(lambda b: b.constant(CUBOID), [], CUBOID)
    expect(lambda b: b.constant_literal(5, S32), [], s32(5))
