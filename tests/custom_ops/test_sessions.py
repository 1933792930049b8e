"""Variables that several ops share: who sees which, and what is refused."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit.custom_ops import Op, Session, current_session, kernel, register_op
from tracejit.errors import ArgumentError

pytestmark = pytest.mark.usefixtures("own_targets")


def adding(name: str = "Adding") -> Op:
    op = register_op(name).input("x: double").output("total: double").set_is_stateful()
    op.set_shape_fn(lambda c: c.scalar())

    @kernel(op)
    def add(x: Any) -> Any:
        with current_session().locked() as session:
            session["total"] = session["total"] + x.sum()
            return np.float64(session["total"])

    return op


def test_a_program_runs_on_the_variables_of_the_session_that_is_entered() -> None:
    op, other = adding(), adding("Other")
    program = tj.jit(lambda x: (op(x), other(x)))
    first, second = Session(total=0.0), Session(total=100.0)
    with first:
        assert program(np.ones(2)) == (2, 4)
        with second:
            assert program(np.ones(1)) == (101, 102)
        assert program(np.ones(2)) == (6, 8)
    assert (first["total"], second["total"]) == (8, 102)
    assert list(first) == ["total"]
    with pytest.raises(ArgumentError, match="no session is entered"):
        program(np.ones(2))
    with pytest.raises(ArgumentError, match="no variable 'mean'; there are 'total'"):
        first["mean"]


def test_threads_share_a_session() -> None:
    op, session = adding(), Session(total=0.0)
    program = tj.jit(lambda x: op(x))

    def run() -> None:
        with session:
            for _ in range(50):
                program(np.ones(1))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert session["total"] == 200
