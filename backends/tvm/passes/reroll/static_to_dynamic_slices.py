"""Turns Slices into DynamicSlices at constant indices, so that unrolled iterations are equal.

    x[3:4]        dynamic_slice(x, [3], sizes=[1])

Unrolled iterations read ``x[i]`` at different ``i``. As attributes of a Slice these numbers make
the iterations different; as operands they are constants, which may vary.
"""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.graph import Instruction
from tracejit.ops.constants import CONSTANT, PARAMETER, constant
from tracejit.ops.layout import (
    SLICE,
    dynamic_slice,
    slice_,
)
from tracejit.shapes import ElementType
from tracejit.traversal import in_order, rebuild


def make_slices_dynamic(roots: Sequence[Instruction]) -> list[Instruction]:
    """Equal ``roots`` without Slices, except strided ones of arrays sliced before.

    All instructions but parameters and constants are rebuilt, in order. Each user gets its own
    slice, so that iterations do not depend on which of them came first.
    """
    made = _Moving()
    for instruction in in_order(roots):
        made.add(instruction)
    return [made.operand(root) for root in roots]


class _Moving:
    def __init__(self) -> None:
        self._new: dict[Instruction, Instruction] = {}
        self._views: set[Instruction] = set()
        self._places: dict[int, Instruction] = {}

    def add(self, instruction: Instruction) -> None:
        """Rebuild the next instruction of the old graph."""
        if instruction.op in (CONSTANT, PARAMETER):
            self._new[instruction] = instruction
        elif is_slice(instruction) or (
            instruction.op.is_view
            and instruction.op is not SLICE
            and instruction.operands[0] in self._views
        ):
            self._views.add(instruction)
        else:
            self._new[instruction] = rebuild(instruction, self._operands(instruction))

    def operand(self, instruction: Instruction) -> Instruction:
        """The replacement of an instruction; of a view a new one each time."""
        if instruction not in self._views:
            return self._new[instruction]
        chain = [instruction]
        while chain[-1].operands[0] in self._views:
            chain.append(chain[-1].operands[0])
        made = self._new[chain[-1].operands[0]]
        for view in reversed(chain):
            made = self._sliced(view, made) if view.op is SLICE else rebuild(view, [made])
        return made

    def _operands(self, instruction: Instruction) -> list[Instruction]:
        """The replacements of all operands, one for an operand that is used twice."""
        made = {operand: self.operand(operand) for operand in dict.fromkeys(instruction.operands)}
        return [made[operand] for operand in instruction.operands]

    def _sliced(self, instruction: Instruction, operand: Instruction) -> Instruction:
        parts = instruction.attributes["slice"]
        ends = [part.start + (part.size - 1) * part.stride + 1 for part in parts]
        sizes = [end - part.start for end, part in zip(ends, parts, strict=True)]
        made = dynamic_slice(operand, [self._place(part.start) for part in parts], sizes)
        strides = [part.stride if part.size > 1 else 1 for part in parts]
        if max(strides) == 1:
            return made
        return slice_(made, [0] * len(sizes), sizes, strides)

    def _place(self, number: int) -> Instruction:
        if number not in self._places:
            self._places[number] = constant(number, ElementType.S64)
        return self._places[number]


def is_slice(instruction: Instruction) -> bool:
    """Whether it is a Slice of elements, of an array that is no scalar."""
    return (
        instruction.op is SLICE and instruction.array_shape.rank > 0 < instruction.array_shape.size
    )
