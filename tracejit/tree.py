"""Trees of arrays: nested dicts, lists, tuples, named tuples and registered classes.

leaves, structure = flatten({"w": w, "b": b})
map(lambda p, g: p - 0.1 * g, parameters, gradients)

None is a tree without leaves. Dictionaries are taken in the order of their sorted keys. The
functions have the names and arguments of those in `jax.tree`.
"""

from __future__ import annotations

import builtins
import dataclasses
import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import optree

from tracejit.errors import ArgumentError
from tracejit.tree_keys import NAMESPACE, KeyPath, NamedEntry, key_of

__all__ = [
    "Node",
    "all",
    "broadcast",
    "enter_node",
    "flatten",
    "flatten_with_path",
    "leaves",
    "leaves_with_path",
    "map",
    "map_with_path",
    "node",
    "paths",
    "reduce",
    "reduce_associative",
    "register_dataclass",
    "register_node",
    "structure",
    "transpose",
    "unflatten",
]

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


class Node(NamedTuple):
    """One level of a tree: its children, what else there is to it, and how to make it again."""

    children: tuple[Any, ...]
    kind: tuple[Any, ...]
    joined: Callable[[Iterable[Any]], Any]


def node(tree: Any) -> Node | None:
    """The uppermost level of a tree; None for a leaf."""
    try:
        parts, rest, _, join = optree.tree_flatten_one_level(tree, namespace=NAMESPACE)
    except ValueError:
        return None
    return Node(tuple(parts), (type(tree), len(parts), rest), functools.partial(join, rest))


def map(
    function: Callable[..., Any],
    tree: Any,
    *rest: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """``function`` on every leaf of ``tree``, with the subtrees at its place in the other trees.

    Raises `ArgumentError` when another tree differs from ``tree`` above the leaves of ``tree``.
    """
    first, spec = flatten(tree, is_leaf)
    columns = _columns("map", first, spec, rest, is_leaf)
    return unflatten(spec, [function(*row) for row in zip(*columns, strict=True)])


def _columns(
    function: str,
    first: list[Any],
    spec: Structure,
    rest: Sequence[Any],
    is_leaf: Callable[[Any], bool] | None,
) -> list[list[Any]]:
    """The leaves of the first tree, and of each other tree the subtrees at their places."""
    columns = [first]
    for position, other in enumerate(rest, start=1):
        try:
            columns.append(spec.flatten_up_to(other))
        except ValueError:
            given = structure(other, is_leaf)
            raise ArgumentError(
                f"tree.{function}: tree {position} is {given}, tree 0 is {spec}; they must be equal"
            ) from None
    return columns


def leaves_with_path(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> list[tuple[KeyPath, Any]]:
    """Each leaf of a tree with its path: a tuple of `tracejit.tree_util` keys from the root."""
    accessors, found, _ = optree.tree_flatten_with_accessor(tree, is_leaf, namespace=NAMESPACE)
    paths = [tuple(key_of(entry) for entry in accessor) for accessor in accessors]
    return list(zip(paths, found, strict=True))


def flatten_with_path(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[tuple[KeyPath, Any]], Structure]:
    """`leaves_with_path`, and the structure of the tree."""
    return leaves_with_path(tree, is_leaf), structure(tree, is_leaf)


def map_with_path(
    function: Callable[..., Any],
    tree: Any,
    *rest: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """`map` with the path of each leaf as the first argument of ``function``.

    Raises `ArgumentError` when another tree differs from ``tree`` above the leaves of ``tree``.
    """
    pairs, spec = flatten_with_path(tree, is_leaf)
    columns = _columns("map_with_path", [leaf for _, leaf in pairs], spec, rest, is_leaf)
    rows = zip((path for path, _ in pairs), *columns, strict=True)
    return unflatten(spec, [function(*row) for row in rows])


_NOT_GIVEN: Any = object()


def reduce(
    function: Callable[[Any, Any], Any],
    tree: Any,
    initializer: Any = _NOT_GIVEN,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """``function`` folded over the leaves from the first to the last, as `functools.reduce` does.

    Raises `TypeError` for a tree without leaves when no ``initializer`` is given.
    """
    start = () if initializer is _NOT_GIVEN else (initializer,)
    return functools.reduce(function, leaves(tree, is_leaf), *start)


def reduce_associative(
    operation: Callable[[Any, Any], Any],
    tree: Any,
    *,
    identity: Any = _NOT_GIVEN,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """``operation``, an associative function, over the leaves, in pairs.

    Raises `ArgumentError` for a tree without leaves when no ``identity`` is given.
    """
    values = leaves(tree, is_leaf)
    if not values and identity is _NOT_GIVEN:
        raise ArgumentError("tree.reduce_associative: a tree without leaves needs identity=")
    while len(values) > 1:
        pairs = [values[i : i + 2] for i in range(0, len(values), 2)]
        values = [operation(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return values[0] if values else identity


def all(tree: Any, *, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether every leaf is true."""
    return builtins.all(leaves(tree, is_leaf))


def broadcast(
    prefix_tree: Any, full_tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    """A tree like ``full_tree`` in which every leaf is the leaf of ``prefix_tree`` above it.

    Raises `ArgumentError` when ``prefix_tree`` is no prefix of ``full_tree``.
    """
    first, spec = flatten(prefix_tree, is_leaf)
    _, below = _columns("broadcast", first, spec, [full_tree], is_leaf)
    made = []
    for leaf, subtree in zip(first, below, strict=True):
        _, shape = flatten(subtree, is_leaf)
        made.append(unflatten(shape, [leaf] * shape.num_leaves))
    return unflatten(spec, made)


def transpose(
    outer_treedef: Structure, inner_treedef: Structure | None, pytree_to_transpose: Any
) -> Any:
    """A tree of trees with the inner structure outside: a list of dicts as a dict of lists.

    ``inner_treedef`` None is the structure of the first inner tree. Raises `ArgumentError` unless
    the tree has ``outer_treedef`` with ``inner_treedef`` at every leaf.
    """
    try:
        parts = outer_treedef.flatten_up_to(pytree_to_transpose)
        inner = structure(parts[0]) if inner_treedef is None else inner_treedef
        rows = [inner.flatten_up_to(part) for part in parts]
    except ValueError:
        raise ArgumentError(
            f"tree.transpose: the tree must be {outer_treedef} with {inner_treedef} at each leaf; "
            f"it is {structure(pytree_to_transpose)}"
        ) from None
    columns = zip(*rows, strict=True)
    return unflatten(inner, [unflatten(outer_treedef, column) for column in columns])


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
    ``from_children(rest, children)`` makes it again. Raises `ArgumentError` for a class that is a
    node already.
    """

    def split(value: Any) -> tuple[Iterable[Any], Any]:
        children, rest = to_children(value)
        return tuple(children), rest

    def join(rest: Any, children: Iterable[Any]) -> Any:
        return from_children(rest, tuple(children))

    return enter_node(kind, split, join)


def enter_node(
    kind: C,
    split: Callable[[Any], Any],
    join: Callable[[Any, Iterable[Any]], Any],
    entry: type[optree.PyTreeEntry] = optree.AutoEntry,
) -> C:
    """Puts a class into the registry of nodes, with the kind of path entry of its children.

    ``split(x)`` gives the children, the rest and, optionally, the children's entries.
    """
    try:
        optree.register_pytree_node(kind, split, join, path_entry_type=entry, namespace=NAMESPACE)
    except ValueError:
        raise ArgumentError(f"tree: {kind.__name__} is registered as a node already") from None
    return kind


def register_dataclass(
    kind: C,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> C:
    """Makes a dataclass a node of trees; also a decorator.

    ``data_fields`` hold arrays or trees of them (default: all fields but the others),
    ``meta_fields`` hold hashable values that are part of the structure (default: those fields whose
    ``metadata`` says ``static=True``), and ``drop_fields`` have defaults and are left out. Raises
    `ArgumentError` for what is no dataclass, and for other fields than it has.
    """
    if not dataclasses.is_dataclass(kind):
        raise ArgumentError(f"register_dataclass: {kind.__name__} is not a dataclass")
    fields = [field for field in dataclasses.fields(kind) if field.init]
    names = [field.name for field in fields if field.name not in drop_fields]
    if meta_fields is None:
        meta_fields = [f.name for f in fields if f.metadata.get("static") and f.name in names]
        meta_fields = [] if data_fields is not None else meta_fields
    data = [n for n in names if n not in meta_fields] if data_fields is None else list(data_fields)
    if sorted([*data, *meta_fields]) != sorted(names):
        raise ArgumentError(
            f"register_dataclass: data_fields and meta_fields must be the fields of "
            f"{kind.__name__}, {', '.join(names)}"
        )

    def split(value: Any) -> tuple[Iterable[Any], Any, Iterable[Any]]:
        meta = tuple(getattr(value, name) for name in meta_fields)
        return [getattr(value, name) for name in data], meta, data

    def join(meta: Any, children: Iterable[Any]) -> Any:
        values = {
            **dict(zip(data, children, strict=True)),
            **dict(zip(meta_fields, meta, strict=True)),
        }
        return kind(**values)

    return enter_node(kind, split, join, NamedEntry)


def __dir__() -> list[str]:
    return __all__
