"""The documentation's site builds without a warning, and its reference is what the code says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.project import checkout
from tests.project.reference import DESCRIBED, MODULES, PAGES, page

DOCS = checkout.ROOT / "docs"


def test_it_builds_strictly(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", tmp_path / "site"],
        cwd=checkout.ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    home = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert "tracejit" in home
    assert re.findall(r'<(?:script|link|img)[^>]*(?:src|href)="https?://', home) == []


def test_every_page_is_in_the_navigation() -> None:
    listed = re.findall(r": (\S+\.md)$", (checkout.ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(p.relative_to(DOCS).as_posix() for p in DOCS.rglob("*.md"))


@pytest.mark.parametrize("module", (MODULES | DESCRIBED).values())
def test_the_reference_is_what_the_code_says(module: str) -> None:
    written = (PAGES / f"{module}.md").read_text(encoding="utf-8")
    assert written == page(module), "python -m tests.project.reference writes it anew"
