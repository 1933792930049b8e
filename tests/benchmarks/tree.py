"""Trees of dicts, lists and tuples, for processes that must not import a library for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def map_leaves(function: Callable[[Any], Any], tree: Any) -> Any:
    """The tree with every leaf replaced."""
    if isinstance(tree, dict):
        return {key: map_leaves(function, value) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return tuple(map_leaves(function, value) for value in tree)
    return function(tree)


def leaves(tree: Any) -> list[Any]:
    """The leaves, dicts in the order of their sorted keys."""
    if isinstance(tree, dict):
        return [leaf for key in sorted(tree) for leaf in leaves(tree[key])]
    if isinstance(tree, list | tuple):
        return [leaf for value in tree for leaf in leaves(value)]
    return [tree]
