"""The documentation's site builds without a warning, and its reference is what the code says."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import tracejit as tj
from tests.project import checkout
from tests.project.reference import DESCRIBED, MODULES, PAGES, page
from tests.project.site import on_page_markdown, without_prompts

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


def test_every_name_on_the_pages_exists() -> None:
    """`tj.name` and `tracejit.name.name`, as far as modules and classes reach."""
    files = [
        *DOCS.rglob("*.md"),
        *checkout.ROOT.glob("notebooks/*.ipynb"),
        checkout.ROOT / "README.md",
    ]
    for path in files:
        text = path.read_text(encoding="utf-8")
        for name in set(re.findall(r"\b(?:tj|tracejit)((?:\.[A-Za-z_]\w*)+)", text)):
            found: Any = tj
            for part in name.split(".")[1:]:
                if not isinstance(found, (ModuleType, type)) or part == "md":
                    break
                if not hasattr(found, part) and isinstance(found, ModuleType):
                    importlib.import_module(f"{found.__name__}.{part}")
                found = getattr(found, part)


def test_every_setting_is_in_the_table() -> None:
    """The environment variables of the code are those of the page, each once."""
    files = [
        p
        for folder in ("tracejit", "autodiff", "backends")
        for p in (checkout.ROOT / folder).rglob("*.py")
    ]
    used = {
        name for p in files for name in re.findall(r"\bTRACEJIT_[A-Z_]+\b", p.read_text("utf-8"))
    }
    page = (DOCS / "what_to_know.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`[A-Z].*?) \|", page, re.MULTILINE)
    listed = [name for row in rows for name in re.findall(r"TRACEJIT_[A-Z_]+", row)]
    assert sorted(listed) == sorted(used)


@pytest.mark.parametrize("module", (MODULES | DESCRIBED).values())
def test_the_reference_is_what_the_code_says(module: str) -> None:
    written = (PAGES / f"{module}.md").read_text(encoding="utf-8")
    assert written == page(module), "python -m tests.project.reference writes it anew"


def test_examples_have_no_prompts_on_the_site() -> None:
    examples = """
>>> def f(x):
...     return x  # as it is

>>> f(1)
1
>>> print(text)  # doctest: +ELLIPSIS
first
...
last
>>> f(2)
2

"""
    shown = without_prompts(examples.lstrip())
    assert re.findall(r"^```(.*?)\n(.*?)\n```$", shown, re.DOTALL | re.MULTILINE) == [
        ("python", "def f(x):\n    return x  # as it is\n\nf(1)"),
        ("{ .text .no-copy }", "1"),
        ("python", "print(text)"),
        ("{ .text .no-copy }", "first\n...\nlast"),
        ("python", "f(2)"),
        ("{ .text .no-copy }", "2"),
    ]


@pytest.mark.parametrize("path", sorted(DOCS.glob("*.md")), ids=lambda path: path.stem)
def test_what_is_copied_from_the_site_is_python(path: Path) -> None:
    shown = on_page_markdown(path.read_text(encoding="utf-8"))
    assert not re.search("^>>> ", shown, re.MULTILINE)
    for block in re.findall(r"^```python\n(.*?)^```", shown, re.DOTALL | re.MULTILINE):
        compile(block, str(path), "exec")
