"""Horizontal fusion: kernels over one iteration space that read the same arrays become one.

fuse_horizontally(kernels, memory)
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable

from tracejit.backends.tvm.analysis.cost_model import SIZE_LIMIT, cost_of, longest_chain
from tracejit.backends.tvm.fusion.kernel import (
    Kernel,
    gathered,
    inputs_of,
    is_anchor,
    read_by,
    reads_at_own_element,
    tuple_of,
)
from tracejit.graph import Instruction
from tracejit.ops.layout import RESHAPE
from tracejit.ops.reduction import REDUCE
from tracejit.shapes import Shape

MERGE_LIMIT = 32
# How many Reduces are combined in one pass, whose results so far stay in registers.
MOST_BESIDE = 6
# Scalars stay in registers.
SCALAR_MERGE_LIMIT = 32
SCALAR_SIZE_LIMIT = 500


def fuse_horizontally(kernels: Iterable[Kernel], memory: set[Instruction]) -> list[Kernel]:
    """Kernels over one space joined, where no kernel between depends on the first.

    They are pointwise, or Reduces.
    """
    hosts = _Hosts(memory)
    for kernel in kernels:
        hosts.take(kernel)
    return hosts.kernels


class _Hosts:
    """The kernels so far, found by what may join them: each kernel looks at few of them."""

    def __init__(self, memory: set[Instruction]) -> None:
        self.kernels: list[Kernel] = []
        self._memory = memory
        self._places: dict[Instruction, int] = {}
        """Which kernel makes an instruction."""
        self._over: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
        """The pointwise kernels over a space that have room for results, in order."""
        self._readers: defaultdict[Instruction, list[int]] = defaultdict(list)
        """The Reduces that read an instruction and have room for others, in order."""

    def take(self, kernel: Kernel) -> None:
        """Adds a kernel, to one before it if that can make its results as well."""
        needed = inputs_of(kernel, self._memory)
        place, joined = self._host(kernel, needed) or (len(self.kernels), kernel)
        self.kernels[place : place + 1] = [joined]
        self._places.update(dict.fromkeys(kernel.results, place))
        if joined.anchor is None:
            limit = MERGE_LIMIT if joined.dimensions else SCALAR_MERGE_LIMIT
            _keep(self._over[joined.dimensions], place, len(joined.results) < limit)
        elif joined.anchor.op is REDUCE:
            for instruction in inputs_of(joined, self._memory):
                _keep(self._readers[instruction], place, len(joined.anchors) < MOST_BESIDE)

    def _host(self, kernel: Kernel, needed: set[Instruction]) -> tuple[int, Kernel] | None:
        """Which kernel can make this one's results, and what that is then."""
        last = max((self._places.get(tuple_of(i), -1) for i in needed), default=-1)
        if kernel.anchor is None:
            for place in reversed(self._over[kernel.dimensions]):
                if place < last:
                    return None
                host = self.kernels[place]
                joined = _joined(host, kernel, self._memory)
                if joined and reads_at_own_element(kernel, set(host.results), self._memory):
                    return place, joined
            return None
        if kernel.anchor.op is not REDUCE:
            return None
        # Of a larger array each reads a part of its own.
        size = kernel.anchor.operands[0].array_shape.size
        alike = [i for i in needed if isinstance(i.shape, Shape) and i.shape.size == size]
        places = {place for i in alike for place in self._readers[i] if place > last}
        for place in sorted(places, reverse=True):
            host = self.kernels[place]
            assert host.anchor is not None, "a Reduce"
            anchors = (*host.beside, *kernel.anchors)
            if one_pass(host.anchor, kernel.anchor) and len(anchors) < MOST_BESIDE:
                return place, Kernel([*host.results, *kernel.results], host.anchor, anchors)
        return None


def _keep(places: list[int], place: int, has_room: bool) -> None:
    """Has ``place`` among the places, in order, as long as there is room."""
    at = bisect_left(places, place)
    is_there = at < len(places) and places[at] == place
    places[at : at + is_there] = [place] if has_room else []


def one_pass(reduction: Instruction, other: Instruction) -> bool:
    """Whether two instructions are Reduces that can be combined in one pass.

    They combine elements at the same places. Nothing is known of whether one needs the other.
    """
    return (
        reduction.op is other.op is REDUCE
        and reduction.operands[0].array_shape.dimensions == other.operands[0].array_shape.dimensions
        and reduction.attributes["dimensions"] == other.attributes["dimensions"]
    )


def _joined(host: Kernel, kernel: Kernel, memory: set[Instruction]) -> Kernel | None:
    """Both kernels as one; None where too many ops come together or wait for each other."""
    size = _joint_size(host, kernel, memory)
    if size > size_limit(kernel.results[0]):
        return None
    results = [*host.results, *kernel.results]
    if not kernel.dimensions:  # scalars wait for each other anyway
        return Kernel(results, size=size)
    chains = _joint_chains(host, kernel, memory)
    if max(chains.values()) > longest_chain(size):
        return None
    return Kernel(results, size=size, chains=host.chains | chains)


def _joint_chains(host: Kernel, kernel: Kernel, memory: set[Instruction]) -> dict[Instruction, int]:
    """How many ops before each of the kernel's results wait for each other, joined to ``host``."""
    found = dict(host.chains)
    stack = list(kernel.results)
    while stack:
        instruction = stack[-1]
        within = [o for o in instruction.operands if o not in memory or o in found]
        waiting = [o for o in within if o not in found]
        stack.extend(waiting)
        if not waiting:
            own = cost_of(instruction) > 0
            found[instruction] = max((found[o] for o in within), default=0) + own
            stack.pop()
    return {result: found[result] for result in kernel.results}


def _joint_size(one: Kernel, other: Kernel, memory: set[Instruction]) -> int:
    """How many ops two kernels hold together; of scalars those that both need are counted once."""
    if one.dimensions:
        return one.size + other.size
    inside: set[Instruction] = set()
    results = [*one.results, *other.results]
    stack = list(results)
    while stack:
        instruction = stack.pop()
        if instruction not in inside:
            inside.add(instruction)
            stack.extend(o for o in read_by(instruction) if o not in memory)
    return len(inside)


def size_limit(instruction: Instruction) -> int:
    """How many ops may come together in a kernel that makes ``instruction``."""
    is_part = instruction.op is RESHAPE and not instruction.operands[0].array_shape.rank
    return SCALAR_SIZE_LIMIT if is_part or are_scalars([instruction]) else SIZE_LIMIT


def are_scalars(instructions: Iterable[Instruction]) -> bool:
    """Whether all are scalars that are computed, with nothing that needs a schedule of its own."""
    return all(
        isinstance(i.shape, Shape) and (not i.shape.rank or gathered(i)) and not is_anchor(i)
        for i in instructions
    )
