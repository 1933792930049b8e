"""A kernel's memory accesses as data: loads and stores with their loops and conditions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tracejit.backends.tvm.ir.tir import Buffer
from tracejit.backends.tvm.verification.expressions import Indices
from tracejit.backends.tvm.verification.linear import Linear, Symbol, number


@dataclass(frozen=True)
class KernelBuffer:
    """A buffer; the kernel writes ``own`` ones, its local buffers, before it reads them.

    It was allocated inside ``depth`` loops.
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
class EnclosingLoop:
    """A loop around an access.

    The iterations of a vectorised loop run together: they are the lanes of each access.
    """

    symbol: Symbol
    extent: Linear
    is_parallel: bool
    is_vectorized: bool = False


@dataclass(frozen=True)
class Problem:
    """A possible, or certain, access outside a buffer."""

    text: str
    is_certain: bool


@dataclass(frozen=True)
class Access:
    """A load or a store: its indices, its loops, and the conditions under which it runs.

    It runs in each iteration of the loops for which ``facts`` hold, and the conditions of
    ``guards``, which are not known completely; ``problem`` is why it could not be proven in
    bounds. ``node`` is the load, the store, or the call of a routine.
    """

    memory: KernelBuffer
    indices: Indices
    is_store: bool
    loops: tuple[EnclosingLoop, ...]
    facts: tuple[Linear, ...]
    guards: tuple[int, ...]
    problem: Problem | None = None
    node: Any = None


def flat(indices: Indices, shape: Sequence[int]) -> Linear:
    """The row-major offset of an element in a buffer of this shape."""
    place = number(0)
    for index, extent in zip(indices, shape, strict=True):
        place = place.times(extent).add(index)
    return place
