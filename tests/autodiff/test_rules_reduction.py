"""Derivatives of Reduce, Sort and TopK: ties, init values, order, and what they are made of."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tests.autodiff.gradients import check_gradients
from tests.autodiff.structure import gradients, opcodes
from tests.building import computation
from tracejit import ops
from tracejit.graph import Instruction
from tracejit.shapes import ElementType, Shape

F64 = ElementType.F64


@pytest.mark.parametrize("name", ["max", "min"])
def test_extrema_share_their_cotangent_among_ties(name: str) -> None:
    sign = 1.0 if name == "max" else -1.0
    rows = sign * np.array([[3.0, 1.0, 3.0, 3.0], [0.0, 5.0, 2.0, 5.0]])
    reduce = ops.reduce_max if name == "max" else ops.reduce_min
    (gradient,) = gradients(lambda x: reduce(x, [1]), [rows], [[6.0, 10.0]])
    assert_array_equal(gradient, [[2, 0, 2, 2], [0, 5, 0, 5]])


def test_extrema_of_nan_have_no_gradient() -> None:
    (gradient,) = gradients(ops.reduce_max, [[1.0, math.nan, 2.0]], [1.0])
    assert_array_equal(gradient, [0, 0, 0])


@pytest.mark.parametrize(("init", "of_init", "of_operand"), [(9.0, 1, [0, 0]), (1.0, 0, [0, 1])])
def test_an_init_value_takes_part_in_a_maximum(
    init: float, of_init: float, of_operand: list[float]
) -> None:
    def build(x: Instruction, start: Instruction) -> Instruction:
        return ops.reduce(x, start, ops.scalar_computation("max", F64), [0])

    first, second = gradients(build, [[2.0, 3.0], init], [1.0])
    assert_array_equal(first, of_operand)
    assert_array_equal(second, of_init)


def test_a_product_with_zeros_has_a_gradient() -> None:
    (gradient,) = gradients(ops.reduce_prod, [[2.0, 0.0, 3.0]], [1.0])
    assert_array_equal(gradient, [0, 6, 0])
    (gradient,) = gradients(ops.reduce_prod, [[2.0, 0.0, 0.0]], [1.0])
    assert_array_equal(gradient, [0, 0, 0])


def test_a_computation_that_does_not_commute_keeps_its_order() -> None:
    # (a, b) stands for x -> a*x + b; the reduction composes nine such functions.
    def compose(a: Instruction, b: Instruction, c: Instruction, d: Instruction) -> Instruction:
        return ops.tuple_([ops.mul(a, c), ops.add(ops.mul(c, b), d)])

    both = computation("compose", compose, *[Shape(F64)] * 4)

    def build(slopes: Instruction, offsets: Instruction) -> Instruction:
        inits = [ops.constant(1.0), ops.constant(0.0)]
        return ops.reduce([slopes, offsets], inits, both, [0])

    rng = np.random.default_rng(0)
    check_gradients(build, [rng.uniform(0.5, 1.5, 9), rng.normal(size=9)])


def test_the_derivative_of_a_sum_is_one_broadcast() -> None:
    found = opcodes(lambda x: ops.reduce_sum(x, [0]), np.zeros((1000, 3)))
    assert found == {"parameter": 1, "broadcast": 1}


def test_the_derivative_of_any_reduction_grows_with_the_logarithm_of_its_size() -> None:
    small, large = (opcodes(ops.reduce_prod, np.ones(n)).total() for n in (16, 16384))
    assert large < 4 * small


def test_sort_sends_cotangents_where_the_elements_came_from() -> None:
    (gradient,) = gradients(ops.sort, [[30.0, 10.0, 20.0]], [[1.0, 2.0, 3.0]])
    assert_array_equal(gradient, [3, 1, 2])


def test_sort_moves_other_operands_along_with_the_keys() -> None:
    def build(keys: Instruction, values: Instruction) -> Instruction:
        return ops.sort([keys, values], is_stable=True)

    keys = np.array([1, 0, 1, 0], np.int32)
    of_keys, of_values = gradients(build, [keys, np.zeros(4)], [[1.0, 2.0, 3.0, 4.0]])
    assert of_keys is None
    assert_array_equal(of_values, [3, 1, 4, 2])


def test_top_k_sends_cotangents_to_the_chosen() -> None:
    rows = np.array([[4.0, 4.0, 9.0], [1.0, 2.0, 3.0]])
    (gradient,) = gradients(lambda x: ops.top_k(x, 2), [rows], [[[1.0, 2.0], [3.0, 4.0]]])
    assert_array_equal(gradient, [[2, 0, 1], [0, 4, 3]])
