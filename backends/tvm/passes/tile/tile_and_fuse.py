"""Tile-and-fuse: computes chains of products, as in attention, one block of rows at a time.

    roots = tile_and_fuse(roots, limits)

    softmax(q @ k.T) @ v        for block: softmax(q[block] @ k.T) @ v

The scores are much larger than their operands and the result. The loop computes as many of their
rows, or of their matrices, as stay in the caches, and multiplies these before it computes the
next. If the matrices of a batch are large, the loop is over the batch, and its body has another
loop over rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tracejit.backends.tvm.analysis.cost_model import cost_of
from tracejit.backends.tvm.analysis.element_rules import pointwise
from tracejit.backends.tvm.ir.limits import Limits
from tracejit.backends.tvm.passes.tile.tile_loop import made_in_blocks, starts_along
from tracejit.graph import Instruction
from tracejit.ops import elementwise
from tracejit.ops.constants import CONSTANT, IOTA
from tracejit.ops.contraction import DOT_GENERAL
from tracejit.ops.element_types import convert_element_type
from tracejit.ops.layout import (
    BROADCAST_IN_DIM,
    RESHAPE,
    TRANSPOSE,
    broadcast_in_dim,
    dynamic_slice,
)
from tracejit.ops.reduction import REDUCE
from tracejit.shapes import Shape
from tracejit.traversal import in_order, rebuild, transform, users_of

# The least size of an intermediate array between two products, in caches.
_LARGE = 4
_VIEWS = (BROADCAST_IN_DIM, RESHAPE, TRANSPOSE)

Block = tuple[Instruction, int | None]
"""A block of an instruction along a dimension, or all of it."""
Nodes = Mapping[Block, Sequence[Block] | None]
"""The operands of blocks, in order; None for arrays in memory."""


def tile_and_fuse(roots: Sequence[Instruction], limits: Limits) -> list[Instruction]:
    """Equal ``roots`` in which no large array between two products is stored whole."""
    order = in_order(roots)
    found = {blocks.last: blocks for blocks in _found(order, set(roots), limits)}
    new: dict[Instruction, Instruction] = {}

    def visit(instruction: Instruction, operands: Sequence[Instruction]) -> Instruction | None:
        new.update(zip(instruction.operands, operands, strict=True))
        blocks = found.get(instruction)
        return None if blocks is None else blocks.looped(new)

    return transform(roots, visit) if found else list(roots)


def _found(
    order: Sequence[Instruction], kept: set[Instruction], limits: Limits
) -> Iterator[_Blocks]:
    """The products to tile; ``kept`` are instructions that are needed as a whole."""
    users = None
    for last in order:
        between = _between(last, _LARGE * limits.tile_bytes)
        if not between or between & kept:
            continue
        users = users or users_of(order)
        if any(user is not last and user not in between for i in between for user in users[i]):
            continue
        blocks = _blocks(last, between, limits)
        if blocks is not None:
            kept |= between
            yield blocks


def _between(last: Instruction, least: int) -> set[Instruction]:
    """The products of at least ``least`` bytes that ``last`` depends on, and the instructions
    between.

    Empty unless their rows are reduced on the way.
    """
    if last.op is not DOT_GENERAL or max(o.array_shape.nbytes for o in last.operands) < least:
        return set()
    seen: set[Instruction] = set()
    stack = [*last.operands]
    while stack:
        instruction = stack.pop()
        if instruction not in seen and isinstance(instruction.shape, Shape):
            seen.add(instruction)
            if _is_between(instruction):
                stack.extend(instruction.operands)
    between: set[Instruction] = set()
    for instruction in sorted(seen, key=lambda i: i.serial):
        is_first = instruction.op is DOT_GENERAL and instruction.array_shape.nbytes >= least
        on_the_way = _is_between(instruction) and not between.isdisjoint(instruction.operands)
        if is_first or on_the_way:
            between.add(instruction)
    return between if any(i.op is REDUCE for i in between) else set()


def _is_between(instruction: Instruction) -> bool:
    op = instruction.op
    return op is REDUCE or op in _VIEWS or pointwise.get(op) is not None


def _blocks(last: Instruction, between: set[Instruction], limits: Limits) -> _Blocks | None:
    """How ``last`` is tiled, along the first dimension that allows it.

    A block is at least as large as the operands that every block reads again, or takes longer to
    compute than to read.
    """
    largest = max(i.array_shape.nbytes for i in between)
    for axis, size in enumerate(last.array_shape.dimensions):
        nodes = _nodes(last, axis, between, limits.shared_cost)
        if nodes is None:
            continue
        again = {i for (i, along), below in nodes.items() if along is None and below is None}
        near = limits.l2 if limits.runs_iterations else limits.tile_bytes
        least = max(near, sum(i.array_shape.nbytes for i in again))
        length = math.ceil(size * least / largest)
        if 2 * length <= size:
            return _Blocks(last, axis, _even(size, length), nodes)
    return None


def _even(size: int, most: int) -> int:
    """The greatest divisor of ``size`` from half of ``most`` to ``most``, else ``most``."""
    lengths = range(most, (most + 1) // 2 - 1, -1)
    return next((length for length in lengths if size % length == 0), most)


def _nodes(last: Instruction, axis: int, between: set[Instruction], cost: int) -> Nodes | None:
    """The instructions that a block of ``last`` consists of.

    None if an instruction of ``between`` cannot be sliced, or would be computed more than once.
    Others are recomputed up to ``cost``.
    """
    nodes: dict[Block, Sequence[Block] | None] = {}
    stack: list[Block] = [(last, axis)]
    while stack:
        part = instruction, along = stack.pop()
        if part in nodes:
            continue
        is_inside = instruction is last or instruction in between
        is_made = is_inside or _is_made_again(instruction, along, cost)
        axes = _axes(instruction, along) if is_made else None
        if is_inside and (along is None or axes is None):
            return None
        nodes[part] = None if axes is None else [*zip(instruction.operands, axes, strict=True)]
        stack.extend(nodes[part] or ())
    if sum(instruction in between for instruction, _ in nodes) > len(between):
        return None
    return dict(sorted(nodes.items(), key=lambda item: item[0][0].serial))


def _is_made_again(instruction: Instruction, along: int | None, cost: int) -> bool:
    """Whether an instruction from outside is recomputed in every block, for the
    elements it needs.
    """
    if not isinstance(instruction.shape, Shape):
        return False
    if instruction.op in (*_VIEWS, IOTA):
        return True
    if instruction.op is CONSTANT:
        return not instruction.shape.rank
    is_pointwise = pointwise.get(instruction.op) is not None
    return along is not None and is_pointwise and cost_of(instruction) <= cost


def _axes(instruction: Instruction, along: int | None) -> list[int | None] | None:
    """The dimensions along which operands are sliced with an instruction; None if impossible."""
    operands = instruction.operands
    if along is None:
        return [None] * len(operands)
    if instruction.op is BROADCAST_IN_DIM:
        dimensions = instruction.attributes["dimensions"]
        return [dimensions.index(along) if along in dimensions else None]
    if instruction.op is TRANSPOSE:
        return [instruction.attributes["dimensions"][along]]
    if instruction.op is RESHAPE:
        same = _same_dimension(instruction, along)
        return None if same is None else [same]
    if instruction.op is REDUCE:
        if len(operands) != 2:
            return None
        reduced = instruction.attributes["dimensions"]
        return [[d for d in range(operands[0].array_shape.rank) if d not in reduced][along], None]
    if instruction.op is DOT_GENERAL:
        return _axes_of_dot(instruction, along)
    return [along if operand.array_shape.rank else None for operand in operands]


def _same_dimension(reshape: Instruction, along: int) -> int | None:
    """The dimension of a Reshape's operand that equals the result's ``along``, if there is one."""
    sizes = reshape.array_shape.dimensions
    of = reshape.operands[0].array_shape.dimensions
    before = math.prod(sizes[:along])
    same = (d for d, n in enumerate(of) if n == sizes[along] and math.prod(of[:d]) == before)
    return next(same, None)


def _axes_of_dot(dot: Instruction, along: int) -> list[int | None]:
    attributes = dot.attributes
    batch = [attributes["lhs_batch_dims"], attributes["rhs_batch_dims"]]
    if along < len(batch[0]):
        return [dims[along] for dims in batch]
    along -= len(batch[0])
    free = [
        [d for d in range(operand.array_shape.rank) if d not in (*dims, *contracted)]
        for operand, dims, contracted in zip(
            dot.operands,
            batch,
            (attributes["lhs_contracting_dims"], attributes["rhs_contracting_dims"]),
            strict=True,
        )
    ]
    if along < len(free[0]):
        return [free[0][along], None]
    return [None, free[1][along - len(free[0])]]


@dataclass(frozen=True)
class _Blocks:
    """Blocks of ``length`` of the product ``last`` along ``axis``, and the instructions of each."""

    last: Instruction
    axis: int
    length: int
    nodes: Nodes

    def looped(self, new: Mapping[Instruction, Instruction]) -> Instruction:
        """The product, computed by a loop; ``new`` maps earlier instructions to their
        replacements.
        """
        given = [*dict.fromkeys(i for (i, _), below in self.nodes.items() if below is None)]

        def block(start: Instruction, *arrays: Instruction) -> Instruction:
            return self._block(start, dict(zip(given, arrays, strict=True)))

        shape, arrays = self.last.array_shape, [new[i] for i in given]
        places = 0, shape.dimensions[self.axis]
        return made_in_blocks("row_blocks", shape, self.axis, places, self.length, arrays, block)

    def _block(self, start: Instruction, arrays: Mapping[Instruction, Instruction]) -> Instruction:
        """The block from ``start`` on, from whole ``arrays``."""
        made: dict[Block, Instruction] = {}
        for part, below in self.nodes.items():
            instruction, along = part
            if below is not None:
                made[part] = self._made(part, [made[each] for each in below], start)
            elif along is None:
                made[part] = arrays[instruction]
            else:
                starts, sizes = starts_along(instruction, along, start), self._sizes(part)
                made[part] = dynamic_slice(arrays[instruction], starts, sizes)
        return made[self.last, self.axis]

    def _made(
        self, part: Block, operands: Sequence[Instruction], start: Instruction
    ) -> Instruction:
        """A block, from the blocks of its operands."""
        instruction, along = part
        if along is None:
            return rebuild(instruction, operands)
        made = _resized(instruction, operands, along, self.length)
        if instruction.op is IOTA and along == instruction.attributes["iota_dimension"]:
            shape = made.array_shape
            first = convert_element_type(start, shape.element_type)
            made = elementwise.add(made, broadcast_in_dim(first, shape.dimensions, ()))
        return made

    def _sizes(self, part: Block) -> list[int]:
        """The sizes of a block."""
        instruction, along = part
        sizes = enumerate(instruction.array_shape.dimensions)
        return [self.length if d == along else size for d, size in sizes]


def _resized(
    instruction: Instruction, operands: Sequence[Instruction], axis: int, size: int
) -> Instruction:
    """The same op on operands, and of a result, of another size along one dimension."""
    sizes = [*instruction.array_shape.dimensions]
    sizes[axis] = size
    shape, attributes = instruction.array_shape.with_dimensions(sizes), instruction.attributes
    if "shape" in attributes:
        attributes = {**attributes, "shape": shape}
    return Instruction(instruction.op, tuple(operands), shape, attributes, instruction.source)
