"""Arrays that may be one: what a branch leaves behind in a variable is one array or another.

After ``b = x if c else y`` what is written to ``b`` is seen in ``x`` where ``c`` holds, and what is
written to ``x`` in ``b``. An array that is read looks whether the others were written to since.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tracejit.graph import Instruction
from tracejit.ops import elementwise
from tracejit.trace.context import current_trace
from tracejit.trace.views import Path

if TYPE_CHECKING:
    from tracejit.trace.tracer import Tracer

Carry = Callable[[Instruction, Instruction], Instruction]


class Share:
    """That an array is the memory of ``other``, or of a part of it, where ``condition`` holds.

    ``carry`` makes the array's value from that of ``other`` and its own; ``seen`` is the version of
    ``other`` that the array knows. ``paths``: the way from ``other`` to the array, None where it is
    the other that is a part. ``is_foreign``: of a trace further out.
    """

    __slots__ = ("carry", "condition", "is_foreign", "other", "paths", "seen", "twin")

    def __init__(
        self,
        condition: Instruction,
        other: Tracer,
        carry: Carry,
        paths: Sequence[Path] | None = None,
    ) -> None:
        self.condition, self.other, self.carry, self.paths = condition, other, carry, paths
        self.seen = other.version
        self.is_foreign = False
        self.twin = self


class Shares:
    """All that one array shares, and whether it is looking at the others."""

    __slots__ = ("entries", "is_busy")

    def __init__(self) -> None:
        self.entries: list[Share] = []
        self.is_busy = False


def share(
    made: Tracer,
    condition: Instruction,
    root: Tracer,
    paths: Sequence[Path],
    is_written: bool = False,
) -> None:
    """Makes ``made`` and the view of ``root`` along ``paths`` one array where ``condition`` holds.

    Neither is a view; ``made`` has been made of the present value of that view, but where it
    ``is_written``: then its value is still to be seen in ``root``.
    """

    def read(value: Instruction, _: Instruction) -> Instruction:
        for path in paths:
            value = path.read(value)
        return value

    def written(value: Instruction, old: Instruction) -> Instruction:
        bases = [old]
        for path in paths[:-1]:
            bases.append(path.read(bases[-1]))
        for path, base in zip(reversed(paths), reversed(bases), strict=False):
            value = path.write(base, value)
        return value

    mine, theirs = Share(condition, root, read, paths), Share(condition, made, written)
    mine.twin, theirs.twin = theirs, mine
    theirs.seen -= is_written
    mine.is_foreign = root.owner is not made.owner
    for array, one in ((made, mine), (root, theirs)):
        if array.shares is None:
            array.shares = Shares()
        array.shares.entries.append(one)


def foreign(shares: Shares, running: object) -> Tracer | None:
    """An array of a trace further out that a write in ``running`` would have to reach."""
    for one in shares.entries:
        if one.is_foreign and one.other.owner is not running and one.other.owner.alive:
            return one.other
    return None


def refreshed(array: Tracer, shares: Shares) -> Instruction:
    """The array's value after what was written to the others, kept but in a trace further in."""
    value = array.last
    if shares.is_busy:
        return value
    shares.is_busy = True
    try:
        versions = [(one, one.other.version) for one in shares.entries if one.other.owner.alive]
        written = [(one, version) for one, version in versions if version != one.seen]
        for one, _ in written:
            carried = one.carry(one.other.instruction, value)
            value = elementwise.select(one.condition, carried, value)
        if written and current_trace() in (None, array.owner):
            known = array.assign(value)
            for one, version in written:
                one.seen, one.twin.seen = version, known
    finally:
        shares.is_busy = False
    return value
