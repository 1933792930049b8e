"""A module as HLO text writes it: operands and computations are names."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tracejit.graph import Op
from tracejit.hlo.header import Header
from tracejit.shapes import AnyShape
from tracejit.sources import Source


@dataclass
class Statement:
    """One line of a computation, its operands and computations still names.

    ``shape`` is None where the text leaves it to be inferred; ``declared`` has the shapes that the
    text gives operands. A constant without a literal is one that the text leaves out. ``frontend``
    is the text of a framework's attributes, where the op has none itself.
    """

    name: str
    offset: int
    op: Op
    shape: AnyShape | None
    operands: list[tuple[str, int]]
    attributes: dict[str, Any]
    source: Source | None
    sharding: str = ""
    frontend: str = ""
    declared: dict[int, AnyShape] = field(default_factory=dict)
    inner: list[Statement] = field(default_factory=list)


@dataclass
class Block:
    """One computation as written."""

    name: str
    offset: int
    statements: list[Statement]
    root: str
    result: AnyShape | None = None


@dataclass
class ParsedModule:
    """A whole module as written."""

    header: Header
    blocks: dict[str, Block]
    entry: str
