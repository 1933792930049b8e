"""Constants and structure: the specification's examples, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tests.ops.evaluation import evaluated
from tracejit import ops
from tracejit.errors import (
    ArgumentError,
    AttributeValueError,
    DimensionError,
    ElementTypeError,
    ShapeError,
    ValueRangeError,
)
from tracejit.ops.base import make
from tracejit.ops.constants import GET_TUPLE_ELEMENT
from tracejit.shapes import ElementType, Shape, TupleShape

F32, S32 = ElementType.F32, ElementType.S32


@pytest.mark.parametrize(
    ("value", "element_type"),
    [
        *((300, "s8"), (1.5, "s32"), (-1, "u8"), (8, "s4"), ([1, 2**40], "s32"), (np.nan, "s16")),
        *((10**30, "s64"), (2, "pred"), (0.5, "pred"), (1j, "f32"), (1 + 1j, "s32")),
        (np.array([1, 300]), "u8"),
    ],
)
def test_constants_that_an_element_type_does_not_hold(value: object, element_type: str) -> None:
    with pytest.raises(ValueRangeError, match=f"constant: {element_type} does not hold"):
        ops.constant(value, ElementType(element_type))


@pytest.mark.parametrize(
    ("value", "element_type", "literal"),
    [(127, "s8", 127), (2.0, "s32", 2), (-8, "s4", -8), (1, "pred", True), (1 + 0j, "f32", 1)],
)
def test_constants_that_fit(value: object, element_type: str, literal: object) -> None:
    made = ops.constant(value, ElementType(element_type)).attributes["literal"]
    assert made == literal
    assert made.dtype == ElementType(element_type).dtype


def test_text_is_no_constant() -> None:
    with pytest.raises(ArgumentError):
        ops.constant("a", S32)


def test_iota_along_either_dimension() -> None:
    shape = Shape(S32, (4, 8))
    assert_array_equal(evaluated(lambda: ops.iota(shape, 0)), [[0] * 8, [1] * 8, [2] * 8, [3] * 8])
    assert_array_equal(evaluated(lambda: ops.iota(shape, 1)), [list(range(8))] * 4)


def test_iota_of_a_floating_type_is_the_integers_converted() -> None:
    made = evaluated(lambda: ops.iota(Shape(ElementType.F16, (3000,))))
    assert_array_equal(made, np.arange(3000).astype(np.float16))


def test_iota_of_a_narrow_type_wraps() -> None:
    made = evaluated(lambda: ops.iota(Shape(ElementType.U8, (300,))))
    assert_array_equal(made, np.arange(300) % 256)


@pytest.mark.parametrize("dimension", [2, -3])
def test_iota_refuses_a_dimension_it_lacks(dimension: int) -> None:
    with pytest.raises(DimensionError, match="out of range for rank 2"):
        ops.iota(Shape(F32, (2, 3)), dimension)


def test_iota_refuses_scalars_and_pred() -> None:
    with pytest.raises(DimensionError, match="out of range for rank 0"):
        ops.iota(Shape(F32))
    with pytest.raises(ElementTypeError, match=r"shape pred\[2\] has element type pred"):
        ops.iota(Shape(ElementType.PRED, (2,)))


def test_tuple_and_its_elements() -> None:
    v = ops.constant(np.arange(10, dtype=np.float32))
    s = ops.constant(np.int32(5))
    whole = ops.tuple_([v, s])
    assert whole.shape == TupleShape((Shape(F32, (10,)), Shape(S32)))
    assert ops.get_tuple_element(whole, 1) is s
    assert make(GET_TUPLE_ELEMENT, whole, index=1).shape == Shape(S32)
    assert ops.elements_of(whole) == (v, s)
    assert ops.elements_of(v) == (v,)


def test_get_tuple_element_refuses() -> None:
    whole = ops.tuple_([ops.constant(1.0)])
    for index in (1, -1):
        with pytest.raises(AttributeValueError, match=rf"index {index} is out of range for \(f64"):
            ops.get_tuple_element(whole, index)
    with pytest.raises(ShapeError, match="operand must be a tuple"):
        ops.get_tuple_element(ops.constant(1.0), 0)


def test_constant_is_a_copy_that_nobody_writes() -> None:
    values = np.array([1.0, 2.0])
    literal = ops.constant(values).attributes["literal"]
    values[0] = 9
    assert_array_equal(literal, [1, 2])
    with pytest.raises(ValueError, match="read-only"):
        literal[0] = 9


@pytest.mark.parametrize(
    "values",
    [
        np.arange(6.0).reshape(2, 3).T,
        np.arange(6.0)[::-2],
        np.broadcast_to(1.0, (2, 3)),
        np.arange(3, dtype=">f8"),
    ],
    ids=["transposed", "reversed", "zero strides", "byte-swapped"],
)
def test_constant_of_an_odd_array(values: np.ndarray) -> None:
    literal = ops.constant(values).attributes["literal"]
    assert_array_equal(literal, values)
    assert literal.flags.c_contiguous
    assert literal.dtype == np.float64


def test_constant_of_another_element_type_converts() -> None:
    made = ops.constant([1.5, 2.5], ElementType.BF16)
    assert made.shape == Shape(ElementType.BF16, (2,))


@pytest.mark.parametrize(
    "values",
    [np.array(["a"]), np.array([object()]), np.array([0], "datetime64[s]")],
    ids=["string", "object", "datetime"],
)
def test_constant_refuses_dtypes_that_xla_lacks(values: np.ndarray) -> None:
    with pytest.raises(ArgumentError, match="cannot be traced"):
        ops.constant(values)


def test_parameter_refuses_a_negative_number() -> None:
    with pytest.raises(AttributeValueError, match="number -1 is negative"):
        ops.parameter(-1, Shape(F32))
