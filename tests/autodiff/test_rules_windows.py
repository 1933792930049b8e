"""Derivatives of ReduceWindow and SelectAndScatter: what they are made of, and odd windows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from tests.autodiff.gradients import check_gradients
from tests.autodiff.structure import gradients, opcodes, pulled_back
from tests.building import computation
from tracejit import ops
from tracejit.backends.numpy import evaluate
from tracejit.errors import DerivativeError
from tracejit.graph import Instruction
from tracejit.shapes import ElementType, shape_of

F32, F64 = ElementType.F32, ElementType.F64


@pytest.mark.parametrize(("name", "keeps"), [("max", "ge"), ("min", "le")])
def test_the_derivative_of_pooling_is_one_select_and_scatter(name: str, keeps: str) -> None:
    def pool(x: Instruction) -> Instruction:
        return ops.reduce_window_by(name, x, [1, 3, 3, 1], [1, 2, 2, 1], "SAME")

    images = np.zeros((2, 5, 6, 3), np.float32)
    assert opcodes(pool, images) == {"parameter": 2, "constant": 1, "select-and-scatter": 1}
    _, _, (result,) = pulled_back(pool, images)
    assert result is not None
    assert result.attributes["select"] is ops.scalar_computation(keeps, F32)


def test_pooling_from_the_least_finite_value_is_one_select_and_scatter_too() -> None:
    def pool(x: Instruction) -> Instruction:
        least = ops.constant(np.finfo(np.float32).min, F32)
        return ops.reduce_window(x, least, ops.scalar_computation("max", F32), [2], [2])

    found = opcodes(pool, np.zeros(4, np.float32))
    assert found == {"parameter": 2, "constant": 1, "select-and-scatter": 1}


def test_pooling_sends_a_cotangent_to_the_first_of_equal_elements() -> None:
    (gradient,) = gradients(
        lambda x: ops.reduce_window_by("max", x, [3], [1]), [[5.0, 5.0, 1.0, 5.0]], [[1.0, 2.0]]
    )
    assert_array_equal(gradient, [1, 2, 0, 0])


def test_the_second_derivative_of_pooling_is_one_gather() -> None:
    def gradient(x: Instruction, source: Instruction) -> Instruction:
        return ops.select_and_scatter(
            x,
            ops.scalar_computation("ge", F64),
            (2,),
            (2,),
            "VALID",
            source,
            ops.constant(0.0),
            ops.scalar_computation("add", F64),
        )

    found = opcodes(gradient, np.zeros(6), np.zeros(3))
    assert found["gather"] == found["reduce-window"] == 1
    assert "select" not in found


def test_an_init_value_takes_part_in_pooling() -> None:
    def pool(x: Instruction, init: Instruction) -> Instruction:
        return ops.reduce_window(x, init, ops.scalar_computation("max", F64), [2], [2])

    of_operand, of_init = gradients(pool, [[1.0, 2.0, 8.0, 9.0], 5.0], [[10.0, 20.0]])
    assert_array_equal(of_operand, [0, 0, 0, 20])
    assert_array_equal(of_init, 10)


def test_the_derivative_of_average_pooling_is_one_reduce_window() -> None:
    found = opcodes(lambda x: ops.reduce_window_by("add", x, [2, 2], [2, 2]), np.zeros((4, 4)))
    assert found == {"parameter": 1, "constant": 1, "reduce-window": 1}


def test_the_derivative_of_a_cumulative_sum_is_a_cumulative_sum_backwards() -> None:
    (gradient,) = gradients(
        lambda x: ops.cumulative("add", x, 0), [np.zeros(4)], [[1.0, 2.0, 3.0, 4.0]]
    )
    assert_array_equal(gradient, [10, 9, 7, 4])


@pytest.mark.parametrize("reverse", [False, True])
def test_cumulative_products_of_any_length(reverse: bool) -> None:
    rng = np.random.default_rng(0)
    for size in (1, 2, 3, 7, 8, 9):
        values = rng.uniform(0.5, 1.5, (2, size))
        check_gradients(lambda x: ops.cumulative("mul", x, 1, reverse), [values])


windows = st.fixed_dictionaries(
    {
        "size": st.integers(1, 6),
        "window": st.integers(1, 4),
        "stride": st.integers(1, 3),
        "low": st.integers(-2, 4),
        "high": st.integers(-2, 4),
        "base_dilation": st.integers(1, 3),
        "window_dilation": st.integers(1, 3),
    }
)


@given(windows, windows)
def test_sums_over_any_window_are_transposed_exactly(
    first: dict[str, int], second: dict[str, int]
) -> None:
    # For a linear f the derivative is its transpose: <f(x), g> = <x, f'(g)>, exactly in integers.
    both = (first, second)
    for entry in both:
        dilated = (entry["size"] - 1) * entry["base_dilation"] + 1
        assume(dilated + entry["low"] + entry["high"] >= 0)

    def build(x: Instruction) -> Instruction:
        return ops.reduce_window_by(
            "add",
            x,
            [e["window"] for e in both],
            [e["stride"] for e in both],
            [(e["low"], e["high"]) for e in both],
            [e["base_dilation"] for e in both],
            [e["window_dilation"] for e in both],
        )

    rng = np.random.default_rng(0)
    values = rng.integers(-9, 10, [e["size"] for e in both]).astype(np.float64)
    sums = evaluate(computation("sums", build, shape_of(values)), [values])
    cotangent = rng.integers(-9, 10, sums.shape).astype(np.float64)
    (gradient,) = gradients(build, [values], [cotangent])
    assert np.sum(sums * cotangent) == (0 if gradient is None else np.sum(gradient * values))


def scattering(
    name: str, stride: int, padding: list[tuple[int, int]]
) -> Callable[..., Instruction]:
    """Each window of 3 x 1 sends its greatest element's place a number, combined by an op."""

    def build(x: Instruction, source: Instruction, init: Instruction) -> Instruction:
        keeps, combine = (ops.scalar_computation(n, F64) for n in ("ge", name))
        return ops.select_and_scatter(x, keeps, (3, 1), (stride, 1), padding, source, init, combine)

    return build


@pytest.mark.parametrize("name", ["mul", "max", "min", "sub"])
@pytest.mark.parametrize("stride", [1, 3])
def test_a_scatter_of_any_op(name: str, stride: int) -> None:
    rng = np.random.default_rng(1)
    x = rng.permutation(14.0 * np.arange(1, 15)).reshape(7, 2)
    positions = (7 + 3 - 3) // stride + 1
    source = rng.permutation(np.arange(1.0, 2 * positions + 1)).reshape(positions, 2) / 7
    check_gradients(scattering(name, stride, [(2, 1), (0, 0)]), [x, source, np.array(0.9)])


def test_an_op_without_a_derivative_for_repeated_places() -> None:
    apart, overlapping = (scattering("div", s, [(0, 0), (0, 0)]) for s in (3, 1))
    x = np.random.default_rng(2).permutation(np.arange(6.0)).reshape(6, 1)
    check_gradients(apart, [x, np.array([[0.3], [0.4]]), np.array(0.5)])
    with pytest.raises(DerivativeError, match="select_and_scatter: where windows overlap"):
        pulled_back(overlapping, x, np.zeros((4, 1)), np.array(0.5))


def test_windows_over_padding_alone() -> None:
    build = scattering("add", 1, [(3, 1), (0, 0)])
    _, of_source, of_init = gradients(
        build, [np.zeros((0, 2)), np.ones((2, 2)), np.array(0.5)], [np.zeros((0, 2))]
    )
    assert of_source is None
    assert of_init == 0
