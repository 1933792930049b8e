"""The names that the page of operations prints, taken as it prints them; constants that fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit.builder import XlaBuilder
from tracejit.errors import ShapeError, ValueRangeError
from tracejit.ops import DotDimensionNumbers
from tracejit.shapes import ElementType, Shape

F32, U32 = ElementType.F32, ElementType.U32


def test_arguments() -> None:
    b: Any = XlaBuilder("names")
    x = b.Constant(literal=np.arange(6, dtype=np.float32))
    matrix = b.Reshape(shape=Shape(F32, (2, 3)), operand=x)
    assert matrix.shape == Shape(F32, (2, 3))
    one = b.ConstantLiteral(1.0, F32)
    numbers = DotDimensionNumbers((1,), (1,))
    b.ScaledDot(matrix, one, matrix, one, dimension_number=numbers)
    made = tj.interpret(b.Build())
    np.testing.assert_array_equal(made, np.array([[5, 14], [14, 50]], np.float32))


def test_methods() -> None:
    b: Any = XlaBuilder("names")
    assert b.BuildPartitionId(Shape(U32)).shape == Shape(U32)
    assert b.build_partition_id().shape == Shape(U32)
    with pytest.raises(ShapeError, match=r"partition_id: the shape is u32\[\], not f32\[\]"):
        b.PartitionId(Shape(F32))
    for name in ("RecvWithTokens", "RecvToHost", "SendWithTokens", "SendToHost"):
        assert callable(getattr(b, name))
    with pytest.raises(AttributeError, match="has no method RecvWithTonkens"):
        _ = b.RecvWithTonkens


@pytest.mark.parametrize(
    ("value", "element_type"),
    [(300, "s8"), (1.5, "s32"), (-1, "u8"), (8, "s4"), ([1, 2**40], "s32"), (np.nan, "s16")],
)
def test_constants_that_an_element_type_does_not_hold(value: object, element_type: str) -> None:
    b = XlaBuilder("constants")
    with pytest.raises(ValueRangeError, match=f"constant: {element_type} does not hold"):
        b.constant(value, ElementType(element_type))


@pytest.mark.parametrize(("value", "element_type"), [(127, "s8"), (2.0, "s32"), (-8, "s4")])
def test_constants_that_fit(value: float, element_type: str) -> None:
    b = XlaBuilder("constants")
    assert int(b.constant(value, ElementType(element_type)).attributes["literal"]) == value
