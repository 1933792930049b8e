"""What nothing is known of is left out, and nothing beside it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tests.building import computation
from tests.fuzz.comparing import leaves
from tests.fuzz.judging import judge_graph
from tests.fuzz.noise import MORE, _replaced, disagreements
from tracejit import ops
from tracejit.backends.numpy import evaluate
from tracejit.graph import Computation, Instruction, Module
from tracejit.ops.constants import constant
from tracejit.shapes import ElementType, Shape

X = Shape(ElementType.F32, (3,))
NAN = np.array([np.nan, 2, -np.nan], np.float32)


def found(
    entry: Computation, given: np.ndarray, actual: Sequence[object] | float, by_xla: bool = False
) -> bool:
    expected = leaves(evaluate(entry, [given]))[0]
    made = np.array(actual, expected.dtype).reshape(expected.shape)
    return bool(disagreements(entry, [given], [made], [expected], by_xla))


def root(x: Instruction) -> Instruction:
    """NaN of every negative number."""
    return ops.sqrt(x)


def moved(x: Instruction) -> Instruction:
    return ops.rev(ops.reshape(ops.rev(x, [0]), (3,)), [0])


def above(x: Instruction) -> Instruction:
    return ops.gt_total_order(x, ops.full_like(x, 1))


@pytest.mark.parametrize("between", [lambda x: x, moved])
def test_computed_nan_compared_in_the_total_order(between: object) -> None:
    assert callable(between)
    entry = computation("entry", lambda x: ops.tuple_([above(between(root(x)))]), X)
    given = np.array([-1, 4, -2], np.float32)
    for first in (True, False):
        for last in (True, False):
            assert not found(entry, given, [first, True, last])
    assert found(entry, given, [True, False, True]), "2 is above 1"


def test_given_nan_compared_in_the_total_order() -> None:
    entry = computation("entry", lambda x: ops.tuple_([above(moved(x))]), X)
    assert not found(entry, NAN, [True, True, False])
    assert found(entry, NAN, [True, True, True])
    assert found(entry, NAN, [False, True, False])


def test_computed_nan_of_a_called_computation() -> None:
    """The parameter of the called computation is not one that evaluators are given."""
    called = computation("called", above, X)
    entry = computation("entry", lambda x: ops.tuple_([ops.call(called, [root(x)])]), X)
    given = np.array([-1, 4, -2], np.float32)
    assert not found(entry, given, [True, True, False])
    assert not found(entry, given, [False, True, True])
    assert found(entry, given, [False, False, False])


def test_total_order_of_nan_that_batch_norms_compute() -> None:
    """An infinite mean of f8e5m2, as a graph of the fuzzer had it."""
    shape = Shape(ElementType.F8E5M2, (1, 5))
    numbers = constant(np.array([[-8, 2.5, np.nan, 8, 0.5]]).astype(shape.dtype))

    def build(x: Instruction) -> Instruction:
        ones = ops.full(Shape(shape.element_type, (1,)), 1.5)
        normal = ops.elements_of(ops.batch_norm_training(x, ones, ones, 0.1, 0))[0]
        return ops.tuple_([ops.le_total_order(numbers, normal)])

    entry = computation("entry", build, shape)
    given = np.array([[-10, 2.5, np.nan, 10, 0.3125]]).astype(shape.dtype)
    for is_less in (True, False):
        assert not found(entry, given, [is_less] * 5, True)
    for seed in range(3):
        assert not judge_graph(Module("ordered", entry), seed).failed


def test_products_that_overflow_in_some_order() -> None:
    complex64 = Shape(ElementType.C64, (40,))
    times = ops.scalar_computation("mul", ElementType.C64)
    one = constant(np.complex64(1))
    entry = computation("entry", lambda x: ops.tuple_([ops.reduce(x, one, times, [0])]), complex64)
    for size, overflows in ((30, True), (1.5, False)):
        given = np.full(40, size * (1 + 1j) / 2**0.5, np.complex64)
        for wrong in (complex(np.inf, np.inf), complex(np.nan, np.nan), 7):
            assert found(entry, given, [wrong]) is not overflows


def test_products_that_vanish_in_some_order() -> None:
    x = Shape(ElementType.F32, (2, 8))
    times = ops.scalar_computation("mul", ElementType.F32)
    one = constant(np.float32(1))
    entry = computation("entry", lambda x: ops.tuple_([ops.reduce(x, one, times, [1])]), x)
    given = np.repeat(np.array([[1e-12, 1e12], [1e-9, 1e9]], np.float32), 4, 1)
    assert not found(entry, given, [0, 1])
    assert found(entry, given, [1, 0]), "no order of the second row vanishes"
    assert found(entry, np.full((2, 8), 1e12, np.float32), [1, np.inf]), "any order overflows"


def test_products_that_overflow_before_a_zero() -> None:
    x = Shape(ElementType.F8E4M3FN, (2, 5))
    times = ops.scalar_computation("mul", ElementType.F8E4M3FN)
    one = ops.constant(1, ElementType.F8E4M3FN)
    entry = computation("entry", lambda x: ops.tuple_([ops.reduce(x, one, times, [1])]), x)
    given = np.array([[0, 5, 5, 5, 5], [0, 1, 2, 1, 1]]).astype(x.dtype)
    assert not found(entry, given, [np.nan, 0], True)
    assert found(entry, given, [0, np.nan], True), "no order of the second row overflows"


def test_a_sum_with_a_nan_is_nan_whatever_overflows() -> None:
    entry = computation("entry", lambda x: ops.tuple_([ops.reduce_sum(x, [0])]), X)
    large = np.array([3e38, 3e38, -3e38], np.float32)
    assert not found(entry, large, 3e38)
    assert not found(entry, large, np.nan)
    large[2] = np.nan
    assert found(entry, large, 3e38)


def test_an_angle_whose_tangent_is_lost_in_rounding() -> None:
    """XLA may be on the other side of the cut, where the other number is as if it were 0."""
    y = np.array([1.2 + 1.4j, 1.2 + 1.4j])
    entry = computation(
        "entry",
        lambda y, x: ops.tuple_([ops.atan2(y, x)]),
        *[Shape(ElementType.C128, (2,))] * 2,
    )
    for size, is_free in ((1e18, True), (1e3, False)):
        given = [y, np.array([-1e-3 - 1j, -2 - 3j]) * size]
        (expected,) = leaves(evaluate(entry, given))
        for place in (0, 1):
            made = expected.copy()
            made[place] = -made[place]
            wrong = disagreements(entry, given, [made], [expected])
            assert bool(wrong) is not is_free
        made = expected * (1 + 1e-9)
        assert bool(disagreements(entry, given, [made], [expected])) is not is_free


def test_unknown_integers_are_negative_too() -> None:
    """XLA counts 8 bits of -1 in s4, which is -8 there."""
    shape = Shape(ElementType.S4, (2,))
    entry = computation(
        "entry",
        lambda x: ops.tuple_([ops.gt(ops.full_like(x, -3), ops.population_count(x))]),
        shape,
    )
    given = np.array([-1, 1]).astype(shape.dtype)
    assert not found(entry, given, [True, False], True)
    assert found(entry, given, [False, True], True)
    assert found(entry, given, [True, False], False)


def test_unknown_numbers_of_a_run_differ() -> None:
    """Of equal numbers a window chooses the same one in every run."""
    for run in MORE:
        made = _replaced(np.zeros(64, np.float32), run, True)
        assert len({*made[np.isfinite(made)].tolist()} | {np.inf, -np.inf}) >= 3, run
        assert np.isnan(made).any()
        assert {np.inf, -np.inf} <= {*made.tolist()}
