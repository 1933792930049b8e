"""Compare and its twelve builder functions."""

from __future__ import annotations

import builtins
import re

import numpy as np
import pytest

from tests.evaluation import evaluated, given
from tracejit import ops
from tracejit.errors import AttributeValueError, ElementTypeError, ShapeError
from tracejit.ops.base import make
from tracejit.ops.comparison import COMPARE, DIRECTIONS

NAN, INF = np.float32(np.nan), np.float32(np.inf)
# -NaN < -inf < -finite < -0 < +0 < +finite < +inf < +NaN
ASCENDING = np.array([-NAN, -INF, -1.5, -0.0, 0.0, 1.5, INF, NAN], np.float32)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_total_order_of_the_page(direction: str) -> None:
    lhs, rhs = np.repeat(ASCENDING, 8), np.tile(ASCENDING, 8)
    places = np.repeat(np.arange(8), 8), np.tile(np.arange(8), 8)
    function = getattr(ops, f"{direction.lower()}_total_order")
    names = {"EQ": "equal", "NE": "not_equal", "GE": "greater_equal", "GT": "greater"}
    names |= {"LE": "less_equal", "LT": "less"}
    expected = getattr(np, names[direction])(*places)
    np.testing.assert_array_equal(evaluated(function, lhs, rhs), expected)
    assert function(given("f32[2]"), given("f32[2]", 1)).attributes["type"] == "TOTALORDER"


def test_nan_compares_unequal_by_default() -> None:
    nan = np.array([np.nan])
    for name, expected in (("eq", False), ("ne", True), ("ge", False), ("lt", False)):
        assert evaluated(getattr(ops, name), nan, nan) == expected


def test_zeros_compare_equal_by_default() -> None:
    assert evaluated(ops.eq, np.array(0.0), np.array(-0.0))
    assert not evaluated(ops.eq_total_order, np.array(0.0), np.array(-0.0))


@pytest.mark.parametrize("element_type", ["s32", "u8", "pred", "s4"])
def test_integers_have_one_order(element_type: str) -> None:
    operand = given(f"{element_type}[2]")
    for name in ("lt_total_order", "lt"):
        assert getattr(ops, name)(operand, operand).attributes == {"direction": "LT", "type": None}


def test_the_usual_type_is_left_out() -> None:
    for element_type, usual in (("f32", "FLOAT"), ("s8", "SIGNED"), ("u8", "UNSIGNED")):
        operand = given(f"{element_type}[2]")
        assert ops.compare(operand, operand, "GT", usual).attributes["type"] is None


def test_broadcasting() -> None:
    matrix, vector = np.array([[1, 5], [3, 2]]), np.array([2, 4])
    greater = evaluated(lambda x, v: ops.gt(x, v, (1,)), matrix, vector)
    np.testing.assert_array_equal(greater, [[False, True], [True, False]])
    assert greater.dtype == np.bool_
    rows = evaluated(lambda x, v: ops.gt_total_order(x, v, (0,)), matrix, vector)
    np.testing.assert_array_equal(rows, [[False, True], [False, False]])


@pytest.mark.parametrize(
    ("lhs", "rhs", "direction", "type", "error", "message"),
    [
        ("f32[2]", "s32[2]", "EQ", None, ElementTypeError, "element types must be equal"),
        ("f32[2]", "f32[2]", "EQUAL", None, AttributeValueError, "must be one of EQ, NE, GE"),
        ("c64[2]", "c64[2]", "LT", None, ElementTypeError, "complex numbers have no order"),
        ("c64[2]", "c64[2]", "EQ", "TOTALORDER", AttributeValueError, "type must be FLOAT for c64"),
        ("s32[2]", "s32[2]", "LT", "FLOAT", AttributeValueError, "type must be SIGNED for s32"),
        ("u8[2]", "u8[2]", "LT", "SIGNED", AttributeValueError, "type must be UNSIGNED for u8"),
        ("pred[]", "pred[]", "LT", "SIGNED", AttributeValueError, "must be UNSIGNED for pred"),
        ("f32[]", "f32[]", "LT", "SIGNED", AttributeValueError, "must be FLOAT or TOTALORDER"),
        ("f32[2,3]", "f32[2]", "LT", None, ShapeError, "different ranks need broadcast_dimensions"),
    ],
)
def test_refused(
    lhs: str,
    rhs: str,
    direction: str,
    type: str | None,
    error: builtins.type[Exception],
    message: str,
) -> None:
    with pytest.raises(error, match=re.escape(message)) as caught:
        ops.compare(given(lhs), given(rhs, 1), direction, type)
    assert str(caught.value).startswith("compare: ")


def test_shape_rule_does_not_broadcast() -> None:
    with pytest.raises(ShapeError, match="compare: shapes must be equal"):
        make(COMPARE, given("f32[2]"), given("f32[]", 1), direction="LT")
