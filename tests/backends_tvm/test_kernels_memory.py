"""Kernels touch no memory but their own: neither before an array's start nor behind its end."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests.project import checkout

PROGRAM = [sys.executable, "-m", "tests.backends_tvm.guarded_kernels"]


def run(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *options], cwd=checkout.ROOT, capture_output=True, text=True, check=False
    )


def test_kernels_stay_inside_their_memory() -> None:
    done = run()
    assert done.returncode == 0, f"{done.stdout[-300:]}\n{done.stderr[-3000:]}"
    assert done.stdout.endswith("done\n")


@pytest.mark.skipif(not hasattr(signal, "SIGSEGV"), reason="needs signals")
def test_a_planted_overrun_is_seen() -> None:
    done = run("--planted")
    assert done.stdout.startswith("planted")
    assert done.returncode in (-signal.SIGSEGV, -signal.SIGBUS)
