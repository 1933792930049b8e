"""Elementwise ops of two and three operands: the pages' worked examples, and what is refused."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.evaluation import evaluated, given
from tracejit import ops
from tracejit.errors import AttributeValueError, ElementTypeError, ShapeError
from tracejit.graph import Instruction
from tracejit.ops.base import make
from tracejit.ops.elementwise import ADD, SELECT, broadcast_operands
from tracejit.shapes import ElementType, Shape, TupleShape

S32 = np.int32


def test_clamp_example() -> None:
    operand = np.array([-1, 5, 9], S32)
    clamped = evaluated(ops.clamp, np.array(0, S32), operand, np.array(6, S32))
    np.testing.assert_array_equal(clamped, [0, 5, 6])


def test_clamp_is_min_of_max() -> None:
    low, operand, high = (np.array(x, S32) for x in ([3, 3, 3], [0, 2, 9], [1, 1, 1]))
    np.testing.assert_array_equal(evaluated(ops.clamp, low, operand, high), [1, 1, 1])


@pytest.mark.parametrize(
    ("pred", "expected"),
    [([True, False, False, True], [1, 200, 300, 4]), (True, [1, 2, 3, 4]), (False, None)],
)
def test_select_examples(pred: object, expected: list[int] | None) -> None:
    v1, v2 = np.array([1, 2, 3, 4], S32), np.array([100, 200, 300, 400], S32)
    selected = evaluated(ops.select, np.array(pred), v1, v2)
    np.testing.assert_array_equal(selected, v2 if expected is None else expected)


def test_select_between_tuples() -> None:
    def build(pred: Instruction, x: Instruction, y: Instruction) -> Instruction:
        nested = [ops.tuple_([a, ops.tuple_([b])]) for a, b in ((x, y), (y, x))]
        return ops.select(pred, *nested)

    x, y = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    for pred, expected in ((True, (x, y)), (False, (y, x))):
        first, (second,) = evaluated(build, np.array(pred), x, y)
        np.testing.assert_array_equal((first, second), expected)


def test_vector_added_to_each_row() -> None:
    matrix, vector = np.array([[1, 2, 3], [4, 5, 6]], S32), np.array([7, 8, 9], S32)
    total = evaluated(lambda x, v: ops.add(x, v, (1,)), matrix, vector)
    np.testing.assert_array_equal(total, [[8, 10, 12], [11, 13, 15]])


def test_scalar_added_to_all() -> None:
    matrix, seven = np.array([[1, 2, 3], [4, 5, 6]], S32), np.array(7, S32)
    expected = [[8, 9, 10], [11, 12, 13]]
    np.testing.assert_array_equal(evaluated(ops.add, matrix, seven), expected)
    np.testing.assert_array_equal(evaluated(ops.add, seven, matrix), expected)


@pytest.mark.parametrize(
    ("dimension", "expected"),
    [(1, [[7, 8, 9], [7, 8, 9], [7, 8, 9]]), (0, [[7, 7, 7], [8, 8, 8], [9, 9, 9]])],
)
def test_vector_along_either_dimension(dimension: int, expected: list[list[int]]) -> None:
    zeros, vector = np.zeros((3, 3), S32), np.array([7, 8, 9], S32)
    total = evaluated(lambda x, v: ops.add(x, v, (dimension,)), zeros, vector)
    np.testing.assert_array_equal(total, expected)


@pytest.mark.parametrize(
    ("lhs", "rhs", "broadcast_dimensions", "result"),
    [
        ("f32[2,1]", "f32[2,3]", None, (2, 3)),
        ("f32[1,2,5]", "f32[7,2,5]", None, (7, 2, 5)),
        ("f32[7,2,5]", "f32[7,1,5]", None, (7, 2, 5)),
        ("f32[2,1]", "f32[1,3]", None, (2, 3)),
        ("f32[2,3,4]", "f32[3,4]", (1, 2), (2, 3, 4)),
        ("f32[2,3,4,5]", "f32[3,5]", (1, 3), (2, 3, 4, 5)),
        ("f32[4]", "f32[1,2]", (0,), (4, 2)),
        ("f32[1,2]", "f32[4,3,1]", (1, 2), (4, 3, 2)),
        ("f32[]", "f32[]", None, ()),
        ("f32[0,3]", "f32[]", None, (0, 3)),
        ("f32[0,1]", "f32[1,3]", None, (0, 3)),
        ("f32[2,3]", "f32[2,3]", (0, 1), (2, 3)),
    ],
)
def test_broadcasting(
    lhs: str, rhs: str, broadcast_dimensions: tuple[int, ...] | None, result: tuple[int, ...]
) -> None:
    left, right = given(lhs), given(rhs, 1)
    assert ops.add(left, right, broadcast_dimensions).array_shape.dimensions == result
    assert ops.add(right, left, broadcast_dimensions).array_shape.dimensions == result


def test_both_kinds_of_broadcasting_in_one_op() -> None:
    vector, matrix = np.array([1, 2, 3, 4], S32), np.array([[5, 6]], S32)
    total = evaluated(lambda v, m: ops.add(v, m, (0,)), vector, matrix)
    np.testing.assert_array_equal(total, [[6, 7], [7, 8], [8, 9], [9, 10]])


@pytest.mark.parametrize(
    ("lhs", "rhs", "broadcast_dimensions", "error", "message"),
    [
        (
            "f32[2,3]",
            "f32[3]",
            None,
            ShapeError,
            "add: operands of different ranks need broadcast_dimensions; lhs f32[2,3], rhs f32[3]",
        ),
        ("f32[7,2,5]", "f32[7,2,6]", None, ShapeError, "dimension 2 is 5, rhs f32[7,2,6]"),
        (
            "f32[2]",
            "f32[4,3]",
            (1,),
            ShapeError,
            "add: dimensions must be equal or 1; lhs f32[2] dimension 0 is 2, "
            "rhs f32[4,3] dimension 1 is 3",
        ),
        ("f32[2,3]", "f32[2]", (1,), ShapeError, "dimension 1 is 3, rhs f32[2] dimension 0 is 2"),
        ("f32[2,3,4]", "f32[4,3]", (2, 1), AttributeValueError, "must be strictly increasing"),
        ("f32[2,3,4]", "f32[3,3]", (1, 1), AttributeValueError, "must be strictly increasing"),
        ("f32[2,3]", "f32[3]", (2,), AttributeValueError, "below rank 2"),
        ("f32[2,3]", "f32[3]", (-1,), AttributeValueError, "below rank 2"),
        ("f32[2,3]", "f32[3]", (0, 1), AttributeValueError, "must name one dimension for each"),
        (
            "f32[2]",
            "f64[2]",
            None,
            ElementTypeError,
            "add: element types must be equal; lhs f32[2], rhs f64[2]",
        ),
    ],
)
def test_broadcasting_refuses(
    lhs: str,
    rhs: str,
    broadcast_dimensions: tuple[int, ...] | None,
    error: type[Exception],
    message: str,
) -> None:
    with pytest.raises(error, match=re.escape(message)) as caught:
        ops.add(given(lhs), given(rhs, 1), broadcast_dimensions)
    assert str(caught.value).startswith("add: ")
    assert "test_elementwise.py:" in str(caught.value)


def test_operands_of_one_shape_stay_as_they_are() -> None:
    lhs, rhs = given("f32[2,3]"), given("f32[2,3]", 1)
    assert broadcast_operands("add", lhs, rhs) == (lhs, rhs)
    assert ops.add(lhs, rhs).operands == (lhs, rhs)


def test_shape_rule_does_not_broadcast() -> None:
    with pytest.raises(ShapeError, match=r"add: shapes must be equal; lhs f32\[2,3\], rhs f32\[\]"):
        make(ADD, given("f32[2,3]"), given("f32[]", 1))


@pytest.mark.parametrize(
    ("name", "element_type"),
    [
        ("sub", "pred"),
        ("div", "pred"),
        ("rem", "pred"),
        ("rem", "c64"),
        ("pow", "pred"),
        ("atan2", "s32"),
        ("complex", "f16"),
        ("complex", "c64"),
        ("and_", "f32"),
        ("or_", "bf16"),
        ("xor", "c128"),
        ("shift_left", "pred"),
        ("shift_right_logical", "f32"),
        ("shift_right_arithmetic", "f64"),
    ],
)
def test_element_types_refused(name: str, element_type: str) -> None:
    operands = [given(f"{element_type}[2]", i) for i in range(2)]
    function = name.rstrip("_")
    with pytest.raises(ElementTypeError, match=rf"^{function}: lhs {element_type}\[2\] has"):
        getattr(ops, name)(*operands)


def test_complex_makes_the_wider_type() -> None:
    assert str(ops.complex(given("f32[2]"), given("f32[2]", 1)).shape) == "c64[2]"
    assert str(ops.complex(given("f64[2]"), given("f64[2]", 1)).shape) == "c128[2]"


@pytest.mark.parametrize(
    ("shapes", "error", "message"),
    [
        (("f32[2]", "f32[3]", "f32[3]"), ShapeError, "clamp: min must be a scalar or have"),
        (("f32[3]", "f32[3]", "f32[1]"), ShapeError, "clamp: max must be a scalar or have"),
        (("f32[3]", "f32[]", "f32[]"), ShapeError, "clamp: min must be a scalar or have"),
        (("f32[]", "f64[3]", "f64[]"), ElementTypeError, "clamp: element types must be equal"),
        (("c64[]", "c64[3]", "c64[]"), ElementTypeError, "clamp: operand c64[3] has element type"),
    ],
)
def test_clamp_refuses(shapes: tuple[str, ...], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        ops.clamp(*[given(shape, i) for i, shape in enumerate(shapes)])


@pytest.mark.parametrize(
    ("shapes", "error", "message"),
    [
        (("f32[2]", "f32[2]", "f32[2]"), ElementTypeError, "select: pred f32[2] has element type"),
        (("pred[2]", "f32[2]", "f32[3]"), ShapeError, "select: shapes must be equal"),
        (("pred[2]", "f32[2]", "f64[2]"), ElementTypeError, "select: element types must be equal"),
        (("pred[3]", "f32[2]", "f32[2]"), ShapeError, "select: pred must be a scalar or have"),
        (("pred[1]", "f32[2]", "f32[2]"), ShapeError, "select: pred must be a scalar or have"),
    ],
)
def test_select_refuses(shapes: tuple[str, ...], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        ops.select(*[given(shape, i) for i, shape in enumerate(shapes)])


def test_select_between_tuples_refuses() -> None:
    pair = ops.tuple_([given("f32[2]"), given("f32[2]", 1)])
    single = ops.tuple_([given("f32[2]")])
    with pytest.raises(ShapeError, match="select: between tuples pred must be a scalar"):
        ops.select(given("pred[2]", 2), pair, pair)
    with pytest.raises(ShapeError, match="select: tuples must have one shape; on_true"):
        ops.select(given("pred[]", 2), pair, single)
    with pytest.raises(ShapeError, match="select: on_false must be an array"):
        ops.select(given("pred[]", 2), given("f32[2]"), single)


def test_scalars_that_hlo_leaves_alone() -> None:
    """HLO takes a scalar pred and scalar bounds as they are; the builder functions repeat them."""
    pred, x = given("pred[]"), given("f32[3]", 1)
    assert make(SELECT, pred, x, x).shape == Shape(ElementType.F32, (3,))
    assert ops.select(pred, x, x).operands[0].shape == Shape(ElementType.PRED, (3,))


def test_tuples_are_no_operands() -> None:
    pair = ops.tuple_([given("f32[2]"), given("f32[2]", 1)])
    assert isinstance(pair.shape, TupleShape)
    with pytest.raises(ShapeError, match="add: lhs must be an array, not"):
        ops.add(pair, pair)
