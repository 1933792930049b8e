"""Horizontal fusion: merges kernels over one iteration space that read the same arrays.

fuse_horizontally(kernels, memory)
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable

from tracejit.backends.tvm.analysis.cost_model import SIZE_LIMIT, cost_of, longest_chain
from tracejit.backends.tvm.fusion.kernel import (
    Fusion,
    inputs_of,
    is_anchor,
    packed_scalars,
    read_by,
    reads_at_own_element,
    tuple_of,
)
from tracejit.graph import Instruction
from tracejit.ops.layout import RESHAPE
from tracejit.ops.reduction import REDUCE
from tracejit.shapes import Shape

MERGE_LIMIT = 32
# The most Reduces in one pass, whose accumulators stay in registers.
MOST_BESIDE = 6
# Scalars stay in registers.
SCALAR_MERGE_LIMIT = 32
SCALAR_SIZE_LIMIT = 500


def fuse_horizontally(kernels: Iterable[Fusion], memory: set[Instruction]) -> list[Fusion]:
    """Merges kernels over one iteration space, unless a kernel in between depends on the first.

    Only pointwise kernels and Reduces are merged.
    """
    hosts = _Hosts(memory)
    for kernel in kernels:
        hosts.take(kernel)
    return hosts.kernels


class _Hosts:
    """The kernels so far, indexed by what they could be merged with."""

    def __init__(self, memory: set[Instruction]) -> None:
        self.kernels: list[Fusion] = []
        self._memory = memory
        self._places: dict[Instruction, int] = {}
        """The kernel that computes an instruction."""
        self._over: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
        """The pointwise kernels over an iteration space that can take more results, in order."""
        self._readers: defaultdict[Instruction, list[int]] = defaultdict(list)
        """The Reduces that read an instruction and can take more siblings, in order."""

    def take(self, kernel: Fusion) -> None:
        """Adds a kernel, merged into an earlier one if possible."""
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

    def _host(self, kernel: Fusion, needed: set[Instruction]) -> tuple[int, Fusion] | None:
        """The kernel that can compute this one's results too, and the merged kernel."""
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
        # Each reads its own part of a larger array.
        size = kernel.anchor.operands[0].array_shape.size
        alike = [i for i in needed if isinstance(i.shape, Shape) and i.shape.size == size]
        places = {place for i in alike for place in self._readers[i] if place > last}
        for place in sorted(places, reverse=True):
            host = self.kernels[place]
            assert host.anchor is not None, "a Reduce"
            anchors = (*host.siblings, *kernel.anchors)
            if one_pass(host.anchor, kernel.anchor) and len(anchors) < MOST_BESIDE:
                return place, Fusion([*host.results, *kernel.results], host.anchor, anchors)
        return None


def _keep(places: list[int], place: int, has_room: bool) -> None:
    """Insert ``place`` into a sorted list if the kernel can take more, else remove it."""
    at = bisect_left(places, place)
    is_there = at < len(places) and places[at] == place
    places[at : at + is_there] = [place] if has_room else []


def one_pass(reduction: Instruction, other: Instruction) -> bool:
    """Whether two instructions are Reduces that can be computed in one pass.

    They reduce the same index space. Dependences between them are not checked.
    """
    return (
        reduction.op is other.op is REDUCE
        and reduction.operands[0].array_shape.dimensions == other.operands[0].array_shape.dimensions
        and reduction.attributes["dimensions"] == other.attributes["dimensions"]
    )


def _joined(host: Fusion, kernel: Fusion, memory: set[Instruction]) -> Fusion | None:
    """Both kernels as one; None if there would be too many ops, or too long dependence chains."""
    size = _joint_size(host, kernel, memory)
    if size > size_limit(kernel.results[0]):
        return None
    results = [*host.results, *kernel.results]
    if not kernel.dimensions:  # scalars are dependent anyway
        return Fusion(results, size=size)
    chains = _joint_chains(host, kernel, memory)
    if max(chains.values()) > longest_chain(size):
        return None
    return Fusion(results, size=size, chains=host.chains | chains)


def _joint_chains(host: Fusion, kernel: Fusion, memory: set[Instruction]) -> dict[Instruction, int]:
    """The length of the dependence chain before each of the kernel's results, merged into
    ``host``.
    """
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


def _joint_size(one: Fusion, other: Fusion, memory: set[Instruction]) -> int:
    """The number of ops in both kernels; for scalars, common ones count once."""
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
    """The most ops of a kernel that computes ``instruction``."""
    is_part = instruction.op is RESHAPE and not instruction.operands[0].array_shape.rank
    return SCALAR_SIZE_LIMIT if is_part or are_scalars([instruction]) else SIZE_LIMIT


def are_scalars(instructions: Iterable[Instruction]) -> bool:
    """Whether all are computed scalars, without an anchor among them."""
    return all(
        isinstance(i.shape, Shape) and (not i.shape.rank or packed_scalars(i)) and not is_anchor(i)
        for i in instructions
    )
