"""docs/numpy_programs.md: every program, run as it was and as it becomes, gives one result."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.interpreted import interpreted, machine_code
from tests.project import checkout

__all__ = ["interpreted", "machine_code"]

PAGE = (checkout.ROOT / "docs" / "numpy_programs.md").read_text(encoding="utf-8")
PROGRAMS = dict(
    re.findall(r"^## \d+\. ([^\n]+)\n(?:(?!^## ).)*?```diff\n(.*?)```", PAGE, re.M | re.S)
)
COMPILED = ("Mandelbrot set", "The root of a function (Newton)", "A sorting network")


def side(program: str, sign: str) -> str:
    """The program's lines with this sign, and those without any."""
    lines = program.splitlines()
    assert all(line == "" or line[0] in " +-" for line in lines)
    return "\n".join(line[1:] for line in lines if not line or line[0] in (" ", sign))


def result_of(text: str, folder: Path, name: str) -> Any:
    file = folder / f"{name}.py"
    file.write_text(text, encoding="utf-8")
    return runpy.run_path(str(file))["result"]


def compare(program: str, folder: Path) -> None:
    before, after = side(program, "-"), side(program, "+")
    assert "tracejit" not in before
    assert "import tracejit as tj" in after
    expected = result_of(before, folder, "before")
    got = result_of(after, folder, "after")
    tj.tree.map(lambda g, e: np.testing.assert_allclose(g, e, rtol=1e-9, atol=1e-12), got, expected)
    dtypes = [tj.tree.map(lambda v: np.asarray(v).dtype, value) for value in (got, expected)]
    assert dtypes[0] == dtypes[1]


def test_there_are_twenty() -> None:
    assert len(PROGRAMS) == PAGE.count("\n## ") == 20


@pytest.mark.parametrize("title", PROGRAMS)
def test_program(title: str, tmp_path: Path) -> None:
    compare(PROGRAMS[title], tmp_path)


@pytest.mark.parametrize("title", COMPILED)
def test_machine_code(title: str, tmp_path: Path, machine_code: None) -> None:
    compare(PROGRAMS[title], tmp_path)
