"""The texts of errors, as the source raises them and as tests expect them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.project import checkout

PACKAGES = ("trace", "transforms", "lax", "statements")
SHARED = 20
"""So many letters of a message in one piece must stand in a test."""


class Message(NamedTuple):
    """What one ``raise`` says: the fixed parts of its text."""

    file: str
    line: int
    parts: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {' … '.join(self.parts)}"


def messages() -> Iterator[Message]:
    """The messages of all ``raise`` statements of the front end that make an error."""
    for package in PACKAGES:
        for file in sorted((checkout.ROOT / "tracejit" / package).glob("*.py")):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                    arguments = node.exc.args
                    parts = tuple(_parts(arguments[0])) if arguments else ()
                    if parts:
                        yield Message(f"{package}/{file.name}", node.lineno, parts)


def _parts(text: ast.expr) -> Iterator[str]:
    for node in ast.walk(text):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def is_tested(message: Message) -> bool:
    """Whether a test has a part of the message, as long as the longest if that is short."""
    longest = max(message.parts, key=len)
    width = min(SHARED, len(longest))
    texts = _texts()
    return any(
        part[start : start + width] in texts
        for part in message.parts
        if len(part) >= width
        for start in range(len(part) - width + 1)
    )


@cache
def _texts() -> str:
    """All text in the tests, without what regular expressions escape."""
    files = (checkout.ROOT / "tests").rglob("*.py")
    found = [text for file in files for text in _strings(file)]
    return "\n".join(re.sub(r"\\(.)", r"\1", text) for text in found)


def _strings(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
