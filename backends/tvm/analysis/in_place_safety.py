"""In-place safety: whether an update reads its array only at the elements that it writes.

Such an update, and one of a single element, may be computed while it is stored, since an element
is loaded before it is overwritten. Any other update is computed first; so is a scatter of complex
elements, which are stored in two parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from tracejit.backends.tvm.analysis.element_rules import pointwise
from tracejit.backends.tvm.ir.reshapes import stored_as
from tracejit.graph import Instruction
from tracejit.ops.constants import CONSTANT
from tracejit.ops.layout import DYNAMIC_SLICE, DYNAMIC_UPDATE_SLICE, RESHAPE, SLICE

Asked = tuple[Instruction, bool]
"""An instruction, and whether it is read at the index that is computed, or at others."""


def reads_elsewhere(update: Instruction, is_stored: Callable[[Instruction], bool]) -> bool:
    """Whether an update reads the array that it updates at other indices than it writes.

    ``update`` is a DynamicUpdateSlice or a Scatter; ``is_stored`` says which instructions have
    memory.
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
    """Everything that ``wanted`` reads transitively, each once."""
    stack = list(wanted)
    seen: set[Asked] = set()
    while stack:
        asked = stack.pop()
        if asked not in seen:
            seen.add(asked)
            yield asked
            stack.extend(reads(*asked))


def _places(view: Instruction) -> list[Instruction | int] | None:
    """The start of a Slice or a DynamicSlice in each dimension; None with strides."""
    if view.op is DYNAMIC_SLICE:
        operand, *starts = view.operands
        return _starts(operand, starts, view)
    cuts = view.attributes["slice"]
    return [cut.start for cut in cuts] if all(cut.stride == 1 for cut in cuts) else None


def _starts(
    array: Instruction, starts: Sequence[Instruction], part: Instruction
) -> list[Instruction | int]:
    """The start of a slice after clamping: numbers where they are known."""
    sizes = zip(array.array_shape.dimensions, part.array_shape.dimensions, strict=True)
    return [
        min(max(int(start.attributes["literal"]), 0), whole - size)
        if start.op is CONSTANT
        else start
        for start, (whole, size) in zip(starts, sizes, strict=True)
    ]
