"""The checkout as data: its root, its settings and its files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tomli

ROOT = Path(__file__).resolve().parents[2]

# The folders that hold the product, and the import name of each.
SOURCES = {
    "tracejit": ROOT / "tracejit",
    "tracejit.autodiff": ROOT / "autodiff",
    "tracejit.backends": ROOT / "backends",
}

_NOT_OURS = re.compile(r"\.(?!ci$).*|__pycache__|build|dist|out|.*\.egg-info")


def files(*suffixes: str) -> Iterator[Path]:
    """Every file with one of the suffixes (all files without any), links not followed."""
    for folder, subfolders, names in os.walk(ROOT):
        subfolders[:] = sorted(name for name in subfolders if not _NOT_OURS.fullmatch(name))
        for name in sorted(names):
            path = Path(folder, name)
            if not suffixes or path.suffix in suffixes:
                yield path


def modules() -> dict[str, Path]:
    """Import name to file, for every module of the product, `tracejit.backends.numpy.layout` say.

    `rglob` does not follow links to folders, so each file is met once.
    """
    found: dict[str, Path] = {}
    for package, folder in SOURCES.items():
        for path in sorted(folder.rglob("*.py")):
            parts = [package, *path.relative_to(folder).with_suffix("").parts]
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def settings() -> dict[str, Any]:
    """pyproject.toml, read."""
    return tomli.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def commands() -> dict[str, str]:
    """README.md's two commands: `train` runs the main job, `test` passes the tests."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    train, test = (line for line in readme if line.startswith("python3 -m venv"))
    return {"train": train, "test": test}
