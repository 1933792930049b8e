"""The interpreter's reductions and sorts where it is easy to get them wrong."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tests.building import computation
from tests.samples.reduction import log_sum_exp
from tracejit import ops
from tracejit.backends.numpy import evaluate
from tracejit.graph import Instruction
from tracejit.shapes import ElementType, Shape, shape_of

S32, F64 = ElementType.S32, ElementType.F64


def value(function: Callable[..., Instruction], *arrays: np.ndarray) -> np.ndarray:
    made = evaluate(computation("main", function, *map(shape_of, arrays)), arrays)
    assert isinstance(made, np.ndarray)
    return made


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_narrow_floats_are_summed_in_single_precision(dtype: type) -> None:
    ones: np.ndarray = np.ones(4096, dtype)
    assert value(ops.reduce_sum, ones) == 4096


def test_narrow_integers_wrap() -> None:
    assert value(ops.reduce_sum, np.full(3, 100, np.int8)) == 300 - 256
    four_bits = np.array([7, 7, 7], ml_dtypes.int4)
    assert value(ops.reduce_sum, four_bits).astype(int) == 21 - 16


@pytest.mark.parametrize("reduce", [ops.reduce_max, ops.reduce_min])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
def test_extrema_hand_on_nan(reduce: Callable[..., Instruction], dtype: type) -> None:
    assert np.isnan(value(reduce, np.array([1, np.nan, -np.inf, np.inf], dtype)))


def test_any_computation_over_many_elements() -> None:
    values = np.random.default_rng(0).normal(size=(30001, 2))

    def build(x: Instruction) -> Instruction:
        return ops.reduce(x, ops.constant(-np.inf), log_sum_exp(F64), [0])

    np.testing.assert_allclose(value(build, values), np.log(np.exp(values).sum(0)))


@pytest.mark.parametrize("size", [*range(10), 16, 31, 100])
def test_sort_with_a_comparator_is_stable_for_every_size(size: int) -> None:
    # Descending by the first operand alone, which has many ties.
    after = computation("after", lambda a, b, c, d: ops.gt(a, b), *[Shape(S32)] * 4)
    keys = np.random.default_rng(size).integers(0, 5, (size, 2)).astype(np.int32)

    def build(x: Instruction) -> Instruction:
        places = ops.iota(Shape(S32, (size, 2)), 0)
        return ops.get_tuple_element(ops.sort([x, places], after, 0), 1)

    order = value(build, keys)
    for column in range(2):
        expected = sorted(range(size), key=lambda place: -keys[place, column])
        assert_array_equal(order[:, column], expected)


def test_sort_in_total_order_of_the_comparator() -> None:
    both = Shape(ElementType.F32)
    total = computation("total", ops.lt_total_order, both, both)
    values = np.array([0.0, np.nan, -0.0, -np.nan, 1.0, -np.inf], np.float32)
    values[3] = np.copysign(np.float32(np.nan), -1)
    ordered = value(lambda x: ops.sort(x, total), values)
    assert_array_equal(np.signbit(ordered), [True, True, True, False, False, False])
    assert_array_equal(ordered, [np.nan, -np.inf, 0, 0, 1, np.nan])
