"""Riddles in the product's English: phrases that hide the noun, in docstrings, comments and errors.

    python -m tests.project.plain_english                 # where they are
    python -m tests.project.plain_english backends/tvm/passes

"The elements of which so many are kept" hides its subject; "keeps `count` elements" names it.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from typing import NamedTuple

from tests.project.checkout import ROOT, modules

# Each is a phrase whose subject or noun the reader has to guess.
BANNED = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\bof which\b",
        r"\bso (many|much|few|little) (?!that\b|as\b)",
        r"\b(is|are|few|none|many) (are |is )?asked\b",
        r"\bstands? for\b",
        r"\bmade of\b",
        r"\bof what\b",
        r"\bthat what\b",
        r"\bwhat (it|they|is|was|are) (of|for|in|by|to)\b",
        r"\bwhat is (made|left|told|asked|said|meant)\b",
        r"^of (the|a|an|all|each|every|those|what)\b",
        r"\bas good as\b",
        r"\ball the same\b",
        r"\bby way of\b",
        r"\bnothing of\b",
    )
)
# Two "what" in one sentence.
_TWICE = re.compile(r"\bwhat\b[^.:;!?]*\bwhat\b", re.IGNORECASE)

_COMMENT = re.compile(r"(\s*|.*\s\s)# (.*)$")


class Riddle(NamedTuple):
    """A banned phrase and where it stands."""

    path: str
    line: int
    phrase: str


def _texts(source: str) -> Iterator[tuple[int, str]]:
    """Docstrings, comments and the strings of raised errors, with their lines."""
    # Errors name the operands that are wrong, so nearly all of them are f-strings.
    inside: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            if isinstance(node.value.value, str):
                yield node.lineno, node.value.value
                inside.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        elif isinstance(node, ast.Raise) and node.exc is not None:
            for part in ast.walk(node.exc):
                if isinstance(part, ast.JoinedStr):
                    pieces = (v.value if isinstance(v, ast.Constant) else "{}" for v in part.values)
                    yield part.lineno, "".join(map(str, pieces))
    first, words = 0, [""]
    for number, line in enumerate([*source.split("\n"), ""], 1):
        found = None if number in inside else _COMMENT.match(line)
        if found and (not first or not found[1].strip()):
            first = first or number
            words.append(found[2])
        elif first:
            yield first, " ".join(words)
            first, words = (number, [found[2]]) if found else (0, [""])


def riddles(source: str, path: str = "") -> Iterator[Riddle]:
    """The banned phrases of a file."""
    for line, text in _texts(source):
        flat = " ".join(text.split())
        for pattern in (*BANNED, _TWICE):
            for match in pattern.finditer(flat):
                yield Riddle(path, line, match[0])


def all_riddles() -> list[Riddle]:
    """The banned phrases of the product."""
    return [
        riddle
        for path in modules().values()
        for riddle in riddles(path.read_text(), path.relative_to(ROOT).as_posix())
    ]


def _main(arguments: list[str]) -> None:
    for riddle in all_riddles():
        if not arguments or riddle.path.startswith(tuple(arguments)):
            print(f"{riddle.path}:{riddle.line}: {riddle.phrase}")


if __name__ == "__main__":
    _main(sys.argv[1:])
