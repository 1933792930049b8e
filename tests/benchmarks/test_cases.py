"""The table: every case runs on tiny inputs, and every engine that is here agrees about it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.benchmarks import __main__ as command
from tests.benchmarks import machine
from tests.benchmarks.case import ENGINES, Case
from tests.benchmarks.cases import CASES

CURVES = "tests.benchmarks.curves"
LONG = {"graph of 300 operations", "graph of 1000 operations"}


def test_names_are_unique_and_no_patterns() -> None:
    names = [case.name for case in CASES]
    assert len(names) == len(set(names))
    assert not any(set(name) & set("*?[]") for name in names)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_has_tracejit_and_a_peer(case: Case) -> None:
    assert case.tracejit is not None
    assert any(case.implementation(engine) for engine in ENGINES if engine != "tracejit")


@pytest.mark.parametrize(
    "engines",
    [("tracejit", "numpy"), pytest.param(ENGINES, marks=pytest.mark.benchmark)],
    ids=["numpy", "all"],
)
def test_the_whole_table_on_tiny_inputs(
    engines: Sequence[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command as it is meant to be run, but for the sizes; peers may be absent.

    The longest graphs differ from the shorter ones in nothing but the time they take.
    """
    cases = [case for case in CASES if case.name not in LONG]
    options = ["--tiny", "--rounds=1", "--seconds=0.001", "--output", str(tmp_path)]
    assert command.main([*[case.name for case in cases], "--engines", *engines, *options]) == 0
    printed = capsys.readouterr().out
    assert "- inputs: tiny" in printed
    assert "failed" not in printed

    report = json.loads((tmp_path / "benchmarks.json").read_text(encoding="utf-8"))
    assert {"tracejit", "numpy"} <= report["versions"].keys()
    assert set(engines) == report["versions"].keys() | report["absent"].keys()
    assert list(report["cells"]) == [case.name for case in cases]
    for case in cases:
        cell = report["cells"][case.name]["tracejit"]
        assert cell["first"] > 0
        assert cell["trace"] > 0
        assert (cell["times"] is not None) == (case.measure == "run")
        assert f"| {case.name} |" in printed
        if case.start:
            for start in ("tracejit", "tracejit, tiered"):
                assert report["starts"][case.name][start]["cached"]["first"] > 0
    assert (tmp_path / "benchmarks.png").stat().st_size > 10_000


def test_a_busy_machine_is_said() -> None:
    assert machine.other_work(0.1) == "load 0.10"
    assert machine.other_work(1.6) == "load 1.60, so that all times are doubtful"


def test_curves_on_tiny_inputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--table", CURVES, "--tiny", "--rounds=1", "--seconds=0.001"]
    chosen = ["sum, *", "graph of 12 operations", "--engines", "tracejit", "numpy"]
    assert command.main([*chosen, *options, "--output", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "failed" not in printed
    assert [f"| sum, {10**power} elements |" in printed for power in range(2, 9)] == [True] * 7
    assert (tmp_path / "benchmarks.png").stat().st_size > 0
