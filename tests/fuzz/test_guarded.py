"""Compiled graphs touch no memory but their own, wherever their arrays lie."""

from __future__ import annotations

import signal
import subprocess
import sys

from tests.project import checkout

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
