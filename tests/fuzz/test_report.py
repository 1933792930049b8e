"""What a long run prints at its end."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from tests.fuzz import __main__ as fuzz
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
        "refused, by XLA or (Python programs) by us, because",
        "it is too long 1",
        "XLA contradicts itself, seed 7: graph contradicted: result 0: 3 instead of 4",
        "5 modules in 10 s (0.5 a second), seed 1",
        "singles 3, graphs 2",
        "agreed 2, refused 1, contradicted 1, compiler 1",
        "seed 7: Sub compiler: 5 instead of 6",
        "1 failures",
    ]


@pytest.mark.parametrize(("second", "failed"), [("", 0), ("ended with -11", 1)])
def test_a_process_that_dies_is_asked_again_op_by_op(
    second: str, failed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """XLA died of the whole if the rest does not die as well."""
    agreed, refused = row("", "graph", AGREED), row("", "graph", REFUSED)
    asked = []

    def piece(*arguments: object) -> tuple[int, list[Row], str]:
        asked.append(arguments)
        alone = "ops" in arguments
        return (
            8,
            [refused] * (alone and not second) + [agreed] * (not alone),
            (second if alone else "ended with -11"),
        )

    monkeypatch.setattr(fuzz, "_piece", piece)
    seed, rows = fuzz.run_piece("graphs", 7, 60.0, "Pad", Path("out"))
    assert seed == 9
    assert [arguments[1] for arguments in asked] == [7, 8]
    assert sum(bool(one["failed"]) for one in rows) == failed
    assert len(rows) == 2


def test_a_run_that_is_ended_reports(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def piece(what: str, seed: int, *others: object) -> tuple[int, list[Row]]:
        if seed > 1:
            signal.raise_signal(signal.SIGTERM)
        return seed + 1, [row(what, "Pad", AGREED)]

    monkeypatch.setattr(fuzz, "run_piece", piece)
    monkeypatch.setattr(sys, "argv", ["fuzz", "--seed", "1"])
    before = signal.getsignal(signal.SIGTERM)
    try:
        with pytest.raises(SystemExit, match=r"^0$"):
            fuzz.main()
    finally:
        signal.signal(signal.SIGTERM, before)
    output = capsys.readouterr().out
    assert "ended by a signal before seed 2\n" in output
    assert "1 modules in " in output
