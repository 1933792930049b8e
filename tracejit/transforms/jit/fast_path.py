"""The short way through a jitted call, for arguments like those of the call before.

A shortcut takes the arguments as they were given and answers with the result, or with None when
they are not of the kind it was made for: then the long way has to look at them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tracejit.runtime.dispatch import flattener
from tracejit.trace.context import Bounds
from tracejit.transforms.jit.staging import Finish
from tracejit.tree import Structure

Shortcut = Callable[[tuple[Any, ...], dict[str, Any]], Any]
Run = Callable[[Sequence[object]], list[np.ndarray] | None]
Scalar = tuple[int, type, np.dtype]
"""A leaf that is a number: its place among the leaves, its type, and the dtype it is passed as."""


def shortcut_for(
    run: Run,
    structure: Structure,
    static_args: dict[int, Any],
    scalars: Sequence[Scalar],
    orders: Sequence[tuple[int, tuple[int, ...]]],
    bounds: Mapping[int, Bounds],
    finish: Finish,
) -> Shortcut | None:
    """The shortcut for one compiled version.

    ``structure`` is that of (dynamic arguments, keyword arguments), ``orders`` has the leaves that
    are transposed before they are passed, ``bounds`` the integers that must be within some,
    ``finish`` makes the result of the program's. There is no shortcut for versions with keyword
    arguments.
    """
    positional, keywords = structure.children()
    if keywords.num_leaves or keywords.num_children:
        return None
    if not static_args and not scalars and not orders:
        if all(child.is_leaf() for child in positional.children()):
            return _of_plain_arrays(run, positional.num_children, finish)
        return _of_trees(run, positional, finish)
    return _of_anything(run, positional, static_args, scalars, orders, bounds, finish)


def _of_plain_arrays(run: Run, count: int, finish: Finish) -> Shortcut:
    def shortcut(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if kwargs or len(args) != count:
            return None
        outputs = run(args)
        return None if outputs is None else finish(outputs)

    return shortcut


def _of_trees(run: Run, positional: Structure, finish: Finish) -> Shortcut:
    flatten = flattener(positional)

    def shortcut(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if kwargs:
            return None
        try:
            leaves = flatten(args)
        except LookupError:
            return None
        outputs = run(leaves)
        return None if outputs is None else finish(outputs)

    return shortcut


def _of_anything(
    run: Run,
    positional: Structure,
    static_args: dict[int, Any],
    scalars: Sequence[Scalar],
    orders: Sequence[tuple[int, tuple[int, ...]]],
    bounds: Mapping[int, Bounds],
    finish: Finish,
) -> Shortcut:
    limits = [(place, bound.least, bound.most) for place, bound in bounds.items()]
    flatten = flattener(positional)
    static = tuple(static_args.items())
    count = positional.num_children + len(static)
    dynamic = [p for p in range(count) if p not in static_args]

    def shortcut(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if kwargs or len(args) != count:
            return None
        for position, value in static:
            # Another object may be equal and yet another value: 1 and True are.
            if args[position] is not value:
                return None
        try:
            leaves = list(flatten(tuple([args[p] for p in dynamic]) if static else args))
        except LookupError:
            return None
        for place, kind, dtype in scalars:
            if type(leaves[place]) is not kind:
                return None
            try:
                leaves[place] = np.asarray(leaves[place], dtype)
            except OverflowError:
                return None
        for place, least, most in limits:
            if not least <= leaves[place] <= most:
                return None
        for place, order in orders:
            leaf = leaves[place]
            if type(leaf) is not np.ndarray or leaf.ndim != len(order):
                return None
            leaves[place] = leaf.transpose(order)
        outputs = run(leaves)
        return None if outputs is None else finish(outputs)

    return shortcut
