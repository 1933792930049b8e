"""XLA asked op by op: what is wrong in our code is found, XLA's contradictions are no failures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.building import computation
from tests.fuzz.judging import CONTRADICTED, REFUSED, Outcome, Single, judge_graph, judge_singles
from tests.fuzz.op_by_op import op_by_op
from tests.fuzz.refused import FATAL
from tracejit import ops
from tracejit.backends.numpy.dynamic_sizes import set_dimension_size
from tracejit.backends.numpy.interpreter import interpret
from tracejit.graph import Instruction, Module, Op
from tracejit.ops.constants import GET_TUPLE_ELEMENT
from tracejit.ops.control import CALL, WHILE
from tracejit.ops.dynamic_sizes import SET_DIMENSION_SIZE
from tracejit.ops.elementwise import SUB
from tracejit.runtime import importing_tvm
from tracejit.shapes import ElementType, Shape

with importing_tvm():
    from tracejit.backends.tvm.analysis.element_rules import pointwise

Build = Callable[[Instruction], Instruction]

F32, S32, U8 = ElementType.F32, ElementType.S32, ElementType.U8
X = Shape(F32, (5,))
GIVEN = np.array([1.5, -2.0, 0.25, 8.0, 3.0], np.float32)


def differences(x: Instruction) -> Instruction:
    """Exponentials of differences, among other things."""
    total = ops.reduce_sum(ops.sub(ops.tanh(x), ops.full_like(x, 3)), [0])
    return ops.tuple_([ops.neg(x), total])


def counted(x: Instruction) -> Instruction:
    """Three steps of a loop that adds."""
    init = ops.tuple_([ops.constant(3, S32), ops.tuple_([x, x])])

    def step(state: Instruction) -> Instruction:
        number, pair = ops.elements_of(state)
        first, second = ops.elements_of(pair)
        less = ops.sub(number, ops.constant(1, S32))
        return ops.tuple_([less, ops.tuple_([ops.add(first, second), second])])

    def holds(state: Instruction) -> Instruction:
        return ops.gt(ops.get_tuple_element(state, 0), ops.constant(0, S32))

    body = computation("body", step, init.shape)
    made = ops.while_(computation("condition", holds, init.shape), body, init)
    return ops.tuple_(ops.elements_of(ops.get_tuple_element(made, 1)))


def taken(x: Instruction) -> Instruction:
    """A slice from a start that XLA, where it is a constant, takes for a negative number."""
    return ops.tuple_([ops.dynamic_slice(x, [ops.constant(200, U8)], [2])])


def everything(x: Instruction) -> Instruction:
    """Tuples, tokens, dynamic sizes, halves of asynchronous ops, several results."""
    cut = ops.set_dimension_size(x, ops.constant(3, S32), 0)
    waiting = ops.add_dependency(x, ops.after_all([]))
    called = computation("called", lambda a, b: ops.tuple_([b, ops.add(a, b)]), X, X)
    done = ops.async_done(ops.async_start(called, [waiting, x]))
    values, places = ops.elements_of(ops.top_k(ops.get_tuple_element(done, 1), 2))
    loop = ops.elements_of(counted(x))
    again = ops.set_dimension_size(x, ops.constant(5, S32), 0)
    return ops.tuple_([ops.reduce_sum(cut, [0]), values, places, again, *loop])


def judged(build: Build, seed: int = 1) -> Outcome:
    return judge_graph(Module("graph", computation("entry", build, X)), seed)


@pytest.mark.parametrize("build", [differences, counted, everything])
def test_what_agrees_agrees_op_by_op(build: Build) -> None:
    asked = op_by_op(computation("entry", build, X), [GIVEN])
    assert not asked.wrong
    assert len(asked.results) == len(computation("entry", build, X).root.operands)


def test_what_the_judge_dies_of_is_judged_op_by_op() -> None:
    module = Module("graph", computation("entry", differences, X))
    outcome = judge_graph(module, 1, whole=False)
    assert (outcome.kind, outcome.text) == (REFUSED, FATAL)


def test_a_constant_that_xla_folds_otherwise() -> None:
    outcome = judged(taken)
    assert outcome.kind == CONTRADICTED
    assert not outcome.failed


def test_a_constant_that_xla_folds_otherwise_inside_of_a_call() -> None:
    called = computation("called", taken, X)
    outcome = judged(lambda x: ops.tuple_(ops.elements_of(ops.call(called, [x]))))
    assert outcome.kind == CONTRADICTED


def wrong_sub(instruction: Instruction, lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    return np.asarray(lhs + rhs)


def test_a_wrong_rule_of_the_interpreter_in_a_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(interpret._rules, SUB, wrong_sub)
    outcome = judged(differences)
    assert outcome.failed
    assert "Sub alone" in outcome.text


def test_a_wrong_rule_of_the_interpreter_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(interpret._rules, SUB, wrong_sub)
    entry = computation("Sub", ops.sub, X, X)
    (outcome,) = judge_singles([Single("Sub", F32, entry, [None, None])], 2)
    assert outcome.failed
    assert "Sub alone" in outcome.text


def test_a_wrong_rule_of_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """No step at all."""
    monkeypatch.setitem(interpret._rules, WHILE, lambda instruction, *operands: operands[0])
    outcome = judged(counted)
    assert outcome.failed
    assert "While alone" in outcome.text


@pytest.mark.parametrize("build", [differences, taken])
def test_a_wrong_kernel(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether or not XLA contradicts itself on the same graph."""

    def both(x: Instruction) -> Instruction:
        first = ops.elements_of(build(x))
        return ops.tuple_([*first, ops.sub(x, ops.full_like(x, 4))])

    assert pointwise.get(SUB)  # the rules of its family are loaded
    monkeypatch.setitem(pointwise._rules, SUB, lambda instruction, lhs, rhs: lhs + rhs)
    assert judged(both).kind == "compiler"


def one_more(instruction: Instruction, operand: Any, size: Any) -> Any:
    """A size, where it is not the whole, that is one too large."""
    return set_dimension_size(instruction, operand, np.minimum(size + 1, 5))


def first_alike(instruction: Instruction, operand: Any) -> Any:
    """The first element of the right shape."""
    wanted = operand[instruction.attributes["index"]]
    return next(v for v in operand if np.shape(v) == np.shape(wanted))


@pytest.mark.parametrize(
    ("op", "rule"),
    [
        (SET_DIMENSION_SIZE, one_more),
        (GET_TUPLE_ELEMENT, first_alike),
        (CALL, lambda instruction, *operands: operands),
    ],
    ids=["SetDimensionSize", "GetTupleElement", "Call"],
)
def test_a_wrong_rule_of_what_computes_nothing(
    op: Op, rule: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(interpret._rules, op, rule)
    asked = op_by_op(computation("entry", everything, X), [GIVEN])
    assert asked.wrong.startswith(f"{op.name} alone")
