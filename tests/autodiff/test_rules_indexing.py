"""Derivatives of Gather and Scatter: dropped and repeated indices, ties, zeros, refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tests.autodiff.gradients import check_gradients
from tests.autodiff.structure import gradients, opcodes
from tracejit import ops
from tracejit.errors import DerivativeError
from tracejit.graph import Computation, Instruction
from tracejit.shapes import ElementType, Shape

F64 = ElementType.F64
ELEMENTS = ops.ScatterDimensionNumbers((), (0,), (0,), 1)


def scatter(name: str, unique: bool = False) -> Callable[..., Instruction]:
    if name == "replace":
        combine = ops.replace_computation(F64)
    else:
        combine = ops.scalar_computation(name, F64)
    return lambda x, i, u: ops.scatter(x, i, u, combine, ELEMENTS, unique_indices=unique)


def places(*numbers: int) -> np.ndarray:
    return np.array(numbers)[:, None]


def taken(x: Instruction, i: Instruction) -> Instruction:
    return ops.gather(x, i, ops.GatherDimensionNumbers((), (0,), (0,), 1), (1,))


def both(build: Callable[..., Instruction], *arrays: Any) -> tuple[Any, Any]:
    """The cotangents of operand and updates for the cotangent 1, 2, 3, ..."""
    of_x, _, of_updates = gradients(build, arrays, [np.arange(1.0, len(arrays[0]) + 1)])
    return of_x, of_updates


def test_gather_sends_clamped_indices_to_where_they_read() -> None:
    (of_x, _) = gradients(taken, [np.zeros(3), places(-4, 0, 2, 9, 9)], [np.arange(1.0, 6.0)])
    assert_array_equal(of_x, [1 + 2, 0, 3 + 4 + 5])
    assert opcodes(taken, np.zeros(3), places(1))["scatter"] == 1


def test_gather_with_indices_narrower_than_the_operand() -> None:
    indices = places(127, -1).astype(np.int8)
    (of_x, _) = gradients(taken, [np.zeros(300), indices], [np.array([1.0, 2.0])])
    assert of_x is not None
    assert_array_equal(np.flatnonzero(of_x), [0, 127])


def test_add_gives_dropped_updates_nothing() -> None:
    of_x, of_updates = both(scatter("add"), np.zeros(3), places(1, 5, -1, 1), np.ones(4))
    assert_array_equal(of_x, [1, 2, 3])
    assert_array_equal(of_updates, [2, 0, 0, 2])


def test_sub_turns_the_sign_of_updates() -> None:
    of_x, of_updates = both(scatter("sub"), np.zeros(3), places(2, 9), np.ones(2))
    assert_array_equal(of_x, [1, 2, 3])
    assert_array_equal(of_updates, [-3, 0])


@pytest.mark.parametrize("unique", [False, True])
def test_replace_takes_from_the_operand_and_gives_to_the_update(unique: bool) -> None:
    arrays = np.zeros(3), places(1, 7), np.ones(2)
    of_x, of_updates = both(scatter("replace", unique), *arrays)
    assert_array_equal(of_x, [1, 0, 3])
    assert_array_equal(of_updates, [2, 0])


def test_replace_gives_only_to_the_last_of_repeated_updates() -> None:
    of_x, of_updates = both(scatter("replace"), np.zeros(3), places(2, 0, 2, 9), np.ones(4))
    assert_array_equal(of_x, [0, 2, 0])
    assert_array_equal(of_updates, [0, 1, 3, 0])


@pytest.mark.parametrize(("name", "low"), [("max", 5.0), ("min", -5.0)])
def test_equal_extrema_share(name: str, low: float) -> None:
    x = np.array([low, 0.0, low])
    updates = np.array([low, low, -low, low])
    of_x, of_updates = both(scatter(name), x, places(0, 1, 1, 1), updates)
    assert_array_equal(of_x, [0.5, 0, 3])
    assert_array_equal(of_updates, [0.5, 1, 0, 1])


def test_mul_with_repeated_indices_and_zeros() -> None:
    """0 twice at one place, once at another: derivatives are products of what is left."""
    x = np.array([2.0, 3.0, 5.0])
    updates = np.array([0.0, 4.0, 0.0, 7.0, 0.0, 9.0])
    of_x, of_updates = both(scatter("mul"), x, places(0, 0, 1, 1, 1, 8), updates)
    assert_array_equal(of_x, [0, 0, 3])
    assert_array_equal(of_updates, [2 * 4, 0, 0, 0, 0, 0])


@pytest.mark.parametrize("unique", [False, True])
def test_mul_to_order_2_at_zeros(unique: bool) -> None:
    x = np.array([2.0, 0.0, 5.0, -1.0])
    updates = np.array([0.0, 4.0, 0.0, 7.0, 3.0])
    where = places(3, 9, 1, 0, 2) if unique else places(0, 1, 0, 0, 9)
    check_gradients(scatter("mul", unique), [x, where, updates])


def test_mul_with_many_repeated_indices() -> None:
    rng = np.random.default_rng(0)
    updates = rng.uniform(0.5, 1.5, 33)
    where = places(*(rng.integers(0, 3, 33)))
    of_x, of_updates = both(scatter("mul"), np.ones(3), where, updates)
    products = np.array([np.prod(updates[where[:, 0] == i]) for i in range(3)])
    assert_allclose(of_x, np.arange(1, 4) * products)
    assert_allclose(of_updates, ((np.arange(1, 4) * products)[where[:, 0]]) / updates)


def quotient(unique: bool) -> Callable[..., Instruction]:
    parameters = tuple(ops.parameter(i, Shape(F64)) for i in range(2))
    combine = Computation("quotient", parameters, ops.div(parameters[1], parameters[0]))
    return lambda x, i, u: ops.scatter(x, i, u, combine, ELEMENTS, unique_indices=unique)


def test_any_computation_when_indices_are_unique() -> None:
    arrays = np.array([2.0, 4.0, 5.0]), places(1, 7), np.array([3.0, 0.0])
    of_x, of_updates = both(quotient(unique=True), *arrays)
    assert_allclose(of_x, [1, 2 * -3 / 16, 3])
    assert_allclose(of_updates, [2 / 4, 0])


def test_dropped_update_makes_no_nan() -> None:
    """The dropped update 0 / 0 would; what stands where it is clamped to is not disturbed."""
    arrays = np.array([2.0, 4.0, 0.0]), places(1, 7), np.array([3.0, 0.0])
    of_x, of_updates = both(quotient(unique=True), *arrays)
    assert_allclose(of_x, [1, 2 * -3 / 16, 3])
    assert_allclose(of_updates, [0.5, 0])


def test_other_computations_are_refused_when_indices_may_repeat() -> None:
    with pytest.raises(DerivativeError, match=r"scatter: where indices may repeat.*\(test_rules_"):
        both(quotient(unique=False), np.ones(3), places(0, 1), np.ones(2))


def test_operand_that_is_kept_as_it_is() -> None:
    parameters = tuple(ops.parameter(i, Shape(F64)) for i in range(2))
    keep = Computation("keep", parameters, parameters[0])
    of_x, of_updates = both(
        lambda x, i, u: ops.add(
            ops.scatter(x, i, u, keep, ELEMENTS),
            ops.scatter(x, i, u, ops.scalar_computation("add", F64), ELEMENTS),
        ),
        np.ones(2),
        places(0),
        np.ones(1),
    )
    assert_array_equal(of_x, [2, 4])
    assert_array_equal(of_updates, [1])


def test_nothing_to_scatter_into() -> None:
    of_x, of_updates = both(scatter("replace"), np.zeros(0), places(0, 1), np.ones(2))
    assert_array_equal(of_x, [])
    assert_array_equal(of_updates, [0, 0])
