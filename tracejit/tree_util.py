"""`jax.tree_util`'s names for trees: the functions of `tracejit.tree`, and classes as nodes.

@tree_util.register_pytree_node_class
class Layer:
    def tree_flatten(self): return (self.weight,), self.name
    @classmethod
    def tree_unflatten(cls, name, children): ...
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import optree

from tracejit.errors import ArgumentError
from tracejit.tree import (
    Structure,
    enter_node,
    register_dataclass,
    register_node,
)
from tracejit.tree import all as tree_all
from tracejit.tree import broadcast as tree_broadcast
from tracejit.tree import flatten as tree_flatten
from tracejit.tree import flatten_with_path as tree_flatten_with_path
from tracejit.tree import leaves as tree_leaves
from tracejit.tree import leaves_with_path as tree_leaves_with_path
from tracejit.tree import map as tree_map
from tracejit.tree import map_with_path as tree_map_with_path
from tracejit.tree import reduce as tree_reduce
from tracejit.tree import reduce_associative as tree_reduce_associative
from tracejit.tree import structure as tree_structure
from tracejit.tree import transpose as tree_transpose
from tracejit.tree import unflatten as tree_unflatten
from tracejit.tree_keys import (
    NAMESPACE,
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    Key,
    KeyPath,
    NamedEntry,
    SequenceKey,
)

C = TypeVar("C", bound=type)
PyTreeDef = Structure

__all__ = [
    "DictKey",
    "FlattenedIndexKey",
    "GetAttrKey",
    "Key",
    "KeyPath",
    "Partial",
    "PyTreeDef",
    "SequenceKey",
    "all_leaves",
    "flatten_one_level",
    "keystr",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "register_pytree_with_keys",
    "register_pytree_with_keys_class",
    "register_static",
    "tree_all",
    "tree_broadcast",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_with_path",
    "tree_reduce",
    "tree_reduce_associative",
    "tree_structure",
    "tree_transpose",
    "tree_unflatten",
    "treedef_children",
    "treedef_is_leaf",
    "treedef_tuple",
]


def register_pytree_node(
    nodetype: C,
    flatten_func: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_with_keys_func: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]] | None = None,
) -> None:
    """Makes a class a node: ``flatten_func(x)`` gives (children, what else there is, hashable).

    ``flatten_with_keys_func`` gives (key, child) pairs in place of children. Raises `ArgumentError`
    for a class that is a node already.
    """
    if flatten_with_keys_func is not None:
        register_pytree_with_keys(nodetype, flatten_with_keys_func, unflatten_func)
        return
    register_node(nodetype, lambda x: _listed(flatten_func(x)), unflatten_func)


def _listed(parts: tuple[Iterable[Any], Any]) -> tuple[list[Any], Any]:
    children, rest = parts
    return list(children), rest


def register_pytree_node_class(cls: C) -> C:
    """Makes a class with ``tree_flatten(self)`` and ``tree_unflatten(cls, rest, children)`` a node.

    Raises `ArgumentError` for a class that is a node already.
    """
    kind: Any = cls
    register_pytree_node(cls, lambda x: x.tree_flatten(), kind.tree_unflatten)
    return cls


def register_pytree_with_keys(
    nodetype: C,
    flatten_with_keys: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_func: Callable[[Any], tuple[Iterable[Any], Any]] | None = None,
) -> None:
    """Makes a class a node whose children have keys, which paths show.

    ``flatten_with_keys(x)`` gives ((key, child) pairs, what else there is, hashable).
    ``flatten_func``, which gives the children alone, is accepted and not needed. Raises
    `ArgumentError` for a class that is a node already.
    """

    def split(value: Any) -> tuple[Iterable[Any], Any, Iterable[Any]]:
        pairs, rest = flatten_with_keys(value)
        pairs = list(pairs)
        return [child for _, child in pairs], rest, [key for key, _ in pairs]

    enter_node(
        nodetype, split, lambda rest, children: unflatten_func(rest, tuple(children)), NamedEntry
    )


def register_pytree_with_keys_class(cls: C) -> C:
    """Makes a class with ``tree_flatten_with_keys`` and ``tree_unflatten`` a node.

    Raises `ArgumentError` for a class that is a node already.
    """
    kind: Any = cls
    register_pytree_with_keys(cls, lambda x: x.tree_flatten_with_keys(), kind.tree_unflatten)
    return cls


def register_static(cls: C) -> C:
    """Makes a hashable class a node without children: it is part of the structure.

    Raises `ArgumentError` for a class that is a node already.
    """
    return register_node(cls, lambda x: ((), x), lambda x, _: x)


class Partial(functools.partial[Any]):
    """`functools.partial` as a node: arguments are its children, the function is its structure."""


register_node(
    Partial,
    lambda p: ((p.args, p.keywords), p.func),
    lambda function, children: Partial(function, *children[0], **children[1]),
)


def keystr(keys: KeyPath, *, simple: bool = False, separator: str = "") -> str:
    """A path as text: ['layers'][0].weight, or with ``simple`` layers0weight with a separator."""
    if not simple:
        return separator.join(map(str, keys))
    names = [next(iter(vars(key).values())) if isinstance(key, Key) else key for key in keys]
    return separator.join(map(str, names))


def all_leaves(iterable: Iterable[Any], is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether none of the values is a node."""
    return all(tree_structure(value, is_leaf).is_leaf() for value in iterable)


def flatten_one_level(tree: Any) -> tuple[list[Any], Any]:
    """The children of a node, and what else there is to it. Raises `ArgumentError` for a leaf."""
    if tree is None:
        return [], None
    try:
        children, rest, *_ = optree.tree_flatten_one_level(tree, namespace=NAMESPACE)
    except ValueError:
        raise ArgumentError(
            f"flatten_one_level: {type(tree).__name__} is a leaf, and no node of trees"
        ) from None
    return list(children), rest


def treedef_children(treedef: Structure) -> list[Structure]:
    """The structures of a node's children."""
    return treedef.children()


def treedef_is_leaf(treedef: Structure) -> bool:
    """Whether a structure is one leaf."""
    return treedef.is_leaf()


def treedef_tuple(treedefs: Iterable[Structure]) -> Structure:
    """The structure of a tuple of trees of these structures."""
    return optree.treespec_tuple(treedefs, namespace=NAMESPACE)


def __dir__() -> list[str]:
    return __all__
