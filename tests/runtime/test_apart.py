"""Calls on another thread give what they give on the caller's."""

from __future__ import annotations

import threading
import warnings
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.runtime.processes import python
from tracejit.runtime.apart import apart


def test_results_errors_and_contexts_are_the_caller_s() -> None:
    ran: list[threading.Thread] = []

    def run(arguments: Sequence[object]) -> Any:
        ran.append(threading.current_thread())
        if not arguments:
            raise KeyError("none")
        return np.log(np.zeros(len(arguments)))

    there = apart(run)
    with np.errstate(divide="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert there([1, 2]).tolist() == [-np.inf, -np.inf]
    with pytest.raises(KeyError, match="none"):
        there([])
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        there([1])
    assert threading.main_thread() not in ran
    assert len({*ran}) == 1  # which keeps its own threads


def test_other_threads_call_at_once() -> None:
    ran: list[object] = []
    there = apart(lambda arguments: ran.append(threading.current_thread()))
    caller = threading.Thread(target=lambda: there([]))
    caller.start()
    caller.join()
    assert ran == [caller]


def test_arrays_are_let_go() -> None:
    class Given:
        pass

    given, gone = Given(), threading.Event()
    weakref.finalize(given, gone.set)
    apart(lambda arguments: None)([given])
    del given
    assert gone.wait(60)


def test_only_programs_with_long_routines_run_apart() -> None:
    said = python(
        """
import threading
import numpy as np
import tracejit as tj

def where(function, *arguments):
    return tj.jit(function).lower(*arguments).compile().program.artifact.runs_apart

small, large = np.ones(1000), tj.ShapeDtypeStruct((3 * 10**7,), np.float64)
print(where(np.sort, small), where(np.sort, large))
print(where(np.sin, large), where(lambda x: x @ x.T, tj.ShapeDtypeStruct((4000, 4000), float)))
print(where(lambda x: tj.pure_callback(np.sort, x, np.argsort(x) * 1.0), large))
"""
    )
    assert said.splitlines() == ["False True", "False False", "False"]
