"""What takes 20 times as long to compile as half of the programs is a failure."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from tests.fuzz import judging
from tests.fuzz.compile_times import Clock
from tests.project import checkout
from tracejit import ops
from tracejit.graph import Computation, Module
from tracejit.shapes import ElementType, Shape


def _busy(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_a_slow_one_is_told() -> None:
    clock = Clock(least_seconds=0.01)
    for _ in range(5):
        with clock.timed() as timing:
            _busy(0.002)
        assert not timing.complaint
    with clock.timed() as timing:
        _busy(0.3)
    assert timing.complaint == "compiling took 0.3 s"


def test_one_that_does_not_end_is_ended() -> None:
    text = "from tests.fuzz.compile_times import bounded\nwith bounded(0.1):\n    while True: pass"
    done = subprocess.run([sys.executable, "-c", text], cwd=checkout.ROOT, check=False)
    assert done.returncode == -27  # SIGPROF


@pytest.mark.parametrize("what", ["graph", "singles"])
def test_graphs_and_single_ops_are_timed(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compile_for = vars(judging)["compile_for"]

    def slowly(module: Module) -> object:
        _busy(0.5)
        return compile_for(module)

    x = ops.parameter(0, Shape(ElementType.F32, (4,)))
    entry = Computation("entry", (x,), ops.add(x, x))
    clock = Clock(least_seconds=0.4)
    clock._times += [0.001] * 20
    monkeypatch.setattr(judging, "_CLOCK", clock)
    monkeypatch.setattr(judging, "compile_for", slowly)
    if what == "graph":
        outcome = judging.judge_graph(Module("slow", entry), 0)
    else:
        case = judging.Single("Add", ElementType.F32, entry, [None])
        (outcome,) = judging.judge_singles([case], 0)
    assert outcome.failed
    assert outcome.text.startswith("compiling took")
