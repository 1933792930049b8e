"""The type checker and the linter read every folder: plant an error in each, see each reported.

A checker that silently reads nothing is the usual failure. The planted tree has the checkout's
links, packages and settings, but no code, so that the check is quick.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.project import checkout

PLANTED = 'import os\n\nnumber: int = "planted"\n'


def said(*command: str, cwd: Path) -> str:
    """What a checker printed; it must have found something."""
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=cwd, text=True, capture_output=True, check=False
    )
    assert done.returncode == 1, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def packages() -> Iterable[Path]:
    """Every folder that holds Python files, seen from the root, links not followed."""
    return sorted({path.parent.relative_to(checkout.ROOT) for path in checkout.files(".py")})


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("planted")
    shutil.copy(checkout.ROOT / "pyproject.toml", root)
    for folder in packages():
        (root / folder).mkdir(parents=True, exist_ok=True)
        (root / folder / "__init__.py").touch()
        (root / folder / "planted.py").write_text(PLANTED)
    for name in ("autodiff", "backends"):
        (root / "tracejit" / name).symlink_to(Path("..") / name)
    return root


def readme_arguments(tool: str) -> list[str]:
    """The arguments that README.md's test command gives to a checker."""
    (command,) = [part for part in checkout.commands()["test"].split("&&") if f"/{tool} " in part]
    return shlex.split(command)[1:]


def test_mypy_reads_every_folder(planted: Path) -> None:
    report = said("mypy", *readme_arguments("mypy"), "--no-incremental", cwd=planted)
    for folder in packages():
        if folder.parts[0] in {"docs", "notebooks"}:
            continue
        seen = folder if folder.parts[0] in {"tracejit", "tests"} else "tracejit" / folder
        assert f"{seen}/planted.py:3: error: Incompatible types" in report


def test_ruff_reads_every_folder(planted: Path) -> None:
    report = said("ruff", "check", "--no-cache", "--output-format=concise", cwd=planted)
    for folder in packages():
        if folder.parts[:2] == (
            "docs",
            "op_package",
        ):  # a template, which pyproject.toml leaves out
            continue
        assert f"{folder}/planted.py:1:8: F401" in report
