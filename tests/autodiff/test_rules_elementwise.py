"""Derivatives of elementwise ops where they have edges: ties, zeros, bounds, complex numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.evaluation import evaluated
from tracejit import ops
from tracejit.autodiff.reverse import differentiate, pullback
from tracejit.graph import OPS, Instruction
from tracejit.ops.base import make
from tracejit.ops.elementwise import CLAMP
from tracejit.shapes import ElementType

FAMILIES = ("comparison", "element_types", "elementwise", "elementwise_unary")
Build = Callable[..., Instruction]


def gradients(build: Build, *arrays: npt.ArrayLike, cotangent: complex = 1) -> list[Any]:
    """The cotangent of each operand, for one of ``cotangent`` everywhere; zeros where none is."""

    def graph(*operands: Instruction) -> Instruction:
        result = build(*operands)
        found = pullback([result], operands, [ops.full_like(result, cotangent)])
        return ops.tuple_(
            [ops.full_like(x, 0) if c is None else c for x, c in zip(operands, found, strict=True)]
        )

    return list(evaluated(graph, *(np.asarray(array) for array in arrays)))


def twice(build: Build, *arrays: npt.ArrayLike) -> list[Any]:
    """The cotangents of the operands, of the first operand's cotangent."""

    def first(*operands: Instruction) -> Instruction:
        result = build(*operands)
        (found,) = pullback([result], operands[:1], [ops.full_like(result, 1)])
        assert found is not None
        return found

    return gradients(first, *arrays)


def test_every_op_has_a_rule_or_a_reason() -> None:
    mine = {name for name, op in OPS.items() if op.family in FAMILIES}
    assert not mine & set(differentiate.missing())


@pytest.mark.parametrize(
    ("x", "y", "by_x", "by_y"),
    [
        (0.0, 0.0, 0.0, 0.0),
        (0.0, 1.0, 1.0, 0.0),
        (0.0, 2.0, 0.0, 0.0),
        (0.0, 0.5, np.inf, 0.0),
        (-2.0, 3.0, 12.0, np.nan),
        (-2.0, 2.0, -4.0, np.nan),
        (2.0, 0.0, 0.0, np.log(2.0)),
        (2.0, -1.0, -0.25, np.log(2.0) / 2),
    ],
)
def test_pow(x: float, y: float, by_x: float, by_y: float) -> None:
    np.testing.assert_allclose(gradients(ops.pow, x, y), [by_x, by_y])


def test_pow_by_a_constant_twice_at_zero() -> None:
    (second,) = twice(lambda x: ops.pow(x, ops.full_like(x, 2)), np.array([0.0, -3.0]))
    np.testing.assert_array_equal(second, [2, 2])
    (second,) = twice(lambda x: ops.pow(x, ops.full_like(x, 1)), np.array([0.0, -3.0]))
    np.testing.assert_array_equal(second, [0, 0])


@pytest.mark.parametrize("function", [ops.max, ops.min])
def test_ties_are_shared(function: Build) -> None:
    x, y = np.array([1.0, 2.0, np.nan]), np.array([1.0, 3.0, 1.0])
    by_x, by_y = gradients(function, x, y)
    larger = function is ops.max
    np.testing.assert_array_equal(by_x, [0.5, 1 - larger, 0])
    np.testing.assert_array_equal(by_y, [0.5, larger, 0])


def test_unselected_sides_get_zero_even_of_infinite_cotangents() -> None:
    pred = np.array([True, False])
    for cotangent in (np.inf, np.nan):
        on_true, on_false = gradients(
            lambda x, y: ops.select(ops.constant(pred), x, y),
            np.ones(2),
            np.ones(2),
            cotangent=cotangent,
        )
        np.testing.assert_array_equal(on_true, [cotangent, 0])
        np.testing.assert_array_equal(on_false, [0, cotangent])


def test_select_guards_what_it_does_not_take() -> None:
    """The usual guard: sqrt is only ever given what it has a derivative for."""

    def guarded(x: Instruction) -> Instruction:
        positive = ops.gt(x, ops.full_like(x, 0))
        safe = ops.select(positive, x, ops.full_like(x, 1))
        return ops.select(positive, ops.sqrt(safe), ops.full_like(x, 0))

    (by_x,) = gradients(guarded, np.array([4.0, 0.0, -1.0]))
    np.testing.assert_array_equal(by_x, [0.25, 0, 0])


@pytest.mark.parametrize(
    ("low", "x", "high", "expected"),
    [
        (0.0, 0.5, 1.0, (0, 1, 0)),
        (0.0, -1.0, 1.0, (1, 0, 0)),
        (0.0, 2.0, 1.0, (0, 0, 1)),
        (0.0, 0.0, 1.0, (0, 0, 0)),
        (0.0, 1.0, 1.0, (0, 0, 0)),
        (2.0, 0.5, 1.0, (0, 0, 1)),
        (2.0, 3.0, 1.0, (0, 0, 1)),
    ],
)
def test_clamp(low: float, x: float, high: float, expected: tuple[int, int, int]) -> None:
    np.testing.assert_array_equal(gradients(ops.clamp, low, x, high), expected)


@pytest.mark.parametrize("build", [ops.clamp, lambda *operands: make(CLAMP, *operands)])
def test_scalar_bounds_collect_what_they_cut(build: Build) -> None:
    x = np.array([-3.0, -2.0, 0.0, 5.0])
    by_low, by_x, by_high = gradients(build, np.array(-1.0), x, np.array(1.0))
    assert (by_low, by_high) == (2, 1)
    np.testing.assert_array_equal(by_x, [0, 0, 1, 0])


def test_abs_and_sign_at_zero() -> None:
    zeros = np.array([0.0, -0.0])
    np.testing.assert_array_equal(gradients(ops.abs, zeros), [[1, 1]])
    np.testing.assert_array_equal(gradients(ops.sign, zeros), [[0, 0]])
    np.testing.assert_array_equal(gradients(ops.abs, np.zeros(2, complex)), [[0, 0]])
    np.testing.assert_array_equal(gradients(ops.sign, np.zeros(2, complex)), [[0, 0]])


def test_roots_at_zero() -> None:
    zero = np.array([0.0])
    assert gradients(ops.sqrt, zero) == [np.inf]
    assert gradients(ops.cbrt, zero) == [np.inf]
    assert gradients(ops.rsqrt, zero) == [-np.inf]


def test_rem_counts_whole_divisors() -> None:
    by_x, by_y = gradients(ops.rem, np.array([7.5, -7.5, 7.5]), np.array([2.0, 2.0, -2.0]))
    np.testing.assert_array_equal(by_x, [1, 1, 1])
    np.testing.assert_array_equal(by_y, [-3, 3, 3])


def test_broadcast_operands_collect_their_gradients() -> None:
    matrix, vector = np.ones((2, 3)), np.arange(3.0)
    _, by_vector = gradients(lambda x, v: ops.mul(x, v, (1,)), matrix, vector)
    np.testing.assert_array_equal(by_vector, [2, 2, 2])


def test_piecewise_constant_ends_the_path() -> None:
    for function in (ops.floor, ops.ceil, ops.round_nearest_even, ops.round_nearest_afz):
        np.testing.assert_array_equal(gradients(function, np.array([1.25, -2.5])), [[0, 0]])


def test_complex_follows_jax() -> None:
    """f'(z) times the cotangent, nothing conjugated; and what that makes of parts of z."""
    z, w, cotangent = np.array([1 + 2j]), np.array([3 - 1j]), 1 + 3j
    by_z, by_w = gradients(ops.mul, z, w, cotangent=cotangent)
    np.testing.assert_allclose((by_z, by_w), (cotangent * w, cotangent * z))
    (by_z,) = gradients(ops.exp, z, cotangent=cotangent)
    np.testing.assert_allclose(by_z, cotangent * np.exp(z))
    assert gradients(ops.conj, z, cotangent=cotangent) == [1 - 3j]
    assert gradients(ops.real, z) == [1]
    assert gradients(ops.imag, z) == [-1j]
    np.testing.assert_allclose(gradients(ops.abs, z), [np.conj(z) / np.abs(z)])
    by_x, by_y = gradients(ops.complex, np.array([1.0]), np.array([2.0]), cotangent=cotangent)
    assert (by_x, by_y) == (1, -3)


def test_real_and_imag_of_real_operands() -> None:
    x = np.array([1.5])
    assert gradients(ops.real, x) == [1]
    assert gradients(ops.imag, x) == [0]


@pytest.mark.parametrize(
    ("target", "cotangent", "expected"),
    [("f32", 3, 3), ("c64", 1 + 3j, 1), ("bf16", 2, 2), ("c128", 2j, 0)],
)
def test_conversions_convert_back(target: str, cotangent: complex, expected: float) -> None:
    converted = gradients(
        lambda x: ops.convert_element_type(x, ElementType(target)),
        np.array([1.5]),
        cotangent=cotangent,
    )
    assert converted == [expected]
    assert converted[0].dtype == np.float64


def test_conversion_to_integers_has_none() -> None:
    def through_integers(x: Instruction) -> Instruction:
        whole = ops.convert_element_type(x, ElementType.S32)
        return ops.mul(x, ops.convert_element_type(whole, ElementType.F64))

    np.testing.assert_array_equal(gradients(through_integers, np.array([2.5, -3.5])), [[2, -3]])


def test_reduce_precision_rounds_the_cotangent() -> None:
    (by_x,) = gradients(lambda x: ops.reduce_precision(x, 11, 1), np.array([1.26]), cotangent=1.26)
    np.testing.assert_array_equal(by_x, [1.5])


def test_bitcast_has_none() -> None:
    def through_bits(x: Instruction) -> Instruction:
        bits = ops.bitcast_convert_type(x, ElementType.S64)
        return ops.bitcast_convert_type(bits, ElementType.F64)

    np.testing.assert_array_equal(gradients(through_bits, np.array([2.5])), [[0]])


def test_declined_ops_say_why() -> None:
    for name in ("And", "Clz", "Compare", "Floor", "IsFinite", "BitcastConvertType"):
        assert differentiate.get(OPS[name]) is None
        assert differentiate.reason(OPS[name])
