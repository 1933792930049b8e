"""Side effects: kept where no root needs them, once each, in order, through every pass."""

from __future__ import annotations

import numpy as np
import pytest

import tracejit as tj
from tests.building import computation
from tests.judge import parse_xla
from tracejit import ops
from tracejit.equality import same_graph
from tracejit.errors import VerificationError
from tracejit.graph import Computation, Instruction, Module
from tracejit.queues import Queue, feeds
from tracejit.shapes import TOKEN, ElementType, Shape, TupleShape
from tracejit.traversal import effects_of, instructions, substitute, unreached
from tracejit.verifier import verify

F32, S32, PRED = ElementType.F32, ElementType.S32, ElementType.PRED
PAIR = Shape(F32, (2,))
ONE_TWO = np.array([1, 2], np.float32)


def put(value: Instruction) -> Instruction:
    return ops.outfeed(value, ops.after_all([]))


def module_of(root: Instruction, *effects: Instruction) -> Module:
    parameters = [i for i in tj_order(root, effects) if i.op.name == "Parameter"]
    parameters.sort(key=lambda p: p.attributes["parameter_number"])
    entry = Computation("entry", tuple(parameters), root, unreached(root, effects))
    return verify(Module("effects", entry))


def tj_order(root: Instruction, effects: tuple[Instruction, ...]) -> list[Instruction]:
    return instructions(Computation("all", (), root, effects))


def outfed(module: Module, *arrays: np.ndarray, compiled: bool) -> list[list[float]]:
    """What a program puts out, by the interpreter or compiled."""
    with feeds(Queue("in", 0.0), Queue("out", 0.0)) as (_, results):
        if compiled:
            tj.compile(module)(*arrays)
        else:
            tj.interpret(module, *arrays)
        return [np.asarray(results.get(0.0)).tolist() for _ in range(len(results))]


ways = pytest.mark.parametrize("compiled", [False, True], ids=["interpreted", "compiled"])


def test_effect_that_no_root_needs_is_kept_by_text_and_equality() -> None:
    x = ops.parameter(0, PAIR)
    module = module_of(ops.neg(x), put(ops.add(x, x)), put(x))
    assert [i.op.name for i in module.entry.effects] == ["Outfeed", "Outfeed"]
    again = verify(tj.hlo.parse(str(module)))
    assert same_graph(again, module)
    assert same_graph(verify(tj.hlo.parse(parse_xla(str(module)))), module)
    assert not same_graph(module, module_of(ops.neg(x), put(x)))


def test_effects_name_only_what_nothing_else_reaches() -> None:
    x = ops.parameter(0, PAIR)
    first = put(x)
    second = ops.outfeed(x, first)
    third = put(x)
    assert unreached(ops.neg(x), [third, first, second]) == (second, third)
    assert unreached(second, [first, second]) == ()
    kept = Computation("c", (x,), ops.neg(x), (second, third))
    assert effects_of(kept) == [first, second, third]
    assert kept.has_effect
    assert not Computation("c", (x,), ops.neg(x)).has_effect


@ways
def test_equal_effects_happen_each_and_in_order(compiled: bool) -> None:
    x = ops.parameter(0, PAIR)
    module = module_of(ops.neg(x), put(x), put(ops.add(x, x)), put(x), put(ops.constant(ONE_TWO)))
    assert outfed(module, 3 * ONE_TWO, compiled=compiled) == [[3, 6], [6, 12], [3, 6], [1, 2]]


@ways
def test_effects_of_called_computations_happen_between_others(compiled: bool) -> None:
    inner = ops.parameter(0, PAIR)
    called = Computation("called", (inner,), ops.neg(inner), (put(inner),))
    x = ops.parameter(0, PAIR)
    before = put(x)
    first = ops.call(called, [ops.add(x, x)])
    second = ops.fusion(called, [first])
    third = ops.async_done(ops.async_start(called, [second]))
    module = module_of(x, before, first, second, third, put(third))
    wanted = [[1, 2], [2, 4], [-2, -4], [2, 4], [-2, -4]]
    assert outfed(module, ONE_TWO, compiled=compiled) == wanted


@ways
def test_effects_in_loops_and_branches(compiled: bool) -> None:
    state = TupleShape((Shape(S32), PAIR, TOKEN))
    inner = ops.parameter(0, state)
    count, value, token = ops.elements_of(inner)
    after = ops.outfeed(value, token)
    following = ops.tuple_([ops.sub(count, ops.constant(1, S32)), ops.add(value, value), after])
    body = Computation("body", (inner,), following, unreached(following, [put(count)]))
    condition = computation(
        "more", lambda s: ops.gt(ops.elements_of(s)[0], ops.constant(0, S32)), state
    )
    n, x = ops.parameter(0, Shape(S32)), ops.parameter(1, PAIR)
    loop = ops.while_(condition, body, ops.tuple_([n, x, ops.after_all([])]))
    chosen = ops.conditional(
        ops.gt(n, ops.constant(5, S32)),
        x,
        computation("loud", put, PAIR),
        x,
        computation("quiet", lambda v: ops.after_all([]), PAIR),
    )
    module = module_of(ops.tuple_([ops.elements_of(loop)[2], chosen]))
    wanted = [[1, 2], 2, [2, 4], 1]
    assert outfed(module, np.int32(2), ONE_TWO, compiled=compiled) == wanted
    assert len(outfed(module, np.int32(6), ONE_TWO, compiled=compiled)) == 13


def test_rebuilt_effects_stay_in_order() -> None:
    x, y = ops.parameter(0, PAIR), ops.parameter(0, PAIR)
    first, second = put(x), put(ops.constant(ONE_TWO))
    assert substitute([first, second], {}) == [first, second]
    made, after = substitute([first, second], {x: y})
    assert made is not first
    assert after is not second
    assert after.serial > made.serial


@ways
def test_tokens_are_arguments_and_results(compiled: bool) -> None:
    pair = ops.parameter(0, TupleShape((PAIR, TOKEN)))
    value, token = ops.elements_of(pair)
    root = ops.tuple_([ops.tuple_([token, value]), ops.add_dependency(value, token)])
    module = verify(Module("tokens", Computation("entry", (pair,), root)))
    given = (ONE_TWO, TOKEN)
    made = tj.compile(module)(given) if compiled else tj.interpret(module, given)
    (back, array), other = made
    assert back is TOKEN
    assert array.tolist() == other.tolist() == [1, 2]


def test_what_has_no_effect_is_dropped_by_the_parser_and_refused_by_the_verifier() -> None:
    x = ops.parameter(0, PAIR)
    dead = ops.custom_call("nowhere", [x], PAIR)
    kept = Module("dead", Computation("entry", (x,), ops.neg(x), (dead,)))
    assert tj.hlo.parse(str(kept)).entry.effects == ()
    with pytest.raises(VerificationError, match="among its effects but has none"):
        verify(kept)
