"""A module to read in a terminal: by the user's lines, small computations folded, in colours.

print(listed(module, unfold=False, colored=True))
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterator

from tracejit.graph import Instruction, Module
from tracejit.hlo.printer import Listing, listing
from tracejit.ops.constants import PARAMETER
from tracejit.passes.cost_analysis import size_in_bytes
from tracejit.runtime.units import bytes_text
from tracejit.sources import Source

_FOLDED = 4
"""Computations of at most this many instructions are written where they are called."""

_BOLD, _DIM, _GREEN, _CYAN, _PLAIN = (f"\033[{code}m" for code in (1, 2, 32, 36, 0))
_NAME = re.compile(r"%[\w.-]+")
_SHAPE = re.compile(r"\b[a-z][a-z0-9]*\[[^\]]*\](\{[^}]*\})?")


def listed(module: Module, unfold: bool, colored: bool) -> str:
    """The text, the entry last. With ``unfold`` every computation stands by itself."""
    parts = list(listing(module, literal=lambda array: "…" if array.size > 8 else str(array)))
    small = {} if unfold else {part.name: _summary(part) for part in parts if _is_small(part)}
    lines: list[str] = []
    for part in parts:
        if part.name not in small or part.is_entry:
            lines += [*_part(part, small), ""]
    text = "\n".join(lines)
    return text if colored else re.sub(r"\033\[\d+m", "", text)


def _is_small(part: Listing) -> bool:
    return len(part.instructions) <= _FOLDED


def _summary(part: Listing) -> str:
    """``add(a, b)`` for a small computation: its ops from the first to the root."""
    ops = [i.op.opcode for i, _ in part.instructions if i.op is not PARAMETER]
    return "{" + ", ".join(ops or ["parameter"]) + "}"


def _part(part: Listing, small: dict[str, str]) -> Iterator[str]:
    yield f"{_BOLD}{part.head}{_PLAIN}"
    before: Source | None = None
    for instruction, text in part.instructions:
        source = instruction.source
        if source is not None and source != before:
            code = linecache.getline(source.file, source.line).strip()
            yield f"  {_GREEN}# {source}{f'  {code}' if code else ''}{_PLAIN}"
        before = source or before
        root = "ROOT " if instruction is part.root else ""
        size = bytes_text(size_in_bytes(instruction.shape))
        yield f"  {root}{_painted(instruction, text, small)}  {_DIM}{size}{_PLAIN}"
    yield "}"


def _painted(instruction: Instruction, text: str, small: dict[str, str]) -> str:
    def name(found: re.Match[str]) -> str:
        own = found[0][1:]
        return f"{found[0]} {_DIM}{small[own]}{_PLAIN}" if own in small else found[0]

    text = _SHAPE.sub(lambda found: f"{_CYAN}{found[0]}{_PLAIN}", _NAME.sub(name, text))
    return text.replace(
        f" {instruction.op.opcode}(", f" {_BOLD}{instruction.op.opcode}{_PLAIN}(", 1
    )
