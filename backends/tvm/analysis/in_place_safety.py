"""Whether an update reads, of the array that it updates, only the elements that it writes.

An update that reads an element of the array only where it writes that element, or that is one
element, may be computed while it is stored, since all of it is held by then. Any other has to be
computed before; so has a complex element that is scattered, in two parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from tracejit.backends.tvm.analysis.element_rules import pointwise
from tracejit.backends.tvm.ir.reshapes import stored_as
from tracejit.graph import Instruction
from tracejit.ops.constants import CONSTANT
from tracejit.ops.layout import DYNAMIC_SLICE, DYNAMIC_UPDATE_SLICE, RESHAPE, SLICE

Asked = tuple[Instruction, bool]
"""An instruction, and whether it is asked for at the place that is computed, or at others."""


def reads_elsewhere(update: Instruction, is_stored: Callable[[Instruction], bool]) -> bool:
    """Whether an update reads the array that it updates at other places than it writes.

    ``update`` is a DynamicUpdateSlice or a Scatter; ``is_stored`` tells what has memory.
    """
    array = stored_as(update.operands[0], is_stored)
    places: list[Instruction | int] = []
    if update.op is DYNAMIC_UPDATE_SLICE:
        _, value, *starts = update.operands
        if value.array_shape.size == 1:
            return False
        stack: list[Asked] = [(value, True), *((start, False) for start in starts)]
        places = _starts(update.operands[0], starts, value)
    else:
        value = update
        is_one = update.operands[-1].array_shape.size == 1 and len(update.operands) == 3
        if is_one and not update.array_shape.element_type.is_complex:
            return False
        stack = [(operand, False) for operand in update.operands[1:]]

    def reads(instruction: Instruction, straight: bool) -> list[Asked]:
        if is_stored(instruction):
            return []
        if (
            straight
            and instruction.op in (DYNAMIC_SLICE, SLICE)
            and stored_as(instruction.operands[0], is_stored) is array
            and instruction.operands[0].shape == update.operands[0].shape
            and instruction.array_shape.dimensions == value.array_shape.dimensions
            and _places(instruction) == places
        ):
            return [(start, False) for start in instruction.operands[1:]]
        keeps = straight and (
            instruction.op is RESHAPE or pointwise.get(instruction.op) is not None
        )
        return [(operand, keeps) for operand in instruction.operands]

    return any(instruction is array for instruction, _ in asked_for(stack, reads))


def asked_for(
    wanted: Iterable[Asked], reads: Callable[[Instruction, bool], Iterable[Asked]]
) -> Iterator[Asked]:
    """Everything that is asked for, once each, from what is wanted on to what that ``reads``."""
    stack = list(wanted)
    seen: set[Asked] = set()
    while stack:
        asked = stack.pop()
        if asked not in seen:
            seen.add(asked)
            yield asked
            stack.extend(reads(*asked))


def _places(view: Instruction) -> list[Instruction | int] | None:
    """Where a Slice or a DynamicSlice begins in each dimension; None of what has strides."""
    if view.op is DYNAMIC_SLICE:
        operand, *starts = view.operands
        return _starts(operand, starts, view)
    cuts = view.attributes["slice"]
    return [cut.start for cut in cuts] if all(cut.stride == 1 for cut in cuts) else None


def _starts(
    array: Instruction, starts: Sequence[Instruction], part: Instruction
) -> list[Instruction | int]:
    """Where a part begins that is forced to lie inside an array: numbers where they are known."""
    sizes = zip(array.array_shape.dimensions, part.array_shape.dimensions, strict=True)
    return [
        min(max(int(start.attributes["literal"]), 0), whole - size)
        if start.op is CONSTANT
        else start
        for start, (whole, size) in zip(starts, sizes, strict=True)
    ]
