"""Reassociates minima and maxima so that the operand from the step before comes last.

    reassociate_recurrences(loop)     the root of an equal body

    min(min(up, left), corner)          min(min(up, corner), left)
    if new[i] and x[i] < best:          value = x[i] if new[i] else nan
        best = x[i]                     if value < best: best = value

A step has to wait for the step before it with what depends on that alone. Minima and maxima of
floats are the same in any order: NaN where one is NaN, and -0 is less than +0. Those of integers
take one cycle each, and wait for nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tracejit.backends.tvm.analysis.array_regions import versions_of
from tracejit.backends.tvm.analysis.induction import CountedLoop, place_of
from tracejit.graph import Instruction
from tracejit.ops.comparison import COMPARE
from tracejit.ops.elementwise import AND, MAX, MIN, SELECT, select
from tracejit.ops.layout import DYNAMIC_SLICE, full_like
from tracejit.shapes import Shape
from tracejit.trace.affine_bounds import Affine
from tracejit.traversal import in_order, rebuild, user_counts

_ORDERED = frozenset({"LT", "LE", "GT", "GE"})
"""Comparisons that NaN makes false."""


def reassociate_recurrences(loop: CountedLoop) -> Instruction:
    """The root of the loop's body, in which values wait for the step before as late as they can."""
    root = loop.body.root
    order = in_order([root])
    if not any(_is_extreme(instruction) or _is_masked(instruction) for instruction in order):
        return root
    with loop.known():
        waiting = {*_numbers(loop), *_previous(loop, order)}
    for instruction in order:
        if not waiting.isdisjoint(instruction.operands):
            waiting.add(instruction)
    counts = user_counts([root])
    inner = {
        operand
        for user in order
        if _is_extreme(user)
        for operand in user.operands
        if operand.op is user.op and counts[operand] == 1
    }

    new: dict[Instruction, Instruction] = {}
    hidden: dict[tuple[Instruction, Instruction], Instruction] = {}
    for instruction in order:
        operands = [new[operand] for operand in instruction.operands]
        if _is_masked(instruction):
            found = _hidden(instruction, waiting, new)
            if found is not None:
                value, shown, new[instruction] = found
                hidden[instruction, value] = shown
                continue
        if instruction.op is SELECT:
            truth, value, _ = instruction.operands
            operands[1] = hidden.get((truth, value), operands[1])
        values = [] if instruction in inner else list(_values(instruction, inner))
        last = [value for value in values if value in waiting]
        if 0 < len(last) < len(values) > 2:
            first = [value for value in values if value not in waiting]
            made, *rest = [new[value] for value in (*first, *last)]
            for value in rest:
                made = rebuild(instruction, (made, value))
            new[instruction] = made
        elif all(a is b for a, b in zip(operands, instruction.operands, strict=True)):
            new[instruction] = instruction
        else:
            new[instruction] = rebuild(instruction, operands)
    return new[root]


def _is_masked(instruction: Instruction) -> bool:
    """Whether an instruction is a comparison of two floats, and something else."""
    return instruction.op is AND and any(map(_orders_floats, instruction.operands))


def _orders_floats(truth: Instruction) -> bool:
    """Whether a truth value is a comparison of two floats that is false where one is NaN."""
    if truth.op is not COMPARE or truth.array_shape.rank:
        return False
    if truth.attributes["type"] == "TOTALORDER":
        return False
    is_floating = truth.operands[0].array_shape.element_type.is_floating
    return is_floating and truth.attributes["direction"] in _ORDERED


def _hidden(
    masked: Instruction, waiting: set[Instruction], new: Mapping[Instruction, Instruction]
) -> tuple[Instruction, Instruction, Instruction] | None:
    """A value that waits for nothing, it or NaN, and the comparison of that; None of others."""
    for mask, comparison in (masked.operands, masked.operands[::-1]):
        if mask in waiting or not _orders_floats(comparison):
            continue
        free = [value for value in comparison.operands if value not in waiting]
        if len(free) != 1:
            continue
        (value,) = free
        nothing = full_like(value, np.nan)
        shown = select(new[mask], new[value], nothing)
        sides = [shown if side is value else new[side] for side in comparison.operands]
        return value, shown, rebuild(comparison, sides)
    return None


def _is_extreme(instruction: Instruction) -> bool:
    if instruction.op not in (MIN, MAX) or not isinstance(instruction.shape, Shape):
        return False
    return instruction.shape.element_type.is_floating


def _values(extreme: Instruction, inner: set[Instruction]) -> Iterator[Instruction]:
    """What an extreme is one of, where those inside of it have no other use; nothing of others."""
    for operand in extreme.operands if _is_extreme(extreme) else ():
        if operand in inner and operand.op is extreme.op:
            yield from _values(operand, inner)
        else:
            yield operand


def _numbers(loop: CountedLoop) -> Iterator[Instruction]:
    """The numbers that each step makes of those of the step before."""
    for number, part in enumerate(loop.parts):
        if number != loop.counter and not loop.is_kept(number):
            if isinstance(part.shape, Shape) and part.shape.size == 1:
                yield part


def _previous(loop: CountedLoop, order: Sequence[Instruction]) -> Iterator[Instruction]:
    """The reads of what the step before has written."""
    written = []
    for part, made in zip(loop.parts, loop.made, strict=True):
        for write in versions_of(part, made)[1:]:
            _, update, *starts = write.operands
            written.append((part, update.shape, list(map(place_of, starts))))
    for read in order:
        if read.op is not DYNAMIC_SLICE:
            continue
        array, *starts = read.operands
        places = [_one_step_on(loop, place_of(start)) for start in starts]
        if None not in places and (array, read.shape, places) in written:
            yield read


def _one_step_on(loop: CountedLoop, place: Affine | None) -> Affine | None:
    """A place of a step as the next step has it."""
    if place is None:
        return None
    return place.plus(Affine(loop.step * place.terms.get(loop.number, 0)))
