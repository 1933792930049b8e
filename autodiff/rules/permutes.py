"""CollectivePermute and RaggedAllToAll: what was sent comes back the other way."""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.autodiff.reverse import Cotangent, Cotangents, Nested, differentiate
from tracejit.autodiff.rules.replicas import back, parts_of
from tracejit.errors import DerivativeError
from tracejit.graph import Instruction
from tracejit.ops.base import make
from tracejit.ops.comparison import ge, lt
from tracejit.ops.constants import elements_of, iota
from tracejit.ops.element_types import convert_element_type
from tracejit.ops.elementwise import add, and_, max, min, mul, select, sub
from tracejit.ops.elementwise_unary import neg
from tracejit.ops.layout import broadcast_in_dim, full, full_like, reshape
from tracejit.ops.permutes import COLLECTIVE_PERMUTE, RAGGED_ALL_TO_ALL, ragged_all_to_all
from tracejit.ops.reduction import reduce_or, reduce_sum
from tracejit.ops.replicas import ALL_TO_ALL
from tracejit.shapes import ElementType, Shape


def permuted_back(
    instruction: Instruction, parts: Sequence[Instruction]
) -> tuple[Instruction, ...]:
    """What the targets send to their sources."""
    attributes = instruction.attributes
    made = make(
        COLLECTIVE_PERMUTE,
        *parts,
        channel_id=back(attributes["channel_id"]),
        source_target_pairs=tuple((t, s) for s, t in attributes["source_target_pairs"]),
    )
    return elements_of(made)


@differentiate.attach(COLLECTIVE_PERMUTE)
def collective_permute_rule(instruction: Instruction, cotangent: Nested) -> Cotangents:
    if instruction.attributes["slice_sizes"]:
        raise DerivativeError(
            "collective_permute: has no derivative in its form with slices", instruction.source
        )
    return permuted_back(instruction, parts_of(instruction.shape, cotangent))


@differentiate.attach(RAGGED_ALL_TO_ALL)
def ragged_all_to_all_rule(instruction: Instruction, cotangent: Instruction) -> Cotangents:
    """The cotangents of rows that were sent return to where they came from.

    The offsets that a device gave are those at which the others must look, so that they are
    exchanged first. A row that was sent several times gets several cotangents: each update returns
    to rows of its own, [updates * rows, …], and these are added up.
    """
    given, output, *metadata = instruction.operands
    count, *many = metadata[0].array_shape.dimensions
    updates = many[0] if many else 1
    rows = given.array_shape.dimensions[0]
    slots = count * updates
    numbers = [_numbers(array, (count, updates)) for array in metadata[:3]]
    input_offsets, send_sizes, output_offsets = _within(numbers, rows)

    # Update u to the device at place k returns to slot k * updates + u.
    slot = reshape(iota(Shape(ElementType.S64, (slots,))), (count, updates))
    returning = add(input_offsets, mul(slot, full_like(slot, rows)))
    there, sizes, targets = (
        _exchanged(instruction, array) for array in (output_offsets, send_sizes, returning)
    )
    wide = given.array_shape.with_dimensions((slots * rows, *given.array_shape.dimensions[1:]))
    returned = ragged_all_to_all(
        cotangent,
        there,
        sizes,
        full(wide, 0),
        targets,
        send_sizes,
        instruction.attributes["replica_groups"],
        back(instruction.attributes["channel_id"]),
    )
    per_slot = reshape(returned, (slots, *given.array_shape.dimensions))
    written = _rows(output.array_shape, there, sizes)
    kept = select(written, full_like(cotangent, 0), cotangent)
    nothing: list[Cotangent] = [None] * len(metadata)
    return [reduce_sum(per_slot, [0]), kept, *nothing]


def _numbers(array: Instruction, dimensions: tuple[int, int]) -> Instruction:
    return reshape(convert_element_type(array, ElementType.S64), dimensions)


def _within(numbers: Sequence[Instruction], rows: int) -> tuple[Instruction, ...]:
    """Input offsets, sizes and output offsets without the rows that the input does not have."""
    first, size, target = numbers
    zero = full_like(first, 0)
    begin = max(zero, neg(first))
    end = min(size, sub(full_like(first, rows), first))
    return add(first, begin), max(sub(end, begin), zero), add(target, begin)


def _exchanged(instruction: Instruction, array: Instruction) -> Instruction:
    """Row k of each device at the device at place k of its group."""
    groups = instruction.attributes["replica_groups"]
    return make(
        ALL_TO_ALL,
        array,
        channel_id=back(instruction.attributes["channel_id"]),
        replica_groups=groups or (tuple(range(array.array_shape.dimensions[0])),),
        dimensions=(0,),
    )


def _rows(shape: Shape, offsets: Instruction, sizes: Instruction) -> Instruction:
    """Whether a row of an array of ``shape`` is in one of the slices, for each element."""
    count = offsets.array_shape.size
    grid = (shape.dimensions[0], count)
    row = iota(Shape(ElementType.S64, grid), 0)
    begin = broadcast_in_dim(reshape(offsets, (count,)), grid, (1,))
    end = add(begin, broadcast_in_dim(reshape(sizes, (count,)), grid, (1,)))
    inside = reduce_or(and_(ge(row, begin), lt(row, end)), [1])
    return broadcast_in_dim(inside, shape.dimensions, (0,))
