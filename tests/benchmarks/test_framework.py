"""The framework that measures: what fails or is wrong is said and not timed."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.benchmarks import __main__ as command
from tests.benchmarks import machine, session, tables, tree, tuning
from tests.benchmarks.case import ENGINES, Target
from tests.benchmarks.compare import difference
from tests.benchmarks.records import Cell, Memories, Memory, Report
from tests.benchmarks.timing import Times, sample, summarise

FAULTY = ("--table", "tests.benchmarks.faulty", "--rounds=1", "--seconds=0.001", "--threads=1")

# A stand-in for PyTorch: what the engine and the faulty table ask of it.
TORCH = """
import numpy

__version__ = "standing in"

class Tensor:
    def __init__(self, array):
        self.array, self.shape = array, array.shape
    def numpy(self):
        return self.array
    def __add__(self, other):
        return Tensor(self.array + other.array)
    def detach(self):
        return self.array

from_numpy = Tensor

def set_num_threads(threads):
    assert threads == 1
"""


def measure(output: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    """The exit status and what was written as JSON."""
    status = command.main([*FAULTY, "--output", str(output), *arguments])
    return status, json.loads((output / "benchmarks.json").read_text(encoding="utf-8"))


def test_what_goes_wrong_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A raising case, a dying process and a wrong result; the others are measured all the same."""
    (tmp_path / "torch.py").write_text(TORCH)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    status, report = measure(tmp_path, "--engines", "numpy", "torch")
    assert status == 1
    errors = {
        case: {e: cell["error"] for e, cell in row.items()} for case, row in report["cells"].items()
    }
    assert errors == {
        "right": {"numpy": "", "torch": ""},
        "raises": {
            "numpy": "ValueError: no answer for (4,)",
            "torch": "ValueError: no answer for (4,)",
        },
        "ends": {"numpy": "ended with exit status 7"},
        "wrong": {
            "numpy": "",
            "torch": "result 0 is off by 1, where magnitudes go up to 2",
        },
        "right again": {"numpy": ""},
    }
    timed = {
        case: [e for e, c in row.items() if c["times"]] for case, row in report["cells"].items()
    }
    assert timed == {
        "right": ["numpy", "torch"],
        "raises": [],
        "ends": [],
        "wrong": ["numpy"],
        "right again": ["numpy"],
    }
    printed = capsys.readouterr().out
    assert "- PyTorch standing in" in printed
    assert "- failed: raises, numpy: ValueError: no answer for (4,)" in printed
    assert "- failed: wrong, torch: result 0 is off by" in printed


def test_a_library_that_is_not_installed_is_absent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "torch.py").write_text("raise ModuleNotFoundError(\"No module named 'torch'\")")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    status, report = measure(tmp_path, "right*", "--engines", "numpy", "torch")
    assert status == 0
    assert report["absent"] == {"torch": "No module named 'torch'"}
    printed = capsys.readouterr().out
    assert "- torch is absent: No module named 'torch'" in printed
    assert "| a call | numpy | torch |" in printed
    assert "| absent |" in printed


def test_a_library_that_does_not_work_is_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "torch.py").write_text('raise OSError("half a library")')
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    status, report = measure(tmp_path, "right*", "--engines", "numpy", "torch")
    assert status == 1
    assert report["broken"] == {"torch": "OSError: half a library"}
    assert "- failed: torch: OSError: half a library" in capsys.readouterr().out


def test_the_picture_is_a_picture(tmp_path: Path) -> None:
    measure(tmp_path, "right", "--engines", "numpy")
    assert (tmp_path / "benchmarks.png").read_bytes().startswith(b"\x89PNG")


def test_an_unknown_case_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        command.main([*FAULTY, "write"])
    assert "no case is called write; --list prints the names" in capsys.readouterr().err


def test_the_names_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main([*FAULTY, "--list"]) == 0
    assert capsys.readouterr().out.split("\n")[:2] == ["right", "raises"]


@pytest.mark.parametrize(
    ("found", "says"),
    [
        ([np.array([1.0, 2.0])], ""),
        ([np.array([1.0, 2.0001])], ""),
        ([np.array([1.0, 2.1])], "result 0 is off by 0.1, where magnitudes go up to 2"),
        ([np.array([1.0, np.nan])], "result 0 is off by nan, where magnitudes go up to 2"),
        ([np.array([1.0])], "result 0 has shape (1,) instead of (2,)"),
        ([], "0 results instead of 1"),
    ],
)
def test_difference(found: list[np.ndarray], says: str) -> None:
    assert difference(found, [np.array([1.0, 2.0])], 1e-4) == says


def test_no_difference_between_empty_arrays() -> None:
    assert difference([np.zeros((0, 3))], [np.zeros((0, 3))], 0.0) == ""


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.00 us"),
        (1.2e-6, "1.20 us"),
        (9.999e-6, "10.0 us"),
        (123.4e-6, "123 us"),
        (0.9999e-3, "1.00 ms"),
        (0.045, "45.0 ms"),
        (123.0, "123 s"),
    ],
)
def test_seconds(value: float, text: str) -> None:
    assert tables.seconds(value) == text


def timed(seconds: float) -> Cell:
    return Cell(times=Times(seconds, seconds, seconds, 1))


def test_standings() -> None:
    """Against the fastest peer that was timed, or against the one that the target names."""
    cells = {
        "near": {"tracejit": timed(4.0), "numpy": timed(2.0), "jax": timed(5.0)},
        "far": {"tracejit": timed(4.0), "numpy": timed(2.0), "jax": timed(5.0)},
        "alone": {"tracejit": timed(4.0), "numpy": Cell(error="wrong")},
    }
    versions = dict.fromkeys(("tracejit", "numpy", "jax"), "")
    aims = {"near": Target(), "far": Target(0.9, "jax"), "alone": Target()}
    report = Report({}, versions, targets=aims, cells=cells)
    found = [(s.case, s.peer, s.ratio, s.reached) for s in tables.standings(report)]
    assert found == [("near", "numpy", 2.0, False), ("far", "jax", 0.8, True)]
    assert "| far | jax | 0.80 | 0.90 of jax | yes |" in tables.targets(report)


def test_memory() -> None:
    """Of the whole process and of what calls add, cold and cached, against each peer."""

    def memories(cold: int, cached: int) -> Memories:
        return Memories(*(Memory(100_000_000, 100_000_000 + n) for n in (cold, cached)))

    versions = dict.fromkeys(("tracejit", "jax", "torch"), "")
    rows = {"step": {"tracejit": memories(50_000_000, 1_000_000), "jax": memories(100_000_000, 0)}}
    lines = tables.memory(Report({}, versions, memories=rows)).splitlines()
    assert lines[2:] == [
        "| step, whole process | 150.0 MB | 200.0 MB (0.75) |  |",
        "| step, added by the calls | 50.0 MB | 100.0 MB (0.50) |  |",
        "| step, whole process, cached | 101.0 MB | 100.0 MB (1.01) |  |",
        "| step, added by the calls, cached | 1.0 MB | 0.0 MB |  |",
    ]


def test_the_memory_of_this_process() -> None:
    before, most = (machine.resident_bytes(most) for most in (False, True))
    if before is None or most is None:
        assert not Path("/proc/self/status").exists()
        return
    held = np.ones(1 << 23)
    after = machine.resident_bytes(most=False)
    assert after is not None
    assert 10 << 20 < before <= most
    assert after - before > held.nbytes // 2


def test_compiling_is_what_the_first_call_takes_longer() -> None:
    steady = Times(2.0, 1.0, 3.0, 9)
    assert Cell(first=10.0, trace=4.0, times=steady).compile == 5.0
    assert Cell(first=10.0, trace=4.0).compile == 6.0
    assert Cell(first=10.0).compile is None
    assert Cell(first=5.0, trace=4.0, times=steady).compile is None


def test_samples_are_seconds_of_one_call() -> None:
    calls: list[Sequence[int]] = []
    waited: list[int] = []

    def call(*arguments: int) -> int:
        calls.append(arguments)
        return len(calls)

    times = summarise(sample(call, (1, 2), waited.append, 0.01))
    assert set(calls) == {(1, 2)}
    assert waited == list(range(1, len(calls) + 1))
    assert 0.0 < times.low <= times.median <= times.high < 1e-4


def test_trees() -> None:
    nested = {"b": [1, (2, 3)], "a": {"c": 4}}
    assert tree.leaves(nested) == [4, 1, 2, 3]
    assert tree.map_leaves(str, nested) == {"b": ("1", ("2", "3")), "a": {"c": "4"}}


def test_tuned_and_untuned_side_by_side(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEJIT_CACHE_DIR", os.environ["TRACEJIT_CACHE_DIR"])
    monkeypatch.setattr("tracejit.backends.tvm.tune.knobs.MOST_CANDIDATES", 2)
    options = ["softmax, 1024x1024", "--tune", "0.2", "--seconds", "0.01", "--tiny"]
    assert tuning.main(options) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert lines[0] == "| | untuned | tuned | ratio | what changed |"
    assert lines[2].startswith("| softmax, 1024x1024 | ")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--threads", "0"], "not a number of at least 1"),
        (["--threads", "100000"], "processors may be used"),
        (["--rounds", "two"], "not a number of at least 1"),
        (["--seconds", "-1"], "not a positive number of seconds"),
        (["--table", "nonsense"], "No module named 'nonsense'"),
        (["--table", "json"], "CASES"),
        (["--output", __file__], "--output"),
    ],
)
def test_options_that_cannot_be_meant(
    options: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        command.main(options)
    assert says in capsys.readouterr().err


def test_all_engines_are_held_to_the_same_instructions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: dict[str, dict[str, str]] = {}

    def process(engine: str, table: str, threads: int, environment: dict[str, str]) -> None:
        told[engine] = environment

    monkeypatch.setattr(session, "Process", process)
    started = session.Session(session.Settings(processor="x86-64-v3"), Report({}), tmp_path)
    for engine in ENGINES:
        started.start(engine, TRACEJIT_CACHE="0")
    expected = {"TRACEJIT_CPU": "x86-64-v3", "ATEN_CPU_CAPABILITY": "avx2", "TRACEJIT_CACHE": "0"}
    assert set(told) == set(ENGINES)
    assert all(environment.items() >= expected.items() for environment in told.values())
