"""Builds contractions, and views of them, over all iterations of a loop at once.

    stacked_dots(dot, operands, stacked)     the dot of every iteration, stacked
    summed_dots(dot, operands, views)        their sum, one dot
    seen_through(value)                      the operand of reshapes and transposes, and these

Stacked arrays have the iteration as their first dimension.
"""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.graph import Instruction
from tracejit.ops.base import make
from tracejit.ops.contraction import DOT_GENERAL
from tracejit.ops.dimensions import moved
from tracejit.ops.layout import RESHAPE, TRANSPOSE, reshape, transpose
from tracejit.traversal import rebuild


def seen_through(value: Instruction) -> tuple[Instruction, list[Instruction]]:
    """The operand of a chain of reshapes and transposes, and the chain, in order."""
    views: list[Instruction] = []
    while value.op in (RESHAPE, TRANSPOSE):
        views.insert(0, value)
        (value,) = value.operands
    return value, views


def view_of_all(view: Instruction, stacked: Instruction) -> Instruction:
    """A view from `seen_through`, over all iterations."""
    if view.op is RESHAPE:
        length = stacked.array_shape.dimensions[0]
        return reshape(stacked, (length, *view.array_shape.dimensions))
    return transpose(stacked, (0, *(d + 1 for d in view.attributes["dimensions"])))


def _dot(
    like: Instruction,
    operands: Sequence[Instruction],
    contracting: Sequence[Sequence[int]],
    batch: Sequence[Sequence[int]],
) -> Instruction:
    """A dot with the element type and precision of another."""
    sizes = [o.array_shape.dimensions for o in operands]
    free = [
        size
        for each, *used in zip(sizes, contracting, batch, strict=True)
        for d, size in enumerate(each)
        if all(d not in dims for dims in used)
    ]
    return make(
        DOT_GENERAL,
        *operands,
        lhs_batch_dims=tuple(batch[0]),
        lhs_contracting_dims=tuple(contracting[0]),
        rhs_batch_dims=tuple(batch[1]),
        rhs_contracting_dims=tuple(contracting[1]),
        operand_precision=like.attributes["operand_precision"],
        shape=like.array_shape.with_dimensions((*(sizes[0][d] for d in batch[0]), *free)),
    )


def _dimensions(dot: Instruction, kind: str, stacked: Sequence[bool]) -> list[list[int]]:
    """The contracting or batch dimensions of both operands, shifted by one for stacked operands."""
    return [
        [d + is_stacked for d in dot.attributes[f"{side}_{kind}_dims"]]
        for side, is_stacked in zip(("lhs", "rhs"), stacked, strict=True)
    ]


def stacked_dots(
    dot: Instruction, operands: Sequence[Instruction], stacked: Sequence[bool]
) -> Instruction:
    """The dots of all iterations, stacked, of operands with at least one stacked."""
    batch = _dimensions(dot, "batch", stacked)
    made = _dot(dot, operands, _dimensions(dot, "contracting", stacked), batch)
    place = len(batch[0])
    if stacked[1]:
        left = operands[0].array_shape.rank
        place = left - len(dot.attributes["lhs_contracting_dims"])
    return moved(made, place, 0)


def summed_dots(
    dot: Instruction, operands: Sequence[Instruction], views: Sequence[Instruction]
) -> Instruction:
    """The sum of the dots of all iterations, under ``views``, of stacked operands."""
    both = (True, True)
    batch = _dimensions(dot, "batch", both)
    contracting = [[0, *dims] for dims in _dimensions(dot, "contracting", both)]
    if len(views) == 1 and _swaps_sides(views[0], dot):
        # transpose(dot(a, b)) -> dot(b, a)
        return _dot(dot, operands[::-1], contracting[::-1], batch)
    made = _dot(dot, operands, contracting, batch)
    for view in views:
        made = rebuild(view, [made])
    return made


def _swaps_sides(view: Instruction, dot: Instruction) -> bool:
    """Whether a view of a dot equals the dot of its swapped operands."""
    if view.op is not TRANSPOSE or dot.attributes["lhs_batch_dims"]:
        return False
    left = dot.operands[0].array_shape.rank - len(dot.attributes["lhs_contracting_dims"])
    rank = dot.array_shape.rank
    return tuple(view.attributes["dimensions"]) == (*range(left, rank), *range(left))
