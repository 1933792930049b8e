"""Compiled programs on several threads: the interpreter's results bit for bit, and its errors."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given

import tracejit as tj
from tests.building import computation
from tests.replicas import collected
from tests.replicas.judge import Program
from tests.replicas.test_random import drawing, programs
from tracejit import ops
from tracejit.errors import DeadlockError, ShapeError, UnsupportedError
from tracejit.graph import Computation, Instruction, Module
from tracejit.shapes import ElementType, Shape

F32, U32 = ElementType.F32, ElementType.U32
PAIR = Shape(F32, (2,))
ADD = ops.scalar_computation("add", F32)


def leaves(value: object) -> list[np.ndarray]:
    return [np.asarray(v) for v in value] if isinstance(value, tuple) else [np.asarray(value)]


def require_equal(program: Program) -> None:
    expected = leaves(tj.interpret(program.module, *program.arrays))
    actual = leaves(tj.compile(program.module)(*program.arrays))
    for position, (a, b) in enumerate(zip(actual, expected, strict=True)):
        same = a.tobytes() == b.tobytes() or np.array_equal(a, b)
        close = a.dtype.kind in "fc" and np.allclose(a, b, rtol=1e-6, atol=1e-6)
        assert same or (close and program.module.name == "several"), (position, program.module)


@pytest.mark.parametrize("program", collected.each(4), ids=lambda p: p.module.name)
def test_every_op(program: Program) -> None:
    require_equal(program)


def test_random_programs() -> None:
    @drawing(10)
    @given(programs())
    def judged(program: Program) -> None:
        require_equal(program)

    judged()


def module_of(root: Instruction, *parameters: Instruction, devices: int = 2) -> Module:
    return Module("module", Computation("entry", parameters, root), 1, devices)


def branches(left: Computation, right: Computation) -> Module:
    x = ops.parameter(0, PAIR)
    is_first = ops.eq(ops.partition_id(), ops.constant(0, U32))
    return module_of(ops.conditional(is_first, x, left, x, right), x)


def reducing(size: int = 2) -> Computation:
    def body(y: Instruction) -> Instruction:
        part = ops.slice_(y, (0,), (size,))
        summed = ops.all_reduce(part, ADD, channel_id=1)
        return ops.slice_(ops.concatenate([summed, y], 0), (0,), (2,))

    return computation("reducing", body, PAIR)


def test_devices_at_different_ops_are_named() -> None:
    gathering = computation(
        "gathering",
        lambda y: ops.slice_(ops.all_gather(y, 0, 2, channel_id=1), (0,), (2,)),
        PAIR,
    )
    x = np.ones((2, 2), np.float32)
    for other in (gathering, reducing(1)):
        with pytest.raises(DeadlockError) as caught:
            tj.compile(branches(reducing(), other))(x)
        message = str(caught.value)
        assert "waits for what never comes: device" in message
        assert "is at all_" in message
        assert "(test_compiled.py:" in message


def test_a_device_that_has_ended_is_named() -> None:
    nothing = computation("nothing", lambda y: y, PAIR)
    with pytest.raises(DeadlockError, match=r"device 0 waits .*: device 1 has ended \(test_com"):
        tj.compile(branches(reducing(), nothing))(np.ones((2, 2), np.float32))


def test_an_error_on_one_device_ends_all() -> None:
    def fail(y: np.ndarray) -> np.ndarray:
        raise ZeroDivisionError("one of two")

    tj.register_custom_call("test.fails", fail, replace=True)
    failing = computation("failing", lambda y: ops.custom_call("test.fails", [y], PAIR), PAIR)
    with pytest.raises(ZeroDivisionError, match="one of two"):
        tj.compile(branches(reducing(), failing))(np.ones((2, 2), np.float32))
    tj.unregister_custom_call("test.fails")


def test_a_device_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = threading.Event()
    tj.register_custom_call("test.hangs", lambda y: (gone.wait(20), y)[1], replace=True)
    hanging = computation("hanging", lambda y: ops.custom_call("test.hangs", [y], PAIR), PAIR)
    program = tj.compile(branches(reducing(), hanging))
    monkeypatch.setenv("TRACEJIT_COLLECTIVE_TIMEOUT", "0.5")
    threading.Timer(1.5, gone.set).start()
    with pytest.raises(DeadlockError, match=r"all_reduce: device 0 .* 1 did not answer in 0.5 s"):
        program(np.ones((2, 2), np.float32))
    tj.unregister_custom_call("test.hangs")


def test_groups_and_shapes_that_do_not_go_with_the_devices() -> None:
    x = ops.parameter(0, PAIR)
    program = tj.compile(module_of(ops.all_gather(x, 0, 3, channel_id=1), x))
    with pytest.raises(ShapeError, match=r"a group make \[4\], not f32\[6\]"):
        program(np.ones((2, 2), np.float32))
    with pytest.raises(UnsupportedError, match="recv: compiled code needs source_target_pairs"):
        tj.compile(module_of(ops.recv(PAIR, 3)))


def test_the_second_half_of_an_op_follows_the_first() -> None:
    x = ops.parameter(0, PAIR)
    begun = ops.optimization_barrier(ops.all_reduce_start(x, ADD))
    with pytest.raises(UnsupportedError, match="its operand must be the op that starts it"):
        tj.compile(module_of(ops.all_reduce_done(begun), x))
