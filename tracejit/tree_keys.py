"""The keys of paths in trees: which child of a node a path goes to.

str(DictKey("w")), str(SequenceKey(0)), str(GetAttrKey("bias"))        ['w']  [0]  .bias
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import optree

NAMESPACE = "tracejit"
"""The registry of node classes, apart from those of other users of optree."""


@dataclass(frozen=True)
class SequenceKey:
    """An element of a list or tuple, by its index."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"


@dataclass(frozen=True)
class DictKey:
    """A value of a dictionary, by its key."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"


@dataclass(frozen=True)
class GetAttrKey:
    """An attribute of an object, by its name."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


@dataclass(frozen=True)
class FlattenedIndexKey:
    """A child of a class that is registered without names of its children, by its number."""

    key: int

    def __str__(self) -> str:
        return f"[<flat index {self.key}>]"


Key = SequenceKey | DictKey | GetAttrKey | FlattenedIndexKey
KeyPath = tuple[Any, ...]


class NamedEntry(optree.PyTreeEntry):
    """A child of a registered class whose entry is its attribute's name, or a key as above."""

    def codify(self, node: str = "") -> str:
        return f"{node}{key_of(self)}"


def key_of(entry: optree.PyTreeEntry) -> Any:
    """The key of an entry of an optree path."""
    name = entry.entry
    match entry:
        case NamedEntry():
            return GetAttrKey(name) if isinstance(name, str) else name
        case optree.MappingEntry():
            return DictKey(name)
        case optree.NamedTupleEntry():
            return GetAttrKey(entry.field)
        case optree.SequenceEntry():
            return SequenceKey(name)
        case optree.GetAttrEntry():
            return GetAttrKey(name)
        case _:
            return FlattenedIndexKey(name)
