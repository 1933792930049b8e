"""Every pass has a program over which it fires, and golden graphs of before and after.

`<pass>/<case>.hlo`, or the function of `programs` that `<pass>/<case>.program` names, is a whole
program. All passes run over it as they do when a user compiles it; `<case>.before.hlo` and
`<case>.after.hlo` are the graph around the first change of this pass.
`pytest tests/passes --update-golden` writes them anew, for a reviewer to read in the diff.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.passes import programs
from tracejit.graph import Module
from tracejit.hlo import parse, to_text
from tracejit.runtime import importing_tvm

with importing_tvm():
    from tracejit.backends.tvm import pipeline
    from tracejit.backends.tvm.cpu.machine import Machine
    from tracejit.backends.tvm.ir.graph import Graph
    from tracejit.backends.tvm.passes.manager import Options, Session

FOLDER = Path(__file__).parent
# AVX-512 and the usual caches, whatever this machine has.
MACHINE = Machine(vector_bytes=64)
NAMES = list(dict.fromkeys(each.name for passes in pipeline.LISTS.values() for each in passes))
CASES = sorted(
    path
    for path in (*FOLDER.glob("*/*.hlo"), *FOLDER.glob("*/*.program"))
    if not path.name.endswith((".before.hlo", ".after.hlo"))
)


def program_of(path: Path) -> Module:
    """The program of a case: HLO text, or a function of `programs` by its name."""
    text = path.read_text(encoding="utf-8")
    made: Module = parse(text) if path.suffix == ".hlo" else getattr(programs, text.strip())()
    return made


@dataclass
class Watching(Session):
    """Keeps the graph before and after the first change that one pass makes."""

    wanted: str = ""
    found: list[str] = field(default_factory=list)

    def changed(self, name: str, graph_name: str, before: Graph, after: Graph) -> None:
        if name == self.wanted and not self.found:
            self.found += [
                to_text(Module(graph_name, graph.computation(graph_name)))
                for graph in (before, after)
            ]


def around(name: str, path: Path) -> list[str]:
    """The graph before and after the first change of a pass in the whole pipeline; or nothing."""
    session = Watching(Options(verify=True), wanted=name)
    module = program_of(path)
    pipeline.optimized(module.entry, MACHINE, session)
    return session.found


@pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_golden(path: Path, pytestconfig: pytest.Config) -> None:
    found = around(path.parent.name, path)
    assert found, f"{path.parent.name} changes nothing under default settings"
    for text, when in zip(found, ("before", "after"), strict=True):
        golden = path.with_suffix(f".{when}.hlo")
        if pytestconfig.getoption("--update-golden"):
            golden.write_text(text, encoding="utf-8")
        assert text == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_every_pass_has_a_case(name: str) -> None:
    assert any(path.parent.name == name for path in CASES), f"tests/passes/{name} has no case"


def test_every_case_is_of_a_pass() -> None:
    assert {path.parent.name for path in CASES} <= {*NAMES}
