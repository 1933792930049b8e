"""`opcheck` passes ops that are right, and names what is wrong with others."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from tracejit.custom_ops import (
    InferenceContext,
    Op,
    batching,
    gradient,
    kernel,
    opcheck,
    register_op,
    unchanged_shape,
)
from tracejit.errors import OpCheckError

pytestmark = pytest.mark.usefixtures("own_targets")
X = np.array([0.5, -1.5, 2.0])


def squaring(name: str = "Squaring") -> Op:
    op = register_op(name).attr("by: float = 1.0").input("x: double").output("y: double")
    op.set_shape_fn(unchanged_shape)

    @kernel(op)
    def of_numpy(x: Any, by: float) -> Any:
        return by * x * x

    return op


def test_a_good_op_passes() -> None:
    op = squaring()
    found = opcheck(op, X, by=2.0)
    assert found["gradient"] == "the op has no gradient"
    assert found["kernels"] == "there is one kernel"
    gradient(op)(lambda op, grad: [2 * op.get_attr("by") * op.inputs[0] * grad])
    kernel(op, form="tracejit")(lambda x, by: by * x**2)
    assert set(opcheck(op, X, by=2.0).values()) == {"passed"}


def test_a_wrong_gradient() -> None:
    op = squaring()
    gradient(op)(lambda op, grad: [op.inputs[0] * grad])
    with pytest.raises(OpCheckError, match="Squaring fails gradient: the derivative is"):
        opcheck(op, X)


def test_a_wrong_batch_and_a_wrong_kernel() -> None:
    op = squaring()
    batching(op)(lambda op, size: [op.inputs[0]])
    kernel(op, form="tracejit")(lambda x, by: by * x**2 + 1)
    with pytest.raises(OpCheckError, match=r"kernels: array 0 is .*; jit: .*; vmap: "):
        opcheck(op, X)


def test_results_that_change() -> None:
    op = register_op("Drifting").input("x: double").output("y: double")
    op.set_shape_fn(unchanged_shape)
    calls = []

    @kernel(op)
    def drifting(x: Any) -> Any:
        calls.append(1)
        return x + len(calls)

    with pytest.raises(OpCheckError, match="Drifting fails repeated: array 0"):
        opcheck(op, X)


def test_outputs_have_memory_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    op = register_op("Kept").input("x: double").output("y: double").output("z: double")

    def shapes(c: InferenceContext) -> None:
        for number in range(2):
            c.set_output(number, c.input(0))

    op.set_shape_fn(shapes)
    memory = np.zeros(3)

    @kernel(op)
    def kept(x: Any) -> Any:
        np.copyto(memory, x)
        return memory, memory

    same = register_op("Same").input("x: double").output("y: double").set_shape_fn(unchanged_shape)
    kernel(same)(lambda x: x)
    for each in (op, same):  # what kernels return is copied
        assert opcheck(each, X)["aliasing"] == "passed"
    monkeypatch.setattr(np, "shares_memory", lambda a, b: True)
    with pytest.raises(OpCheckError, match="Same fails aliasing: output 0 lies in the memory of i"):
        opcheck(same, X)


def test_kernels_that_write_to_what_compiled_code_lends_them() -> None:
    op = register_op("Spoiling").input("x: double").output("y: double")
    op.set_shape_fn(unchanged_shape)

    @kernel(op, borrows_inputs=True)
    def spoiling(x: Any) -> Any:
        made = x * 2
        ctypes.memset(x.ctypes.data, 0, x.nbytes)
        return made

    with pytest.raises(OpCheckError, match="aliasing: array 0 is"):
        opcheck(op, X.copy())
