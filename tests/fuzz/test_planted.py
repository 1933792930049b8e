"""A fault of each kind, planted in the code generator, is a failure of the fuzzers."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.fuzz import __main__ as fuzz
from tests.fuzz.__main__ import Row
from tracejit.runtime import importing_tvm

with importing_tvm():
    from tracejit.backends.tvm.verification import program as verification

# Runs a piece of the fuzzers whose programs have a last kernel that is changed.
PLANTED = """
import dataclasses, os, sys
from tests.fuzz import array_programs, judging, piece
from tests.lowered import lower
from tracejit.backends.target import CPU
from tracejit.backends.tvm.cpu.objects.build import build
from tracejit.backends.tvm.cpu.processor import processor_of
from tracejit.backends.tvm.ir.tir import Evaluate, const, i32, loop, seq, store, tirx


os.environ["{variable}"] = "{verified}"

def beyond(kernel):
    *rest, target = kernel.parameters
    size = int(target.shape[0])
    return seq(kernel.body, store(target, i32(size), const(1, str(target.dtype))))

def unwritten(kernel):
    return Evaluate(i32(0))

def planted(module):
    program = lower(module.entry, processor_of(CPU).machine)
    *kernels, last = program.kernels
    changed = dataclasses.replace(last, body={fault}(last))
    return build(dataclasses.replace(program, kernels=[*kernels, changed]), processor_of(CPU))

def endless(module):
    while True:
        pass

judging.compile_for = array_programs.compile_for = {compiler}
piece._ARRAYS = array_programs.ArrayJudge(5)
sys.argv = [*sys.argv, "count=1"]
piece.main()
"""


SEED = 1


def judged(
    what: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, **planted: str
) -> Sequence[Row]:
    """What the fuzzers say of the first program."""
    given = {"variable": verification.VARIABLE, "verified": "0", "compiler": "planted"}
    text = PLANTED.format(**{**given, "fault": "beyond", **planted})
    popen = subprocess.Popen

    def run(command: Sequence[str], **options: Any) -> subprocess.Popen[str]:
        module = command.index("tests.fuzz.piece")
        made: subprocess.Popen[str] = popen(
            [sys.executable, "-c", text, *command[module + 1 :]], **options
        )
        return made

    monkeypatch.setattr(subprocess, "Popen", run)
    _, rows = fuzz.run_piece(what, SEED, 0, "Add", tmp_path)
    return [row for row in rows if row["failed"]]


@pytest.mark.parametrize("what", ["arrays", "graphs"])
def test_a_store_behind_an_array_ends_the_process(
    what: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (row,) = judged(what, monkeypatch, tmp_path)
    assert re.match(r"the process ended with -(7|11)$", row["text"])


def test_a_store_behind_an_array_is_found_by_the_verifier(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (row,) = judged("arrays", monkeypatch, tmp_path, verified="all")
    assert "CompilationError: code generation: bounds: " in row["text"]


@pytest.mark.parametrize("verified", ["0", "all"])
def test_a_result_that_is_not_written(
    verified: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Two runs differ by the patterns that memory was filled with; the verifier says it before."""
    (row,) = judged("arrays", monkeypatch, tmp_path, fault="unwritten", verified=verified)
    assert ("depends on what memory held", "never written")[verified == "all"] in row["text"]


def test_a_compilation_that_does_not_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (row,) = judged("arrays", monkeypatch, tmp_path, compiler="endless")
    assert "did not end compiling" in row["text"]
