"""Planned kernels: the instructions that a kernel computes, and the arrays it reads.

inputs_of(kernel, memory)       the arrays that a kernel loads
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from tracejit.backends.tvm.analysis.element_rules import indexed, pointwise
from tracejit.backends.tvm.analysis.in_place_safety import Asked, asked_for
from tracejit.graph import Instruction
from tracejit.ops.constants import CONSTANT, GET_TUPLE_ELEMENT, PARAMETER, TUPLE
from tracejit.ops.layout import CONCATENATE, RESHAPE

# The longest vector that is packed from scalars; longer ones are concatenated by a kernel.
MOST_GATHERED = 8


@dataclass
class Fusion:
    """A fusion: one kernel before it is lowered.

    ``results`` are materialised and share ``dimensions``. ``anchor`` is the one instruction with a
    schedule of its own (a Reduce, a Dot, a Scatter …); None for a pointwise kernel. If the anchor
    is not a result, the results are its epilogue. ``siblings`` are sibling Reduces over the same
    dimensions, computed in the same pass. ``size`` counts a pointwise kernel's ops, ``chains`` the
    length of the dependence chain before each result.
    """

    results: list[Instruction]
    anchor: Instruction | None = None
    siblings: tuple[Instruction, ...] = ()
    size: int = 0
    chains: dict[Instruction, int] = field(default_factory=dict)

    @property
    def anchors(self) -> tuple[Instruction, ...]:
        """The anchor and its siblings, if there is one."""
        return () if self.anchor is None else (self.anchor, *self.siblings)

    @property
    def dimensions(self) -> tuple[int, ...]:
        """The iteration space of a pointwise kernel: the shape of each result, or () for packed
        scalars.
        """
        first = self.results[0]
        return () if packed_scalars(first) else first.array_shape.dimensions


@dataclass
class FusionPlan:
    """Kernels in execution order, and every instruction that has memory."""

    kernels: list[Fusion]
    memory: set[Instruction]
    uses: dict[Instruction, int] = field(default_factory=dict)


def is_anchor(instruction: Instruction) -> bool:
    """Whether an instruction needs a schedule of its own."""
    return (
        pointwise.get(instruction.op) is None
        and indexed.get(instruction.op) is None
        and instruction.op not in (PARAMETER, CONSTANT, GET_TUPLE_ELEMENT, TUPLE)
        and not packed_scalars(instruction)
    )


def packed_scalars(instruction: Instruction) -> list[Instruction]:
    """The scalars that a short vector packs, in order; empty for other instructions.

    The kernel that computes the scalars stores them to the vector's elements.
    """
    parts = instruction.operands
    if instruction.op is not CONCATENATE or len(parts) > MOST_GATHERED:
        return []
    scalars = [part.operands[0] for part in parts if part.op is RESHAPE]
    all_scalars = len(scalars) == len(parts) and not any(s.array_shape.rank for s in scalars)
    return scalars if all_scalars else []


def read_by(instruction: Instruction) -> Sequence[Instruction]:
    """The operands that computing an instruction reads."""
    return packed_scalars(instruction) or instruction.operands


def is_given(instruction: Instruction) -> bool:
    """Whether an instruction has memory before the program runs: a parameter or a constant."""
    if instruction.op is CONSTANT:
        return instruction.array_shape.rank > 0
    return instruction.op is PARAMETER


def tuple_of(instruction: Instruction) -> Instruction:
    """The tuple at the end of a chain of GetTupleElements; any other instruction itself."""
    while instruction.op is GET_TUPLE_ELEMENT:
        (instruction,) = instruction.operands
    return instruction


def inputs_of(kernel: Fusion, memory: set[Instruction]) -> set[Instruction]:
    """The instructions that a kernel loads from memory."""
    return loaded_inputs([o for result in kernel.results for o in read_by(result)], memory)


def loaded_inputs(values: Iterable[Instruction], memory: set[Instruction]) -> set[Instruction]:
    """The instructions that are loaded to compute ``values``: these themselves if they have
    memory.
    """
    return {i for i in backward_slice(values, memory.__contains__) if i in memory}


def backward_slice(
    values: Iterable[Instruction], is_end: Callable[[Instruction], bool]
) -> Iterator[Instruction]:
    """``values`` and their transitive operands, each once; operands of the ends are not visited."""
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
    """Whether an element of the instruction depends only on the same element of each operand."""
    is_scalar = instruction.op is RESHAPE and not instruction.operands[0].array_shape.rank
    return (
        pointwise.get(instruction.op) is not None or is_scalar or bool(packed_scalars(instruction))
    )


def reads_at_own_element(kernel: Fusion, hosts: set[Instruction], memory: set[Instruction]) -> bool:
    """Whether a kernel reads the hosts' results only at the element it computes."""

    def reads(instruction: Instruction, straight: bool) -> list[Asked]:
        if instruction in memory and instruction not in kernel.results:
            return []
        keeps = straight and _keeps_places(instruction)
        return [(operand, keeps) for operand in read_by(instruction)]

    wanted = [(result, True) for result in kernel.results]
    return all(straight or i not in hosts for i, straight in asked_for(wanted, reads))
