"""DotGeneral: the gradients of a product are products."""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.autodiff.reverse import Cotangent, Cotangents, differentiate, is_differentiable
from tracejit.graph import Instruction
from tracejit.ops.contraction import DOT_GENERAL, DotDimensionNumbers, dot_general
from tracejit.ops.element_types import convert_element_type
from tracejit.ops.layout import transpose


def like_cotangent(cotangent: Instruction, other: Instruction) -> tuple[Instruction, Instruction]:
    """Both in the wider of their types: a preferred_element_type may differ from the operands'."""
    given, wanted = (i.array_shape.element_type for i in (cotangent, other))
    wider = given if given.bits > wanted.bits else wanted
    return convert_element_type(cotangent, wider), convert_element_type(other, wider)


def _others(rank: int, *taken: Sequence[int]) -> tuple[int, ...]:
    return tuple(d for d in range(rank) if not any(d in some for some in taken))


@differentiate.attach(DOT_GENERAL)
def dot_general_rule(instruction: Instruction, cotangent: Instruction) -> Cotangents:
    lhs, rhs = instruction.operands
    a = instruction.attributes
    lhs_sides = (a["lhs_batch_dims"], a["lhs_contracting_dims"])
    rhs_sides = (a["rhs_batch_dims"], a["rhs_contracting_dims"])
    batch = len(lhs_sides[0])
    lhs_rest = lhs.array_shape.rank - batch - len(lhs_sides[1])
    # The result has the batch dimensions first, then those left of lhs, then those left of rhs.
    of_lhs = tuple(range(batch, batch + lhs_rest))
    of_rhs = tuple(range(batch + lhs_rest, cotangent.array_shape.rank))
    precision = a["operand_precision"] or None
    return (
        _dot_gradient(cotangent, of_rhs, lhs, lhs_sides, rhs, rhs_sides, precision),
        _dot_gradient(cotangent, of_lhs, rhs, rhs_sides, lhs, lhs_sides, precision),
    )


def _dot_gradient(
    cotangent: Instruction,
    summed: tuple[int, ...],
    wanted: Instruction,
    wanted_sides: tuple[tuple[int, ...], tuple[int, ...]],
    other: Instruction,
    other_sides: tuple[tuple[int, ...], tuple[int, ...]],
    precision: Sequence[str] | None,
) -> Cotangent:
    """The cotangent of ``wanted``: the result's times ``other``, summed over what is other's alone.

    The sum's dimensions are batch, what is wanted's alone, then the once contracted dimensions in
    other's order; the transposition brings them where ``wanted`` has them.
    """
    if not is_differentiable(wanted):
        return None
    wanted_batch, wanted_contracting = wanted_sides
    other_batch, other_contracting = other_sides
    left, right = like_cotangent(cotangent, other)
    numbers = DotDimensionNumbers(
        summed,
        _others(other.array_shape.rank, other_batch, other_contracting),
        tuple(range(len(other_batch))),
        other_batch,
    )
    product = dot_general(left, right, numbers, precision)
    contracted = [w for _, w in sorted(zip(other_contracting, wanted_contracting, strict=True))]
    places = [
        *wanted_batch,
        *_others(wanted.array_shape.rank, wanted_batch, wanted_contracting),
        *contracted,
    ]
    order = [places.index(d) for d in range(len(places))]
    moved = product if order == sorted(order) else transpose(product, order)
    return convert_element_type(moved, wanted.array_shape.element_type)
