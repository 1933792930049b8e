"""Which arrays a variable may be after a branch: those that were there before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tracejit import tree
from tracejit.graph import Instruction
from tracejit.statements.values import attached
from tracejit.trace.shared import share
from tracejit.trace.tracer import Tracer
from tracejit.trace.views import Path

Originals = dict[int, tuple[Tracer, Tracer]]
"""By the id of a copy: the copy that a branch works with, and the array that it stands for."""


def originals(before: Sequence[Any], copies: Sequence[Any]) -> Originals:
    """The arrays of variables before a branch, by the copies made for it."""
    pairs = zip(tree.leaves(list(before)), tree.leaves(list(copies)), strict=True)
    return {id(copy): (copy, attached(leaf)) for leaf, copy in pairs if isinstance(leaf, Tracer)}


class Candidate(NamedTuple):
    """That a leaf of a variable is the view of ``root`` along ``paths`` where ``condition`` holds.

    None stands for the whole of one branch. ``is_written``: in the branch, under this name alone.
    """

    leaf: int
    condition: Instruction | None
    root: Tracer
    paths: list[Path]
    is_written: bool = False


def candidates(ends: Sequence[Any], copies: Originals) -> list[Candidate]:
    """The arrays from before a branch that the leaves of a variable may be at its end.

    An array may be lent to the branch: whether it was made there is seen when that has ended.
    """
    found = []
    for number, end in enumerate(ends):
        if not isinstance(end, Tracer) or end.is_scalar:
            continue
        root, paths = _origin(end, copies)
        is_written = id(end.root) in copies and end.root.version > 0
        found.append(Candidate(number, None, root, paths, is_written))
        if root.owner.alive:
            continue
        for one in root.shares.entries if root.shares is not None else ():
            if one.paths is not None:
                other, way = _origin(one.other, copies)
                found.append(Candidate(number, one.condition, other, [*way, *one.paths, *paths]))
    return found


def note(value: Any, old: Sequence[Tracer], found: Sequence[tuple[Candidate, Instruction]]) -> None:
    """Notes for the arrays of a variable which others each may be, under which conditions.

    ``old`` are the arrays of before the branches: what these are is known.
    """
    leaves = tree.leaves(value)
    for candidate, condition in found:
        made, root = leaves[candidate.leaf], candidate.root
        if not isinstance(made, Tracer) or made.is_scalar or made.base is not None:
            continue
        if root.is_scalar or not root.owner.alive or any(made is one for one in (root, *old)):
            continue
        part = root.last
        for path in candidate.paths:
            part = path.read(part)
        if part.array_shape == made.last.array_shape:
            share(made, condition, root, candidate.paths, candidate.is_written)


def _origin(array: Tracer, copies: Originals) -> tuple[Tracer, list[Path]]:
    """The array from before the branch that one is a view of, and the way there.

    It belongs to the branch where the array was made in it.
    """
    paths: list[Path] = []
    while True:
        while array.base is not None:
            array, path = array.step
            paths.append(path)
        if id(array) not in copies:
            return array, paths[::-1]
        array = copies[id(array)][1]
