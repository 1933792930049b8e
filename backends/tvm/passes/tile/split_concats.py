"""Splits arrays computed from Concatenates into boxes that read each concatenated array directly.

    split_concats(roots)        concat(a, b) - concat(c, d) -> concat(a' - c', b' - d')

In `np.roll(x, 1, 0) + np.roll(x, -1, 1)` an element reads x at offsets that depend on its index:
the same offset except in the first and last rows and columns. The result is therefore cut at the
boundaries of all concatenated operands, and each box reads its own part of each. No concatenation
is stored.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from tracejit.backends.tvm.analysis.concat_cuts import Box, cuts, operand_boxes, squeezed
from tracejit.backends.tvm.analysis.cost_model import (
    SIZE_LIMIT,
    computed_again,
    cost_of,
    size_of,
)
from tracejit.backends.tvm.analysis.element_rules import pointwise
from tracejit.backends.tvm.analysis.exclusive_slice import exclusive_slice
from tracejit.backends.tvm.fusion.kernel import is_anchor, is_given, packed_scalars
from tracejit.backends.tvm.ir.limits import Limits
from tracejit.graph import Instruction
from tracejit.ops.control import optimization_barrier
from tracejit.ops.layout import (
    BROADCAST_IN_DIM,
    CONCATENATE,
    PAD,
    RESHAPE,
    REV,
    SLICE,
    broadcast_in_dim,
    concatenate,
    reshape,
    slice_,
)
from tracejit.shapes import Shape
from tracejit.traversal import in_order, substitute

# The most instructions that are visited in a graph, counting overlapping regions.
MOST_VISITED = 1 << 14

_VIEWS = (BROADCAST_IN_DIM, RESHAPE, REV, SLICE)


def split_concats(roots: Sequence[Instruction], limits: Limits) -> list[Instruction]:
    """Equal ``roots`` in which no concatenations are combined, or sliced again."""
    order = in_order(roots)
    if not any(_is_joined(i, limits) for i in order):
        return list(roots)
    above = _above(order, limits)
    users: dict[Instruction, list[Instruction]] = {i: [] for i in order}
    for instruction in order:
        for operand in instruction.operands:
            users[operand].append(instruction)
    taken: set[Instruction] = set()
    made, inner = list(roots), above.difference(roots)
    left = MOST_VISITED
    for instruction in reversed(order):
        if left > 0 and instruction in above and instruction not in taken:
            region = _region(instruction, inner, users, limits)
            left -= len(region)
            if _is_worth_cutting(instruction, region, limits):
                taken |= region
                # Earlier instructions are unchanged so far.
                made = substitute(made, {instruction: _in_boxes(instruction, region, limits)})
    return made


def _is_joined(instruction: Instruction, limits: Limits) -> bool:
    """Whether an array is a concatenation that is large enough."""
    if not isinstance(instruction.shape, Shape) or instruction.shape.size < limits.split_from:
        return False
    if instruction.op is CONCATENATE:
        return not packed_scalars(instruction)
    return instruction.op is PAD and all(
        p.low >= 0 and p.high >= 0 and p.interior == 0 for p in instruction.attributes["padding"]
    )


def _can_be_cut(instruction: Instruction) -> bool:
    """Whether a box of an instruction can be computed from boxes of its operands.

    Not of a transpose: a kernel transposes tiles of an operand that it alone reads.
    """
    if not isinstance(instruction.shape, Shape):
        return False
    if instruction.op is SLICE:
        return all(part.stride == 1 for part in instruction.attributes["slice"])
    if instruction.op is RESHAPE:
        return squeezed(instruction) is not None
    return instruction.op in _VIEWS or pointwise.get(instruction.op) is not None


def _above(order: Sequence[Instruction], limits: Limits) -> set[Instruction]:
    """Concatenations, and the instructions that can be cut and depend on them."""
    found: set[Instruction] = set()
    for instruction in order:
        is_made = _can_be_cut(instruction) and any(o in found for o in instruction.operands)
        if is_made or _is_joined(instruction, limits):
            found.add(instruction)
    return found


def _region(
    root: Instruction,
    inner: set[Instruction],
    users: Mapping[Instruction, list[Instruction]],
    limits: Limits,
) -> set[Instruction]:
    """The root and the ``inner`` instructions without other users; a superset if there are too
    many.
    """

    def goes_on(instruction: Instruction) -> bool:
        return not _is_stored(instruction, users[instruction], limits)

    def is_inner(instruction: Instruction) -> bool:
        # The operands of a concatenation are stored in its place.
        return instruction in inner and (_is_joined(instruction, limits) or goes_on(instruction))

    return exclusive_slice(root, users, is_inner, goes_on, SIZE_LIMIT)


def _is_stored(instruction: Instruction, users: Sequence[Instruction], limits: Limits) -> bool:
    """Whether an instruction would be materialised in any case."""
    again = computed_again(instruction, users)
    if not again:
        return False
    computed = _computed(instruction, lambda i: _is_joined(i, limits))
    return again * sum(map(cost_of, computed)) >= limits.repeated_cost


def _is_worth_cutting(root: Instruction, region: AbstractSet[Instruction], limits: Limits) -> bool:
    """Whether concatenations are combined, or their parts, in few boxes."""
    joined = [i for i in region if _is_joined(i, limits)]
    has_views = any(i.op in _VIEWS for i in region)
    if not joined or root.op in _VIEWS or (len(joined) == 1 and not has_views):
        return False
    if len(region) > SIZE_LIMIT:
        return False
    count = math.prod(len(places) - 1 for places in cuts(root, region))
    return 1 < count <= limits.most_boxes and sum(map(size_of, region)) * count <= SIZE_LIMIT


def _in_boxes(root: Instruction, region: AbstractSet[Instruction], limits: Limits) -> Instruction:
    """The root, as a concatenation of its boxes."""
    edges = [list(itertools.pairwise(places)) for places in cuts(root, region)]
    boxes: dict[tuple[Instruction, Box], Instruction] = {}

    def joined(box: Box) -> Instruction:
        """The elements in ``box`` of the first dimensions."""
        if len(box) == len(edges):
            return part(root, box)
        parts = [joined((*box, pair)) for pair in edges[len(box)]]
        return parts[0] if len(parts) == 1 else concatenate(parts, len(box))

    def part(instruction: Instruction, box: Box) -> Instruction:
        if (instruction, box) not in boxes:
            made = _made(instruction, box, part) if instruction in region else None
            boxes[instruction, box] = _cut_out(instruction, box) if made is None else made
        return boxes[instruction, box]

    largest = tuple(max(pairs, key=lambda pair: pair[1] - pair[0]) for pairs in edges)
    stored = {i: optimization_barrier(i) for i in _stored(root, region, largest, limits)}
    (made,) = substitute([joined(())], stored)
    return made


def _made(
    instruction: Instruction, box: Box, part: Callable[[Instruction, Box], Instruction]
) -> Instruction:
    """A box of an instruction, from boxes of its operands."""
    op, attributes = instruction.op, instruction.attributes
    pairs = zip(instruction.operands, operand_boxes(instruction, box), strict=True)
    parts = [part(operand, within) for operand, within in pairs if within is not None]
    sizes = tuple(end - begin for begin, end in box)
    if op in (CONCATENATE, PAD, SLICE):
        (inside,) = parts
        return inside if inside.array_shape.rank else broadcast_in_dim(inside, sizes, ())
    if op is BROADCAST_IN_DIM:
        return broadcast_in_dim(parts[0], sizes, attributes["dimensions"])
    if op is RESHAPE:
        return reshape(parts[0], sizes)
    shape = Shape(instruction.array_shape.element_type, sizes)
    return Instruction(op, tuple(parts), shape, attributes, instruction.source)


def _cut_out(instruction: Instruction, box: Box) -> Instruction:
    """A box of an instruction that stays whole."""
    begins, ends = [begin for begin, _ in box], [end for _, end in box]
    if not any(begins) and tuple(ends) == instruction.array_shape.dimensions:
        return instruction
    return slice_(instruction, begins, ends)


def _stored(
    root: Instruction, region: AbstractSet[Instruction], box: Box, limits: Limits
) -> list[Instruction]:
    """The instructions to store first, since a box of the root would recompute them too often."""
    again = {}
    for instruction, times in Counter(map(_source, _read(root, region, box))).items():
        cost = sum(map(cost_of, _computed(instruction)))
        if times > 1 and cost >= limits.shared_cost:
            again[instruction] = (times - 1) * cost
    return list(again) if sum(again.values()) > limits.box_cost else []


def _read(root: Instruction, region: AbstractSet[Instruction], box: Box) -> list[Instruction]:
    """The operands of a box of the root, once for every offset at which they are read."""
    found: list[Instruction] = []
    seen: set[tuple[Instruction, Box]] = set()
    stack = [(root, box)]
    while stack:
        instruction, within = stack.pop()
        if (instruction, within) in seen:
            continue
        seen.add((instruction, within))
        if instruction not in region:
            found.append(instruction)
            continue
        pairs = zip(instruction.operands, operand_boxes(instruction, within), strict=True)
        stack += [(operand, other) for operand, other in pairs if other is not None]
    return found


def _source(instruction: Instruction) -> Instruction:
    """The operand of a view, if an instruction is one."""
    while instruction.op in _VIEWS:
        (instruction,) = instruction.operands
    return instruction


def _computed(
    root: Instruction, is_cut: Callable[[Instruction], bool] = lambda instruction: False
) -> set[Instruction]:
    """The instructions that are computed together with ``root`` as long as none is stored.

    Instructions with ``is_cut`` are not stored either.
    """
    found: set[Instruction] = set()
    stack = [root]
    while stack:
        instruction = stack.pop()
        is_there = is_given(instruction) or (is_anchor(instruction) and not is_cut(instruction))
        if instruction not in found and not is_there and isinstance(instruction.shape, Shape):
            found.add(instruction)
            stack.extend(instruction.operands)
    return found
