"""The interpreter's branches: what is not chosen does not run."""

from __future__ import annotations

import numpy as np
import pytest

from tests.building import computation
from tracejit import ops
from tracejit.backends.numpy import control, evaluate
from tracejit.graph import Computation
from tracejit.shapes import ElementType, Shape

SCALAR = Shape(ElementType.F32)


def test_the_other_branch_does_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []

    def watched(branch: Computation, arguments: list[np.ndarray]) -> object:
        ran.append(branch.name)
        return evaluate(branch, arguments)

    monkeypatch.setattr(control, "evaluate", watched)
    yes, no = (computation(name, ops.neg, SCALAR) for name in ("yes", "no"))
    chosen = computation(
        "main",
        lambda p, x: ops.conditional(p, x, yes, x, no),
        Shape(ElementType.PRED),
        SCALAR,
    )
    for predicate in (True, False):
        evaluate(chosen, [np.array(predicate), np.array(1, np.float32)])
    assert ran == ["yes", "no"]
