"""Elementwise ops of one operand: result types, composed functions, and what is refused."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from tests.evaluation import evaluated, given
from tracejit import ops
from tracejit.attributes import ResultAccuracy
from tracejit.errors import ArgumentError, AttributeValueError, ElementTypeError, ShapeError
from tracejit.ops.base import make
from tracejit.ops.elementwise_unary import ABS, EXP
from tracejit.shapes import ElementType

FLOATING = ("f8e4m3fn", "f8e5m2", "bf16", "f16", "f32", "f64")


@pytest.mark.parametrize(
    ("name", "operand", "result"),
    [
        ("abs", "s8[2]", "s8[2]"),
        ("abs", "c64[2,3]", "f32[2,3]"),
        ("abs", "c128[]", "f64[]"),
        ("real", "c64[2]", "f32[2]"),
        ("real", "bf16[2]", "bf16[2]"),
        ("imag", "c128[0]", "f64[0]"),
        ("imag", "f16[2]", "f16[2]"),
        ("is_finite", "f8e5m2[2]", "pred[2]"),
        ("sign", "c64[2]", "c64[2]"),
        ("neg", "u4[2]", "u4[2]"),
        ("not_", "pred[2]", "pred[2]"),
        ("conj", "c64[2]", "c64[2]"),
        ("conj", "f32[2]", "c64[2]"),
        ("round", "f32[2]", "f32[2]"),
        ("atan", "c64[2]", "c64[2]"),
    ],
)
def test_result_shape(name: str, operand: str, result: str) -> None:
    assert str(getattr(ops, name)(given(operand)).shape) == result


@pytest.mark.parametrize(
    ("name", "element_types"),
    [
        ("abs", ("pred", "u4", "u32")),
        ("neg", ("pred",)),
        ("sign", ("pred", "u8")),
        ("not_", (*FLOATING, "c64")),
        ("clz", (*FLOATING, "pred", "c64")),
        ("population_count", (*FLOATING, "pred", "c64")),
        ("floor", ("s32", "c64", "pred")),
        ("ceil", ("s32", "c64", "pred")),
        ("round_nearest_afz", ("s32", "c64")),
        ("round_nearest_even", ("s32", "c64")),
        ("is_finite", ("s32", "c64", "pred")),
        ("cbrt", ("c64", "s32")),
        ("erf", ("c64", "s32")),
        ("exp", ("s32", "pred")),
        ("tanh", ("s32", "pred")),
        ("real", ("s32", "pred")),
        ("acosh", ("s32", "pred")),
    ],
)
def test_element_types_refused(name: str, element_types: tuple[str, ...]) -> None:
    for element_type in element_types:
        operand = given(f"{element_type}[2]")
        message = rf"^{name.rstrip('_')}: operand {element_type}\[2\] has element type"
        with pytest.raises(ElementTypeError, match=message):
            getattr(ops, name)(operand)


def test_tuple_refused() -> None:
    with pytest.raises(ShapeError, match="exp: operand must be an array"):
        ops.exp(ops.tuple_([given("f32[2]")]))


def test_something_else_refused() -> None:
    with pytest.raises(ArgumentError, match="abs: operand 0 must be an Instruction, not float"):
        make(ABS, 1.0)  # type: ignore[arg-type]


def test_result_accuracy_is_an_attribute() -> None:
    accuracy = ResultAccuracy("highest")
    assert ops.exp(given("f32[2]"), accuracy).attributes == {"result_accuracy": accuracy}
    assert ops.exp(given("f32[2]")).attributes == {"result_accuracy": None}
    with pytest.raises(ArgumentError, match="has no attribute result_accuracy"):
        make(ABS, given("f32[2]"), result_accuracy=accuracy)
    assert EXP.attributes[0].default is None


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"mode": "best"}, "mode must be highest or tolerance, not 'best'"),
        ({"ulps": -1}, "must not be negative, not (0.0, 0.0, -1)"),
        ({"rtol": -0.5}, "must not be negative"),
        ({"mode": "tolerance"}, "mode tolerance needs atol, rtol or ulps"),
        ({"mode": "highest", "ulps": 2}, "and mode highest none"),
    ],
)
def test_result_accuracy_refuses(fields: dict[str, object], message: str) -> None:
    with pytest.raises(AttributeValueError, match=re.escape(message)):
        ResultAccuracy(**fields)  # type: ignore[arg-type]


def test_sign_of_the_page() -> None:
    operand = np.array([-3.5, -0.0, np.nan, 0.0, 2.0])
    signs = evaluated(ops.sign, operand)
    np.testing.assert_array_equal(signs, [-1, -0.0, np.nan, 0, 1])
    np.testing.assert_array_equal(np.signbit(signs[[1, 3]]), [True, False])


def test_imag_and_real_of_a_real_operand() -> None:
    operand = np.array([1.5, -2.0], np.float32)
    np.testing.assert_array_equal(evaluated(ops.real, operand), operand)
    np.testing.assert_array_equal(evaluated(ops.imag, operand), [0, 0])


def test_conj() -> None:
    operand = np.array([1 + 2j, -3 - 0.5j])
    np.testing.assert_array_equal(evaluated(ops.conj, operand), operand.conj())


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_atan(dtype: Any) -> None:
    operand = np.linspace(-3, 3, 13).astype(dtype)
    if dtype is np.complex128:
        operand = operand + 1j * np.linspace(-2, 2.1, 13)
    np.testing.assert_allclose(evaluated(ops.atan, operand), np.arctan(operand), rtol=1e-14)


def test_round_is_away_from_zero() -> None:
    operand = np.array([-2.5, -0.5, 0.49999999999999994, 0.5, 1.5, 2.5])
    np.testing.assert_array_equal(evaluated(ops.round, operand), [-3, -1, 0, 1, 2, 3])
    even = evaluated(ops.round_nearest_even, operand)
    np.testing.assert_array_equal(even, [-2, 0, 0, 0, 2, 2])


def test_every_floating_type_is_admitted() -> None:
    for element_type in FLOATING:
        assert ops.erf(given(f"{element_type}[2]")).array_shape.element_type is ElementType(
            element_type
        )
