"""`opcheck` passes ops that are right, and names what is wrong with others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tracejit.custom_ops import (
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
