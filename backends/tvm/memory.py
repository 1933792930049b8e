"""Where intermediate arrays lie: one workspace, shared by arrays that do not live at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

ALIGNMENT = 64


@dataclass(frozen=True)
class Lifetime:
    """An array of ``nbytes`` that is written by step ``first`` and last read by step ``last``."""

    nbytes: int
    first: int
    last: int


def pack(lifetimes: Sequence[Lifetime]) -> tuple[list[int], int]:
    """The byte offset of each array and the size of the workspace.

    Arrays whose lifetimes overlap (a step that reads one and writes the other included) never
    share bytes. Larger arrays are placed first, each at the lowest offset that is free.
    """
    offsets = [0] * len(lifetimes)
    placed: list[int] = []
    total = 0
    for index in sorted(range(len(lifetimes)), key=lambda i: -lifetimes[i].nbytes):
        life = lifetimes[index]
        neighbours = sorted(
            (offsets[i], offsets[i] + _padded(lifetimes[i].nbytes))
            for i in placed
            if lifetimes[i].first <= life.last and life.first <= lifetimes[i].last
        )
        offset = 0
        for begin, end in neighbours:
            if offset + _padded(life.nbytes) <= begin:
                break
            offset = max(offset, end)
        offsets[index] = offset
        placed.append(index)
        total = max(total, offset + _padded(life.nbytes))
    return offsets, total


def _padded(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT
