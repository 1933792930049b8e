"""Branches as choices between values: both are computed, and one of them is taken.

    with_choices(roots)

That is what all steps of a loop at once can do. A write in one branch alone becomes a write of what
is chosen there, so that it stays a write to one place.
"""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.graph import Instruction
from tracejit.ops.constants import GET_TUPLE_ELEMENT, PARAMETER, TUPLE, elements_of, tuple_
from tracejit.ops.control import CONDITIONAL, WHILE
from tracejit.ops.elementwise import ATAN2, DIV, POW, REM, select
from tracejit.ops.layout import (
    DYNAMIC_UPDATE_SLICE,
    broadcast_in_dim,
    dynamic_slice,
    dynamic_update_slice,
)
from tracejit.shapes import Shape
from tracejit.traversal import in_order, inline, transform

FEW = 8
"""So many operations on numbers are few."""

_TAKING_APART = frozenset({PARAMETER, GET_TUPLE_ELEMENT, TUPLE})
_CHEAP = frozenset({"comparison", "constants", "element_types", "elementwise"})
_SLOW = frozenset({ATAN2, DIV, POW, REM})


def with_choices(roots: Sequence[Instruction]) -> list[Instruction]:
    """Equal ``roots`` without the branches on truth values that neither loop nor do anything."""
    if not any(instruction.op is CONDITIONAL for instruction in in_order(roots)):
        return list(roots)

    def visit(instruction: Instruction, operands: tuple[Instruction, ...]) -> Instruction | None:
        return choice(instruction, operands) if instruction.op is CONDITIONAL else None

    return transform(roots, visit)


def choice(conditional: Instruction, operands: Sequence[Instruction]) -> Instruction | None:
    """What a Conditional makes, without it; None if it goes by a number, or holds a loop."""
    branches = conditional.computations
    inside = [inner for branch in branches for inner in in_order([branch.root])]
    if conditional.has_effect or conditional.attributes["branch_computations"]:
        return None
    if any(inner.op is WHILE for inner in inside):
        return None
    predicate, *arguments = operands
    values = [inline(b, [a]) for b, a in zip(branches, arguments, strict=True)]
    return _chosen(predicate, *with_choices([_flat(value) for value in values]))


def is_trifling(conditional: Instruction) -> bool:
    """Whether the branches do nothing but compute with a few numbers, which is less than a jump."""
    for branch in conditional.computations:
        made = [i for i in in_order([branch.root]) if i.op not in _TAKING_APART]
        if len(made) > FEW or not all(map(_is_cheap, made)):
            return False
        if not all(isinstance(s, Shape) and not s.rank for s in branch.root.element_shapes):
            return False
    return True


def _is_cheap(instruction: Instruction) -> bool:
    if instruction.op.family not in _CHEAP or instruction.op in _SLOW:
        return False
    return instruction.shape == Shape(instruction.array_shape.element_type)


def _flat(value: Instruction) -> Instruction:
    """A value without elements taken out of tuples that are at hand."""
    (made,) = transform(
        [value],
        lambda i, operands: (
            operands[0].operands[i.attributes["index"]]
            if i.op is GET_TUPLE_ELEMENT and operands[0].op is TUPLE
            else None
        ),
    )
    return made


def _chosen(predicate: Instruction, first: Instruction, second: Instruction) -> Instruction:
    """The first where a scalar is true, else the second; of tuples, part by part."""
    if first is second or not isinstance(first.shape, Shape):
        if first is second:
            return first
        pairs = zip(elements_of(first), elements_of(second), strict=True)
        return tuple_([_chosen(predicate, a, b) for a, b in pairs])
    for written, other in ((first, second), (second, first)):
        if written.op is DYNAMIC_UPDATE_SLICE and written.operands[0] is other:
            _, update, *starts = written.operands
            old = dynamic_slice(other, starts, update.array_shape.dimensions)
            values = (update, old) if written is first else (old, update)
            return dynamic_update_slice(other, _selected(predicate, *values), starts)
    if first.op is second.op is DYNAMIC_UPDATE_SLICE:
        base, update, *starts = first.operands
        same, another, *places = second.operands
        if base is same and starts == places and update.shape == another.shape:
            return dynamic_update_slice(base, _selected(predicate, update, another), starts)
    return _selected(predicate, first, second)


def _selected(predicate: Instruction, first: Instruction, second: Instruction) -> Instruction:
    sizes = first.array_shape.dimensions
    return select(broadcast_in_dim(predicate, sizes, ()), first, second)
