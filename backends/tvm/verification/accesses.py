"""What a kernel does to memory: loads and stores, the loops around them, and what holds there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tracejit.backends.tvm.ir.tir import Buffer
from tracejit.backends.tvm.verification.expressions import Indices
from tracejit.backends.tvm.verification.linear import Linear, Symbol, number


@dataclass(frozen=True)
class Memory:
    """A buffer as the verifier sees it: what ``own`` ones hold, the kernel has written.

    It was allocated inside of ``depth`` loops.
    """

    buffer: Buffer
    name: str
    dtype: str
    shape: tuple[int, ...]
    own: bool
    depth: int = 0

    @property
    def size(self) -> int:
        size = 1
        for extent in self.shape:
            size *= extent
        return size


@dataclass(frozen=True)
class Loop:
    """A loop around an access.

    The iterations of a vectorised one run at once: they are the lanes of each access.
    """

    symbol: Symbol
    extent: Linear
    is_parallel: bool
    is_vectorized: bool = False


@dataclass(frozen=True)
class Problem:
    """What an access may do, or certainly does, outside its memory."""

    text: str
    is_certain: bool


@dataclass(frozen=True)
class Access:
    """A load or a store: of which elements, in which loops, and what holds where it is made.

    It happens in each iteration of the loops in which ``facts`` hold, and the conditions of
    ``guards``, of which not all is known; ``problem`` is why it could not be proven to stay in its
    memory.
    """

    memory: Memory
    indices: Indices
    is_store: bool
    loops: tuple[Loop, ...]
    facts: tuple[Linear, ...]
    guards: tuple[int, ...]
    problem: Problem | None = None


def flat(indices: Indices, shape: Sequence[int]) -> Linear:
    """The place of an element in memory of a shape, row by row."""
    place = number(0)
    for index, extent in zip(indices, shape, strict=True):
        place = place.times(extent).add(index)
    return place
