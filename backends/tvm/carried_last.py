"""Minima and maxima of several values: what the step before has made comes last.

    with_carried_last(loop)     the root of an equal body

    min(min(up, left), corner)      min(min(up, corner), left)

A step has to wait for the step before it with what depends on that alone. Minima and maxima of
floats are the same in any order: NaN where one is NaN, and -0 is less than +0. Those of integers
take one cycle each, and wait for nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tracejit.backends.tvm.counted_loops import CountedLoop, place_of
from tracejit.backends.tvm.regions import versions_of
from tracejit.graph import Instruction
from tracejit.ops.elementwise import MAX, MIN
from tracejit.ops.layout import DYNAMIC_SLICE
from tracejit.shapes import Shape
from tracejit.trace.counters import Affine
from tracejit.traversal import in_order, rebuild, user_counts


def with_carried_last(loop: CountedLoop) -> Instruction:
    """The root of the loop's body, in which values wait for the step before as late as they can."""
    root = loop.body.root
    order = in_order([root])
    if not any(map(_is_extreme, order)):
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
    for instruction in order:
        operands = [new[operand] for operand in instruction.operands]
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
