"""The files of the page about other libraries run, and print what the page says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.project import checkout

PAGE = (checkout.ROOT / "docs" / "with_other_libraries.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"^```python\n# (\w+\.py)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE))
PRINTED = dict(
    re.findall(
        r"^```python\n# (\w+\.py)\n(?:(?!^```).)*^```\n\n```text\n(.*?)^```",
        PAGE,
        re.DOTALL | re.MULTILINE,
    )
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def run(folder: Path, *command: str) -> str:
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(checkout.ROOT), "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_all_files_are_known() -> None:
    assert [*PRINTED] == ["rosenbrock.py", "search.py", "swing.py"]
    assert {*FILES} - {*PRINTED} == {
        "bars.py",
        "pendulum.py",
        "softmax_regression.py",
        "test_pendulum.py",
    }


@pytest.mark.parametrize("name", PRINTED)
def test_it_prints_what_the_page_says(folder: Path, name: str) -> None:
    assert run(folder, "-W", "error", name) == PRINTED[name]


def test_bars(folder: Path) -> None:
    assert run(folder, "-W", "error", "bars.py").splitlines()[-1] == "True"


def test_tests(folder: Path) -> None:
    said = run(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_pendulum.py")
    assert "5 passed" in said
