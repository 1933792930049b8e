"""Reduce, Sort and TopK: the specification's examples, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tests.building import computation
from tests.ops.evaluation import evaluated
from tracejit import ops
from tracejit.errors import (
    ArgumentError,
    AttributeValueError,
    DimensionError,
    ElementTypeError,
    ShapeError,
    TracejitError,
)
from tracejit.graph import Computation, Instruction
from tracejit.ops.computations import binary_op, highest, lowest
from tracejit.ops.elementwise import ADD, SUB
from tracejit.shapes import ElementType, Shape

F32, S32, PRED = ElementType.F32, ElementType.S32, ElementType.PRED

CUBE = np.broadcast_to(np.array([[1, 2, 3], [4, 5, 6]], np.float32), (4, 2, 3)).copy()


def array(*dimensions: int, element_type: ElementType = F32) -> Instruction:
    return ops.parameter(0, Shape(element_type, dimensions))


def test_reduce_of_a_vector() -> None:
    values = np.array([10, 11, 12, 13], np.int32)
    assert evaluated(lambda x: ops.reduce_sum(x, [0]), values) == 46


@pytest.mark.parametrize(("dimension", "sums"), [(0, [5, 7, 9]), (1, [6, 15])])
def test_reduce_of_a_matrix(dimension: int, sums: Sequence[int]) -> None:
    matrix = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    assert_array_equal(evaluated(lambda x: ops.reduce_sum(x, [dimension]), matrix), sums)


@pytest.mark.parametrize(
    ("dimensions", "sums"),
    [
        ([0], [[4, 8, 12], [16, 20, 24]]),
        ([2], [[6, 15], [6, 15], [6, 15], [6, 15]]),
        ([0, 1], [20, 28, 36]),
        ([0, 1, 2], 84),
    ],
)
def test_reduce_of_a_cube(dimensions: Sequence[int], sums: object) -> None:
    assert_array_equal(evaluated(lambda x: ops.reduce_sum(x, dimensions), CUBE), sums)


def test_reduce_of_two_operands_finds_maximum_and_place() -> None:
    def later_maximum(
        best: Instruction, place: Instruction, value: Instruction, index: Instruction
    ) -> Instruction:
        better = ops.ge(value, best)
        return ops.tuple_([ops.select(better, value, best), ops.select(better, index, place)])

    scalars = [Shape(F32), Shape(S32)] * 2
    both = computation("later_maximum", later_maximum, *scalars)

    def build(values: Instruction) -> Instruction:
        inits = [ops.constant(-np.inf, F32), ops.constant(-1, S32)]
        return ops.reduce([values, ops.iota(Shape(S32, (5,)))], inits, both, [0])

    value, place = evaluated(build, np.array([2, 7, 1, 7, 3], np.float32))
    assert (value, place) == (7, 3)


def test_reduce_keeps_the_order_of_a_computation_that_does_not_commute() -> None:
    def second(_: Instruction, value: Instruction) -> Instruction:
        return value

    last = computation("last", second, Shape(F32), Shape(F32))
    values = np.arange(7, dtype=np.float32)
    assert evaluated(lambda x: ops.reduce(x, ops.constant(0, F32), last, [0]), values) == 6


@pytest.mark.parametrize("find", [ops.argmax, ops.argmin])
def test_arg_reductions_follow_numpy(find: Callable[..., Instruction]) -> None:
    numpy_function = np.argmax if find is ops.argmax else np.argmin
    infinite = np.full((1, 4), -np.inf if find is ops.argmax else np.inf, np.float32)
    for values in (
        np.array([[3, 1, 3, 1], [np.nan, 9, np.nan, -9]], np.float32),
        infinite,
        np.array([[True, False, True, False]]),
        np.array([[-128, 127, -128, 127]], np.int8),
    ):
        places = evaluated(lambda x: find(x, 1), values)
        assert_array_equal(places, numpy_function(values, 1))


def test_sort_of_three_operands_by_the_first() -> None:
    less = ops.sort_order(S32, S32, F32)
    operands = [
        np.array([3, 1], np.int32),
        np.array([42, 50], np.int32),
        np.array([-3.0, 1.1], np.float32),
    ]
    first, second, third = evaluated(lambda *x: ops.sort(x, less), *operands)
    assert_array_equal(first, [1, 3])
    assert_array_equal(second, [50, 42])
    assert_array_equal(third, np.array([1.1, -3.0], np.float32))


@pytest.mark.parametrize("dimension", [0, 1])
def test_sort_of_a_matrix_sorts_columns_or_rows(dimension: int) -> None:
    matrix = np.random.default_rng(0).permutation(20).reshape(4, 5).astype(np.int32)
    ordered = evaluated(lambda x: ops.sort(x, dimension=dimension), matrix)
    assert_array_equal(ordered, np.sort(matrix, dimension))


def test_sort_is_stable_and_puts_nan_last() -> None:
    keys = np.array([np.nan, 0.0, 1.0, -0.0, np.nan, -1.0, 0.0], np.float32)

    def build(x: Instruction) -> Instruction:
        return ops.sort([x, ops.iota(Shape(S32, (7,)))], is_stable=True)

    _, order = evaluated(build, keys)
    assert_array_equal(order, [5, 1, 3, 6, 2, 0, 4])


def test_sort_with_any_comparator() -> None:
    last_digit = computation(
        "by_last_digit",
        lambda x, y: ops.lt(ops.rem(x, ops.constant(10, S32)), ops.rem(y, ops.constant(10, S32))),
        Shape(S32),
        Shape(S32),
    )
    values = np.random.default_rng(1).integers(0, 1000, 53).astype(np.int32)
    ordered = evaluated(lambda x: ops.sort(x, last_digit, is_stable=True), values)
    assert_array_equal(ordered, sorted(values, key=lambda v: v % 10))


def test_top_k_puts_the_lower_index_first_among_equals() -> None:
    rows = np.array([[1, 3, 3, 2], [5, 5, 5, 5]], np.int32)
    values, indices = evaluated(lambda x: ops.top_k(x, 2), rows)
    assert_array_equal(values, [[3, 3], [5, 5]])
    assert_array_equal(indices, [[1, 2], [0, 1]])
    values, indices = evaluated(lambda x: ops.top_k(x, 3, largest=False), rows)
    assert_array_equal(values, [[1, 2, 3], [5, 5, 5]])
    assert_array_equal(indices, [[0, 3, 1], [0, 1, 2]])


def test_scalar_computation_is_one_object_per_name_and_type() -> None:
    assert ops.scalar_computation("add", F32) is ops.scalar_computation("add", F32)
    assert binary_op(ops.scalar_computation("add", F32)) is ADD
    swapped = computation("swapped", lambda x, y: ops.add(y, x), Shape(F32), Shape(F32))
    assert binary_op(swapped) is ADD
    backwards = computation("backwards", lambda x, y: ops.sub(y, x), Shape(F32), Shape(F32))
    assert binary_op(backwards) is None
    assert binary_op(ops.scalar_computation("sub", F32)) is SUB
    with pytest.raises(ArgumentError, match="'plus' is none of add"):
        ops.scalar_computation("plus", F32)


@pytest.mark.parametrize("element_type", [t for t in ElementType if not t.is_complex])
def test_identities_change_nothing(element_type: ElementType) -> None:
    least, most = lowest(element_type), highest(element_type)
    assert least.dtype == most.dtype == element_type.dtype
    assert least < most
    for name in ("max", "min"):
        for value in (least, most, element_type.dtype.type(1)):
            identity = ops.constant(ops.identity_value(name, element_type), element_type)
            extremum = ops.scalar_computation(name, element_type)
            assert evaluated(lambda x, i=identity, c=extremum: ops.call(c, [x, i]), value) == value


def bad_reducer() -> Computation:
    return ops.scalar_computation("lt", F32)


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (
            lambda: ops.reduce_sum(array(2, 3), [2]),
            DimensionError,
            r"reduce: dimension 2 is out of range for rank 2",
        ),
        (
            lambda: ops.reduce_sum(array(2, 3), [1, -1]),
            AttributeValueError,
            r"reduce: dimensions_to_reduce must be distinct .* not \(1, 1\)",
        ),
        (
            lambda: ops.reduce(array(2), ops.constant(0, F32), bad_reducer(), [0]),
            ShapeError,
            r"reduce: computation must be a computation \(f32\[\], f32\[\]\) -> f32\[\]; "
            r"lt_f32 is \(f32\[\], f32\[\]\) -> pred\[\]",
        ),
        (
            lambda: ops.reduce(
                array(2), ops.constant(0, S32), ops.scalar_computation("add", F32), [0]
            ),
            ElementTypeError,
            r"reduce: init_value 0 s32\[\] must have the element type of operand f32\[2\]",
        ),
        (
            lambda: ops.reduce(array(2), array(2), ops.scalar_computation("add", F32), [0]),
            ShapeError,
            r"reduce: init_value 0 f32\[2\] must be a scalar",
        ),
        (
            lambda: ops.reduce(
                [array(2), array(3)],
                [ops.constant(0, F32)] * 2,
                ops.scalar_computation("add", F32),
                [0],
            ),
            ShapeError,
            r"reduce: all operands must have the same dimensions; operand 0 is f32\[2\], "
            r"operand 1 is f32\[3\]",
        ),
        (
            lambda: ops.reduce([], [], ops.scalar_computation("add", F32), []),
            ShapeError,
            r"reduce: needs at least one operand",
        ),
        (
            lambda: ops.reduce(array(2), [], ops.scalar_computation("add", F32), [0]),
            ShapeError,
            r"reduce: needs at least one operand and as many init_values; got 1 arrays",
        ),
        (
            lambda: ops.reduce(array(2), ops.constant(0, F32), "add", [0]),  # type: ignore[arg-type]
            ArgumentError,
            r"reduce: computation must be a Computation, not str",
        ),
        (
            lambda: ops.reduce_sum(ops.tuple_([array(2)]), [0]),
            ShapeError,
            r"reduce_add: operand must be an array, not \(f32\[2\]\)",
        ),
        (
            lambda: ops.argmax(array(2, 0), 1),
            ShapeError,
            r"argmax: dimension 1 of operand f32\[2,0\] is empty",
        ),
        (
            lambda: ops.argmin(array(), 0),
            DimensionError,
            r"argmin: operand f32\[\] has no dimensions",
        ),
        (
            lambda: ops.argmin(array(2), 0, F32),
            ElementTypeError,
            r"argmin: index_type must be integral, not f32",
        ),
        (
            lambda: ops.argmax(array(2, element_type=ElementType.C64), 0),
            ElementTypeError,
            r"argmax: operand c64\[2\] has element type c64; allowed are",
        ),
        (
            lambda: ops.sort(array(2, 3), dimension=2),
            DimensionError,
            r"sort: dimension 2 is out of range for rank 2",
        ),
        (
            lambda: ops.sort(array()),
            DimensionError,
            r"sort: operand 0 f32\[\] has no dimensions",
        ),
        (
            lambda: ops.sort(array(2, element_type=ElementType.C64)),
            ElementTypeError,
            r"sort: operand 0 c64\[\] has element type c64",
        ),
        (
            lambda: ops.sort([array(2), array(3)]),
            ShapeError,
            r"sort: all operands must have the same dimensions",
        ),
        (
            lambda: ops.sort(array(2), ops.scalar_computation("add", F32)),
            ShapeError,
            r"sort: comparator must be a computation \(f32\[\], f32\[\]\) -> pred\[\]; add_f32",
        ),
        (
            lambda: ops.top_k(array(2, 3), 4),
            AttributeValueError,
            r"top_k: k is 4, the last dimension of operand f32\[2,3\] has 3",
        ),
        (
            lambda: ops.top_k(array(2, 3), -1),
            AttributeValueError,
            r"top_k: k is -1",
        ),
        (
            lambda: ops.top_k(array(), 0),
            ShapeError,
            r"top_k: operand f32\[\] must have at least one dimension",
        ),
    ],
)
def test_refusals(
    build: Callable[[], Instruction], error: type[TracejitError], message: str
) -> None:
    with pytest.raises(error, match=message):
        build()
