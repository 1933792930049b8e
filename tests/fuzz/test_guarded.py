"""Compiled graphs touch no memory but their own, wherever their arrays lie."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from tests.backends_tvm.test_verification import chained, copied, program_of
from tests.fuzz.guarded_programs import twice
from tests.project import checkout
from tracejit.runtime import importing_tvm

with importing_tvm():
    from tracejit.backends.target import CPU
    from tracejit.backends.tvm.cpu.objects.build import build
    from tracejit.backends.tvm.cpu.processor import processor_of
    from tracejit.backends.tvm.verification import program as verification

PROGRAM = [sys.executable, "-m", "tests.fuzz.guarded_programs"]


def run(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *options], cwd=checkout.ROOT, capture_output=True, text=True, check=False
    )


def test_programs_stay_inside_their_memory() -> None:
    done = run()
    assert done.returncode == 0, f"{done.stdout[-300:]}\n{done.stderr[-3000:]}"
    assert done.stdout.endswith("done\n")


def test_a_planted_overrun_is_seen() -> None:
    done = run("--planted")
    assert done.returncode in (-signal.SIGSEGV, -signal.SIGBUS)


@pytest.mark.parametrize("memory", ["output", "workspace"])
def test_a_planted_read_of_unwritten_memory_is_seen(
    memory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(verification.VARIABLE, "0")

    def wrong(written: int) -> str:
        program = program_of(copied(written), 5000, 5000)
        if memory == "workspace":
            program = chained(written, size=5000)
        return twice(build(program, processor_of(CPU)), [np.ones(5000, "float32")])[1]

    assert not wrong(5000)
    assert wrong(4999) == "result 0 depends on what memory held"


@pytest.mark.parametrize("beyond", [-1, 1])
def test_a_planted_index_outside_ends_the_process(beyond: int) -> None:
    """Of a load before, or a store behind an array; nothing is verified."""
    text = f"""
import numpy as np
from tests.backends_tvm.test_verification import load, program_of
from tests.fuzz.guarded_programs import twice
from tracejit.backends.target import CPU
from tracejit.backends.tvm.cpu.objects.build import build
from tracejit.backends.tvm.cpu.processor import processor_of
from tracejit.backends.tvm.ir.tir import loop, store

def body(x, z):
    if {beyond} > 0:
        return loop(5001, lambda i: store(z, i, load(x, i % 5000)))
    return loop(5000, lambda i: store(z, i, load(x, i - 1)))

twice(build(program_of(body, 5000, 5000), processor_of(CPU)), [np.ones(5000, "float32")])
"""
    environment = {**os.environ, verification.VARIABLE: "0"}
    command = [sys.executable, "-c", text]
    ended = subprocess.run(command, cwd=checkout.ROOT, env=environment, check=False)
    assert ended.returncode in (-signal.SIGSEGV, -signal.SIGBUS)
