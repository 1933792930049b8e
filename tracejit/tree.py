"""Trees of arrays: nested dicts, lists, tuples, named tuples and registered classes.

leaves, structure = flatten({"w": w, "b": b})
map(lambda p, g: p - 0.1 * g, parameters, gradients)

None is a tree without leaves. Dictionaries are taken in the order of their sorted keys.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import optree

from tracejit.errors import ArgumentError

NAMESPACE = "tracejit"
Structure = optree.PyTreeSpec
C = TypeVar("C", bound=type)


def flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], Structure]:
    """The leaves of a tree, and its structure without them."""
    return optree.tree_flatten(tree, is_leaf, namespace=NAMESPACE)


def unflatten(structure: Structure, leaves: Iterable[Any]) -> Any:
    """The tree with this structure and these leaves."""
    return optree.tree_unflatten(structure, leaves)


def leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """The leaves of a tree."""
    return optree.tree_leaves(tree, is_leaf, namespace=NAMESPACE)


def structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Structure:
    """The structure of a tree."""
    return optree.tree_structure(tree, is_leaf, namespace=NAMESPACE)


def map(
    function: Callable[..., Any],
    tree: Any,
    *rest: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """``function`` on every leaf of ``tree``, with the leaves at its place in the other trees.

    Raises `ArgumentError` when the trees differ in structure.
    """
    first, spec = flatten(tree, is_leaf)
    columns = [first]
    for position, other in enumerate(rest, start=1):
        other_leaves, other_spec = flatten(other, is_leaf)
        if other_spec != spec:
            raise ArgumentError(
                f"tree.map: tree {position} is {other_spec}, tree 0 is {spec}; they must be equal"
            )
        columns.append(other_leaves)
    return unflatten(spec, [function(*row) for row in zip(*columns, strict=True)])


def paths(spec: Structure, name: str = "") -> list[str]:
    """How each leaf is reached from a tree called ``name``: x['w'][0]."""
    return [accessor.codify(name) for accessor in optree.treespec_accessors(spec)]


def register_node(
    kind: C,
    to_children: Callable[[Any], tuple[Sequence[Any], Any]],
    from_children: Callable[[Any, Sequence[Any]], Any],
) -> C:
    """Makes a class a node of trees.

    ``to_children(x)`` gives its children and what else there is to it, which must be hashable;
    ``from_children(rest, children)`` makes it again.
    """

    def split(value: Any) -> tuple[Iterable[Any], Any]:
        children, rest = to_children(value)
        return tuple(children), rest

    def join(rest: Any, children: Iterable[Any]) -> Any:
        return from_children(rest, tuple(children))

    optree.register_pytree_node(kind, split, join, namespace=NAMESPACE)
    return kind


def register_dataclass(
    kind: C, data_fields: Sequence[str] | None = None, meta_fields: Sequence[str] = ()
) -> C:
    """Makes a dataclass a node of trees; also a decorator.

    ``data_fields`` hold arrays or trees of them (default: all fields but the others),
    ``meta_fields`` hold hashable values that are part of the structure.
    """
    if not dataclasses.is_dataclass(kind):
        raise ArgumentError(f"register_dataclass: {kind.__name__} is not a dataclass")
    names = [field.name for field in dataclasses.fields(kind) if field.init]
    data = [n for n in names if n not in meta_fields] if data_fields is None else list(data_fields)
    if sorted([*data, *meta_fields]) != sorted(names):
        raise ArgumentError(
            f"register_dataclass: data_fields and meta_fields must be the fields of "
            f"{kind.__name__}, {', '.join(names)}"
        )

    def to_children(value: Any) -> tuple[Sequence[Any], Any]:
        meta = tuple(getattr(value, name) for name in meta_fields)
        return [getattr(value, name) for name in data], meta

    def from_children(meta: Any, children: Sequence[Any]) -> Any:
        fields = {
            **dict(zip(data, children, strict=True)),
            **dict(zip(meta_fields, meta, strict=True)),
        }
        return kind(**fields)

    return register_node(kind, to_children, from_children)
