"""Several devices in one process: arguments, branches that differ, channels, what goes wrong."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

import tracejit as tj
from tests.building import computation
from tracejit import ops, queues
from tracejit.errors import (
    ArgumentError,
    AttributeValueError,
    DeadlockError,
    ShapeError,
    UnsupportedError,
)
from tracejit.graph import Computation, Instruction, Module
from tracejit.hlo import parse, to_text
from tracejit.shapes import TOKEN, ElementType, Shape, TupleShape
from tracejit.verifier import verify

F32, S32, U32 = ElementType.F32, ElementType.S32, ElementType.U32
ADD = ops.scalar_computation("add", F32)
PAIR = Shape(F32, (2,))
X = np.arange(8, dtype=np.float32).reshape(4, 2)


def module_of(
    root: Instruction, *effects: Instruction, replicas: int = 1, partitions: int = 1
) -> Module:
    parameters = sorted(
        {i for r in (root, *effects) for i in _parameters(r)},
        key=lambda p: p.attributes["parameter_number"],
    )
    entry = Computation("entry", tuple(parameters), root, effects)
    return verify(Module("module", entry, replicas, partitions))


def _parameters(root: Instruction) -> set[Instruction]:
    if root.op.name == "Parameter":
        return {root}
    return {p for operand in root.operands for p in _parameters(operand)}


def summed() -> Instruction:
    return ops.all_reduce(ops.parameter(0, PAIR), ADD)


def is_replica(number: int) -> Instruction:
    return ops.eq(ops.replica_id(), ops.constant(number, U32))


def test_an_argument_for_each_device_or_for_all() -> None:
    module = module_of(summed())
    expected = np.stack([X.sum(0)] * 4)
    np.testing.assert_array_equal(tj.interpret(module, X, replicas=4), expected)
    np.testing.assert_array_equal(tj.interpret(module, list(X), replicas=4), expected)
    np.testing.assert_array_equal(tj.interpret(module, X[1], replicas=4), [4 * X[1]] * 4)
    grid = X.reshape(2, 2, 2)
    made = tj.interpret(module, grid, replicas=2, partitions=2)
    np.testing.assert_array_equal(made, [X[0] + X[2], X[1] + X[3]] * 2)


def test_the_dimension_of_devices_is_there_when_it_was_asked_for() -> None:
    module = module_of(summed())
    assert tj.interpret(module, X[0]).shape == (2,)
    assert tj.interpret(module, X[0], replicas=1).shape == (1, 2)
    assert tj.interpret(module, X[0], partitions=1).shape == (1, 2)
    assert tj.interpret(module_of(summed(), replicas=4), X).shape == (4, 2)


def test_tuples_among_arguments_and_results() -> None:
    pair = ops.parameter(0, TupleShape((PAIR, Shape(F32))))
    module = module_of(ops.all_reduce(ops.elements_of(pair), ADD))
    rows, numbers = tj.interpret(module, (X, np.float32(2)), replicas=4)
    np.testing.assert_array_equal(rows, [X.sum(0)] * 4)
    np.testing.assert_array_equal(numbers, [8] * 4)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ((), "the module has 1 parameters; 0 arrays given"),
        ((X[:3],), r"argument 0 must be f32\[2\] for all 4 devices, or \[4\] of them; .*\[3, 2\]"),
        ((X.astype(np.float64),), r"given is float64\[4, 2\]"),
        (([[1.0], [1.0, 2.0]],), "argument 0 is not an array"),
    ],
)
def test_arguments_that_do_not_fit(arrays: tuple[object, ...], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        tj.interpret(module_of(summed()), *arrays, replicas=4)


@pytest.mark.parametrize("name", ["replicas", "partitions"])
def test_numbers_of_devices_are_positive(name: str) -> None:
    with pytest.raises(AttributeValueError, match=f"{name} must be at least 1, not 0"):
        tj.interpret(module_of(summed()), X, **{name: 0})


def test_groups_that_do_not_go_with_the_devices() -> None:
    x = ops.parameter(0, PAIR)
    module = module_of(ops.all_reduce(x, ADD, [[0, 1]]))
    with pytest.raises(AttributeValueError, match=r"\{\{0,1\}\} does not go with 4 replicas"):
        tj.interpret(module, X, replicas=4)
    module = module_of(ops.collective_permute(x, [[0, 5]]))
    with pytest.raises(AttributeValueError, match="has 5, but there are 4 replicas"):
        tj.interpret(module, X, replicas=4)
    module = module_of(ops.all_gather(x, 0, 3))
    with pytest.raises(ShapeError, match=r"a group make \[8\], not f32\[6\]"):
        tj.interpret(module, X, replicas=4)
    module = module_of(ops.reduce_scatter(x, ADD, 0, 2))
    with pytest.raises(ShapeError, match="a group has 4 devices, which does not go with"):
        tj.interpret(module, X, replicas=4)


def branches(first: Instruction, left: Computation, right: Computation) -> Instruction:
    return ops.conditional(is_replica(0), first, left, first, right)


def test_devices_in_different_branches_meet_at_a_channel() -> None:
    """Replica 0 doubles what it brings; the channel is what says that both ops are one."""
    x = ops.parameter(0, PAIR)
    left = computation("left", lambda y: ops.all_reduce(ops.add(y, y), ADD, channel_id=1), PAIR)
    right = computation("right", lambda y: ops.all_reduce(y, ADD, channel_id=1), PAIR)
    made = tj.interpret(module_of(branches(x, left, right)), X, replicas=4)
    np.testing.assert_array_equal(made, [X.sum(0) + X[0]] * 4)


def test_devices_that_never_meet_are_named() -> None:
    x = ops.parameter(0, PAIR)
    left = computation("left", lambda y: ops.all_reduce(y, ADD), PAIR)
    right = computation("right", lambda y: y, PAIR)
    with pytest.raises(DeadlockError) as caught:
        tj.interpret(module_of(branches(x, left, right)), X, replicas=4)
    assert str(caught.value).startswith(
        "all_reduce: replica 0 waits for what never comes: replica 1 has ended; "
        "replica 2 has ended; replica 3 has ended (test_devices.py:"
    )


def test_devices_that_wait_for_each_other_are_named() -> None:
    x = ops.parameter(0, PAIR)
    left = computation("left", lambda y: ops.all_reduce(y, ADD, channel_id=1), PAIR)
    right = computation("right", lambda y: ops.collective_permute(y, [[0, 1]]), PAIR)
    with pytest.raises(DeadlockError, match=r"replica 0 waits at channel 1 .* replica 1 waits at"):
        tj.interpret(module_of(branches(x, left, right)), X[:2], replicas=2)


def test_loops_of_different_lengths() -> None:
    """Each replica adds 1 as often as its number says; then all meet."""

    def body(state: Instruction) -> Instruction:
        step, value = ops.elements_of(state)
        return ops.tuple_([ops.add(step, ops.constant(1, U32)), ops.add(value, value)])

    def condition(state: Instruction) -> Instruction:
        return ops.lt(ops.get_tuple_element(state, 0), ops.replica_id())

    init = ops.tuple_([ops.constant(0, U32), ops.parameter(0, PAIR)])
    looped = ops.while_(
        computation("condition", condition, init.shape),
        computation("body", body, init.shape),
        init,
    )
    root = ops.all_reduce(ops.get_tuple_element(looped, 1), ADD)
    made = tj.interpret(module_of(root), X, replicas=4)
    np.testing.assert_array_equal(made, [(X * [[1], [2], [4], [8]]).sum(0)] * 4)


def test_loops_in_which_devices_meet_unequally_often() -> None:
    def body(state: Instruction) -> Instruction:
        step, value = ops.elements_of(state)
        return ops.tuple_([ops.add(step, ops.constant(1, U32)), ops.all_reduce(value, ADD)])

    def condition(state: Instruction) -> Instruction:
        return ops.lt(ops.get_tuple_element(state, 0), ops.replica_id())

    init = ops.tuple_([ops.constant(0, U32), ops.parameter(0, PAIR)])
    root = ops.while_(
        computation("condition", condition, init.shape),
        computation("body", body, init.shape),
        init,
    )
    with pytest.raises(DeadlockError, match=r"replica 1 waits .*: replica 0 has ended"):
        tj.interpret(module_of(root), X, replicas=4)


def test_an_error_on_one_device_ends_all() -> None:
    x = ops.parameter(0, PAIR)
    wrong = computation("wrong", lambda y: ops.custom_call("no such target", [y], PAIR), PAIR)
    waits = computation("waits", lambda y: ops.all_reduce(y, ADD), PAIR)
    begin = time.perf_counter()
    with pytest.raises(LookupError, match="no such target"):
        tj.interpret(module_of(branches(x, wrong, waits)), X, replicas=4)
    assert time.perf_counter() - begin < 5


def test_an_exchange_takes_as_many_devices_as_there_are() -> None:
    made = tj.interpret(module_of(summed()), np.ones((64, 2), np.float32), replicas=64)
    assert (made == 64).all()


def transfer(pairs: list[tuple[int, int]] | None) -> Module:
    token = ops.send(ops.parameter(0, PAIR), 7, pairs)
    return module_of(ops.get_tuple_element(ops.recv_with_token(token, PAIR, 7, pairs), 0))


def test_send_and_recv_by_pairs() -> None:
    made = tj.interpret(transfer([(0, 1), (1, 2)]), X, partitions=4)
    np.testing.assert_array_equal(made, [[0, 0], X[0], X[1], [0, 0]])
    with pytest.raises(AttributeValueError, match="name more than the 2 partitions"):
        tj.interpret(transfer([(0, 1), (1, 2)]), X[:2], partitions=2)


def test_send_and_recv_without_pairs() -> None:
    np.testing.assert_array_equal(tj.interpret(transfer(None), X, replicas=4), X)


def test_send_in_one_branch_and_recv_in_the_other() -> None:
    def sending(y: Instruction) -> Instruction:
        return ops.add_dependency(y, ops.send(y, 5))

    x = ops.parameter(0, PAIR)
    left = computation("left", sending, PAIR)
    right = computation("right", lambda y: ops.recv(PAIR, 5), PAIR)
    module = module_of(branches(x, left, right))
    np.testing.assert_array_equal(tj.interpret(module, X[:2], replicas=2), [X[0], X[0]])
    with pytest.raises(DeadlockError, match="recv_done: replica 2 waits at channel 5"):
        tj.interpret(module, X, replicas=4)


def test_recv_that_nobody_sends_to() -> None:
    module = module_of(ops.recv(PAIR, 9))
    with pytest.raises(DeadlockError, match="recv_done: replica 0 waits at channel 9"):
        tj.interpret(module)


def test_recv_of_another_shape() -> None:
    token = ops.send(ops.parameter(0, Shape(F32, (3,))), 7)
    module = module_of(ops.get_tuple_element(ops.recv_with_token(token, PAIR, 7), 0))
    with pytest.raises(ShapeError, match=r"f32\[2\] was to come through channel 7, not f32\[3\]"):
        tj.interpret(module, np.zeros(3, np.float32))


def test_the_host_sends_and_receives() -> None:
    received = ops.recv_from_host(ops.after_all([]), PAIR, 11)
    data, token = ops.elements_of(received)
    sent = ops.send_to_host(ops.add(data, data), token, 12)
    module = module_of(data, sent)
    assert parse(to_text(module)).entry.has_effect
    interpreted: Callable[[], object] = partial(tj.interpret, module)
    for run in (interpreted, tj.compile(module)):
        queues.channel(11).put(X[1])
        result = run()
        np.testing.assert_array_equal(result, X[1])
        np.testing.assert_array_equal(queues.channel(12).get(0), 2 * X[1])


def test_a_program_for_one_device_names_no_other() -> None:
    x = ops.parameter(0, PAIR)
    for root in (
        ops.all_gather(x, 0, 2),
        ops.all_reduce(x, ADD, [[0, 1]]),
        ops.collective_permute(x, [[0, 1]]),
        ops.recv(PAIR, 3, [(0, 1)]),
        ops.recv(PAIR, 3),
    ):
        with pytest.raises(UnsupportedError, match="the program is for one device"):
            tj.compile(module_of(root))


def test_compiled_code_sends_to_itself() -> None:
    for pairs in (None, [(0, 0)]):
        np.testing.assert_array_equal(tj.compile(transfer(pairs))(X[0]), X[0])
    np.testing.assert_array_equal(tj.compile(transfer([]))(X[0]), [0, 0])


def test_tokens_are_results_like_any_other() -> None:
    module = module_of(ops.tuple_([summed(), ops.after_all([])]))
    made, token = tj.interpret(module, X, replicas=4)
    assert made.shape == (4, 2)
    assert token is TOKEN
