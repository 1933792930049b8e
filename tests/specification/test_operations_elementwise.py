"""The page "Operation semantics": ops on single elements, and on their types."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.specification.running import F32, computation, expect, f32, s32
from tracejit.attributes import ResultAccuracy
from tracejit.builder import XlaBuilder
from tracejit.shapes import ElementType, Shape

INF, NAN = np.inf, np.nan


def test_clamp_between_scalars() -> None:
    arrays = [s32(0), s32([-1, 5, 9]), s32(6)]
    expect(lambda b, low, x, high: b.clamp(low, x, high), arrays, s32([0, 5, 6]))


def test_clamp_between_arrays() -> None:
    arrays = [s32([0, 6, 0]), s32([-1, 5, 9]), s32([6, 8, 6])]
    expect(lambda b, low, x, high: b.clamp(low, x, high), arrays, s32([0, 6, 6]))


def test_select_by_an_array() -> None:
    pred = np.array([True, False, False, True])
    arrays = [pred, s32([1, 2, 3, 4]), s32([100, 200, 300, 400])]
    expect(lambda b, p, x, y: b.select(p, x, y), arrays, s32([1, 200, 300, 4]))


def test_select_by_a_scalar() -> None:
    arrays = [np.array(True), s32([1, 2, 3, 4]), s32([100, 200, 300, 400])]
    expect(lambda b, p, x, y: b.select(p, x, y), arrays, s32([1, 2, 3, 4]))


def test_select_between_tuples() -> None:
    one, other = s32([1, 2]), f32([3])
    expect(
        lambda b, p, x, y: b.select(p, b.tuple([x, y]), b.tuple([b.neg(x), b.neg(y)])),
        [np.array(False), one, other],
        (-one, -other),
    )


def test_convert_integers_to_floating_point() -> None:
    expect(lambda b, a: b.convert_element_type(a, F32), [s32([0, 1, 2])], f32([0.0, 1.0, 2.0]))


def test_convert_rounds_to_nearest_even() -> None:
    arrays = [s32([2**24 + 1, 2**24 + 3])]
    expect(lambda b, a: b.convert_element_type(a, F32), arrays, f32([2**24, 2**24 + 4]))


@pytest.mark.parametrize(
    ("given", "element_type", "wanted"),
    [
        (Shape(F32, (10,)), ElementType.F16, (10, 2)),
        (Shape(F32), ElementType.F16, (2,)),
        (Shape(ElementType.F16, (10, 2)), F32, (10,)),
        (Shape(ElementType.S32, (3,)), ElementType.S8, (3, 4)),
        (Shape(ElementType.S32, (3,)), F32, (3,)),
    ],
)
def test_bitcast_convert_changes_the_last_dimension_with_the_width(
    given: Shape, element_type: ElementType, wanted: tuple[int, ...]
) -> None:
    made = computation(lambda b, x: b.bitcast_convert_type(x, element_type), given)
    assert made.root.shape == Shape(element_type, wanted)
    values = np.arange(given.size).reshape(given.dimensions).astype(given.dtype)
    bits = values.view(element_type.dtype) if values.ndim else values[None].view(element_type.dtype)
    expect(
        lambda b, x: b.bitcast_convert_type(x, element_type), [values], bits.reshape(wanted).copy()
    )


def test_total_order_of_floating_point() -> None:
    ordered = f32([-NAN, -INF, -1.5, -0.0, 0.0, 1.5, INF, NAN])
    ordered[0] = np.copysign(f32(NAN), f32(-1))
    for name, wanted in [
        ("lt_total_order", np.triu(np.ones((8, 8), bool), 1)),
        ("le_total_order", np.triu(np.ones((8, 8), bool))),
        ("eq_total_order", np.eye(8, dtype=bool)),
        ("ne_total_order", ~np.eye(8, dtype=bool)),
        ("ge_total_order", np.tril(np.ones((8, 8), bool))),
        ("gt_total_order", np.tril(np.ones((8, 8), bool), -1)),
    ]:
        expect(
            lambda b, x, y, name=name: getattr(b, name)(x, y),
            [ordered[:, None].copy(), ordered[None].copy()],
            wanted,
        )


def test_sign_keeps_zeros_and_nan() -> None:
    arrays = [f32([-3, -0.0, NAN, 0.0, 7])]
    expect(lambda b, x: b.sign(x), arrays, f32([-1, -0.0, NAN, 0.0, 1]))
    expect(lambda b, x: b.div(b.constant(f32(1)), b.sign(x)), [f32([-0.0, 0.0])], f32([-INF, INF]))


def test_imaginary_and_real_parts_of_real_numbers() -> None:
    arrays = [f32([1.5, -2])]
    expect(lambda b, x: b.imag(x), arrays, f32([0, 0]))
    expect(lambda b, x: b.real(x), arrays, f32([1.5, -2]))


def test_rounding_of_ties() -> None:
    ties = f32([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5])
    away = f32([-3, -2, -1, 1, 2, 3])
    expect(lambda b, x: b.round(x), [ties], away)
    expect(lambda b, x: b.round_nearest_afz(x), [ties], away)
    expect(lambda b, x: b.round_nearest_even(x), [ties], f32([-2, -2, -0.0, 0, 2, 2]))


def test_is_finite() -> None:
    arrays = [f32([1, INF, -INF, NAN])]
    expect(lambda b, x: b.is_finite(x), arrays, np.array([True, False, False, False]))


def test_bits_are_counted() -> None:
    arrays = [s32([0, 1, 255, -1])]
    expect(lambda b, x: b.clz(x), arrays, s32([32, 31, 24, 0]))
    expect(lambda b, x: b.population_count(x), arrays, s32([0, 1, 8, 32]))


def test_rem_has_the_dividends_sign() -> None:
    arrays = [s32([7, -7, 7, -7]), s32([3, 3, -3, -3])]
    expect(lambda b, x, y: b.rem(x, y), arrays, s32([1, -1, 1, -1]))


def test_complex_from_two_parts() -> None:
    arrays = [f32([1, 2]), f32([3, -4])]
    expect(lambda b, x, y: b.complex(x, y), arrays, np.array([1 + 3j, 2 - 4j], np.complex64))


def test_reduce_precision_to_half_and_back() -> None:
    values = f32([1.0009766, 1.0004883, 65519, 65520, -1e6, 6e-5, 1e-9, NAN, INF])
    with np.errstate(over="ignore"):
        half = values.astype(np.float16).astype(np.float32)
    half[-3] = 0  # below the smallest normal number
    half[5] = 0
    expect(lambda b, x: b.reduce_precision(x, 5, 10), [values], half)


def test_reduce_precision_to_what_the_type_has_already() -> None:
    values = f32([1.1, -3e38, 1e-30, NAN])
    expect(lambda b, x: b.reduce_precision(x, exponent_bits=11, mantissa_bits=52), [values], values)


ACCURATE = "cbrt cos cosh erf exp expm1 log log1p logistic rsqrt sin sqrt tan tanh".split()


@pytest.mark.parametrize("name", ACCURATE)
def test_result_accuracy_may_be_asked_for(name: str) -> None:
    builder = XlaBuilder(name)
    x = builder.parameter(0, Shape(F32, (3,)))
    for accuracy in (None, ResultAccuracy("highest"), ResultAccuracy(ulps=2)):
        made = getattr(builder, name)(x, result_accuracy=accuracy)
        assert made.attributes["result_accuracy"] == accuracy


BINARY = (
    "add and_ atan2 complex div eq eq_total_order ge ge_total_order gt gt_total_order le "
    "le_total_order lt lt_total_order max min mul ne ne_total_order or_ pow rem shift_left "
    "shift_right_arithmetic shift_right_logical sub xor"
).split()


@pytest.mark.parametrize("name", BINARY)
def test_binary_ops_broadcast_along_named_dimensions(name: str) -> None:
    builder = XlaBuilder(name)
    of_bits = name.startswith(("shift", "and", "or", "xor"))
    kind = ElementType.S32 if of_bits else F32
    x, v = builder.parameter(0, Shape(kind, (2, 3))), builder.parameter(1, Shape(kind, (3,)))
    for lhs, rhs in itertools.permutations([x, v]):
        made = getattr(builder, name)(lhs, rhs, broadcast_dimensions=(1,))
        assert made.array_shape.dimensions == (2, 3)
