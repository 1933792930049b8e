"""The page "Shapes and layout": orders of dimensions, padding, and where each element lies."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tracejit as tj
from tests.judge import parse_xla
from tracejit.errors import ArgumentError, AttributeValueError, DimensionError, ShapeError
from tracejit.hlo.shapes import parse_shape, shape_text
from tracejit.layouts import from_buffer, to_buffer
from tracejit.shapes import (
    TOKEN,
    ElementType,
    Layout,
    Shape,
    TupleShape,
    canonical_dimension,
    linear_index,
    multi_index,
    same_layout,
)

F32 = ElementType.F32
LETTERS = np.array([list("abc"), list("def")])
COLUMNS, ROWS = Layout((0, 1)), Layout((1, 0))


def laid_out(layout: Layout) -> str:
    return " ".join(to_buffer(LETTERS, layout))


def test_dimensions_are_listed_by_number() -> None:
    shape = Shape(F32, (3, 4, 5))
    assert shape.rank == 3
    assert shape.dimensions == (3, 4, 5)
    assert str(shape) == "f32[3,4,5]"


def test_negative_dimension_numbers_count_from_the_back() -> None:
    sizes = Shape(F32, (3, 4, 5)).dimensions
    assert [sizes[canonical_dimension(d, 3, "op")] for d in (-1, -2, -3)] == [5, 4, 3]
    for outside in (3, -4):
        with pytest.raises(DimensionError, match=f"op: dimension {outside} is out of range"):
            canonical_dimension(outside, 3, "op")


def test_column_major_lies_column_by_column() -> None:
    assert laid_out(COLUMNS) == "a d b e c f"


def test_row_major_lies_row_by_row() -> None:
    assert laid_out(ROWS) == "a b c d e f"


def test_the_default_is_row_major() -> None:
    shape = Shape(F32, (2, 3))
    assert shape.explicit_layout == ROWS == Layout.row_major(2)
    assert Layout.column_major(3).minor_to_major == (0, 1, 2)
    assert same_layout(shape, Shape(F32, (2, 3), ROWS))
    assert not same_layout(shape, Shape(F32, (2, 3), COLUMNS))


def test_padding_widens_each_dimension() -> None:
    padded = Layout((0, 1), padded_dimensions=(3, 5), padding_value=0)
    numbers = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    # a d 0 b e 0 c f 0 0 0 0 0 0 0
    wanted = [1, 4, 0, 2, 5, 0, 3, 6, 0, 0, 0, 0, 0, 0, 0]
    assert to_buffer(numbers, padded).tolist() == wanted
    # The same as this array without padding.
    whole = np.array([[1, 2, 3, 0, 0], [4, 5, 6, 0, 0], [0, 0, 0, 0, 0]], np.float32)
    assert to_buffer(whole, COLUMNS).tolist() == wanted


def test_padding_has_one_size_per_dimension_and_holds_the_array() -> None:
    with pytest.raises(DimensionError, match=r"padded_dimensions \(3,\) must have one size"):
        Layout((0, 1), padded_dimensions=(3,))
    with pytest.raises(ShapeError, match=r"\(3, 2\) must not be smaller than the dimensions"):
        Shape(F32, (2, 3), Layout((0, 1), padded_dimensions=(3, 2)))


def test_padding_holds_the_padding_value() -> None:
    padded = Layout((1, 0), padded_dimensions=(2, 4), padding_value=-1)
    numbers = np.array([[1, 2, 3], [4, 5, 6]], np.int8)
    assert to_buffer(numbers, padded).tolist() == [1, 2, 3, -1, 4, 5, 6, -1]


@pytest.mark.parametrize(
    "layout",
    [
        Layout((2, 1, 0)),
        Layout((0, 1, 2)),
        Layout((1, 2, 0)),
        Layout((2, 0, 1), padded_dimensions=(2, 5, 4)),
        Layout((0, 2, 1), padded_dimensions=(4, 3, 6)),
        Layout((2, 1, 0), tiles=((2, 3),)),
        Layout((1, 0, 2), tiles=((2, 2),)),
        Layout((2, 1, 0), tiles=((2, 4), (2, 1))),
        Layout((2, 1, 0), tiles=((2, 2, 3),)),
        Layout((2, 1, 0), padded_dimensions=(2, 4, 5), tiles=((4,),), tail_padding_alignment=128),
    ],
    ids=str,
)
def test_indices_of_one_kind_and_the_other_match(layout: Layout) -> None:
    shape = Shape(F32, (2, 3, 4), layout)
    places = [linear_index(index, shape) for index in np.ndindex(2, 3, 4)]
    size = layout.buffer_size(shape.dimensions)
    assert len(set(places)) == 24
    assert max(places) < size
    for index, place in zip(np.ndindex(2, 3, 4), places, strict=True):
        assert multi_index(place, shape) == index
    numbers = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    buffer = to_buffer(numbers, layout)
    assert buffer.size == size
    assert buffer[places].tolist() == numbers.reshape(-1).tolist()
    np.testing.assert_array_equal(from_buffer(buffer, (2, 3, 4), layout), numbers)
    whole = math.prod(layout.physical_dimensions(shape.dimensions))
    for place in set(range(whole)) - set(places):
        index = multi_index(place, shape)
        assert any(i >= s for i, s in zip(index, shape.dimensions, strict=True))


@given(st.data())
def test_indices_match_under_any_layout(data: st.DataObject) -> None:
    dimensions = tuple(data.draw(st.lists(st.integers(0, 4), max_size=4)))
    rank = len(dimensions)
    order = tuple(data.draw(st.permutations(range(rank))))
    padded = tuple(size + data.draw(st.integers(0, 2)) for size in dimensions)
    tiles = data.draw(st.lists(st.lists(st.integers(1, 3), min_size=1, max_size=3), max_size=2))
    alignment = data.draw(st.sampled_from([1, 1, 8]))
    layout = Layout(order, padded, -1, tuple(map(tuple, tiles)), alignment)
    shape = Shape(F32, dimensions, layout)
    numbers = np.arange(shape.size, dtype=np.int32).reshape(dimensions)
    buffer = to_buffer(numbers, layout)
    assert buffer.size == layout.buffer_size(dimensions)
    assert np.count_nonzero(buffer >= 0) == shape.size
    for index in np.ndindex(dimensions):
        place = linear_index(index, shape)
        assert buffer[place] == numbers[index]
        assert multi_index(place, shape) == index
    np.testing.assert_array_equal(from_buffer(buffer, dimensions, layout), numbers)


def test_an_element_of_a_tiled_array() -> None:
    """f32[3,5]{1,0:T(2,2)} is 2 x 3 tiles; (2,3) is in tile (1,1), at (0,1): 4 tiles and one on."""
    assert Layout((1, 0), tiles=((2, 2),)).linear_index((2, 3), (3, 5)) == 17


def test_tiles_lie_together() -> None:
    numbers = np.arange(1, 16, dtype=np.int32).reshape(3, 5)
    buffer = to_buffer(numbers, Layout((1, 0), tiles=((2, 4),)))
    assert buffer.reshape(2, 2, 2, 4).tolist() == [
        [[[1, 2, 3, 4], [6, 7, 8, 9]], [[5, 0, 0, 0], [10, 0, 0, 0]]],
        [[[11, 12, 13, 14], [0, 0, 0, 0]], [[15, 0, 0, 0], [0, 0, 0, 0]]],
    ]


def test_a_tile_may_have_more_sizes_than_the_array_has_dimensions() -> None:
    """As in dumps for TPU, where f32[]{:T(128)} takes a tile of its own."""
    scalar = Layout((), tiles=((128,),))
    assert scalar.buffer_size(()) == 128
    assert scalar.linear_index((), ()) == 0
    assert Layout((0,), tiles=((2, 4),)).physical_dimensions((5,)) == (1, 2, 2, 4)


def test_indices_outside_are_refused() -> None:
    shape = Shape(F32, (2, 3))
    for index in [(2, 0), (0, -1), (0,)]:
        with pytest.raises(DimensionError, match=r"is not in \(2, 3\)"):
            linear_index(index, shape)
    for place in (-1, 6):
        with pytest.raises(DimensionError, match="is not in the buffer"):
            multi_index(place, shape)


def test_a_layout_is_an_order_of_the_arrays_dimensions() -> None:
    for order in [(0, 0), (1, 2), (0, -1)]:
        with pytest.raises(DimensionError, match="must be a permutation"):
            Layout(order)
    with pytest.raises(ShapeError, match="one number for each of the dimensions"):
        Shape(F32, (2, 3), Layout((0,)))
    with pytest.raises(AttributeValueError, match="tiles"):
        Layout((1, 0), tiles=((0, 2),))
    with pytest.raises(AttributeValueError, match="tail_padding_alignment"):
        Layout((1, 0), tail_padding_alignment=0)


def test_shapes_are_equal_whatever_their_layout() -> None:
    column_major = Shape(F32, (2, 3), COLUMNS)
    assert column_major == Shape(F32, (2, 3))
    assert hash(column_major) == hash(Shape(F32, (2, 3)))
    assert column_major != Shape(F32, (3, 2), COLUMNS)
    assert TupleShape((column_major,)) == TupleShape((Shape(F32, (2, 3)),))
    assert not same_layout(TupleShape((column_major,)), TupleShape((Shape(F32, (2, 3)),)))


@pytest.mark.parametrize(
    "text",
    [
        "f32[2,3]{1,0}",
        "f32[2,3]{0,1}",
        "s32[]",
        "pred[0,3]{0,1}",
        "f32[2,3]{1,0:T(8,128)}",
        "bf16[2,3]{1,0:T(8,128)(2,1)S(1)}",
        "s4[2,3]{1,0:E(4)}",
        "f32[2,3]{1,0:T(8,128)L(128)E(32)S(2)}",
        "(f32[2,3]{0,1}, token[], (s32[2]{0:S(5)}, ()))",
    ],
)
def test_text_is_xlas(text: str) -> None:
    assert shape_text(parse_shape(text)) == text


@pytest.mark.parametrize(
    "properties", ["D(D,C)", "#(s32)*(s16)", "M(128)", "SC(1:100,200)", "T(*,128)"]
)
def test_what_values_and_memory_do_not_depend_on_is_read_past(properties: str) -> None:
    assert parse_shape(f"f32[2,3]{{1,0:{properties}}}") == Shape(F32, (2, 3))


@pytest.mark.parametrize(
    "text", ["f32[2,3]{1}", "f32[2,3]{1,1}", "f32[2]{0:Q(1)}", "f32[2]{0:T(0)}", "f32[2]{0:T(a)}"]
)
def test_malformed_layouts_are_refused(text: str) -> None:
    with pytest.raises(tj.errors.HloParseError, match="line 1, column"):
        parse_shape(text)


@pytest.mark.parametrize("layout", ["{0,1}", "{1,0:T(8,128)(2,1)L(128)E(32)S(2)}", "{0,1:S(3)}"])
def test_xla_prints_layouts_as_we_do(layout: str) -> None:
    header = f"HloModule m, entry_computation_layout={{(f32[2,3]{{0,1}})->f32[2,3]{layout}}}"
    body = f"p = f32[2,3]{{0,1}} parameter(0)\n ROOT n = f32[2,3]{layout} negate(p)"
    theirs = parse_xla(f"{header}\n\nENTRY e {{\n {body}\n}}\n")
    ours = str(tj.hlo.parse(theirs))
    assert header in theirs
    assert header in ours
    assert f"f32[2,3]{layout} negate(" in ours
    assert header in parse_xla(ours)


def test_tokens_and_tuples_have_no_layout_of_their_own() -> None:
    assert str(TupleShape((Shape(F32, (2,)), TOKEN))) == "(f32[2], token[])"
    assert parse_shape("token[]") == TOKEN


def test_shapes_may_be_given_as_dtypes_and_lists() -> None:
    shape = Shape(np.float32, [2, 3])  # type: ignore[arg-type]
    assert shape == Shape(F32, (2, 3))
    assert hash(shape) == hash(Shape(F32, (2, 3)))
    with pytest.raises(ArgumentError, match="names no element type"):
        Shape("no type", (2,))  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="cannot be traced"):
        Shape(np.dtype("U3"), (2,))  # type: ignore[arg-type]
