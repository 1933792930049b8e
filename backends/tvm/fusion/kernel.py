"""Planned kernels: what each computes, and what it reads.

inputs_of(kernel, memory)       what a kernel loads
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from tracejit.backends.tvm.analysis.element_rules import indexed, pointwise
from tracejit.backends.tvm.analysis.in_place_safety import Asked, asked_for
from tracejit.graph import Instruction
from tracejit.ops.constants import CONSTANT, GET_TUPLE_ELEMENT, PARAMETER, TUPLE
from tracejit.ops.layout import CONCATENATE, RESHAPE

# Longer vectors have a kernel of their own.
MOST_GATHERED = 8


@dataclass
class Kernel:
    """What one kernel makes.

    ``results`` get memory and share ``dimensions``. ``anchor`` is the one instruction that needs a
    schedule of its own (a Reduce, a Dot, a Scatter …); None for a pointwise kernel. When the anchor
    is not itself a result, the results are its epilogue. ``beside`` are further Reduces, over the
    same dimensions of equal shapes, that are combined in the same pass. ``size`` counts a pointwise
    kernel's ops, ``chains`` those before each result that wait for each other.
    """

    results: list[Instruction]
    anchor: Instruction | None = None
    beside: tuple[Instruction, ...] = ()
    size: int = 0
    chains: dict[Instruction, int] = field(default_factory=dict)

    @property
    def anchors(self) -> tuple[Instruction, ...]:
        """The anchor and what is beside it, if there is one."""
        return () if self.anchor is None else (self.anchor, *self.beside)

    @property
    def dimensions(self) -> tuple[int, ...]:
        """Of the space that a pointwise kernel runs over: each result's, or none if gathered."""
        first = self.results[0]
        return () if gathered(first) else first.array_shape.dimensions


@dataclass
class Plan:
    """Kernels in the order they run, and every instruction that has memory."""

    kernels: list[Kernel]
    memory: set[Instruction]
    uses: dict[Instruction, int] = field(default_factory=dict)


def is_anchor(instruction: Instruction) -> bool:
    """Whether an instruction needs a schedule of its own."""
    return (
        pointwise.get(instruction.op) is None
        and indexed.get(instruction.op) is None
        and instruction.op not in (PARAMETER, CONSTANT, GET_TUPLE_ELEMENT, TUPLE)
        and not gathered(instruction)
    )


def gathered(instruction: Instruction) -> list[Instruction]:
    """The scalars that a short vector is made of, one after the other; nothing for all others.

    The kernel that computes the scalars stores them where the vector is to be.
    """
    parts = instruction.operands
    if instruction.op is not CONCATENATE or len(parts) > MOST_GATHERED:
        return []
    scalars = [part.operands[0] for part in parts if part.op is RESHAPE]
    all_scalars = len(scalars) == len(parts) and not any(s.array_shape.rank for s in scalars)
    return scalars if all_scalars else []


def read_by(instruction: Instruction) -> Sequence[Instruction]:
    """What computing an instruction asks for."""
    return gathered(instruction) or instruction.operands


def is_given(instruction: Instruction) -> bool:
    """Whether memory for the instruction exists before anything runs."""
    if instruction.op is CONSTANT:
        return instruction.array_shape.rank > 0
    return instruction.op is PARAMETER


def tuple_of(instruction: Instruction) -> Instruction:
    """What GetTupleElements, one inside the other, take apart; any other instruction itself."""
    while instruction.op is GET_TUPLE_ELEMENT:
        (instruction,) = instruction.operands
    return instruction


def inputs_of(kernel: Kernel, memory: set[Instruction]) -> set[Instruction]:
    """What a kernel loads."""
    return loaded([o for result in kernel.results for o in read_by(result)], memory)


def loaded(values: Iterable[Instruction], memory: set[Instruction]) -> set[Instruction]:
    """What is loaded to compute ``values``: they themselves, where they have memory."""
    return {i for i in made_of(values, memory.__contains__) if i in memory}


def made_of(
    values: Iterable[Instruction], is_end: Callable[[Instruction], bool]
) -> Iterator[Instruction]:
    """``values`` and all that they are made of, once each, not looking further than the ends."""
    stack = list(values)
    seen: set[Instruction] = set()
    while stack:
        instruction = stack.pop()
        if instruction not in seen:
            seen.add(instruction)
            yield instruction
            if not is_end(instruction):
                stack.extend(instruction.operands)


def _keeps_places(instruction: Instruction) -> bool:
    """Whether an element of the instruction is made of the same element of each operand."""
    is_scalar = instruction.op is RESHAPE and not instruction.operands[0].array_shape.rank
    return pointwise.get(instruction.op) is not None or is_scalar or bool(gathered(instruction))


def reads_at_own_element(kernel: Kernel, hosts: set[Instruction], memory: set[Instruction]) -> bool:
    """Whether a kernel reads the hosts' results only at the element it computes."""

    def reads(instruction: Instruction, straight: bool) -> list[Asked]:
        if instruction in memory and instruction not in kernel.results:
            return []
        keeps = straight and _keeps_places(instruction)
        return [(operand, keeps) for operand in read_by(instruction)]

    wanted = [(result, True) for result in kernel.results]
    return all(straight or i not in hosts for i, straight in asked_for(wanted, reads))
