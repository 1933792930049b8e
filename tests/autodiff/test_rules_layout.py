"""Derivatives of the ops that move elements: what they are made of, and awkward values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tests.autodiff.structure import gradients, opcodes
from tracejit import ops
from tracejit.graph import Instruction

X = np.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize(
    ("build", "opcode"),
    [
        (lambda x: ops.broadcast_in_dim(x, (4, 2, 3), (1, 2)), "reduce"),
        (lambda x: ops.reshape(x, (6,)), "reshape"),
        (lambda x: ops.transpose(x, (1, 0)), "transpose"),
        (lambda x: ops.rev(x, (1,)), "reverse"),
        (lambda x: ops.slice_(x, (0, 1), (2, 3), (1, 2)), "pad"),
        (lambda x: ops.dynamic_slice(x, [ops.constant(1)] * 2, (1, 2)), "dynamic-update-slice"),
    ],
)
def test_derivative_is_one_op_that_moves_back(
    build: Callable[[Instruction], Instruction], opcode: str
) -> None:
    assert opcodes(build, X)[opcode] == 1


def test_cotangent_of_the_padding_value_counts_every_place_it_fills() -> None:
    x, fill = np.array([1.0, 2.0, 3.0]), np.array(9.0)
    # 9 9 1 9 2 9, of which 3 is cropped.
    (of_x, of_fill) = gradients(
        lambda a, v: ops.pad(a, v, [(2, -1, 1)]), [x, fill], [np.arange(1.0, 7.0)]
    )
    assert_array_equal(of_x, [3, 5, 0])
    assert_array_equal(of_fill, 1 + 2 + 4 + 6)


def test_infinite_cotangent_does_not_reach_the_padding_value() -> None:
    x, fill = np.array([1.0]), np.array(9.0)
    (of_x, of_fill) = gradients(
        lambda a, v: ops.pad(a, v, [(1, 0, 0)]), [x, fill], [np.array([2.0, np.inf])]
    )
    assert_array_equal(of_x, [np.inf])
    assert_array_equal(of_fill, 2)


def test_operand_concatenated_twice_gathers_both_cotangents() -> None:
    (of_x,) = gradients(
        lambda x: ops.concatenate([x, x], 0), [np.array([1.0, 2.0])], [np.arange(4.0)]
    )
    assert_array_equal(of_x, [0 + 2, 1 + 3])


def test_clamped_dynamic_slices_send_cotangents_where_they_read() -> None:
    start = np.array(7)
    (of_x, _) = gradients(
        lambda x, s: ops.dynamic_slice(x, [s], [2]), [np.arange(4.0), start], [np.array([5.0, 6.0])]
    )
    assert_array_equal(of_x, [0, 0, 5, 6])
    (of_x, of_update, _) = gradients(
        lambda x, u, s: ops.dynamic_update_slice(x, u, [s]),
        [np.arange(4.0), np.zeros(2), start],
        [np.arange(1.0, 5.0)],
    )
    assert_array_equal(of_x, [1, 2, 0, 0])
    assert_array_equal(of_update, [3, 4])


def test_slices_apart_are_put_side_by_side() -> None:
    def rows(x: Instruction) -> list[Instruction]:
        return [ops.slice_in_dim(x, i, i + 1, 1, 0) for i in (2, 0, 1, 3)]

    def columns(x: Instruction) -> list[Instruction]:
        return [ops.slice_in_dim(x, i, i + 2, 1, 1) for i in (1, 3)]

    def apart(x: Instruction) -> list[Instruction]:
        return [ops.slice_in_dim(x, i, i + 1, 1, 0) for i in (0, 3)]

    x = np.zeros((4, 6))
    assert opcodes(apart, x)["concatenate"] == 1
    (gradient,) = gradients(apart, [x], [np.ones((1, 6))] * 2)
    assert_array_equal(gradient, np.repeat([[1.0], [0.0], [0.0], [1.0]], 6, axis=1))
    assert opcodes(rows, x) == {"parameter": 4, "concatenate": 1}
    assert opcodes(columns, x) == {"parameter": 2, "concatenate": 1, "pad": 1, "constant": 1}
    seeds = [np.full((4, 2), 2.0), np.full((4, 2), 3.0)]
    (gradient,) = gradients(columns, [x], seeds)
    assert_array_equal(gradient, np.broadcast_to([0, 2, 2, 3, 3, 0], (4, 6)))


def test_slices_that_overlap_are_added() -> None:
    def build(x: Instruction) -> list[Instruction]:
        return [ops.slice_(x, [a], [b]) for a, b in ((0, 2), (1, 3), (4, 5), (0, 2))]

    (gradient,) = gradients(
        build, [np.zeros(6)], [np.ones(2), np.full(2, 10.0), np.full(1, 100.0), np.full(2, 1e3)]
    )
    assert_array_equal(gradient, [1001, 1011, 10, 0, 100, 0])
