"""The page "Operation semantics": reductions, windows, sorting, Map."""

from __future__ import annotations

import numpy as np
import pytest

from tests.specification.running import F32, S32, Build, computation, expect, f32, s32, scalars
from tracejit.builder import XlaBuilder
from tracejit.graph import Computation, Instruction
from tracejit.shapes import ElementType, Shape

LARGEST = np.finfo(np.float32).max
CUBOID = np.broadcast_to(f32([[1, 2, 3], [4, 5, 6]]), (4, 2, 3)).copy()


def add(element_type: ElementType = F32) -> Computation:
    return scalars(lambda b, x, y: b.add(x, y), element_type, element_type)


def reduced(dimensions: tuple[int, ...]) -> Build:
    return lambda b, x: b.reduce(x, b.constant(f32(0)), add(), dimensions)


def test_reduce_a_vector() -> None:
    expect(reduced((0,)), [f32([10, 11, 12, 13])], f32(46))


def test_reduce_a_matrix_along_either_dimension() -> None:
    matrix = f32([[1, 2, 3], [4, 5, 6]])
    expect(reduced((0,)), [matrix], f32([5, 7, 9]))
    expect(reduced((1,)), [matrix], f32([6, 15]))


@pytest.mark.parametrize(
    ("dimensions", "wanted"),
    [
        ((0,), [[4, 8, 12], [16, 20, 24]]),
        ((2,), [[6, 15], [6, 15], [6, 15], [6, 15]]),
        ((0, 1), [20, 28, 36]),
        ((1, 0), [20, 28, 36]),
        ((0, 1, 2), 84),
    ],
)
def test_reduce_a_cuboid(dimensions: tuple[int, ...], wanted: object) -> None:
    expect(reduced(dimensions), [CUBOID], f32(wanted))


def test_reduce_to_a_maximum_and_its_index() -> None:
    def better(b: XlaBuilder, *pairs: Instruction) -> Instruction:
        greatest, place, value, index = pairs
        take = b.ge(value, greatest)
        return b.tuple([b.select(take, value, greatest), b.select(take, index, place)])

    argmax = scalars(better, F32, S32, F32, S32)
    expect(
        lambda b, v: b.reduce(
            [v, b.iota(Shape(S32, (5,)), 0)],
            [b.constant(f32(-np.inf)), b.constant(s32(0))],
            argmax,
            (0,),
        ),
        [f32([3, 9, -4, 9, 1])],
        (f32(9), s32(3)),
    )


def window_min(padding: str) -> Build:
    least = scalars(lambda b, x, y: b.min(x, y), F32, F32)
    return lambda b, x: b.reduce_window(x, b.constant(f32(LARGEST)), least, (3,), (2,), padding)


def test_reduce_window_by_blocks() -> None:
    greatest = scalars(
        lambda b, y, x: b.max(y, x),
        F32,
        F32,
    )
    values = np.arange(24, dtype=np.float32).reshape(4, 6)
    lowest = f32(np.finfo(np.float32).min)
    expect(
        lambda b, x: b.reduce_window(x, b.constant(lowest), greatest, (2, 3), (2, 3), "VALID"),
        [values],
        f32([[8, 11], [20, 23]]),
    )


def test_reduce_window_without_padding_and_with() -> None:
    values = f32([10000, 1000, 100, 10, 1])
    expect(window_min("VALID"), [values], f32([100, 1]))
    expect(window_min("SAME"), [values], f32([1000, 10, 1]))


def test_reduce_window_with_dilations() -> None:
    expect(
        lambda b, x: b.reduce_window(
            x,
            b.constant(s32(0)),
            add(S32),
            window_dimensions=(2, 1),
            window_strides=(4, 1),
            padding=((2, 1), (0, 0)),
            base_dilations=(2, 1),
            window_dilations=(3, 1),
        ),
        [s32([[1, 2], [3, 4], [5, 6]])],
        s32([[0, 0], [3, 4]]),
    )


def test_select_and_scatter_adds_what_meets_at_one_place() -> None:
    """Two windows that overlap select the 9: it receives 2 + 6."""
    select = scalars(lambda b, x, y: b.ge(x, y), F32, F32)
    operand = f32([[7, 2, 5, 3, 8], [3, 8, 9, 3, 4], [1, 5, 7, 5, 6], [0, 6, 2, 10, 2]])
    source = f32([[2, 6], [3, 1]])
    expect(
        lambda b, x, s: b.select_and_scatter(
            x, select, (2, 3), (2, 2), "VALID", s, b.constant(f32(0)), add()
        ),
        [operand, source],
        f32([[0, 0, 0, 0, 0], [0, 0, 8, 0, 0], [0, 0, 3, 0, 0], [0, 0, 0, 1, 0]]),
    )


def test_sort_orders_all_operands_by_the_comparator() -> None:
    less = scalars(lambda b, x, y, *others: b.lt(x, y), S32, S32, S32, S32, F32, F32)
    expect(
        lambda b, *operands: b.sort(operands, less, 0),
        [s32([3, 1]), s32([42, 50]), f32([-3.0, 1.1])],
        (s32([1, 3]), s32([50, 42]), f32([1.1, -3.0])),
    )


@pytest.mark.parametrize("dimension", [0, 1, -1])
def test_sort_along_a_dimension(dimension: int) -> None:
    less = scalars(lambda b, x, y: b.lt(x, y), S32, S32)
    values = s32([[3, 1, 2], [0, 5, 4]])
    expect(
        lambda b, x: b.sort(x, less, dimension, is_stable=True),
        [values],
        np.sort(values, axis=dimension),
    )


def test_sort_takes_the_last_dimension_unless_told() -> None:
    less = scalars(lambda b, x, y: b.gt(x, y), S32, S32)
    expect(lambda b, x: b.sort(x, less), [s32([[3, 1], [0, 5]])], s32([[3, 1], [5, 0]]))


def test_a_stable_sort_keeps_the_order_of_equals() -> None:
    less = scalars(lambda b, x, y, *others: b.lt(x, y), S32, S32, S32, S32)
    keys, tags = s32([1, 0] * 40), np.arange(80, dtype=np.int32)
    order = np.argsort(keys, kind="stable")
    expect(
        lambda b, *operands: b.sort(operands, less, 0, True),
        [keys, tags],
        (keys[order], tags[order]),
    )


def test_top_k_of_a_vector_prefers_lower_indices() -> None:
    values = f32([1, 5, 3, 5, 4])
    expect(lambda b, x: b.top_k(x, 3, True), [values], (f32([5, 5, 4]), s32([1, 3, 4])))
    expect(lambda b, x: b.top_k(x, 2, largest=False), [values], (f32([1, 3]), s32([0, 2])))


def test_top_k_runs_along_the_last_dimension() -> None:
    made = computation(lambda b, x: b.top_k(x, 2, True), Shape(F32, (3, 4, 5)))
    wanted = (Shape(F32, (3, 4, 2)), Shape(S32, (3, 4, 2)))
    assert made.root.element_shapes == wanted
    rows = f32([[1, 3, 2], [9, 7, 8]])
    expect(lambda b, x: b.top_k(x, 2, True), [rows], (f32([[3, 2], [9, 8]]), s32([[1, 2], [0, 2]])))


def test_map_applies_a_function_of_scalars() -> None:
    """elem_out <- computation(elem1, elem2, elem3, par1)."""
    function = scalars(lambda b, x, y, z, p: b.add(b.mul(x, y), b.mul(z, p)), F32, F32, F32, F32)
    x, y, z, p = f32([[1, 2]]), f32([[3, 4]]), f32([[5, 6]]), f32(10)
    expect(
        lambda b, x, y, z, p: b.map([x, y, z], function, (0, 1), static_operands=[p]),
        [x, y, z, p],
        x * y + z * p,
    )


def test_map_may_change_the_element_type() -> None:
    function = scalars(lambda b, x, y: b.lt(x, y), F32, F32)
    expect(
        lambda b, x, y: b.map([x, y], function), [f32([1, 5]), f32([2, 3])], np.array([True, False])
    )
