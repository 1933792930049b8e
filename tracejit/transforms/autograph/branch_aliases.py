"""Which arrays a variable may be after a branch: those that were there before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tracejit import tree
from tracejit.graph import Instruction
from tracejit.ops.layout import full
from tracejit.shapes import Shape
from tracejit.trace.may_alias import Way, read_along, share_parts, written
from tracejit.trace.tracer import Tracer
from tracejit.trace.views import Path, Reshape
from tracejit.transforms.autograph.optional import without_flags
from tracejit.transforms.autograph.values import attached

Originals = dict[int, tuple[Tracer, Tracer]]
"""By the id of a copy: the copy that a branch works with, and its original."""


def originals(before: Sequence[Any], copies: Sequence[Any]) -> Originals:
    """The arrays of variables before a branch, by the copies made for it."""
    pairs = zip(tree.leaves(list(before)), tree.leaves(list(copies)), strict=True)
    return {
        id(copy): (copy, attached(leaf))
        for leaf, copy in pairs
        if isinstance(leaf, Tracer) and copy is not leaf
    }


class Candidate(NamedTuple):
    """That a leaf of a variable and ``other`` are parts of one memory where ``condition`` holds.

    ``mine`` and ``theirs`` are the ways to them from a memory of ``shape``; None is the whole of
    one branch. ``is_written``: in the branch, under this name alone. ``doubted`` says why it may
    be so or not.
    """

    leaf: int
    condition: Instruction | None
    other: Tracer
    shape: Shape
    mine: Way
    theirs: Way = ()
    is_written: bool = False
    doubted: str | None = None


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
        shape = root.last.array_shape
        found.append(Candidate(number, None, root, shape, paths, is_written=is_written))
        if root.owner.alive:
            continue
        if root.shares is None:
            continue
        for one in root.shares.entries:
            array = one.other.array()
            if array is not None:
                other, way = _origin(array, copies)
                doubted = root.shares.doubted if one.condition is None else None
                if not way:
                    mine = (*one.mine, *paths)
                    new = Candidate(number, one.condition, other, one.shape, mine, one.theirs)
                    found.append(new._replace(doubted=doubted))
                elif not one.theirs:
                    shape = other.last.array_shape
                    mine = (*way, *one.mine, *paths)
                    new = Candidate(number, one.condition, other, shape, mine)
                    found.append(new._replace(doubted=doubted))
    return found


def note(value: Any, old: Sequence[Tracer], found: Sequence[tuple[Candidate, Instruction]]) -> None:
    """Notes for the arrays of a variable which others each may be, under which conditions.

    ``old`` are the arrays of before the branches: what these are is known.
    """
    leaves = tree.leaves(without_flags(value))
    for candidate, condition in found:
        made, other = leaves[candidate.leaf], candidate.other
        if not isinstance(made, Tracer) or made.is_scalar or made.base is not None:
            continue
        if other.is_scalar or not other.owner.alive or any(made is one for one in (other, *old)):
            continue
        memory = full(candidate.shape, 0) if candidate.theirs else other.last
        if read_along(candidate.mine, memory).array_shape != made.last.array_shape:
            continue
        doubted = candidate.doubted
        holds = condition if doubted is None else None
        ways = candidate.mine, other, candidate.theirs
        share_parts(made, *ways, candidate.shape, holds, reason=doubted or "")
        if candidate.is_written:
            written(made)


Holding = dict[int, list[tuple[Tracer, Way]]]
"""By the id of an array that a branch made: the variables' arrays that may be parts of it, and the
ways there.
"""


def note_made_inside(
    value: Any, candidate: Candidate, condition: Instruction, holding: Holding
) -> None:
    """Notes that an array of a variable is one with those of variables noted before it, if the
    branch bound them to parts of one array that it made.
    """
    made, other = tree.leaves(without_flags(value))[candidate.leaf], candidate.other
    if not isinstance(made, Tracer) or made.is_scalar or other.owner.alive:
        return
    for peer, way in holding.get(id(other), ()):
        theirs = *candidate.theirs, *way
        fits = all(
            _seen(candidate.shape, along) == array.last.array_shape
            for array, along in ((made, candidate.mine), (peer, theirs))
        )
        doubted = candidate.doubted or ("" if fits else _OTHER_TYPE)
        holds = None if doubted else condition
        share_parts(made, candidate.mine, peer, theirs, candidate.shape, holds, reason=doubted)
    if candidate.condition is None and not candidate.theirs:
        holding.setdefault(id(other), []).append((made, candidate.mine))


_OTHER_TYPE = (
    "a branch binds two names to one array that it makes, and the other branch makes one of them "
    "an array of another shape or type; copy it before, x = x.copy()"
)


def _seen(shape: Shape, way: Way) -> Shape:
    return read_along(way, full(shape, 0)).array_shape


def origin(array: Tracer) -> tuple[Tracer, Way]:
    """The array that one is a view of, and the way there."""
    return _origin(array, {})


def _origin(array: Tracer, copies: Originals) -> tuple[Tracer, Way]:
    """The array from before the branch that one is a view of, and the way there.

    It belongs to the branch where the array was made in it.
    """
    paths: list[Path] = []
    while True:
        while array.base is not None:
            array, path = array.step
            if path != Reshape(array.shape):
                paths.append(path)
        if id(array) not in copies:
            return array, tuple(paths[::-1])
        array = copies[id(array)][1]
