"""What no file of the project may hold, and links that must lead somewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.project import checkout

TEXT = frozenset(".cpp .cu .h .hlo .ipynb .json .md .mlir .py .toml .txt .yaml .yml".split()) | {""}

FORBIDDEN = {
    "a path of one machine": re.compile(r"(?<![\w.:/-])/(?:home|mnt|opt|root|Users|work)/\w"),
    "a package registry's host": re.compile(r"\b(?:pypi|pythonhosted|npmjs)\.(?:com|io|org)\b"),
    "unfinished work": re.compile(r"\b(?:FIX" + r"ME|TO" + r"DO|X" + r"XX)\b"),
}

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)|<img [^>]*src=\"([^\"]+)\"")
FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def texts() -> Iterator[tuple[str, str]]:
    for path in checkout.files():
        if path.suffix in TEXT:
            yield path.relative_to(checkout.ROOT).as_posix(), path.read_text(encoding="utf-8")


def links(markdown: str) -> list[str]:
    return [next(filter(None, found.groups())) for found in LINK.finditer(FENCE.sub("", markdown))]


def anchors(markdown: str) -> set[str]:
    """The names that headings get: lower case, punctuation dropped, spaces turned into dashes."""
    headings = re.findall(r"^#+ +(.+?) *$", FENCE.sub("", markdown), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken(page: Path, markdown: str) -> Iterator[str]:
    for link in links(markdown):
        if "://" in link:
            continue
        target, _, anchor = link.partition("#")
        file = (page.parent / target) if target else page
        if not file.exists():
            yield f"{page.name}: {link} leads to no file"
        elif anchor and anchor not in anchors(file.read_text(encoding="utf-8")):
            yield f"{page.name}: {link} leads to no heading"


def test_nothing_forbidden() -> None:
    found = [
        f"{name}:{text.count(chr(10), 0, hit.start()) + 1}: {what}: {hit.group()}"
        for name, text in texts()
        for what, pattern in FORBIDDEN.items()
        for hit in pattern.finditer(text)
    ]
    assert found == []


def test_markdown_links_lead_somewhere() -> None:
    pages = list(checkout.files(".md"))
    assert checkout.ROOT / "README.md" in pages
    assert [b for page in pages for b in broken(page, page.read_text(encoding="utf-8"))] == []


def test_a_broken_link_is_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Two words\n[a](#two-words) [b](#three) [c](gone.md) ![d](gone.png)\n")
    assert list(broken(page, page.read_text())) == [
        "page.md: #three leads to no heading",
        "page.md: gone.md leads to no file",
        "page.md: gone.png leads to no file",
    ]


def test_the_top_level_is_fixed() -> None:
    """Nothing but the product's three folders, the tests, notebooks, docs and customary files."""
    folders = {".ci", "autodiff", "backends", "docs", "notebooks", "tests", "tracejit"}
    customary = {
        *("CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md"),
        "mkdocs.yml",
    }
    top = {path.relative_to(checkout.ROOT).parts[0] for path in checkout.files()}
    hidden = {name for name in top if name.startswith(".")} - {".ci"}
    assert top - hidden == folders | customary | {"pyproject.toml"}
