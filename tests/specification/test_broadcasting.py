"""The page "Broadcasting semantics": strict in the builder, every example with its numbers."""

from __future__ import annotations

import numpy as np
import pytest

from tests.specification.running import F32, computation, expect, f32
from tracejit.errors import AttributeValueError, ShapeError
from tracejit.shapes import Shape

MATRIX = f32([[1, 2, 3], [4, 5, 6]])
VECTOR = f32([7, 8, 9])


def shape_of_sum(
    lhs: tuple[int, ...], rhs: tuple[int, ...], dimensions: tuple[int, ...] | None = None
) -> tuple[int, ...]:
    made = computation(lambda b, x, y: b.add(x, y, dimensions), Shape(F32, lhs), Shape(F32, rhs))
    return made.root.array_shape.dimensions


def test_a_vector_is_added_to_every_row() -> None:
    wanted = f32([[8, 10, 12], [11, 13, 15]])
    expect(lambda b, x, v: b.add(x, v, broadcast_dimensions=(1,)), [MATRIX, VECTOR], wanted)
    expect(lambda b, x, v: b.add(v, x, broadcast_dimensions=(1,)), [MATRIX, VECTOR], wanted)


def test_a_vector_needs_its_dimension_named() -> None:
    with pytest.raises(ShapeError, match=r"add: .*broadcast_dimensions; lhs f32\[2,3\], rhs f32"):
        shape_of_sum((2, 3), (3,))


def test_a_scalar_meets_every_element() -> None:
    expect(lambda b, x, s: b.add(x, s), [MATRIX, f32(7)], f32([[8, 9, 10], [11, 12, 13]]))


@pytest.mark.parametrize(
    ("dimension", "wanted"),
    [(1, [[7, 8, 9], [7, 8, 9], [7, 8, 9]]), (0, [[7, 7, 7], [8, 8, 8], [9, 9, 9]])],
)
def test_a_vector_along_either_dimension_of_a_square(
    dimension: int, wanted: list[list[int]]
) -> None:
    zeros = np.zeros((3, 3), np.float32)
    expect(
        lambda b, x, v: b.add(x, v, broadcast_dimensions=(dimension,)), [zeros, VECTOR], f32(wanted)
    )


def test_a_matrix_matches_two_dimensions_of_a_cuboid() -> None:
    cuboid, matrix = np.arange(24, dtype=np.float32).reshape(2, 3, 4), f32(np.eye(3, 4))
    expect(lambda b, x, m: b.add(x, m, (1, 2)), [cuboid, matrix], cuboid + matrix)


@pytest.mark.parametrize("dimension", range(4))
def test_a_vector_matches_any_dimension(dimension: int) -> None:
    sizes = (2, 3, 4, 5)
    assert shape_of_sum(sizes, (sizes[dimension],), (dimension,)) == sizes


@pytest.mark.parametrize("dimensions", [(2, 3), (1, 2), (0, 3)])
def test_a_matrix_matches_a_pair_of_dimensions(dimensions: tuple[int, int]) -> None:
    sizes = (2, 3, 4, 5)
    assert shape_of_sum(sizes, tuple(sizes[d] for d in dimensions), dimensions) == sizes


@pytest.mark.parametrize("dimensions", [(2, 1), (1, 1), (2, 2)])
def test_broadcast_dimensions_increase_strictly(dimensions: tuple[int, int]) -> None:
    with pytest.raises(AttributeValueError, match="must be strictly increasing"):
        shape_of_sum((2, 3, 3, 5), (3, 3), dimensions)


def test_a_matched_dimension_must_have_the_vectors_size() -> None:
    with pytest.raises(ShapeError, match=r"lhs f32\[2,3\] dimension 0 is 2, rhs f32\[3\]"):
        shape_of_sum((2, 3), (3,), (0,))


def test_broadcast_dimensions_are_below_the_higher_rank_and_as_many_as_the_lower() -> None:
    with pytest.raises(AttributeValueError, match="below rank 2"):
        shape_of_sum((2, 3), (3,), (2,))
    with pytest.raises(AttributeValueError, match="one dimension for each of the lower-rank"):
        shape_of_sum((2, 3), (3,), (0, 1))


@pytest.mark.parametrize(
    ("lhs", "rhs", "wanted"),
    [
        ((2, 1), (2, 3), (2, 3)),
        ((1, 2, 5), (7, 2, 5), (7, 2, 5)),
        ((7, 2, 5), (7, 1, 5), (7, 2, 5)),
        ((2, 1), (1, 3), (2, 3)),
    ],
)
def test_degenerate_dimensions_stretch(
    lhs: tuple[int, ...], rhs: tuple[int, ...], wanted: tuple[int, ...]
) -> None:
    assert shape_of_sum(lhs, rhs) == wanted
    x, y = np.ones(lhs, np.float32), np.full(rhs, 2, np.float32)
    expect(lambda b, x, y: b.add(x, y), [x, y], np.full(wanted, 3, np.float32))


def test_other_sizes_are_incompatible() -> None:
    with pytest.raises(ShapeError, match=r"must be equal or 1; lhs f32\[7,2,5\] dimension 2 is 5"):
        shape_of_sum((7, 2, 5), (7, 2, 6))


def test_both_compose_for_a_vector_and_a_row() -> None:
    wanted = f32([[6, 7], [7, 8], [8, 9], [9, 10]])
    expect(lambda b, v, m: b.add(v, m, (0,)), [f32([1, 2, 3, 4]), f32([[5, 6]])], wanted)


def test_both_compose_for_a_row_and_a_cuboid() -> None:
    row, cuboid = f32([[5, 6]]), np.arange(12, dtype=np.float32).reshape(4, 3, 1)
    expect(lambda b, r, c: b.add(r, c, (1, 2)), [row, cuboid], row[None] + cuboid)
