"""RaggedDot and ScaledDot as DotGeneral, for compilers that lack them and for derivatives."""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.graph import Instruction
from tracejit.ops.comparison import ge, lt
from tracejit.ops.constants import iota
from tracejit.ops.contraction import DotDimensionNumbers, dot_general
from tracejit.ops.element_types import convert_element_type
from tracejit.ops.elementwise import and_, mul, select, sub
from tracejit.ops.grouped import RaggedMode, ragged_of
from tracejit.ops.layout import broadcast_in_dim, full, full_like, reshape, transpose
from tracejit.ops.windows import cumulative
from tracejit.shapes import ElementType, Shape


def ragged_as_dot(instruction: Instruction, operands: Sequence[Instruction]) -> Instruction:
    """The same RaggedDot on ``operands``: each group in a dimension of its own, the rest zero."""
    lhs, rhs, group_sizes = operands
    meaning, attributes = ragged_of(instruction), instruction.attributes
    numbers, ragged, prefix = meaning.numbers, meaning.ragged, meaning.prefix
    precision = attributes["operand_precision"] or None
    element_type = instruction.array_shape.element_type
    if meaning.mode is RaggedMode.BATCH:
        return dot_general(lhs, rhs, numbers, precision, element_type)
    left = _by_group(lhs, ragged, prefix, group_sizes)
    contracting = [d + 1 for d in numbers.lhs_contracting_dimensions]
    batch = tuple(d + 1 for d in numbers.lhs_batch_dimensions)
    if meaning.mode is RaggedMode.ROWS:
        (group,) = attributes["rhs_group_dims"]
        grouped = DotDimensionNumbers(
            (*contracting, 0),
            (*numbers.rhs_contracting_dimensions, group),
            batch,
            numbers.rhs_batch_dimensions,
        )
        return dot_general(left, rhs, grouped, precision, element_type)
    twin = dict(
        zip(
            numbers.lhs_batch_dimensions + numbers.lhs_contracting_dimensions,
            numbers.rhs_batch_dimensions + numbers.rhs_contracting_dimensions,
            strict=True,
        )
    )
    right = _by_group(rhs, twin[ragged], [twin[d] for d in prefix], group_sizes)
    summed = DotDimensionNumbers(
        tuple(contracting),
        tuple(d + 1 for d in numbers.rhs_contracting_dimensions),
        (0, *batch),
        (0, *(d + 1 for d in numbers.rhs_batch_dimensions)),
    )
    return dot_general(left, right, summed, precision, element_type)


def _by_group(
    operand: Instruction, ragged: int, prefix: Sequence[int], group_sizes: Instruction
) -> Instruction:
    """[g, …]: for each group the operand with everything outside of the group zero."""
    shape = operand.array_shape
    counts = convert_element_type(group_sizes, ElementType.S64)
    rank = counts.array_shape.rank
    ends = cumulative("add", counts, rank - 1)
    starts = sub(ends, counts)
    whole = Shape(ElementType.S64, (counts.array_shape.dimensions[-1], *shape.dimensions))
    places = [*(d + 1 for d in prefix), 0] if rank > 1 else [0]
    # broadcast_in_dim wants increasing dimensions.
    order = sorted(range(len(places)), key=lambda i: places[i])

    def spread(bounds: Instruction) -> Instruction:
        return broadcast_in_dim(transpose(bounds, order), whole.dimensions, sorted(places))

    position = iota(whole, ragged + 1)
    inside = and_(ge(position, spread(starts)), lt(position, spread(ends)))
    copies = broadcast_in_dim(operand, whole.dimensions, range(1, len(whole.dimensions)))
    return select(inside, copies, full_like(copies, 0))


def scaled_as_dot(instruction: Instruction, operands: Sequence[Instruction]) -> Instruction:
    """The same ScaledDot on ``operands``: each scaled in f32 or f64, then multiplied."""
    lhs, rhs, lhs_scale, rhs_scale = operands
    a = instruction.attributes
    element_type = instruction.array_shape.element_type
    types = {element_type, *(o.array_shape.element_type for o in operands)}
    wide = ElementType.F64 if ElementType.F64 in types else ElementType.F32
    numbers = DotDimensionNumbers(
        a["lhs_contracting_dims"],
        a["rhs_contracting_dims"],
        a["lhs_batch_dims"],
        a["rhs_batch_dims"],
    )
    left, right = _scaled(lhs, lhs_scale, wide), _scaled(rhs, rhs_scale, wide)
    made = dot_general(left, right, numbers, a["operand_precision"] or None)
    return convert_element_type(made, element_type)


def _scaled(operand: Instruction, scale: Instruction, wide: ElementType) -> Instruction:
    return mul(
        convert_element_type(operand, wide),
        _blocks(convert_element_type(scale, wide), operand.array_shape.dimensions),
    )


def _blocks(scale: Instruction, sizes: Sequence[int]) -> Instruction:
    """Every element of the scale repeated over its block."""
    parts = scale.array_shape.dimensions
    if not parts:
        return broadcast_in_dim(scale, sizes, ())
    if 0 in sizes:
        return full(scale.array_shape.with_dimensions(sizes), 0)
    split = [n for part, size in zip(parts, sizes, strict=True) for n in (part, size // part)]
    return reshape(broadcast_in_dim(scale, split, range(0, len(split), 2)), sizes)
