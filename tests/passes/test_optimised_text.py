"""The optimised graph as text, and the command that finds a pass that breaks a module."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tracejit as tj
from tests.passes.test_pass_manager import TEXT
from tracejit import ops
from tracejit.commandline import bisecting, main
from tracejit.errors import ArgumentError
from tracejit.graph import Instruction
from tracejit.runtime import importing_tvm

with importing_tvm():
    from tracejit.backends.tvm import pipeline
    from tracejit.backends.tvm.ir.graph import Graph
    from tracejit.backends.tvm.passes.manager import Context, Pass

X = np.linspace(0, 1, 8, dtype=np.float32)


def test_what_is_compiled_is_printed() -> None:
    @tj.jit
    def f(x: np.ndarray) -> np.ndarray:
        first: np.ndarray = np.sort(np.sin(x) + np.sin(x))[:2]
        return first

    lowered = f.lower(X)
    assert lowered.as_text().count("sine(") == 2
    optimised = lowered.as_text(stage="optimized")
    assert optimised.count("sine(") == 1
    assert "first-sorted(" in optimised
    assert lowered.compile().as_text() == optimised
    module = tj.hlo.parse(lowered.as_text())
    assert tj.compile(module).as_text().count("sine(") == 1


def test_refused_text() -> None:
    lowered = tj.jit(lambda x: x + 1).lower(X)
    with pytest.raises(ArgumentError, match="the stage must be 'traced' or 'optimized'"):
        lowered.as_text(stage="lowered")
    with pytest.raises(ArgumentError, match="HLO text only"):
        lowered.as_text("stablehlo", stage="optimized")


def test_bisecting_finds_the_pass(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def wrong(graph: Graph, context: Context) -> Graph:
        def doubled(root: Instruction) -> Instruction:
            return ops.add(root, root)

        return graph.with_roots([doubled(root) for root in graph.roots])

    file = tmp_path / "loop.hlo"
    file.write_text(TEXT)
    assert main(["bisect", str(file)]) == 0
    assert "computes what the interpreter computes" in capsys.readouterr().out
    planted = Pass("planted", wrong, "a test", when=lambda graph, context: not context.is_nested)
    passes = (*pipeline.FRAGMENT[:5], planted, *pipeline.FRAGMENT[5:])
    monkeypatch.setattr(pipeline, "FRAGMENT", passes)
    assert main(["bisect", str(file)]) == 0
    assert "the pass planted over main" in capsys.readouterr().out


def test_first_wrong() -> None:
    for wrong in range(20):
        asked: list[int] = []

        def is_right(changes: int, wrong: int = wrong, asked: list[int] = asked) -> bool:
            asked.append(changes)
            return changes < wrong

        assert bisecting.first_wrong(19, is_right) == wrong
        assert len(asked) < 8


def test_agreement() -> None:
    x = np.array([1.0, np.nan, np.inf], np.float32)
    assert bisecting.agree([x], [x * np.float32(1 + 1e-6)], 1e-4)
    assert not bisecting.agree([x], [replaced(x, 0, 2.0)], 1e-4)
    assert not bisecting.agree([x], [replaced(x, 1, 2.0)], 1e-4)
    assert not bisecting.agree([np.array([1])], [np.array([2])], 10.0)


def replaced(x: np.ndarray, index: int, value: float) -> np.ndarray:
    made: np.ndarray = x.copy()
    made[index] = value
    return made
