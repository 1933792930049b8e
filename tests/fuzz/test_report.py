"""What a long run prints at its end."""

from __future__ import annotations

import pytest

from tests.fuzz.__main__ import Row, report
from tests.fuzz.judging import AGREED, CONTRADICTED, REFUSED


def row(what: str, name: str, kind: str, text: str = "", failed: str = "") -> Row:
    return {
        "what": what,
        "name": name,
        "kind": kind,
        "text": text,
        "failed": failed,
        "where": "seed 7",
    }


def test_report(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        row("singles", "Pad", AGREED),
        row("singles", "Pad", AGREED),
        row("graphs", "graph", REFUSED, "it is too long"),
        row("graphs", "graph", CONTRADICTED, "result 0: 3 instead of 4"),
        row("singles", "Sub", "compiler", "5 instead of 6", "yes"),
    ]
    report(rows, 10.0, 1)
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        "Pad 2",
        "Sub 1",
        "graph 2",
        "XLA refuses, because",
        "it is too long 1",
        "XLA contradicts itself, seed 7: graph contradicted: result 0: 3 instead of 4",
        "5 modules in 10 s (0.5 a second), seed 1",
        "singles 3, graphs 2",
        "agreed 2, refused 1, contradicted 1, compiler 1",
        "seed 7: Sub compiler: 5 instead of 6",
        "1 failures",
    ]
