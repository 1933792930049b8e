"""Derivatives of Call, Map, Conditional and While: calls stay calls, branches stay branches."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import tracejit as tj
from tests.autodiff.gradients import check_gradients
from tests.autodiff.structure import gradients, opcodes
from tests.building import computation
from tests.samples.control import three_ways
from tracejit import ops
from tracejit.graph import Instruction
from tracejit.shapes import ElementType, Shape, TupleShape

F64, PRED = ElementType.F64, ElementType.PRED
SCALAR = Shape(F64)


def test_the_derivative_of_a_call_is_a_call() -> None:
    sine = computation("sine", ops.sin, SCALAR)
    assert opcodes(lambda x: ops.call(sine, [x]), 1.0) == {
        "parameter": 2,
        "call": 1,
        "get-tuple-element": 1,
    }
    check_gradients(lambda x: ops.call(sine, [x]), [np.array(0.3)], order=3)


def test_calls_with_tuples_in_tuples() -> None:
    nested = TupleShape((SCALAR, TupleShape((SCALAR, Shape(ElementType.S32)))))

    def inner(pair: Instruction) -> Instruction:
        x, rest = ops.elements_of(pair)
        y, count = ops.elements_of(rest)
        product = ops.mul(x, ops.sin(y))
        return ops.tuple_([ops.tuple_([product, count]), ops.mul(y, y)])

    body = computation("inner", inner, nested)

    def build(x: Instruction, y: Instruction) -> Instruction:
        count = ops.constant(3, ElementType.S32)
        made = ops.call(body, [ops.tuple_([x, ops.tuple_([y, count])])])
        first, square = ops.elements_of(made)
        return ops.tuple_([ops.get_tuple_element(first, 0), square])

    check_gradients(build, [np.array(0.7), np.array(-0.4)])


def test_what_a_call_does_not_use_has_no_gradient() -> None:
    first = computation("first", lambda x, y: ops.mul(x, x), SCALAR, SCALAR)
    of_x, of_y = gradients(lambda x, y: ops.call(first, [x, y]), [3.0, 5.0], [1.0])
    assert of_x == 6
    assert of_y is None


def test_only_the_branch_that_ran_has_a_gradient() -> None:
    root = computation("root", ops.sqrt, SCALAR)
    square = computation("square", lambda x: ops.mul(x, x), SCALAR)

    def build(predicate: Instruction, x: Instruction, y: Instruction) -> Instruction:
        return ops.conditional(predicate, x, root, y, square)

    # The square root's derivative at 0 is infinite; it must not reach the other branch as NaN.
    of_predicate, of_x, of_y = gradients(build, [np.bool_(False), 0.0, 3.0], [1.0])
    assert of_predicate is None
    assert_array_equal([of_x, of_y], [0, 6])
    assert opcodes(build, np.bool_(False), 0.0, 3.0)["conditional"] == 1


@pytest.mark.parametrize("index", [0, 1, 2, 5])
def test_one_value_may_enter_several_branches(index: int) -> None:
    def build(x: Instruction) -> Instruction:
        return three_ways(ops.constant(index, ElementType.S32), x, x)

    check_gradients(build, [np.array([0.5, -2.0])])


def test_a_conditional_on_integers_has_no_gradient() -> None:
    same = computation("same", lambda x: x, Shape(ElementType.S32))

    def build(x: Instruction) -> Instruction:
        whole = ops.convert_element_type(x, ElementType.S32)
        chosen = ops.conditional(ops.constant(True), whole, same, whole, same)
        return ops.convert_element_type(chosen, F64)

    assert gradients(build, [2.0], [1.0]) == [None]


def test_map_is_differentiated_element_by_element() -> None:
    product = computation("product", lambda x, y: ops.mul(x, ops.exp(y)), SCALAR, SCALAR)
    values = np.array([[0.5, -1.0], [2.0, 0.0]])
    check_gradients(lambda x, y: ops.map_([x, y], product), [values, values.T.copy()], order=3)


def test_a_scan_keeps_what_is_costly_and_computes_again_what_is_not() -> None:
    """Except what is said to be computed again."""

    X = np.linspace(-1, 1, 12).reshape(4, 3)

    def steps(function: Any) -> Counter[str]:
        text = tj.jit(tj.grad(lambda w: function(w, X).sum())).lower(np.eye(3)).as_text()
        back = text[text.index("_gradient") :]
        return Counter({name: back.count(f" {name}(") for name in ("dot", "tanh", "sine")})

    def step(h: Any, x: Any, w: Any) -> Any:
        return np.sin(np.tanh(h @ w + x)), None

    def scanned(w: Any, xs: Any) -> Any:
        return tj.lax.scan(lambda h, x: step(h, x, w), xs[0], xs)[0]

    def checkpointed(w: Any, xs: Any) -> Any:
        return tj.lax.scan(tj.checkpoint(lambda h, x: step(h, x, w)), xs[0], xs)[0]

    assert steps(scanned)["tanh"] == 0
    assert steps(checkpointed)["tanh"] == 1
    found, again = (tj.jacrev(f)(np.eye(3) * 0.9, X) for f in (scanned, checkpointed))
    np.testing.assert_allclose(found, again, 1e-12)
    np.testing.assert_allclose(tj.jacfwd(scanned)(np.eye(3) * 0.9, X), found, 1e-12)
