"""Passes are verified, printed and left out by name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tracejit as tj
from tracejit import ops
from tracejit.errors import ArgumentError, VerificationError
from tracejit.graph import Computation, Instruction
from tracejit.hlo import parse
from tracejit.runtime import importing_tvm
from tracejit.shapes import ElementType, Shape
from tracejit.traversal import in_order

with importing_tvm():
    from tracejit.backends.tvm import pipeline
    from tracejit.backends.tvm.cpu.machine import Machine
    from tracejit.backends.tvm.ir.graph import Graph
    from tracejit.backends.tvm.passes.manager import Context, Options, Pass, Session, run_passes

TEXT = """HloModule loop

condition {
  s = (s64[], f32[4]) parameter(0)
  i = s64[] get-tuple-element(s), index=0
  n = s64[] constant(10)
  ROOT less = pred[] compare(i, n), direction=LT
}

body {
  s = (s64[], f32[4]) parameter(0)
  i = s64[] get-tuple-element(s), index=0
  x = f32[4] get-tuple-element(s), index=1
  one = s64[] constant(1)
  next = s64[] add(i, one)
  y = f32[4] sine(x)
  z = f32[4] sine(x)
  w = f32[4] add(y, z)
  ROOT t = (s64[], f32[4]) tuple(next, w)
}

ENTRY main {
  zero = s64[] constant(0)
  x = f32[4] parameter(0)
  s = (s64[], f32[4]) tuple(zero, x)
  loop = (s64[], f32[4]) while(s), condition=condition, body=body
  ROOT y = f32[4] get-tuple-element(loop), index=1
}
"""


def entry() -> Computation:
    return parse(TEXT).entry


def sines(graph: Graph) -> int:
    """How many sines the loop's body has."""
    (loop,) = [i for i in in_order(graph.roots) if i.op.name == "While"]
    return sum(i.op.name == "Sin" for i in in_order([loop.attributes["body"].root]))


def test_bodies_of_loops_are_optimised_in_the_graph() -> None:
    """The whole program is there before a kernel is written."""
    assert sines(pipeline.optimized(entry(), Machine())) == 1


def test_a_pass_is_left_out() -> None:
    session = Session(Options(left_out=frozenset({"canonicalize", "vectorize-loops"})))
    graph = pipeline.optimized(entry(), Machine(), session)
    assert sines(graph) == 2
    assert "canonicalize" not in [name for name, _ in session.changes]


def test_only_the_first_changes_are_made() -> None:
    whole = Session(Options())
    pipeline.optimized(entry(), Machine(), whole)
    assert whole.changes
    none = Session(Options(most_changes=0))
    assert sines(pipeline.optimized(entry(), Machine(), none)) == 2
    assert none.changes == []
    some = Session(Options(most_changes=1))
    pipeline.optimized(entry(), Machine(), some)
    assert some.changes == whole.changes[:1]


def test_graphs_are_written_after_each_change(tmp_path: Path) -> None:
    session = Session(Options(dump=tmp_path / "dumps"))
    pipeline.optimized(entry(), Machine(), session)
    names = sorted(path.name for path in (tmp_path / "dumps").iterdir())
    assert names[0] == "0000-main-input.hlo"
    assert names[-1].endswith("-main-optimized.hlo")
    texts = [(tmp_path / "dumps" / name).read_text() for name in names]
    assert [texts[0].count("sine("), texts[-1].count("sine(")] == [2, 1]


def test_a_pass_that_breaks_a_graph_is_named() -> None:
    def wrong(graph: Graph, context: Context) -> Graph:
        (root,) = graph.outputs
        shape = Shape(ElementType.F32, (5,))
        return replace(graph, outputs=[Instruction(root.op, root.operands, shape, root.attributes)])

    x = parse(TEXT).entry
    graph = Graph(x.parameters, [ops.neg(x.parameters[0])])
    context = Context(Machine(), session=Session(Options(verify=True)))
    with pytest.raises(VerificationError, match="after the pass wrong over main"):
        run_passes([Pass("wrong", wrong, "a test")], graph, context)


def test_settings() -> None:
    given = {"TRACEJIT_PASSES": "-a,-b,:12", "TRACEJIT_DUMP": "here", "TRACEJIT_VERIFY": "1"}
    options = Options.of_environment(given)
    assert options == Options(Path("here"), True, frozenset({"a", "b"}), 12)
    assert Options.of_environment({"TRACEJIT_VERIFY": "0"}) == Options()
    with pytest.raises(ArgumentError, match="TRACEJIT_PASSES: an entry is -NAME"):
        Options.of_environment({"TRACEJIT_PASSES": "reroll"})


def test_tests_verify_after_every_pass() -> None:
    assert Options.of_environment().verify


def test_what_is_compiled_without_a_pass_is_not_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    x = np.ones(4, np.float32)
    module = parse(TEXT)
    expected = tj.compile(module)(x)
    monkeypatch.setenv("TRACEJIT_DUMP", str(tmp_path))
    np.testing.assert_array_equal(tj.compile(module)(x), expected)
    assert list(tmp_path.iterdir())


def test_every_pass_that_is_required_stands_before() -> None:
    for passes in pipeline.LISTS.values():
        seen: set[str] = set()
        for each in passes:
            assert {*each.requires} <= seen, f"{each.name} stands before {each.requires}"
            seen.add(each.name)
            assert each.why


@pytest.mark.parametrize("name", ["nonsense", "flatten-tuples"])
def test_only_optional_passes_can_be_left_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEJIT_PASSES", f"-{name}")
    with pytest.raises(ArgumentError, match=f"no pass '{name}' to leave out, only .*sort-to-topk"):
        tj.jit(lambda x: x + 1)(np.ones(3))
