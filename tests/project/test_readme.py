"""The README's example runs as printed; a page's tables name every dependency once."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.project import checkout

README = (checkout.ROOT / "README.md").read_text(encoding="utf-8")


def test_the_example_runs(tmp_path: Path) -> None:
    (example,) = re.findall(r"^```python\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
    (printed,) = re.findall(r"^```text\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
    assert len([line for line in example.splitlines() if line]) == 10
    script = tmp_path / "example.py"
    script.write_text(example, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", script], text=True, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    at = [done.stdout.index(part.strip()) for part in printed.split("...\n") if part]
    assert at == sorted(at)
    assert at[0] == 0
    assert done.stderr == ""


def test_it_fits_a_screen_and_a_half() -> None:
    """Of some sixty lines each."""
    assert len(README.splitlines()) <= 100


def requirement_names(requirements: list[str]) -> list[str]:
    return sorted(re.split(r"[<>=;\[ ]", requirement)[0] for requirement in requirements)


def test_every_dependency_has_a_line() -> None:
    """The first table is what the product needs; the second names each extra's packages."""
    project = checkout.settings()["project"]
    section = (checkout.ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in section.splitlines()
        if line.startswith("| ") and not line.startswith(("| package", "| extra"))
    ]
    needed = [row[0] for row in rows if len(row) == 2]
    assert sorted(needed) == requirement_names(project["dependencies"])

    named: dict[str, list[str]] = {}
    extra = ""
    for row in rows:
        if len(row) == 3:
            extra = row[0].strip("`") or extra
            named.setdefault(extra, []).extend(row[1].split(", "))
    extras = project["optional-dependencies"]
    assert {name: sorted(packages) for name, packages in named.items()} == {
        name: requirement_names(requirements) for name, requirements in extras.items()
    }
