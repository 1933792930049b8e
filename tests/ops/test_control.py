"""Call, Map, Conditional and While: the specification's examples, and what is refused."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tests.building import computation
from tests.ops.evaluation import evaluated
from tracejit import ops
from tracejit.errors import (
    AttributeValueError,
    ElementTypeError,
    ShapeError,
    TracejitError,
    UnsupportedError,
)
from tracejit.graph import Instruction
from tracejit.ops.base import make
from tracejit.ops.control import CONDITIONAL
from tracejit.ops.lifting import lift
from tracejit.shapes import ElementType, Shape

F32, S32, PRED = ElementType.F32, ElementType.S32, ElementType.PRED
SCALAR = Shape(F32)

DOUBLE = computation("double", lambda x: ops.add(x, x), SCALAR)
SQUARE = computation("square", lambda x: ops.mul(x, x), SCALAR)
NEGATIVE = computation("negative", ops.neg, SCALAR)


def array(*dimensions: int, element_type: ElementType = F32) -> Instruction:
    return ops.parameter(0, Shape(element_type, dimensions))


def test_call_applies_the_computation() -> None:
    assert evaluated(lambda x: ops.call(SQUARE, [x]), np.float32(3)) == 9


def test_map_applies_a_scalar_function_everywhere() -> None:
    clamp = computation("clamp", ops.clamp, SCALAR, SCALAR, SCALAR)
    low, values, high = (np.array(v, np.float32) for v in ([[0, 1]], [[-5, 5]], [[2, 3]]))
    mapped = evaluated(lambda *x: ops.map_(x, clamp, [0, 1]), low, values, high)
    assert_array_equal(mapped, [[0, 3]])


def test_map_may_change_the_element_type() -> None:
    positive = computation("positive", lambda x: ops.gt(x, ops.constant(0, F32)), SCALAR)
    mapped = evaluated(lambda x: ops.map_(x, positive), np.array([-1, 0, 1], np.float32))
    assert mapped.dtype == np.bool_
    assert_array_equal(mapped, [False, False, True])


@pytest.mark.parametrize(("predicate", "result"), [(True, 6), (False, 25)])
def test_conditional_runs_one_of_two(predicate: bool, result: int) -> None:
    def build(p: Instruction, x: Instruction, y: Instruction) -> Instruction:
        return ops.conditional(p, x, DOUBLE, y, SQUARE)

    assert evaluated(build, np.bool_(predicate), np.float32(3), np.float32(5)) == result


@pytest.mark.parametrize(
    ("index", "result"), [(0, 4), (1, 9), (2, -4), (3, -4), (-1, -4), (2**31 - 1, -4)]
)
def test_conditional_runs_the_last_of_many_out_of_range(index: int, result: int) -> None:
    def build(i: Instruction, x: Instruction, y: Instruction, z: Instruction) -> Instruction:
        return ops.conditional_indexed(i, [DOUBLE, SQUARE, NEGATIVE], [x, y, z])

    arguments = [np.int32(index), np.float32(2), np.float32(3), np.float32(4)]
    assert evaluated(build, *arguments) == result


def test_while_adds_a_vector_a_thousand_times() -> None:
    state = ops.tuple_([array(element_type=S32), array(10)]).shape

    def condition(value: Instruction) -> Instruction:
        return ops.lt(ops.get_tuple_element(value, 0), ops.constant(1000, S32))

    def body(value: Instruction) -> Instruction:
        iteration, vector = ops.elements_of(value)
        return ops.tuple_(
            [
                ops.add(iteration, ops.constant(1, S32)),
                ops.add(vector, ops.constant(np.arange(10), F32)),
            ]
        )

    def build(start: Instruction, vector: Instruction) -> Instruction:
        return ops.while_(
            computation("condition", condition, state),
            computation("body", body, state),
            ops.tuple_([start, vector]),
        )

    count, total = evaluated(build, np.int32(0), np.zeros(10, np.float32))
    assert count == 1000
    assert_array_equal(total, 1000 * np.arange(10))


def test_lift_follows_calls_constants_and_conversions() -> None:
    def inner(x: Instruction) -> Instruction:
        shifted = ops.add(ops.call(SQUARE, [x]), ops.constant(0.5, F32))
        return ops.convert_element_type(ops.reshape(shifted, []), S32)

    whole = computation("whole", inner, SCALAR)
    values = np.array([[1, 2], [3, -4]], np.float32)
    assert_array_equal(evaluated(lambda x: lift(whole, [x]), values), [[1, 4], [9, 16]])


def test_lift_combines_the_start_of_a_sum_with_each_element() -> None:
    total = computation("total", lambda x: ops.reduce_sum(x, []), SCALAR)
    values = np.array([1, -2, 3], np.float32)
    assert_array_equal(evaluated(lambda x: lift(total, [x]), values), values)


def halved(x: Instruction) -> Instruction:
    is_large = computation("is_large", lambda v: ops.gt(v, ops.constant(1, F32)), SCALAR)
    half = computation("half", lambda v: ops.mul(v, ops.constant(0.5, F32)), SCALAR)
    return ops.while_(is_large, half, x)


@pytest.mark.parametrize(
    ("build", "function"),
    [
        (halved, "while"),
        (lambda x: ops.reduce_sum(ops.broadcast(x, [2]), [0]), "broadcast_in_dim"),
        (lambda x: ops.reshape(ops.constant(np.ones(1), F32), []), "constant"),
        (lambda x: ops.bitcast_convert_type(x, S32), "bitcast_convert_type"),
        (lambda x: ops.call(computation("inner", halved, SCALAR), [x]), "while"),
    ],
    ids=["loop", "broadcast", "array", "bits", "called loop"],
)
def test_lift_refuses_what_is_not_elementwise(
    build: Callable[[Instruction], Instruction], function: str
) -> None:
    whole = computation("whole", build, SCALAR)
    with pytest.raises(UnsupportedError, match=f"^{function}: cannot be applied element by elem"):
        lift(whole, [array(3)])


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (
            lambda: ops.call(DOUBLE, [array(2)]),
            ShapeError,
            r"call: computation must be a computation \(f32\[2\]\) -> f32\[\]; double is "
            r"\(f32\[\]\) -> f32\[\]",
        ),
        (
            lambda: ops.call(DOUBLE, []),
            ShapeError,
            r"call: computation must be a computation \(\) -> f32\[\]",
        ),
        (lambda: ops.map_([], DOUBLE), ShapeError, r"map: needs at least one operand"),
        (
            lambda: ops.map_([array(2), array(3)], DOUBLE),
            ShapeError,
            r"map: all operands must have the same dimensions; operand 0 is f32\[2\], operand 1",
        ),
        (
            lambda: ops.map_(array(2, 3), DOUBLE, [1, 0]),
            AttributeValueError,
            r"map: dimensions must be all of operand 0 f32\[2,3\] in order, not \(1, 0\)",
        ),
        (
            lambda: ops.map_(array(2, element_type=S32), DOUBLE),
            ShapeError,
            r"map: computation must be a computation \(s32\[\]\) -> f32\[\]; double is",
        ),
        (
            lambda: ops.map_(array(2), computation("wide", lambda x: x, Shape(F32, (2,)))),
            ShapeError,
            r"map: the computation's result f32\[2\] must be a scalar",
        ),
        (
            lambda: ops.conditional(array(), array(), DOUBLE, array(), SQUARE),
            ElementTypeError,
            r"conditional: predicate must be pred\[\] or branch_index s32\[\], not f32\[\]",
        ),
        (
            lambda: ops.conditional(array(2, element_type=PRED), array(), DOUBLE, array(), SQUARE),
            ElementTypeError,
            r"conditional: predicate must be pred\[\] .* not pred\[2\]",
        ),
        (
            lambda: ops.conditional(array(element_type=PRED), array(2), DOUBLE, array(), SQUARE),
            ShapeError,
            r"conditional: branch 0 must be a computation \(f32\[2\]\) -> f32\[\]; double is",
        ),
        (
            lambda: ops.conditional_indexed(array(element_type=S32), [], []),
            AttributeValueError,
            r"conditional: a branch_index goes with one or more branch_computations",
        ),
        (
            lambda: ops.conditional_indexed(array(element_type=S32), [DOUBLE, SQUARE], [array()]),
            ShapeError,
            r"conditional: 2 branches need as many operands, not 1",
        ),
        (
            lambda: make(
                CONDITIONAL, array(element_type=PRED), array(), branch_computations=(DOUBLE,)
            ),
            AttributeValueError,
            r"conditional: a predicate goes with true_computation and false_computation",
        ),
        (
            lambda: ops.while_(DOUBLE, DOUBLE, array()),
            ShapeError,
            r"while: condition must be a computation \(f32\[\]\) -> pred\[\]; double is",
        ),
        (
            lambda: ops.while_(
                computation("never", lambda x: ops.constant(False), Shape(F32, (2,))),
                computation("first", lambda x: ops.reduce_sum(x), Shape(F32, (2,))),
                array(2),
            ),
            ShapeError,
            r"while: body must be a computation \(f32\[2\]\) -> f32\[2\]; first is",
        ),
    ],
)
def test_refusals(
    build: Callable[[], Instruction], error: type[TracejitError], message: str
) -> None:
    with pytest.raises(error, match=message):
        build()
