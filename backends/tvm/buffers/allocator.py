"""The workspace allocator: arrays with disjoint lifetimes share memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    placed = _Placed()
    total = 0
    for index in sorted(range(len(lifetimes)), key=lambda i: -lifetimes[i].nbytes):
        life = lifetimes[index]
        size = _padded(life.nbytes)
        offset = 0
        for begin, end in sorted(placed.beside(life)):
            if offset + size <= begin:
                break
            offset = max(offset, end)
        offsets[index] = offset
        placed.add(life, (offset, offset + size))
        total = max(total, offset + size)
    return offsets, total


class _Placed:
    """The arrays that have an offset, indexed by lifetime.

    Arrays that live for less than 2**n steps are grouped by the 2**n steps in which they begin, so
    that a search visits few arrays that do not overlap.
    """

    def __init__(self) -> None:
        self.levels: dict[int, dict[int, list[tuple[Lifetime, tuple[int, int]]]]] = {}

    def add(self, life: Lifetime, place: tuple[int, int]) -> None:
        level = (life.last - life.first).bit_length()
        spans = self.levels.setdefault(level, {})
        spans.setdefault(life.first >> level, []).append((life, place))

    def beside(self, life: Lifetime) -> Iterator[tuple[int, int]]:
        """The beginning and end of each array that is alive at the same time as ``life``."""
        for level, spans in self.levels.items():
            for span in range((life.first >> level) - 1, (life.last >> level) + 1):
                for other, place in spans.get(span, ()):
                    if other.first <= life.last and life.first <= other.last:
                        yield place


def _padded(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT
