"""LLVM reads the object files that are made for macOS and Windows."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from tests.portability.objects import READER

ONE_IN = 120


@pytest.mark.skipif(not shutil.which(READER[0]), reason="needs llvm-readobj to read object files")
@pytest.mark.parametrize(
    ("triple", "kind"),
    [
        ("arm64-apple-macosx", "Mach-O arm64"),
        ("x86_64-apple-macosx", "Mach-O 64-bit x86-64"),
        ("x86_64-pc-windows-msvc", "COFF-x86-64"),
    ],
)
def test_objects_of_other_systems_are_read(triple: str, kind: str, exhaustive: bool) -> None:
    """All have the entry; what they are linked to there is not known here."""
    step = 4 if exhaustive else ONE_IN
    command = [sys.executable, "-m", "tests.portability.objects", triple, str(step)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, f"after {lines[-1:]}:\n{done.stderr[-2000:]}"
    assert lines
    for line in lines:
        assert line.endswith(f" {kind.split()[0]} entry"), line
