"""Kernels over one space, joined: what both read is read once.

merged(kernels, memory)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tracejit.backends.tvm.cost import SIZE_LIMIT, cost_of, longest_chain
from tracejit.backends.tvm.fused import (
    Kernel,
    gathered,
    inputs_of,
    is_heart,
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


def merged(kernels: Iterable[Kernel], memory: set[Instruction]) -> list[Kernel]:
    """Kernels over one space joined, where no kernel between depends on the first.

    They are pointwise, or Reduces.
    """
    merged: list[Kernel] = []
    for kernel in kernels:
        found = _with_host(kernel, merged, memory)
        if found is None:
            merged.append(kernel)
        else:
            place, joined = found
            merged[place] = joined
    return merged


def _with_host(
    kernel: Kernel, earlier: Sequence[Kernel], memory: set[Instruction]
) -> tuple[int, Kernel] | None:
    """Which of the kernels before it can make a kernel's results, and what that is then."""
    if kernel.heart is not None and kernel.heart.op is not REDUCE:
        return None
    needed = inputs_of(kernel, memory)
    for place in reversed(range(len(earlier))):
        other = earlier[place]
        if (
            kernel.heart is other.heart is None
            and other.dimensions == kernel.dimensions
            and len(other.results) < (MERGE_LIMIT if kernel.dimensions else SCALAR_MERGE_LIMIT)
        ):
            joined = _joined(other, kernel, memory)
            if joined and reads_at_own_element(kernel, set(other.results), memory):
                return place, joined
        if any(tuple_of(i) in other.results for i in needed):
            return None
        if _read_alike(other, kernel, needed, memory):
            results = [*other.results, *kernel.results]
            return place, Kernel(results, other.heart, (*other.beside, *kernel.hearts))
    return None


def one_pass(reduction: Instruction, other: Instruction) -> bool:
    """Whether two instructions are Reduces that can be combined in one pass.

    They combine elements at the same places. Nothing is known of whether one needs the other.
    """
    return (
        reduction.op is other.op is REDUCE
        and reduction.operands[0].array_shape.dimensions == other.operands[0].array_shape.dimensions
        and reduction.attributes["dimensions"] == other.attributes["dimensions"]
    )


def _read_alike(
    host: Kernel, kernel: Kernel, needed: set[Instruction], memory: set[Instruction]
) -> bool:
    """Whether Reduces that do not need each other read as much in one pass as each alone."""
    if host.heart is None or kernel.heart is None or not one_pass(host.heart, kernel.heart):
        return False
    if len(host.hearts) + len(kernel.hearts) > MOST_BESIDE:
        return False
    size = kernel.heart.operands[0].array_shape.size
    both = needed & inputs_of(host, memory)
    # Of a larger array each reads a part of its own.
    return any(isinstance(i.shape, Shape) and i.shape.size == size for i in both)


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
        isinstance(i.shape, Shape) and (not i.shape.rank or gathered(i)) and not is_heart(i)
        for i in instructions
    )
