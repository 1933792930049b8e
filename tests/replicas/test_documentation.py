"""The page on several devices: its program, on threads and on ranks, prints what the page says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.project import checkout
from tests.replicas.mpi import environment, mpiexec

PAGE = (checkout.ROOT / "docs" / "distributed.md").read_text(encoding="utf-8")
DRAWN = r"\d\.?\d* ms; \d+% of collectives overlapped\ndevice 0 \|[.~#]+\| waits"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text("\n".join(blocks("python")), encoding="utf-8")
    return path


def agrees(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stderr
    (printed,) = blocks("text")
    assert done.stdout.startswith(printed), done.stdout
    assert re.search(DRAWN, done.stdout), done.stdout


def test_on_threads(program: Path) -> None:
    command = [sys.executable, str(program)]
    agrees(subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=400))


@pytest.mark.mpi
def test_on_ranks(program: Path) -> None:
    agrees(mpiexec(4, program))
